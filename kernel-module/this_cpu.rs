// SPDX-License-Identifier: GPL-2.0
//! The current CPU as the recorder's lane: its state, and the blocks that it fills.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{compiler_fence, Ordering};

use crate::abi::block::{self, Header};
use crate::abi::command::SHIFT;
use crate::abi::event::TASK_WORDS;
use crate::abi::word::TIME_PERIOD;
use crate::arch;
use crate::call::TaskLane;
use crate::entry::Naming;
use crate::ffi;
use crate::lane::{Begin, Block, End, Lane, Position, NO_CALL};
use crate::per_cpu::{self, Answer, Insertions, Named, PerCpu, NAMED};
use crate::pool::pool;
use crate::task::Task;

/// Accesses the field of this name; the compiler checks its type.
macro_rules! field {
    ($name:ident: $type:ty) => {{
        const _: fn(&PerCpu) -> &$type = |state| &state.$name;
        // SAFETY: the compiler has found the field at that offset. No code has a reference to a field that is accessed
        // this way: other code reads it as a number, or has the whole state, when no hook runs. The values stored are
        // those that the methods below are given, as positions, blocks and times, and 0 for none.
        unsafe { arch::Field::<$type, { core::mem::offset_of!(PerCpu, $name) }>::new() }
    }};
}

/// The distance in time from which on [`Lane::is_far`] is true.
const FAR: u32 = ((TIME_PERIOD - 1) << SHIFT) as u32;

/// The current CPU, for as long as the code stays on it; in a trace with counters or without.
#[derive(Clone, Copy)]
pub struct ThisCpu<'a, const COUNTING: bool>(PhantomData<(&'a (), *mut ())>);

/// Neither the value nor a reference to it may reach another CPU: for a type that is `Send` or `Sync`, two of these
/// implementations apply, and the compiler cannot choose one.
const _: fn() = || {
    struct Sent;
    struct Shared;
    trait Stays<Why> {
        fn stays() {}
    }
    impl<T> Stays<()> for T {}
    impl<T: Send> Stays<Sent> for T {}
    impl<T: Sync> Stays<Shared> for T {}
    <ThisCpu<'static, false> as Stays<_>>::stays();
    <ThisCpu<'static, true> as Stays<_>>::stays();
};

/// Calls `work` with the current CPU.
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
    ///
    /// # Safety
    /// See [`Lane::note`].
    #[cfg(kutrace_count)]
    unsafe fn count_event(&self, at: Position) {
        // SAFETY: `at` is in a block, which has a header.
        let events = unsafe { &raw mut (*at.block().header()).events };
        // SAFETY: the block is this CPU's.
        unsafe { arch::increment(events) };
    }

    #[cfg(not(kutrace_count))]
    #[inline(always)]
    unsafe fn count_event(&self, _at: Position) {}
}

impl<const COUNTING: bool> ThisCpu<'_, COUNTING> {
    /// Returns whether the calling program may insert anything.
    pub fn takes_marks(_: TaskLane<Self>) -> bool {
        // SAFETY: the caller is a task's call, as a `TaskLane` guarantees.
        unsafe { ffi::kutrace_shim_may_mark() }
    }

    /// Takes a mark of the calling program, or refuses and counts it; returns whether it was taken.
    pub fn takes_mark(_: TaskLane<Self>) -> bool {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state, and the caller is a task's call.
        unsafe { take(&raw mut (*this).marks) }
    }

    /// The same for a name.
    pub fn takes_name(_: TaskLane<Self>) -> bool {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state, and the caller is a task's call.
        unsafe { take(&raw mut (*this).names) }
    }

    /// Answers this CPU's last request.
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

    /// Closes the lane of a CPU that goes offline: it begins no more blocks.
    pub fn go(&self) {
        self.set_gone(1);
    }

    fn set_gone(&self, gone: u32) {
        let this = field!(this: *mut PerCpu).load();
        // SAFETY: `this` is this CPU's state; other CPUs write the field only while no CPU comes or goes.
        unsafe { ptr::write_volatile(&raw mut (*this).gone, gone) };
    }
}

/// Takes one from the budgets of the running process and of all programs of its CPU. The process's budget is checked
/// first: an insertion that it refuses is not taken from the other programs.
///
/// # Safety
/// `of` is in this CPU's state, preemption is off, and the caller is a task's call.
unsafe fn take(of: *mut Insertions) -> bool {
    // SAFETY: as the caller guarantees.
    unsafe {
        let may = ffi::kutrace_rate_take_one();
        let taken = Insertions::take(of, may);
        if may && !taken {
            ffi::kutrace_rate_refused();
        }
        taken
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
        // SAFETY: `this` is this CPU's state, to whose slots no code has a reference. If another context came in
        // between, a task would be named twice or not at all.
        unsafe {
            let slot = &raw mut (*this).named[task.pid() as usize % NAMED];
            let known = ptr::read(slot) == now;
            if !known {
                ptr::write(slot, now);
            }
            key == 0 || !known
        }
    }

    fn count_more(&self) {
        self.count_call()
    }
}

// SAFETY: the caller of on_this_cpu guarantees that preemption is off, and contexts of a CPU nest; positions come from
// `try_move` and `try_advance`, blocks from the pool, whose `take` returns none twice.
unsafe impl<const COUNTING: bool> Lane for ThisCpu<'_, COUNTING> {
    const ROOM: u16 = match COUNTING {
        false => block::BYTES - 8,
        true => (block::HEADER_WORDS + block::COUNTED_WORDS) * 4,
    } as u16;

    #[inline(always)]
    unsafe fn enter(&self) {
        field!(depth: u32).increment()
    }

    #[inline(always)]
    unsafe fn leave(&self) {
        field!(depth: u32).decrement()
    }

    fn is_outermost(&self) -> bool {
        field!(depth: u32).load() == 1
    }

    #[inline(always)]
    fn position(&self) -> Position {
        let address = field!(position: u64).load();
        // SAFETY: only addresses of positions are stored there.
        unsafe { Position::new(address) }
    }

    #[inline(always)]
    unsafe fn try_move(&self, old: Position, new: Position) -> bool {
        field!(position: u64).exchange(old.address(), new.address())
    }

    #[inline(always)]
    unsafe fn try_advance<const WORDS: usize>(&self, old: Position, time: u64) -> bool {
        let new = old.address().wrapping_add(4 * WORDS as u64);
        let (position, since) = (field!(position: u64), field!(since: u64));
        let has_room = old.offset() <= Self::ROOM - 4 * WORDS as u16;
        if COUNTING && !has_room {
            return false;
        }
        match WORDS {
            1 => position.advance::<4, FAR, _>(new, time, since),
            2 => position.advance::<8, FAR, _>(new, time, since),
            3 => position.advance::<12, FAR, _>(new, time, since),
            _ => !self.is_far(time) && has_room && position.exchange(old.address(), new),
        }
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        arch::tsc()
    }

    fn counter(&self, time: u64) -> u64 {
        time >> SHIFT
    }

    #[inline(always)]
    fn entry<const BASE: u16>(&self, number: u32, time: u64) -> u32 {
        arch::entry::<BASE>(number, time as u32)
    }

    fn since(&self) -> u64 {
        field!(since: u64).load()
    }

    fn set_since(&self, time: u64) {
        field!(since: u64).store(time)
    }

    #[inline(always)]
    fn is_far(&self, time: u64) -> bool {
        field!(since: u64).distance_to(time) >= FAR.into()
    }

    #[inline(always)]
    unsafe fn note(&self, at: Position) {
        // SAFETY: as the caller guarantees.
        unsafe { self.count_event(at) };
        if COUNTING {
            let this = field!(this: *mut PerCpu).load();
            // SAFETY: `this` is this CPU's state. Counters are opened and closed while no hook runs, so no code has an
            // exclusive reference to them, and an interrupt that also samples shares this one.
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
        // SAFETY: as the caller guarantees.
        unsafe { ptr::write_volatile(at.address() as *mut u32, word) };
    }

    #[inline(always)]
    unsafe fn load(&self, at: Position) -> u32 {
        // SAFETY: as the caller guarantees.
        unsafe { ptr::read_volatile(at.address() as *const u32) }
    }

    #[inline(always)]
    unsafe fn add_before(&self, end: Position, value: u32) {
        // SAFETY: as the caller guarantees.
        unsafe { arch::add_before(end.address() as *mut u32, value) };
    }

    unsafe fn prepare_block(&self, block: Block, sequence: u64, begin: u64, how: Begin) {
        // SAFETY: preemption is off as long as this value exists.
        let who = unsafe { Task::current() };
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
            for_now: [0; 3],
        };
        // SAFETY: as the caller guarantees.
        unsafe {
            #[cfg(kutrace_count)]
            pool().count_overwritten(block);
            // The magic number is cleared before anything else changes: a reader that copies the block checks it last.
            ptr::write_volatile(&raw mut (*block.header()).magic, 0);
            compiler_fence(Ordering::Release);
            ptr::write_volatile(block.header(), header);
            pool().clear_counters(block);
        }
    }

    unsafe fn begin_block(&self, block: Block) {
        // SAFETY: as the caller guarantees.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, block::MAGIC) };
    }

    unsafe fn end_block(&self, at: Position, time: u64, why: End) {
        let flags = match why {
            End::Complete => 0,
            End::Lost => block::FLAG_LOST,
            End::Offline => block::FLAG_OFFLINE,
        };
        // SAFETY: as the caller guarantees.
        unsafe {
            per_cpu::end_block(at, time, flags);
            self.end_loss(at.block());
        }
    }

    unsafe fn end_loss(&self, block: Block) {
        let lost = field!(lost: u64).load();
        // SAFETY: as the caller guarantees.
        unsafe { (*block.header()).lost = lost };
    }

    unsafe fn begin(&self, block: Block) -> u64 {
        // SAFETY: as the caller guarantees.
        unsafe { (*block.header()).begin }
    }

    unsafe fn sequence(&self, block: Block) -> u64 {
        // SAFETY: as the caller guarantees.
        unsafe { (*block.header()).sequence }
    }

    unsafe fn set_following(&self, block: Block, following: Block) {
        // SAFETY: as the caller guarantees.
        unsafe { pool().owners.set_following(block, following) }
    }

    unsafe fn following(&self, block: Block) -> Block {
        // SAFETY: as the caller guarantees.
        unsafe { pool().owners.following(block) }
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
        // SAFETY: as the caller guarantees.
        unsafe { pool().give(block) };
    }

    fn oldest(&self) -> Block {
        let address = field!(oldest: u64).load();
        // SAFETY: only addresses of blocks are stored there, and the 0 of NO_BLOCK.
        unsafe { Block::new(address) }
    }

    unsafe fn set_oldest(&self, block: Block) {
        field!(oldest: u64).store(block.address())
    }

    #[inline(always)]
    fn call_end(&self) -> Position {
        let address = field!(call_end: u64).load();
        // SAFETY: only addresses of positions are stored there, and the 0 of NO_CALL.
        unsafe { Position::new(address) }
    }

    #[inline(always)]
    fn ends_at(&self, end: Position) -> bool {
        field!(position: u64).equals(end.address())
    }

    #[inline(always)]
    unsafe fn set_call_end(&self, end: Position) {
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
        arch::counts(field!(call_time: u64).distance_to(time))
    }
}
