// SPDX-License-Identifier: GPL-2.0
//! Operations that x86-64 has instructions for: access to a field of this CPU's state through %gs, each in one
//! instruction; the time stamp counter, and other counters.

use core::arch::asm;
use core::marker::PhantomData;

use crate::abi::command::SHIFT;
use crate::abi::word::EVENT_BITS;
use crate::ffi;

/// A field of this CPU's state, `AT` bytes from its start.
pub struct Field<T, const AT: usize>(PhantomData<T>);

impl<T, const AT: usize> Field<T, AT> {
    /// The field.
    ///
    /// # Safety
    /// The state has a field of type `T` at that place, to which no code has a reference, and every value that is
    /// stored is one that it may have.
    #[inline(always)]
    pub const unsafe fn new() -> Self {
        Field(PhantomData)
    }
}

/// Instructions on the field `AT` of the current CPU, whichever that is.
macro_rules! on_field {
    ([$($option:ident),+], $($operands:tt)+) => {
        // SAFETY: %gs leads to this CPU's data, and as the caller of `Field::new` guaranteed the field is at this
        // place, and has the size that the instruction has; the value that the field is expected to have, and the value
        // it gets, are the caller's.
        unsafe { asm!($($operands)+, cpu = sym ffi::kutrace_cpu, at = const AT, options($($option),+)) }
    };
}

/// One instruction on a field of 8 bytes.
impl<const AT: usize> Field<u64, AT> {
    #[inline(always)]
    pub fn load(self) -> u64 {
        let value;
        on_field!([nostack, preserves_flags], "mov {}, gs:[rip + {cpu} + {at}]", out(reg) value);
        value
    }

    #[inline(always)]
    pub fn store(self, value: u64) {
        on_field!([nostack, preserves_flags], "mov gs:[rip + {cpu} + {at}], {}", in(reg) value);
    }

    #[inline(always)]
    pub fn clear(self) {
        on_field!([nostack, preserves_flags], "mov qword ptr gs:[rip + {cpu} + {at}], 0");
    }

    #[inline(always)]
    pub fn increment(self) {
        on_field!([nostack], "inc qword ptr gs:[rip + {cpu} + {at}]");
    }

    /// Returns the distance from the field's value to `value`.
    #[inline(always)]
    pub fn distance_to(self, value: u64) -> u64 {
        let distance;
        on_field!([nostack], "sub {}, gs:[rip + {cpu} + {at}]", inout(reg) value => distance);
        distance
    }

    /// Returns whether the field has this value.
    #[inline(always)]
    pub fn equals(self, value: u64) -> bool {
        on_field!([nostack], "cmp gs:[rip + {cpu} + {at}], {}", "jne {}", in(reg) value, label { return false });
        true
    }

    /// Sets the field to `new` if it is `old`: in one instruction, without `lock`, since only this CPU writes it.
    #[inline(always)]
    pub fn exchange(self, old: u64, new: u64) -> bool {
        on_field!([nostack], "cmpxchg gs:[rip + {cpu} + {at}], {}", "jne {}", in(reg) new, label { return false },
            inout("rax") old => _);
        true
    }

    /// Sets the field to `new` if it is `BY` less, if 4 bytes past `new` are in the same 64 KiB as that, and if `time`
    /// is less than `LIMIT` after the field `since`. A single comparison, with the value that the field is expected to
    /// have, covers all three.
    ///
    /// `BY` is subtracted from the lowest 16 bits alone, and 1 less if the time is too late. If those bits have to
    /// borrow, 1 is added to the whole. So if one condition does not hold, the expected value is 1 or 2 more than the
    /// field was or than the same place in the next 64 KiB; and there never is a position there, see
    /// [`Block::sealed`](crate::lane::Block::sealed).
    #[inline(always)]
    pub fn advance<const BY: u16, const LIMIT: u32, const SINCE: usize>(
        self,
        new: u64,
        time: u64,
        since: Field<u64, SINCE>,
    ) -> bool {
        let Field(PhantomData) = since;
        on_field!([nostack], "sub {time}, gs:[rip + {cpu} + {since}]", "cmp {time}, {limit}", "lea rax, [{new} + 4]",
            "sbb ax, {less}", "adc rax, 0", "cmpxchg gs:[rip + {cpu} + {at}], {new}", "jne {}",
            label { return false }, new = in(reg) new, time = inout(reg) time => _, out("rax") _,
            less = const BY + 3, limit = const LIMIT, since = const SINCE);
        true
    }

    /// Takes the field's value, and leaves 0. `xchg` locks by itself; this is rare.
    #[inline(always)]
    pub fn take(self) -> u64 {
        let value;
        on_field!([nostack, preserves_flags], "xchg gs:[rip + {cpu} + {at}], {}", inout(reg) 0u64 => value);
        value
    }
}

/// The same of 4 bytes.
impl<const AT: usize> Field<u32, AT> {
    #[inline(always)]
    pub fn load(self) -> u32 {
        let value;
        on_field!([nostack, preserves_flags], "mov {:e}, gs:[rip + {cpu} + {at}]", out(reg) value);
        value
    }

    #[inline(always)]
    pub fn increment(self) {
        on_field!([nostack], "inc dword ptr gs:[rip + {cpu} + {at}]");
    }

    #[inline(always)]
    pub fn decrement(self) {
        on_field!([nostack], "dec dword ptr gs:[rip + {cpu} + {at}]");
    }
}

impl<T, const AT: usize> Field<*mut T, AT> {
    #[inline(always)]
    pub fn load(self) -> *mut T {
        let value;
        on_field!([nostack, preserves_flags], "mov {}, gs:[rip + {cpu} + {at}]", out(reg) value);
        value
    }
}

/// The field of a kernel structure, at the distance from its start that the symbol gives, and `$more`: one instruction,
/// into which the linker puts that number. The bench has no such structures.
#[allow(unused_macros)]
macro_rules! field_at {
    ($of:expr, $at:path, u32) => { arch::field_at!($of, $at, u32, "mov {:e}, [{} + {} + {}]", 0) };
    ($of:expr, $at:path, u64) => { arch::field_at!($of, $at, u64, 0) };
    ($of:expr, $at:path, u64, $more:literal) => { arch::field_at!($of, $at, u64, "mov {}, [{} + {} + {}]", $more) };
    ($of:expr, $at:path, $type:ty, $load:literal, $more:literal) => {{
        let value: $type;
        core::arch::asm!($load, out(reg) value, in(reg) $of, sym $at, const $more,
            options(nostack, preserves_flags, pure, readonly));
        value
    }};
}
#[allow(unused_imports)]
pub(crate) use field_at;

/// The entry of event `BASE + number` at a time of [`tsc`].
#[inline(always)]
pub fn entry<const BASE: u16>(number: u32, time: u32) -> u32 {
    let entry;
    // The compiler would place this after the exchange, which takes the register that the time is in.
    // SAFETY: arithmetic.
    unsafe {
        asm!("shl {time:e}, {up}", "and {time:e}, {mask}", "lea {entry:e}, [{time:r} + {number:r} + {base}]",
            time = inout(reg) time => _, number = in(reg) number, entry = lateout(reg) entry,
            up = const EVENT_BITS - SHIFT, mask = const -(1 << EVENT_BITS), base = const BASE, options(nomem, nostack))
    };
    entry
}

/// Converts a time of [`tsc`] to counts.
#[inline(always)]
pub fn counts(mut time: u64) -> u64 {
    // The compiler would merge the shift with those of the word that the counts go into, for one more instruction.
    // SAFETY: arithmetic.
    unsafe { asm!("shr {}, {}", inout(reg) time, const SHIFT, options(nomem, nostack)) };
    time
}

/// Adds to the word before `end` in one instruction.
///
/// # Safety
/// The word can be written, and no other CPU writes it.
#[inline(always)]
pub unsafe fn add_before(end: *mut u32, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("add dword ptr [{} - 4], {:e}", in(reg) end, in(reg) value, options(nostack)) };
}

/// Adds 1 to a word in one instruction, since an interrupt may do so too.
///
/// # Safety
/// See [`add_before`].
#[cfg(kutrace_count)]
pub unsafe fn increment(at: *mut u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("inc dword ptr [{}]", in(reg) at, options(nostack)) };
}

/// Reads the time stamp counter, not ordered against other instructions: a claim's exchange orders it enough, since
/// interrupts are precise.
#[inline(always)]
pub fn tsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: every x86-64 processor has rdtsc, and the kernel may execute it.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags)) };
    high << 32 | low
}

/// Reads a counter that perf has chosen. The value is as wide as the counter, and starts again where perf sets it: only
/// differences are meaningful.
///
/// # Safety
/// The processor has a counter of this index: any other raises an exception.
#[inline(always)]
pub unsafe fn pmc(index: i32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the caller's promise, and the kernel may execute rdpmc.
    unsafe { asm!("rdpmc", in("ecx") index, out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}
