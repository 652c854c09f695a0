// SPDX-License-Identifier: GPL-2.0
//! What each CPU's recorder remembers, reached through %gs in one instruction a field.
//!
//! Invariant: while hooks are on, only its own CPU writes a PerCpu, with preemption off.

use core::arch::asm;
use core::marker::PhantomData;
use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::{compiler_fence, AtomicU32, Ordering};

use crate::abi::block::{self, Header};
use crate::abi::event::TASK_WORDS;
use crate::abi::word::{EVENT_BITS, TIME_PERIOD};
use crate::budget::Budget;
use crate::buffer::pool;
use crate::claim::{Begin, Block, End, Lane, Position, NO_BLOCK, NO_CALL};
use crate::counters::Counters;
use crate::entry::Naming;
use crate::task::Task;
use crate::{clock, ffi};

/// What one CPU's recorder remembers. The first line of cache is all that the common path touches.
#[repr(C, align(64))]
pub struct PerCpu {
    position: u64,
    since: u64,
    /// TSC counts of 2^20 - 1 counts.
    period: u64,
    call_end: u64,
    call_time: u64,
    depth: u32,
    /// What moves the TSC's bits to where an entry has the time.
    scale: u32,
    shift: u8,
    cpu: u32,
    lost: u64,
    pub outside: u64,
    /// Calls of hooks.
    #[cfg(kutrace_count)]
    pub calls: u64,
    /// The block kept aside, or 0.
    spare: u64,
    this: *mut PerCpu,
    oldest: u64,
    /// Whether the CPU is offline, so that its next block begins when it is back.
    gone: u32,
    /// Whether it was when recording began.
    gone_at_start: bool,
    /// To what it was told last; see [`Answer`].
    answer: AtomicU32,
    /// What programs may still insert, and how often they were refused.
    names: Insertions,
    marks: Insertions,
    /// Tasks named in the current block.
    named: [Named; NAMED],
    pub counters: Counters,
}

/// A task, and the last block that named it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Named {
    /// The pid in the low half, the block's number, from 1, above.
    key: u64,
    /// When the task was made: a pid is used again.
    born: u64,
}

/// What programs insert of one kind.
struct Insertions {
    budget: Budget,
    refused: u64,
}

impl Insertions {
    fn new(rate: u32) -> Insertions {
        Insertions { budget: Budget::new(u64::from(clock::tsc_khz()) * 1000, rate), refused: 0 }
    }

    fn take(&mut self) -> bool {
        let taken = self.budget.take(clock::tsc());
        self.refused += u64::from(!taken);
        taken
    }
}

/// What a CPU says when it has done what it was told.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum Answer {
    /// It has not yet.
    None,
    /// It has.
    Yes,
    /// It could not.
    No,
}

/// Slots of the table of named tasks. Tasks that share one are named more often, nothing else.
const NAMED: usize = 128;
/// Room that shim.h reserves.
const CPU_BYTES: usize = 4096;
const _: () = assert!(size_of::<PerCpu>() <= CPU_BYTES && offset_of!(PerCpu, cpu) < 64);

impl PerCpu {
    /// The state of a CPU that has recorded nothing. `this` is where it will be.
    pub fn new(cpu: u32, this: *mut PerCpu, shift: u32) -> PerCpu {
        PerCpu {
            position: NO_BLOCK.sealed().address(),
            since: 0,
            period: (TIME_PERIOD - 1) << shift,
            call_end: NO_CALL.address(),
            call_time: 0,
            depth: 0,
            scale: 1 << (EVENT_BITS - shift),
            shift: shift as u8,
            cpu,
            lost: 0,
            outside: 0,
            #[cfg(kutrace_count)]
            calls: 0,
            spare: 0,
            this,
            oldest: 0,
            gone: 0,
            gone_at_start: false,
            answer: AtomicU32::new(Answer::Yes as u32),
            // SAFETY: nobody writes a module parameter that is read-only.
            names: Insertions::new(unsafe { ffi::kutrace_shim_namerate }),
            // SAFETY: as above.
            marks: Insertions::new(unsafe { ffi::kutrace_shim_markrate }),
            named: [Named { key: 0, born: 0 }; NAMED],
            counters: Counters::new(),
        }
    }

    /// Completes the header of the last block: ends a block that the CPU did not end itself because it was
    /// offline, and counts what was lost since. `end`: the counter now.
    ///
    /// # Safety
    /// No hook runs, and this is a CPU's state where it belongs, as the last reset left it or its hooks.
    pub unsafe fn finish(&mut self, end: u64) {
        // SAFETY: the lane's methods keep positions there.
        let position = unsafe { Position::new(self.position) };
        let block = position.block();
        if block == NO_BLOCK {
            return;
        }
        if !position.is_sealed() {
            let end = end.max(self.since >> self.shift);
            // SAFETY: no hook runs, so nobody uses the CPU's block.
            unsafe { end_block(position, end, 0) };
            self.position = block.sealed().address();
        }
        // SAFETY: as above.
        unsafe { (*block.header()).lost = self.lost };
    }

    /// Says whether the CPU is there when recording begins. It does not come or go now, and the pool is closed.
    ///
    /// # Safety
    /// `this` is a CPU's state, the control lock and the CPUs are held, and the pool is closed.
    pub unsafe fn begin(this: *mut PerCpu, online: bool) {
        // SAFETY: the CPU itself writes this field only when it comes or goes, which it does not while CPUs are held,
        // and reads it only in an open pool.
        unsafe { ptr::write_volatile(&raw mut (*this).gone, u32::from(!online)) };
        // SAFETY: only who holds the control lock uses this field.
        unsafe { ptr::write(&raw mut (*this).gone_at_start, !online) };
    }

    /// Whether the CPU was offline when recording began.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held.
    pub unsafe fn was_offline(this: *mut PerCpu) -> bool {
        // SAFETY: only who holds the control lock uses this field.
        unsafe { ptr::read(&raw const (*this).gone_at_start) }
    }

    /// To what the CPU was told last.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn answer<'a>(this: *mut PerCpu) -> &'a AtomicU32 {
        // SAFETY: the state is there as long as the module, and nobody writes the field but as an atomic, except a
        // reset. That writes Yes, when trace and hooks are over and Yes is all that a CPU may still have to say.
        unsafe { &(*this).answer }
    }

    /// Whether the CPU has not done yet what it was told.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn is_mute(this: *mut PerCpu) -> bool {
        // SAFETY: the caller's promise.
        unsafe { PerCpu::answer(this) }.load(Ordering::Acquire) == Answer::None as u32
    }

    /// Completes the header of the block that a mute CPU fills, as far as it is filled now. The CPU may fill it further
    /// and complete it again; in a claim it may have words that are not written, so then it stays open.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held, so that the pool stays.
    pub unsafe fn end_for_now(this: *mut PerCpu, end: u64) {
        // SAFETY: the caller's promise; an aligned word is not torn, and the lane's methods keep positions there.
        let position = unsafe { Position::new(ptr::read_volatile(&raw const (*this).position)) };
        // What was claimed before the position was read is written if nothing is claimed now.
        compiler_fence(Ordering::Acquire);
        // SAFETY: the caller's promise.
        let is_claiming = unsafe { PerCpu::is_claiming(this) };
        if position.block() != NO_BLOCK && !position.is_sealed() && !is_claiming {
            // SAFETY: the block was prepared, since a CPU's position was in it, and the pool stays. That nobody else
            // writes into the header is not sure: a CPU that comes back at this very moment may end the block itself,
            // or give it back to another that begins it anew. What can come of that is a block that seems to end too
            // early, or to have ended, or lacks a flag: wrong words in a header, none outside.
            unsafe { end_block(position, end, 0) };
        }
    }

    /// Names and marks that were refused, also while more are.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn refused(this: *mut PerCpu) -> (u64, u64) {
        // SAFETY: the caller's promise; an aligned word is not torn.
        let names = unsafe { ptr::read_volatile(&raw const (*this).names.refused) };
        // SAFETY: as above.
        let marks = unsafe { ptr::read_volatile(&raw const (*this).marks.refused) };
        (names, marks)
    }

    /// Events that a CPU has lost, also while it records.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn lost(this: *mut PerCpu) -> u64 {
        // SAFETY: as the caller says; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).lost) }
    }

    /// Whether the CPU is in a claim that counts at this moment.
    ///
    /// # Safety
    /// As of [`PerCpu::lost`].
    pub unsafe fn is_claiming(this: *mut PerCpu) -> bool {
        // SAFETY: as in `lost`.
        unsafe { ptr::read_volatile(&raw const (*this).depth) != 0 }
    }
}

impl Block {
    /// The block's header.
    pub fn header(self) -> *mut Header {
        self.address() as *mut Header
    }
}

/// Writes into a block's header how far it is filled, when that was, and why it ends.
///
/// # Safety
/// The block of `at` was prepared, and nobody else writes into its header.
unsafe fn end_block(at: Position, end: u64, flags: u32) {
    let header = at.block().header();
    // SAFETY: as the caller says.
    unsafe { (*header).end = end };
    // SAFETY: as above.
    unsafe { (*header).flags |= flags };
    // SAFETY: as above.
    unsafe { (*header).content_bits = u64::from(at.offset()) * 8 };
}

/// A field of this CPU's state, `AT` bytes from its begin.
struct Field<T, const AT: usize>(PhantomData<T>);

/// The field of this name, of which the compiler checks that it has this type.
macro_rules! field {
    ($name:ident: $type:ty) => {{
        const _: fn(&PerCpu) -> &$type = |state| &state.$name;
        Field::<$type, { offset_of!(PerCpu, $name) }>(PhantomData)
    }};
}

/// One instruction on a field of 8 bytes, of this CPU, whichever that is.
impl<const AT: usize> Field<u64, AT> {
    #[inline(always)]
    fn load(self) -> u64 {
        let value;
        // SAFETY: %gs leads to this CPU's data, and `field` knows place and size; the same in what follows.
        unsafe {
            asm!("mov {}, gs:[rip + {cpu} + {at}]", out(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }

    #[inline(always)]
    fn store(self, value: u64) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("mov gs:[rip + {cpu} + {at}], {}", in(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    fn clear(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("mov qword ptr gs:[rip + {cpu} + {at}], 0", cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    fn increment(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("inc qword ptr gs:[rip + {cpu} + {at}]", cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
    }

    /// How far `value` is from the field's.
    #[inline(always)]
    fn distance_to(self, value: u64) -> u64 {
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
    fn equals(self, value: u64) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            asm!("cmp gs:[rip + {cpu} + {at}], {}", "jne {}", in(reg) value, label { return false },
                cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
        true
    }

    /// Whether the field's is more than `value`.
    #[inline(always)]
    fn exceeds(self, value: u64) -> bool {
        // SAFETY: as in `load`.
        unsafe {
            asm!("cmp {}, gs:[rip + {cpu} + {at}]", "jae {}", in(reg) value, label { return false },
                cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
        true
    }

    /// Makes the field `new` if it is `old`: in one instruction, and no `lock`, since only this CPU writes it.
    #[inline(always)]
    fn exchange(self, old: u64, new: u64) -> bool {
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
    fn advance<const BY: u16>(self, new: u64) -> bool {
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
    fn take(self) -> u64 {
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
    fn load(self) -> u32 {
        let value;
        // SAFETY: as in `Field::<u64>::load`; the same in what follows.
        unsafe {
            asm!("mov {:e}, gs:[rip + {cpu} + {at}]", out(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }

    #[inline(always)]
    fn increment(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("inc dword ptr gs:[rip + {cpu} + {at}]", cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
    }

    #[inline(always)]
    fn decrement(self) {
        // SAFETY: as in `load`.
        unsafe {
            asm!("dec dword ptr gs:[rip + {cpu} + {at}]", cpu = sym ffi::kutrace_cpu, at = const AT, options(nostack))
        };
    }

    /// The entry of event `BASE + number` at the time whose highest bits come where an entry has them, and into its
    /// own place, when they are multiplied by the field.
    #[inline(always)]
    fn entry<const BASE: u16>(self, number: u32, time: u32) -> u32 {
        let entry;
        // SAFETY: as in `load`.
        unsafe {
            asm!("imul {time:e}, gs:[rip + {cpu} + {at}]", "and {time:e}, {mask}",
                "lea {entry:e}, [{time:r} + {number:r} + {base}]",
                time = inout(reg) time => _, number = in(reg) number, entry = lateout(reg) entry,
                base = const BASE, mask = const -(1 << EVENT_BITS), cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack))
        };
        entry
    }
}

impl<const AT: usize> Field<u8, AT> {
    #[inline(always)]
    fn load(self) -> u8 {
        let value;
        // SAFETY: as in `Field::<u64>::load`.
        unsafe {
            asm!("mov {}, gs:[rip + {cpu} + {at}]", out(reg_byte) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }
}

impl<const AT: usize> Field<*mut PerCpu, AT> {
    #[inline(always)]
    fn load(self) -> *mut PerCpu {
        let value;
        // SAFETY: as in `Field::<u64>::load`.
        unsafe {
            asm!("mov {}, gs:[rip + {cpu} + {at}]", out(reg) value, cpu = sym ffi::kutrace_cpu, at = const AT,
                options(nostack, preserves_flags))
        };
        value
    }
}

/// The CPU that the code runs on, for as long as it stays there; in a trace with counters or without.
#[derive(Clone, Copy)]
pub struct ThisCpu<'a, const COUNTING: bool>(PhantomData<(&'a (), *mut ())>);

/// Calls `work` with the CPU that it runs on.
///
/// # Safety
/// Preemption is off until it returns.
#[inline(always)]
pub unsafe fn on_this_cpu<const COUNTING: bool, R>(work: impl FnOnce(ThisCpu<'_, COUNTING>) -> R) -> R {
    work(ThisCpu(PhantomData))
}

impl<const COUNTING: bool> ThisCpu<'_, COUNTING> {
    /// Counts a call of a hook, in a module that was built to count.
    #[cfg(kutrace_count)]
    pub fn count_call(&self) {
        field!(calls: u64).increment()
    }

    #[cfg(not(kutrace_count))]
    #[inline(always)]
    pub fn count_call(&self) {}

    /// Counts an event in the header of its block, in a module that was built to count.
    #[cfg(kutrace_count)]
    fn count_event(&self, at: Position) {
        // SAFETY: `at` is in a block, which has a header.
        let events = unsafe { &raw mut (*at.block().header()).events };
        // In one instruction, since an interrupt may count here too.
        // SAFETY: the block is this CPU's, as `Lane::note` has it.
        unsafe { asm!("inc dword ptr [{}]", in(reg) events, options(nostack)) };
    }

    #[cfg(not(kutrace_count))]
    #[inline(always)]
    fn count_event(&self, _at: Position) {}
}

impl<const COUNTING: bool> ThisCpu<'_, COUNTING> {
    /// Whether the running program may insert anything.
    pub fn takes_marks(&self) -> bool {
        // SAFETY: only a program's system call asks.
        unsafe { ffi::kutrace_shim_may_mark() }
    }

    /// Whether a mark of the running program is taken now, or refused and counted. Only a program's system call asks.
    pub fn takes_mark(&self) -> bool {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state. Preemption is off and no interrupt makes system calls, so nobody else has
        // a reference to this field; `refused` has none when it looks from another CPU.
        unsafe { &mut (*this).marks }.take()
    }

    /// The same of a name.
    pub fn takes_name(&self) -> bool {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: as in `takes_mark`.
        unsafe { &mut (*this).names }.take()
    }

    /// Says that what this CPU was told is done.
    pub fn answer(&self, answer: Answer) {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state.
        unsafe { PerCpu::answer(this) }.store(answer as u32, Ordering::Release);
    }

    /// This CPU's number.
    pub fn number(&self) -> u32 {
        field!(cpu: u32).load()
    }

    /// Opens the lane of a CPU that has come online.
    pub fn come(&self) {
        self.set_gone(0);
    }

    /// Closes that of one that goes offline: it begins no block any more.
    pub fn go(&self) {
        self.set_gone(1);
    }

    fn set_gone(&self, gone: u32) {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state; others write the field only while no CPU comes or goes.
        unsafe { ptr::write_volatile(&raw mut (*this).gone, gone) };
    }
}

impl<'a, const COUNTING: bool> Naming for ThisCpu<'a, COUNTING> {
    type Task = Task<'a>;

    #[inline(always)]
    fn pid(&self, task: &Task<'_>) -> u32 {
        task.pid()
    }

    fn words(&self, task: &Task<'_>) -> [u32; TASK_WORDS] {
        task.words()
    }

    fn must_name(&self, block: Option<u64>, task: &Task<'_>) -> bool {
        let key = block.map_or(0, |number| (number + 1) << 32 | u64::from(task.pid()));
        let now = Named { key, born: task.born() };
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state and the index is below NAMED. Only a switch uses the table, with
        // interrupts off, and no NMI switches, so nobody else has a reference to it.
        let slot = unsafe { &mut (*this).named[task.pid() as usize % NAMED] };
        key == 0 || core::mem::replace(slot, now) != now
    }

    fn count_more(&self) {
        self.count_call()
    }
}

// SAFETY: on_this_cpu's caller says that preemption is off, and contexts of a CPU nest; positions come from `try_move`
// and `try_advance`, blocks from the pool, whose `take` gives none twice.
unsafe impl<const COUNTING: bool> Lane for ThisCpu<'_, COUNTING> {
    const ROOM: u16 = match COUNTING {
        false => block::BYTES - 4,
        true => (block::HEADER_WORDS + block::COUNTED_WORDS) * 4,
    } as u16;

    #[inline(always)]
    fn enter(&self) {
        field!(depth: u32).increment()
    }

    #[inline(always)]
    fn leave(&self) {
        field!(depth: u32).decrement()
    }

    fn is_outermost(&self) -> bool {
        field!(depth: u32).load() == 1
    }

    #[inline(always)]
    fn position(&self) -> Position {
        // SAFETY: only addresses of positions are stored there.
        unsafe { Position::new(field!(position: u64).load()) }
    }

    #[inline(always)]
    fn try_move(&self, old: Position, new: Position) -> bool {
        field!(position: u64).exchange(old.address(), new.address())
    }

    #[inline(always)]
    fn try_advance<const WORDS: usize>(&self, old: Position) -> bool {
        let new = old.address().wrapping_add(4 * WORDS as u64);
        if COUNTING && old.offset() > Self::ROOM - 4 * WORDS as u16 {
            return false;
        }
        match WORDS {
            1 => field!(position: u64).advance::<4>(new),
            2 => field!(position: u64).advance::<8>(new),
            3 => field!(position: u64).advance::<12>(new),
            _ => old.offset() <= Self::ROOM - 4 * WORDS as u16 && field!(position: u64).exchange(old.address(), new),
        }
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        clock::tsc()
    }

    fn counter(&self, time: u64) -> u64 {
        time >> (field!(shift: u8).load() & 63)
    }

    #[inline(always)]
    fn entry<const BASE: u16>(&self, number: u32, time: u64) -> u32 {
        field!(scale: u32).entry::<BASE>(number, time as u32)
    }

    fn since(&self) -> u64 {
        field!(since: u64).load()
    }

    fn set_since(&self, time: u64) {
        field!(since: u64).store(time)
    }

    #[inline(always)]
    fn is_far(&self, time: u64) -> bool {
        !field!(period: u64).exceeds(field!(since: u64).distance_to(time))
    }

    #[inline(always)]
    unsafe fn note(&self, at: Position) {
        self.count_event(at);
        if COUNTING {
            let this = field!(this: *mut PerCpu).load();
            // SAFETY: `this` is this CPU's state. Counters are opened and closed while no hook runs, so nobody has an
            // exclusive reference to them, and an interrupt that samples too shares this one.
            let byte = unsafe { &(*this).counters }.sample();
            let to = (at.block().address() as *mut u8).wrapping_add(block::counter_at(at.offset().into()));
            // SAFETY: the byte belongs to the caller's word, and lies in the same block after its entries, whose room
            // ends before it in a trace with counters.
            unsafe { ptr::write_volatile(to, byte) };
        }
    }

    fn count_loss(&self) {
        field!(lost: u64).increment()
    }

    fn count_outside(&self) {
        field!(outside: u64).increment()
    }

    #[inline(always)]
    unsafe fn store(&self, at: Position, word: u32) {
        // SAFETY: as the caller says.
        unsafe { ptr::write_volatile(at.address() as *mut u32, word) };
    }

    #[inline(always)]
    unsafe fn load(&self, at: Position) -> u32 {
        // SAFETY: as the caller says.
        unsafe { ptr::read_volatile(at.address() as *const u32) }
    }

    #[inline(always)]
    unsafe fn add_before(&self, end: Position, value: u32) {
        // SAFETY: as the caller says.
        unsafe { asm!("add dword ptr [{} - 4], {:e}", in(reg) end.address(), in(reg) value, options(nostack)) };
    }

    unsafe fn prepare_block(&self, block: Block, sequence: u64, begin: u64, how: Begin) {
        let who = Task::current(*self);
        let flags = match how {
            Begin::Onward => 0,
            Begin::Back => block::FLAG_BACK,
        };
        let header = Header {
            magic: 0,
            uuid: [0; 4],
            stream: 0,
            begin,
            end: 0,
            content_bits: 0,
            packet_bits: block::BYTES as u64 * 8,
            sequence,
            lost: 0,
            cpu: field!(cpu: u32).load(),
            pid: who.pid(),
            tgid: who.tgid(),
            task_state: who.state().0,
            comm: who.comm(),
            flags,
            crc32: 0,
            events: 0,
            reserved: [0; 3],
        };
        // The magic number goes before anything else changes: who copies the block looks at it last.
        // SAFETY: as the caller says.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, 0) };
        compiler_fence(Ordering::Release);
        // SAFETY: as above.
        unsafe { ptr::write_volatile(block.header(), header) };
        // SAFETY: as above.
        unsafe { pool().clear_counters(block) };
    }

    unsafe fn begin_block(&self, block: Block) {
        // SAFETY: as the caller says.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, block::MAGIC) };
    }

    unsafe fn end_block(&self, at: Position, time: u64, why: End) {
        let flags = match why {
            End::Complete => 0,
            End::Lost => block::FLAG_LOST,
            End::Offline => block::FLAG_OFFLINE,
        };
        // SAFETY: as the caller says.
        unsafe { end_block(at, time, flags) };
        let lost = field!(lost: u64).load();
        // SAFETY: as above.
        unsafe { (*at.block().header()).lost = lost };
    }

    unsafe fn begin(&self, block: Block) -> u64 {
        // SAFETY: as the caller says.
        unsafe { (*block.header()).begin }
    }

    unsafe fn sequence(&self, block: Block) -> u64 {
        // SAFETY: as the caller says.
        unsafe { (*block.header()).sequence }
    }

    unsafe fn set_following(&self, block: Block, following: Block) {
        // SAFETY: as the caller says.
        unsafe { pool().set_following(block, following) }
    }

    unsafe fn following(&self, block: Block) -> Block {
        // SAFETY: as the caller says.
        unsafe { pool().following(block) }
    }

    fn take_spare(&self) -> Option<Block> {
        let spare = field!(spare: u64).take();
        // SAFETY: only `keep_spare` stores there, the address of a block.
        (spare != 0).then(|| unsafe { Block::new(spare) })
    }

    unsafe fn keep_spare(&self, block: Block) -> bool {
        field!(spare: u64).exchange(0, block.address())
    }

    fn is_open(&self) -> bool {
        pool().is_open() && field!(gone: u32).load() == 0
    }

    fn take_block(&self) -> Option<Block> {
        pool().take()
    }

    unsafe fn give_block(&self, block: Block) {
        // SAFETY: as the caller says.
        unsafe { pool().give(block) };
    }

    fn oldest(&self) -> Block {
        // SAFETY: only addresses of blocks are stored there, and the 0 of NO_BLOCK.
        unsafe { Block::new(field!(oldest: u64).load()) }
    }

    fn set_oldest(&self, block: Block) {
        field!(oldest: u64).store(block.address())
    }

    #[inline(always)]
    fn call_end(&self) -> Position {
        // SAFETY: only addresses of positions are stored there, and the 0 of NO_CALL.
        unsafe { Position::new(field!(call_end: u64).load()) }
    }

    #[inline(always)]
    fn ends_at(&self, end: Position) -> bool {
        field!(position: u64).equals(end.address())
    }

    #[inline(always)]
    fn set_call_end(&self, end: Position) {
        field!(call_end: u64).store(end.address())
    }

    #[inline(always)]
    fn forget_call(&self) {
        const { assert!(NO_CALL.address() == 0) };
        field!(call_end: u64).clear()
    }

    #[inline(always)]
    fn set_call_time(&self, time: u64) {
        field!(call_time: u64).store(time)
    }

    #[inline(always)]
    fn since_call(&self, time: u64) -> u64 {
        field!(call_time: u64).distance_to(time) >> (field!(shift: u8).load() & 63)
    }
}
