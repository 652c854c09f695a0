// SPDX-License-Identifier: GPL-2.0
//! The commands of /dev/kutrace: info, reset, start, stop, snapshot, acquire, release, those of a stream, and questions.
//!
//! device.c checks the caller's rights, copies the argument in and out and holds the lock that makes commands
//! one at a time.
//!
//! No command waits for ever. A CPU that is stuck with interrupts off answers nothing; then the hooks cannot be
//! switched off, since that patches code under all CPUs, but recording ends and what was recorded can be read. The
//! trace is stopped and not *settled*; it becomes so at the first command after the CPU has come back.
//!
//! Invariant: while an open file holds the recorder, no other file empties, starts or stops it; closed by whatever
//! means, it holds nothing and no trace runs.

use core::cell::UnsafeCell;
use core::ffi::{c_long, c_uint, c_void};
use core::ptr;

use kernel::error::code;
use kernel::prelude::*;

use crate::abi::command::{
    Blocks, Cpu, Info, Moment, Ports, Setup, Tracepoints, Vector, BLOCKS_MAX, IOCTL_CPU, IOCTL_FLUSH, IOCTL_FORGET,
    IOCTL_FREE, IOCTL_FULL, IOCTL_ACQUIRE, IOCTL_INFO, IOCTL_KEPT, IOCTL_LOOK, IOCTL_PORTS, IOCTL_RELEASE, IOCTL_RESET,
    IOCTL_SNAPSHOT, IOCTL_START, IOCTL_STOP, IOCTL_TRACEPOINTS, IOCTL_VECTOR, IPC, LLC, NOTE_MUTE, NOTE_SLEEP,
    NOTE_UNSTABLE, PORTS_ALL, PORTS_MAX, RECORDS_MAX, SHIFT, STATE_EMPTY, STATE_STOPPED, STATE_TRACING, STREAM, VERSION,
    WRAP,
};
use crate::abi::event::MARK_A;
use crate::abi::landmark::PANIC;
use crate::ffi::Table;
use crate::on_each_cpu::{Cpus, Round};
use crate::{arch, clock, ffi, landmark, lifecycle, on_each_cpu, ops, pool, reserved, stream};

/// What the control lock keeps: whoever has a reference to it holds the lock, or is alone, since there is no device.
struct State {
    state: u32,
    setup: Setup,
    start: Moment,
    stop: Moment,
    /// What is to be said of the trace: `NOTE_*`.
    notes: u32,
    /// Whether no hook runs and every CPU's block is complete, unless a trace is running.
    settled: bool,
    /// What the source calls; null for nothing.
    connected: *const Table,
    /// The open file that holds the recorder; null for none. Only compared.
    holder: *const c_void,
    /// The process that opened it for that, referenced; null for none.
    process: *mut c_void,
}

struct StateCell(UnsafeCell<State>);

// SAFETY: only `kutrace_control`, `kutrace_close`, `kutrace_may_note`, `kutrace_end_for_sleep`, `prepare`, `go` and
// `end` use it: under the control lock, and while there is no device.
unsafe impl Sync for StateCell {}

static STATE: StateCell = StateCell(UnsafeCell::new(State {
    state: STATE_EMPTY,
    setup: Setup { flags: 0, blocks: 0 },
    start: Moment { tsc: 0, realtime_ns: 0, monotonic_ns: 0 },
    stop: Moment { tsc: 0, realtime_ns: 0, monotonic_ns: 0 },
    notes: 0,
    settled: true,
    connected: ptr::null(),
    holder: ptr::null(),
    process: ptr::null_mut(),
}));

/// Runs one ioctl of the open file `file`. `argument` is 256 zeroed bytes with the caller's structure at its start.
///
/// # Safety
/// The control lock is held and `argument` is valid and aligned for any of the structures.
#[no_mangle]
unsafe extern "C" fn kutrace_control(file: *const c_void, command: c_uint, argument: *mut u8) -> c_long {
    // SAFETY: the control lock is held.
    let state = unsafe { &mut *STATE.0.get() };
    let result = match command {
        IOCTL_RESET | IOCTL_PORTS | IOCTL_TRACEPOINTS | IOCTL_START | IOCTL_STOP | IOCTL_ACQUIRE
            if state.is_held_by_other_than(file) =>
        {
            Err(code::EBUSY)
        }
        IOCTL_INFO => {
            // SAFETY: `argument` is valid for an Info.
            unsafe { argument.cast::<Info>().write(state.info()) };
            Ok(())
        }
        IOCTL_CPU => {
            // SAFETY: `argument` is valid for a Cpu.
            let asked = unsafe { argument.cast::<Cpu>().read() };
            // SAFETY: the control lock is held.
            let cpu = unsafe { lifecycle::cpu(asked.cpu) };
            // SAFETY: as above.
            cpu.map(|cpu| unsafe { argument.cast::<Cpu>().write(cpu) })
        }
        IOCTL_VECTOR => {
            // SAFETY: `argument` is valid for a Vector, and the control lock is held.
            unsafe { ffi::kutrace_shim_next_vector(argument.cast::<Vector>()) };
            Ok(())
        }
        // SAFETY: `argument` is valid for a Setup.
        IOCTL_RESET => state.reset(unsafe { argument.cast::<Setup>().read() }),
        // SAFETY: `argument` is valid for Ports.
        IOCTL_PORTS => state.choose(&unsafe { argument.cast::<Ports>().read() }),
        // SAFETY: `argument` is valid for Tracepoints.
        IOCTL_TRACEPOINTS => state.choose_tracepoints(&unsafe { argument.cast::<Tracepoints>().read() }),
        IOCTL_START => state.start(),
        IOCTL_STOP => {
            state.stop(0);
            Ok(())
        }
        // SAFETY: `argument` is valid for a Moment.
        IOCTL_SNAPSHOT => state.snapshot().map(|moment| unsafe { argument.cast::<Moment>().write(moment) }),
        IOCTL_ACQUIRE => {
            state.acquire(file);
            Ok(())
        }
        IOCTL_RELEASE => {
            state.release(file);
            Ok(())
        }
        IOCTL_FULL | IOCTL_FREE | IOCTL_FLUSH if !state.is_held_by(file) => Err(code::EBUSY),
        IOCTL_FULL | IOCTL_FREE | IOCTL_FLUSH if state.setup.flags & STREAM == 0 => Err(code::EINVAL),
        IOCTL_FULL => {
            // SAFETY: `argument` is valid for Blocks.
            unsafe { argument.cast::<Blocks>().write(stream::hand_over()) };
            Ok(())
        }
        // SAFETY: `argument` is valid for Blocks.
        IOCTL_FREE => stream::take_back(&unsafe { argument.cast::<Blocks>().read() }),
        // SAFETY: `argument` is valid for a u64.
        IOCTL_FLUSH => state.flush(unsafe { argument.cast::<u64>().read() }),
        // SAFETY: `argument` is valid for a u64.
        IOCTL_LOOK => state.look().map(|counter| unsafe { argument.cast::<u64>().write(counter) }),
        IOCTL_KEPT => {
            // SAFETY: the control lock is held.
            let bytes = unsafe { ffi::kutrace_shim_reserved_kept() };
            // SAFETY: `argument` is valid for a u64.
            unsafe { argument.cast::<u64>().write(bytes) };
            Ok(())
        }
        IOCTL_FORGET => {
            // SAFETY: the control lock is held.
            unsafe { ffi::kutrace_shim_reserved_forget() };
            Ok(())
        }
        _ => Err(code::ENOTTY),
    };
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno().into(),
    }
}

/// An open file is closed, by its process or because that is gone.
///
/// # Safety
/// The control lock is held.
#[no_mangle]
unsafe extern "C" fn kutrace_close(file: *const c_void) {
    // SAFETY: the control lock is held.
    let state = unsafe { &mut *STATE.0.get() };
    if state.release(file) {
        state.abandon();
    }
}

/// Whether the open file `file` may leave something with the trace: 0, or an errno.
///
/// # Safety
/// The control lock is held.
#[no_mangle]
unsafe extern "C" fn kutrace_may_note(file: *const c_void) -> c_long {
    // SAFETY: the control lock is held.
    match unsafe { &*STATE.0.get() }.is_held_by_other_than(file) {
        true => code::EBUSY.to_errno().into(),
        false => 0,
    }
}

/// The machine is about to sleep. Its TSC may begin again when it wakes, its CPUs go and come, and its devices: a trace
/// ends before.
///
/// # Safety
/// The control lock is held.
#[no_mangle]
unsafe extern "C" fn kutrace_end_for_sleep() {
    // SAFETY: the control lock is held.
    unsafe { &mut *STATE.0.get() }.stop(NOTE_SLEEP);
}

/// The kernel panics. This CPU often goes on to take interrupts for as long as the machine has power: no block of the
/// trace may be used again for them.
///
/// # Safety
/// The kernel panics: interrupts are off, and all other CPUs have stopped, if they could.
#[no_mangle]
unsafe extern "C" fn kutrace_end_for_panic(realtime_ns: u64, monotonic_ns: u64) {
    if !pool::pool().is_open() {
        // SAFETY: no precondition.
        unsafe { ffi::kutrace_shim_reserved_flush() };
        return;
    }
    let moment = Moment { tsc: arch::tsc(), realtime_ns, monotonic_ns };
    // SAFETY: as the caller says.
    unsafe { landmark::put_panic(moment) };
    // SAFETY: as the caller says. Whoever had the control lock will never change the flags.
    let flags = unsafe { &*STATE.0.get() }.setup.flags;
    // SAFETY: hooks are called with preemption off, and so is this.
    unsafe { (ops::table(flags).ops.value)(MARK_A.into(), PANIC) };
    pool::close();
    // SAFETY: as the caller says.
    unsafe { landmark::sight(moment) };
    // SAFETY: no precondition.
    unsafe { ffi::kutrace_shim_reserved_flush() };
}

/// The machine is told to go down: what is in memory that outlives that is whole then.
///
/// # Safety
/// The control lock is held.
#[no_mangle]
unsafe extern "C" fn kutrace_end_for_shutdown() {
    if reserved::range().is_none() {
        return;
    }
    // SAFETY: the control lock is held.
    unsafe { &mut *STATE.0.get() }.stop(0);
    // SAFETY: no precondition.
    unsafe { ffi::kutrace_shim_reserved_flush() };
}

/// Prepares a first trace, when the module is loaded.
///
/// # Safety
/// Neither the device nor the notice of sleep exists yet, so nobody else comes here.
pub unsafe fn prepare(setup: Setup) -> Result {
    // SAFETY: as the caller says.
    let state = unsafe { &mut *STATE.0.get() };
    // SAFETY: the module is being loaded.
    kernel::error::to_result(unsafe { ffi::kutrace_source_choose() })?;
    state.reset(setup)?;
    state.connect()
}

/// Starts a trace, if the module's parameter asks for that, when the module is loaded.
///
/// # Safety
/// As of [`prepare`], which has been called.
pub unsafe fn go() -> Result {
    // SAFETY: reads a parameter.
    let asked = unsafe { ffi::kutrace_shim_go() };
    kernel::error::to_result(asked.min(0))?;
    if asked > 0 {
        // SAFETY: as the caller says.
        let state = unsafe { &mut *STATE.0.get() };
        let started = state.reset(Setup { flags: WRAP, blocks: 0 }).and_then(|()| state.start());
        if started.is_err() {
            pr_err!("recording did not start with the module\n");
        }
    }
    Ok(())
}

/// Ends a trace that is running, when the module is unloaded. On return no hook runs.
///
/// # Safety
/// Neither the device nor the notice of sleep exists, so nobody else comes here.
pub unsafe fn end() {
    // SAFETY: as the caller says.
    unsafe { landmark::unwatch() };
    // SAFETY: as the caller says.
    unsafe { &mut *STATE.0.get() }.disconnect();
    // SAFETY: as above, and no hook runs.
    unsafe { lifecycle::close_counters() };
    // SAFETY: as above.
    unsafe { ffi::kutrace_shim_note_clear() };
    // SAFETY: as above.
    unsafe { landmark::take_away() };
}

impl State {
    fn info(&mut self) -> Info {
        if self.state == STATE_TRACING {
            self.look_at_clock();
        }
        let (blocks, blocks_taken) = pool::usage();
        let (refused_names, refused_marks) = lifecycle::refused();
        Info {
            version: VERSION,
            state: self.state,
            flags: self.setup.flags,
            shift: SHIFT,
            cpus: on_each_cpu::cpus(),
            blocks,
            tsc_khz: clock::tsc_khz(),
            blocks_taken,
            lost: lifecycle::lost(),
            start: self.start,
            stop: self.stop,
            // SAFETY: the process is null or referenced, and a command is a task's.
            holder: unsafe { ffi::kutrace_shim_process_number(self.process) },
            notes: self.notes,
            refused_names,
            refused_marks,
            // SAFETY: a source was chosen when the module was loaded; the same below.
            unseen: unsafe { ffi::kutrace_source_unseen() },
            // SAFETY: as above.
            source: unsafe { ffi::kutrace_source_kind() },
            reserved: 0,
        }
    }

    fn is_held_by(&self, file: *const c_void) -> bool {
        ptr::eq(self.holder, file)
    }

    fn is_held_by_other_than(&self, file: *const c_void) -> bool {
        !self.holder.is_null() && !ptr::eq(self.holder, file)
    }

    fn acquire(&mut self, file: *const c_void) {
        self.release(file);
        self.holder = file;
        // SAFETY: a command is a task's.
        self.process = unsafe { ffi::kutrace_shim_process() };
    }

    /// Whether it was held by `file`.
    fn release(&mut self, file: *const c_void) -> bool {
        let held = ptr::eq(self.holder, file);
        if held {
            self.holder = ptr::null();
            // SAFETY: the reference that `acquire` took is given back once.
            unsafe { ffi::kutrace_shim_process_put(self.process) };
            self.process = ptr::null_mut();
        }
        held
    }

    fn reset(&mut self, setup: Setup) -> Result {
        let contradicts = setup.flags & (WRAP | STREAM) == WRAP | STREAM;
        if contradicts || setup.flags & !(WRAP | STREAM | IPC | LLC) != 0 || setup.blocks > BLOCKS_MAX {
            return Err(code::EINVAL);
        }
        if self.state == STATE_TRACING {
            return Err(code::EBUSY);
        }
        self.settle()?;
        // Where they cannot be had, the trace in the pool stays.
        // SAFETY: the lock is held as `State` says. The trace is settled, so no hook that records runs; the same below.
        unsafe { lifecycle::open_counters(setup.flags) }?;
        // SAFETY: as above.
        unsafe { lifecycle::close_counters() };
        // SAFETY: as above, and a reset is next: without that no trace starts.
        unsafe { pool::resize(setup.blocks) }?;
        // SAFETY: as above.
        unsafe { lifecycle::reset(setup.flags) };
        // SAFETY: the control lock is held, or nobody else comes here yet.
        unsafe { ffi::kutrace_shim_note_clear() };
        // SAFETY: the control lock is held, or there is no device yet; a command may sleep.
        unsafe { ffi::kutrace_programs_reset(setup.flags & WRAP != 0) };
        self.state = STATE_EMPTY;
        self.setup = setup;
        (self.start, self.stop) = (Moment::default(), Moment::default());
        self.notes = 0;
        self.choose(&Ports::default())?;
        self.choose_tracepoints(&Tracepoints::default())?;
        // SAFETY: the holder of the state holds the lock, or there is no device.
        unsafe { landmark::put(self.info()) };
        Ok(())
    }

    /// Chooses whose packets are recorded.
    fn choose(&mut self, ports: &Ports) -> Result {
        if self.state != STATE_EMPTY {
            return Err(code::EBUSY);
        }
        if ports.count as usize > PORTS_MAX && ports.count != PORTS_ALL {
            return Err(code::EINVAL);
        }
        // SAFETY: the list has as many, and what is empty is not recording; the control lock is held, or nobody else
        // comes here yet.
        kernel::error::to_result(unsafe { ffi::kutrace_packets_choose(ports.count, ports.port.as_ptr()) })
    }

    /// Chooses which tracepoints are recorded beside what the source tells.
    fn choose_tracepoints(&mut self, tracepoints: &Tracepoints) -> Result {
        if self.state != STATE_EMPTY {
            return Err(code::EBUSY);
        }
        if tracepoints.count as usize > RECORDS_MAX {
            return Err(code::EINVAL);
        }
        // SAFETY: the list has as many, and what is empty is not recording; the control lock is held, or nobody else
        // comes here yet.
        unsafe { ffi::kutrace_records_choose(tracepoints.count, tracepoints.id.as_ptr()) };
        Ok(())
    }

    /// Lets the source call what records in the present mode.
    fn connect(&mut self) -> Result {
        let table = ops::table(self.setup.flags);
        if ptr::eq(self.connected, table) {
            return Ok(());
        }
        self.disconnect();
        // SAFETY: the table lives as long as the module, which disconnects before it goes; a command may sleep.
        let registered = kernel::error::to_result(unsafe { ffi::kutrace_source_connect(table) });
        if registered == Err(code::ENOEXEC) {
            pr_err!("built for the hooks of another kernel than this one\n");
        }
        registered?;
        self.connected = table;
        Ok(())
    }

    fn disconnect(&mut self) {
        if !self.connected.is_null() {
            // SAFETY: a command may sleep; on return no hook runs.
            unsafe { ffi::kutrace_source_disconnect() };
            self.connected = ptr::null();
        }
    }

    fn start(&mut self) -> Result {
        if self.state != STATE_EMPTY {
            return Err(code::EBUSY);
        }
        if clock::tsc_unstable() {
            pr_err!("the TSC is not stable on this machine: times would be wrong\n");
            return Err(code::EIO);
        }
        // What follows patches code, and waits for every CPU to see it.
        // SAFETY: the lock is held as `State` says.
        if on_each_cpu::ask(&unsafe { Cpus::hold() }?) == Round::Mute {
            return Err(on_each_cpu::late());
        }
        self.connect()?;
        // SAFETY: as above; and the hooks are off.
        unsafe { lifecycle::open_counters(self.setup.flags) }?;
        // The hooks go on one after the other. Recording begins when all are on, for all CPUs at once: else a
        // switch whose hook was still off would be missing from the trace.
        // Programs see the trace from here on; what they record before it begins is not part of it.
        // SAFETY: the control lock is held; a command may sleep.
        unsafe { ffi::kutrace_programs_open() };
        // SAFETY: the table is connected and the buffers are reset.
        let enabled = kernel::error::to_result(unsafe { ffi::kutrace_source_enable() });
        enabled.inspect_err(|_| {
            // SAFETY: as above.
            unsafe { ffi::kutrace_programs_close() };
            // SAFETY: as above; and the hooks are not on.
            unsafe { lifecycle::close_counters() };
        })?;
        self.state = STATE_TRACING;
        self.settled = false;
        // A CPU that comes or goes says so itself, once it is known where each was at the start.
        // SAFETY: as above.
        let cpus = unsafe { Cpus::hold() }.inspect_err(|_| self.stop(0))?;
        // SAFETY: the pool opens next.
        unsafe { lifecycle::begin(&cpus) };
        self.start = clock::moment();
        // SAFETY: the holder of the state holds the lock, or there is no device.
        unsafe { landmark::put(self.info()) };
        pool::open();
        // SAFETY: interrupts are on. Every other CPU takes one, and so begins its first block.
        unsafe { ffi::kick_all_cpus_sync() };
        drop(cpus);
        // SAFETY: the hooks are on, and this one is called with interrupts off.
        unsafe { ffi::kutrace_source_each_vector(ops::table(self.setup.flags).ops.vector) };
        // SAFETY: the holder of the state holds the lock, or there is no device; the stop ends it.
        unsafe { landmark::watch() }.inspect_err(|_| self.stop(0))
    }

    /// Ends a trace that is running; `note` says why, if that is not by command.
    fn stop(&mut self, note: u32) {
        if self.state == STATE_TRACING {
            // The hooks go off one after the other. Recording ends before that, on each CPU at one moment. A CPU that
            // is offline has ended its block, and begins none where the pool is closed.
            // SAFETY: the lock is held as `State` says.
            unsafe { landmark::unwatch() };
            // SAFETY: as above.
            let cpus = unsafe { Cpus::hold() };
            pool::close();
            self.stop = clock::moment();
            // SAFETY: the control lock is held; who stops may sleep.
            unsafe { ffi::kutrace_programs_close() };
            self.state = STATE_STOPPED;
            self.notes |= note;
            self.look_at_clock();
            if cpus.is_ok_and(|cpus| on_each_cpu::close(&cpus) == Round::All) {
                // One that was mute at a snapshot has come back, with all that it recorded.
                self.notes &= !NOTE_MUTE;
            } else {
                self.notes |= NOTE_MUTE;
                // SAFETY: as above.
                unsafe { lifecycle::end_for_now(arch::tsc() >> SHIFT) };
            }
            // SAFETY: the holder of the state holds the lock, or there is no device.
            unsafe { landmark::put(self.info()) };
        }
        // Where this fails the trace is stopped all the same.
        let _ = self.settle();
    }

    /// Ends what the process left that held the recorder. A trace that ran goes with it if it has more memory than the
    /// recorder otherwise: nobody is there to write it. One that was stopped stays until the next start.
    fn abandon(&mut self) {
        if self.state == STATE_TRACING {
            self.stop(0);
            if pool::is_enlarged() {
                // Where a CPU is mute this fails, and the memory is given back by the next reset.
                let _ = self.reset(Setup { blocks: 0, ..self.setup });
            }
        } else if self.state == STATE_EMPTY && pool::is_enlarged() {
            let _ = self.reset(Setup { blocks: 0, ..self.setup });
        }
    }

    /// Switches the hooks off and completes every CPU's block, unless that is done; ETIMEDOUT while a CPU that was told
    /// to end its block has not.
    fn settle(&mut self) -> Result {
        if self.settled {
            return Ok(());
        }
        // SAFETY: the lock is held as `State` says.
        if !on_each_cpu::is_answered() || on_each_cpu::ask(&unsafe { Cpus::hold() }?) == Round::Mute {
            return Err(on_each_cpu::late());
        }
        // SAFETY: a command may sleep; on return no hook runs.
        unsafe { ffi::kutrace_source_disable() };
        // SAFETY: the lock is held, and no hook runs; the same below.
        unsafe { lifecycle::close_counters() };
        // SAFETY: as above, and every CPU has answered.
        unsafe { lifecycle::finish(arch::tsc() >> SHIFT) };
        #[cfg(kutrace_count)]
        // SAFETY: as above.
        unsafe {
            lifecycle::print_counts()
        };
        self.settled = true;
        // SAFETY: as above.
        unsafe { landmark::sight(self.stop) };
        Ok(())
    }

    /// Ends blocks of a stream that began before the counter `before`.
    fn flush(&mut self, before: u64) -> Result {
        match self.state {
            // SAFETY: the lock is held as `State` says.
            STATE_TRACING => unsafe { stream::flush(before) },
            _ => Err(code::EINVAL),
        }
    }

    /// Says how far the blocks are filled; the counter up to which that is all.
    fn look(&mut self) -> Result<u64> {
        match self.state {
            // SAFETY: the lock is held as `State` says.
            STATE_TRACING => unsafe { lifecycle::look() },
            _ => Err(code::EINVAL),
        }
    }

    /// Sees whether the kernel still trusts the TSC.
    fn look_at_clock(&mut self) {
        if clock::tsc_unstable() {
            self.notes |= NOTE_UNSTABLE;
        }
    }

    fn snapshot(&mut self) -> Result<Moment> {
        if self.state != STATE_TRACING || self.setup.flags & WRAP == 0 {
            return Err(code::EINVAL);
        }
        // A CPU that is offline has ended its block.
        // SAFETY: the lock is held as `State` says.
        let cpus = unsafe { Cpus::hold() }?;
        let end = clock::moment();
        self.look_at_clock();
        match on_each_cpu::rotate(&cpus) {
            Round::All => self.notes &= !NOTE_MUTE,
            Round::Refused => return Err(code::EAGAIN),
            Round::Mute => {
                self.notes |= NOTE_MUTE;
                // SAFETY: as above.
                unsafe { lifecycle::end_for_now(arch::tsc() >> SHIFT) };
            }
        }
        match on_each_cpu::wait_for_claims() {
            true => Ok(end),
            false => Err(on_each_cpu::late()),
        }
    }
}
