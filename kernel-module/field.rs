// SPDX-License-Identifier: GPL-2.0
//! A field of this CPU's state, reached through %gs in one instruction.

use core::arch::asm;
use core::marker::PhantomData;

use crate::ffi;
use crate::per_cpu::PerCpu;

/// A field of this CPU's state, `AT` bytes from its begin.
pub struct Field<T, const AT: usize>(pub PhantomData<T>);

/// The field of this name, of which the compiler checks that it has this type.
macro_rules! field {
    ($name:ident: $type:ty) => {{
        const _: fn(&$crate::per_cpu::PerCpu) -> &$type = |state| &state.$name;
        $crate::field::Field::<$type, { core::mem::offset_of!($crate::per_cpu::PerCpu, $name) }>(
            core::marker::PhantomData,
        )
    }};
}
pub(crate) use field;

/// One instruction on a field of 8 bytes, of this CPU, whichever that is.
impl<const AT: usize> Field<u64, AT> {
    #[inline(always)]
    pub fn load(self) -> u64 {
        let value;
        // SAFETY: %gs leads to this CPU's data, and `field` knows place and size; the same in what follows.
        unsafe {
            asm!("mov {}, gs:[rip + {cpu} + {at}]", out(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }

    #[inline(always)]
    pub fn store(self, value: u64) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("mov gs:[rip + {cpu} + {at}], {}", in(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    pub fn clear(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("mov qword ptr gs:[rip + {cpu} + {at}], 0", cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    pub fn increment(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("inc qword ptr gs:[rip + {cpu} + {at}]", cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
    }

    /// How far `value` is from the field's.
    #[inline(always)]
    pub fn distance_to(self, value: u64) -> u64 {
        let distance;
        // SAFETY: as in `load`.
        unsafe {
            asm!("sub {}, gs:[rip + {cpu} + {at}]", inout(reg) value => distance, cpu = sym ffi::kutrace_cpu,
                at = const AT, options(nostack))
        };
        distance
    }

    /// Whether `value` is the field's.
    #[inline(always)]
    pub fn equals(self, value: u64) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            asm!("cmp gs:[rip + {cpu} + {at}], {}", "jne {}", in(reg) value, label { return false },
                cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
        true
    }

    /// Makes the field `new` if it is `old`: in one instruction, and no `lock`, since only this CPU writes it.
    #[inline(always)]
    pub fn exchange(self, old: u64, new: u64) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            asm!("cmpxchg gs:[rip + {cpu} + {at}], {}", "jne {}", in(reg) new, label { return false },
                inout("rax") old => _, cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
        true
    }

    /// Makes the field `new` if it is `BY` less, and that is in the same 64 KiB. The lowest 16 bits of `new` are taken
    /// back by themselves: where `new` is in the next block, what comes of that is no position.
    #[inline(always)]
    pub fn advance<const BY: u16>(self, new: u64) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            asm!("mov rax, {new}", "sub ax, {by}", "cmpxchg gs:[rip + {cpu} + {at}], {new}", "jne {}",
                label { return false }, new = in(reg) new, by = const BY, out("rax") _,
                cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
        true
    }

    /// Takes what is in the field, and leaves 0. `xchg` locks by itself; this is rare.
    #[inline(always)]
    pub fn take(self) -> u64 {
        let value;
        // SAFETY: as in `load`.
        unsafe {
            asm!("xchg gs:[rip + {cpu} + {at}], {}", inout(reg) 0u64 => value, cpu = sym ffi::kutrace_cpu,
                at = const AT, options(nostack, preserves_flags))
        };
        value
    }
}

/// The same of 4 bytes.
impl<const AT: usize> Field<u32, AT> {
    #[inline(always)]
    pub fn load(self) -> u32 {
        let value;
        // SAFETY: as in `Field::<u64>::load`; the same in what follows.
        unsafe {
            asm!("mov {:e}, gs:[rip + {cpu} + {at}]", out(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }

    #[inline(always)]
    pub fn increment(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("inc dword ptr gs:[rip + {cpu} + {at}]", cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
    }

    #[inline(always)]
    pub fn decrement(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("dec dword ptr gs:[rip + {cpu} + {at}]", cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
    }
}

impl<const AT: usize> Field<*mut PerCpu, AT> {
    #[inline(always)]
    pub fn load(self) -> *mut PerCpu {
        let value;
        // SAFETY: as in `Field::<u64>::load`.
        unsafe {
            asm!("mov {}, gs:[rip + {cpu} + {at}]", out(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }
}
