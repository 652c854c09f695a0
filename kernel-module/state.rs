// SPDX-License-Identifier: GPL-2.0
//! The recorder's state: a trace from its reset through its start and stop to the next reset, and the open file that
//! holds the recorder.
//!
//! No command waits forever. A CPU that is stuck with interrupts off does not answer, and one that is stuck with
//! interrupts on lets nothing else run. The hooks then cannot be switched off, since that patches code under all CPUs
//! and waits for every CPU that is in a hook; but recording ends, and the recorded events can be read. Such a trace is
//! stopped but not *settled*; the first command after the CPU has come back settles it.
//!
//! Invariant: while an open file holds the recorder, no other file empties, starts or stops it. Once the file is
//! closed, by whatever means, it holds nothing, no trace runs, and memory that it requested beyond the size at load is
//! freed.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use kernel::error::code;
use kernel::prelude::*;

use crate::abi::command::{
    Info, Moment, Ports, Setup, Tracepoints, BLOCKS_MAX, IPC, LLC, NOTE_MUTE, NOTE_UNSTABLE, PORTS_ALL, PORTS_MAX,
    RECORDS_MAX, SHIFT, STATE_EMPTY, STATE_STOPPED, STATE_TRACING, STREAM, VERSION, WRAP,
};
use crate::ffi::Table;
use crate::on_each_cpu::{Cpus, Round};
use crate::{arch, clock, ffi, landmark, lifecycle, on_each_cpu, ops, pool, stream};

/// True while the machine is about to sleep or asleep; set under the control lock.
pub static ASLEEP: AtomicBool = AtomicBool::new(false);

/// The data that the control lock protects: code with a reference to it holds the lock, or runs alone, since there is
/// no device.
pub struct State {
    state: u32,
    /// The setup of the trace, as requested.
    pub setup: Setup,
    start: Moment,
    stop: Moment,
    /// Notes on the trace: `NOTE_*`.
    notes: u32,
    /// True if no hook runs and every CPU's block is complete; false while a trace is running.
    settled: bool,
    /// The table that the source calls; null if it is not connected.
    connected: *const Table,
    /// The open file that holds the recorder; null for none. Only compared.
    holder: *const c_void,
    /// The process that acquired the recorder, referenced; null for none.
    process: *mut c_void,
    /// The open file that held the recorder when this trace was prepared, and has not released it since; null for none.
    /// Only compared.
    owner: *const c_void,
}

impl State {
    /// Returns the state of an empty recorder.
    ///
    /// # Safety
    /// It is the only one, and code that gets a reference to it holds the control lock, or runs alone.
    pub const unsafe fn new() -> State {
        let never = Moment { tsc: 0, realtime_ns: 0, monotonic_ns: 0 };
        State {
            state: STATE_EMPTY,
            setup: Setup { flags: 0, blocks: 0 },
            start: never,
            stop: never,
            notes: 0,
            settled: true,
            connected: ptr::null(),
            holder: ptr::null(),
            process: ptr::null_mut(),
            owner: ptr::null(),
        }
    }

    /// Returns the recorder's [`Info`].
    pub fn info(&mut self) -> Info {
        if self.state == STATE_TRACING {
            self.look_at_clock();
        }
        let (blocks, blocks_taken) = pool::usage();
        let (refused_names, refused_marks) = lifecycle::refused();
        // SAFETY: a source was chosen when the module was loaded.
        let (unseen, source) = unsafe { (ffi::kutrace_source_unseen(), ffi::kutrace_source_kind()) };
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
            // SAFETY: the process is null or referenced, and commands run in task context.
            holder: unsafe { ffi::kutrace_shim_process_number(self.process) },
            notes: self.notes,
            refused_names,
            refused_marks,
            unseen,
            source,
            reserved: 0,
        }
    }

    /// Returns whether the open file `file` holds the recorder.
    pub fn is_held_by(&self, file: *const c_void) -> bool {
        ptr::eq(self.holder, file)
    }

    /// Returns whether another open file holds the recorder.
    pub fn is_held_by_other_than(&self, file: *const c_void) -> bool {
        !self.holder.is_null() && !ptr::eq(self.holder, file)
    }

    /// Makes `file` the holder of the recorder, also if it holds it already.
    pub fn acquire(&mut self, file: *const c_void) {
        self.release(file);
        self.holder = file;
        // SAFETY: commands run in task context.
        self.process = unsafe { ffi::kutrace_shim_process() };
    }

    /// Releases the recorder if `file` holds it; returns whether it did.
    pub fn release(&mut self, file: *const c_void) -> bool {
        let held = ptr::eq(self.holder, file);
        if held {
            (self.holder, self.owner) = (ptr::null(), ptr::null());
            // SAFETY: the reference that `acquire` took is given back once.
            unsafe { ffi::kutrace_shim_process_put(self.process) };
            self.process = ptr::null_mut();
        }
        held
    }

    /// Empties the recorder and prepares a trace with this setup.
    pub fn reset(&mut self, setup: Setup) -> Result {
        let contradicts = setup.flags & (WRAP | STREAM) == WRAP | STREAM;
        if contradicts || setup.flags & !(WRAP | STREAM | IPC | LLC) != 0 || setup.blocks > BLOCKS_MAX {
            return Err(code::EINVAL);
        }
        if self.state == STATE_TRACING {
            return Err(code::EBUSY);
        }
        self.settle()?;
        // SAFETY: the lock is held as `State` requires, or nothing else can get here yet; a command may sleep. The
        // trace is settled, so no hook that records runs, and without the reset that follows the resize no trace
        // starts.
        unsafe {
            // If the counters are not available, the trace in the pool stays.
            lifecycle::open_counters(setup.flags)?;
            lifecycle::close_counters();
            pool::resize(setup.blocks)?;
            lifecycle::reset(setup.flags);
            ffi::kutrace_shim_note_clear();
            ffi::kutrace_programs_reset(setup.flags & WRAP != 0, setup.flags & STREAM != 0);
        }
        self.state = STATE_EMPTY;
        self.setup = setup;
        self.owner = self.holder;
        (self.start, self.stop) = (Moment::default(), Moment::default());
        self.notes = 0;
        self.choose(&Ports::default())?;
        self.choose_tracepoints(&Tracepoints::default())?;
        // SAFETY: the holder of the state holds the lock, or there is no device.
        unsafe { landmark::put(self.info()) };
        Ok(())
    }

    /// Chooses the ports whose packets are recorded.
    pub fn choose(&mut self, ports: &Ports) -> Result {
        if self.state != STATE_EMPTY {
            return Err(code::EBUSY);
        }
        if ports.count as usize > PORTS_MAX && ports.count != PORTS_ALL {
            return Err(code::EINVAL);
        }
        // SAFETY: the list has as many entries, and an empty recorder is not recording; the control lock is held, or
        // nothing else can get here yet.
        kernel::error::to_result(unsafe { ffi::kutrace_packets_choose(ports.count, ports.port.as_ptr()) })
    }

    /// Chooses the tracepoints that are recorded in addition to the source's events.
    pub fn choose_tracepoints(&mut self, tracepoints: &Tracepoints) -> Result {
        if self.state != STATE_EMPTY {
            return Err(code::EBUSY);
        }
        if tracepoints.count as usize > RECORDS_MAX {
            return Err(code::EINVAL);
        }
        // SAFETY: the list has as many entries, and an empty recorder is not recording; the control lock is held, or
        // nothing else can get here yet.
        unsafe { ffi::kutrace_records_choose(tracepoints.count, tracepoints.id.as_ptr()) };
        Ok(())
    }

    /// Connects the source to the functions that record in the current mode.
    pub fn connect(&mut self) -> Result {
        let table = ops::table(self.setup.flags);
        if ptr::eq(self.connected, table) {
            return Ok(());
        }
        self.disconnect();
        // SAFETY: the table lives as long as the module, which disconnects before it is unloaded; a command may sleep.
        let registered = kernel::error::to_result(unsafe { ffi::kutrace_source_connect(table) });
        if registered == Err(code::ENOEXEC) {
            pr_err!("built for the hooks of another kernel than this one\n");
        }
        registered?;
        self.connected = table;
        Ok(())
    }

    /// Disconnects the source; on return no hook runs.
    pub fn disconnect(&mut self) {
        if !self.connected.is_null() {
            // SAFETY: a command may sleep; on return no hook runs.
            unsafe { ffi::kutrace_source_disconnect() };
            self.connected = ptr::null();
        }
    }

    /// Starts the prepared trace.
    pub fn start(&mut self) -> Result {
        if self.state != STATE_EMPTY || ASLEEP.load(Ordering::Relaxed) {
            return Err(code::EBUSY);
        }
        if clock::tsc_unstable() {
            pr_err!("the TSC is not stable on this machine: times would be wrong\n");
            return Err(code::EIO);
        }
        // Switching the hooks on patches code, and waits for every CPU to see that.
        // SAFETY: the lock is held as `State` requires.
        if on_each_cpu::ask(&unsafe { Cpus::hold() }?) == Round::Mute {
            return Err(on_each_cpu::late());
        }
        self.connect()?;
        // SAFETY: the lock is held as `State` requires; a command may sleep. The hooks are off, and stay off if they
        // cannot be switched on; the table is connected and the buffers are reset.
        unsafe {
            lifecycle::open_counters(self.setup.flags)?;
            // The hooks are switched on one after the other. Recording begins when all are on, for all CPUs at once:
            // otherwise a switch whose hook was still off would be missing from the trace. Programs see the trace from
            // here on; events that they record before it begins are not part of it.
            ffi::kutrace_programs_open();
            kernel::error::to_result(ffi::kutrace_source_enable()).inspect_err(|_| {
                ffi::kutrace_programs_close();
                lifecycle::close_counters();
            })?;
        }
        self.state = STATE_TRACING;
        self.settled = false;
        // A CPU that comes online or goes offline records that itself, once the state of each CPU at the start is
        // known.
        // SAFETY: the lock is held as `State` requires.
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
        // SAFETY: the holder of the state holds the lock, or there is no device; the stop ends the watch.
        unsafe { landmark::watch() }.inspect_err(|_| self.stop(0))
    }

    /// Stops a running trace; `note` is the reason, if that is not a command.
    pub fn stop(&mut self, note: u32) {
        if self.state == STATE_TRACING {
            // The hooks are switched off one after the other. Recording ends before that, on each CPU at one moment. A
            // CPU that is offline has ended its block, and begins none while the pool is closed; a CPU that does not
            // finish coming or going is not waited for any longer.
            // SAFETY: the lock is held as `State` requires; the caller may sleep.
            unsafe {
                landmark::unwatch();
                let _cpus = Cpus::hold();
                pool::close();
                self.stop = clock::moment();
                ffi::kutrace_programs_close();
                self.state = STATE_STOPPED;
                self.notes |= note;
                self.look_at_clock();
                if on_each_cpu::close() == Round::All {
                    // A CPU that was mute at a snapshot has come back, with all that it recorded.
                    self.notes &= !NOTE_MUTE;
                } else {
                    self.notes |= NOTE_MUTE;
                    lifecycle::end_for_now(arch::tsc() >> SHIFT);
                }
                landmark::put(self.info());
            }
        }
        // If this fails, the trace is stopped nevertheless.
        let _ = self.settle();
    }

    /// Handles the close of the open file `file`, by its process or because the process ended.
    pub fn close(&mut self, file: *const c_void) {
        let owned = ptr::eq(self.owner, file);
        if self.release(file) {
            self.abandon(owned);
        }
    }

    /// Cleans up after the process that held the recorder. A trace that it `owned` is dropped if the pool is larger
    /// than at load: no process is left to write it. Any other trace stays until the next start.
    fn abandon(&mut self, owned: bool) {
        if self.state == STATE_TRACING {
            self.stop(0);
        }
        if owned && pool::is_enlarged() {
            // If a CPU is stuck this fails, and the next reset frees the memory.
            let _ = self.reset(Setup { blocks: 0, ..self.setup });
        }
    }

    /// Switches the hooks off and completes every CPU's block, unless that was done before; ETIMEDOUT while a CPU that
    /// was asked to end its block has not, or lets no other thread run.
    fn settle(&mut self) -> Result {
        if self.settled {
            return Ok(());
        }
        // SAFETY: the lock is held as `State` requires.
        if !on_each_cpu::is_answered() || on_each_cpu::ask(&unsafe { Cpus::hold() }?) == Round::Mute {
            return Err(on_each_cpu::late());
        }
        // Switching the source off waits for the same, but without a limit and with the lock held.
        on_each_cpu::wait_for_calls_in_haste()?;
        // SAFETY: the lock is held, and a command may sleep; once the source is off no hook runs, and every CPU has
        // answered.
        unsafe {
            ffi::kutrace_source_disable();
            lifecycle::close_counters();
            lifecycle::finish(arch::tsc() >> SHIFT);
            #[cfg(kutrace_count)]
            lifecycle::print_counts();
            self.settled = true;
            landmark::sight(self.stop);
        }
        Ok(())
    }

    /// Ends blocks of a stream that began before the counter `before`.
    pub fn flush(&mut self, before: u64) -> Result {
        match self.state {
            // SAFETY: the lock is held as `State` requires.
            STATE_TRACING => unsafe { stream::flush(before) },
            _ => Err(code::EINVAL),
        }
    }

    /// Writes into the blocks how far they are filled; returns the counter up to which that is complete.
    pub fn look(&mut self) -> Result<u64> {
        match self.state {
            // SAFETY: the lock is held as `State` requires.
            STATE_TRACING => unsafe { lifecycle::look() },
            _ => Err(code::EINVAL),
        }
    }

    /// Notes it if the kernel no longer trusts the TSC.
    fn look_at_clock(&mut self) {
        if clock::tsc_unstable() {
            self.notes |= NOTE_UNSTABLE;
        }
    }

    /// Makes the events recorded so far readable; returns the moment at which they end.
    pub fn snapshot(&mut self) -> Result<Moment> {
        if self.state != STATE_TRACING || self.setup.flags & WRAP == 0 {
            return Err(code::EINVAL);
        }
        // A CPU that is offline has ended its block.
        // SAFETY: the lock is held as `State` requires.
        let cpus = unsafe { Cpus::hold() }?;
        let end = clock::moment();
        self.look_at_clock();
        match on_each_cpu::rotate(&cpus) {
            Round::All => self.notes &= !NOTE_MUTE,
            Round::Refused => return Err(code::EAGAIN),
            Round::Mute => {
                self.notes |= NOTE_MUTE;
                // SAFETY: the lock is held as `State` requires.
                unsafe { lifecycle::end_for_now(arch::tsc() >> SHIFT) };
            }
        }
        match on_each_cpu::wait_for_claims() {
            true => Ok(end),
            false => Err(on_each_cpu::late()),
        }
    }
}
