// SPDX-License-Identifier: GPL-2.0
//! The commands of /dev/kutrace: info, reset, start, stop, snapshot, hold, release.
//!
//! shim.c checks the caller's rights, copies the argument in and out and holds the lock that makes commands
//! one at a time.
//!
//! Invariant: while an open file holds the recorder, no other file empties, starts or stops it; closed by whatever
//! means, it holds nothing and no trace runs.

use core::cell::UnsafeCell;
use core::ffi::{c_long, c_uint, c_void};
use core::ptr;

use kernel::error::code;
use kernel::prelude::*;

use crate::abi::command::{
    Info, Moment, Setup, BLOCKS_MAX, IOCTL_HOLD, IOCTL_INFO, IOCTL_RELEASE, IOCTL_RESET, IOCTL_SNAPSHOT, IOCTL_START,
    IOCTL_STOP, IPC, LLC, MAX_SHIFT, STATE_EMPTY, STATE_STOPPED, STATE_TRACING, VERSION, WRAP,
};
use crate::ffi::Ops;
use crate::{buffer, clock, counters, ffi, hooks, on_each_cpu};

struct State {
    state: u32,
    setup: Setup,
    start: Moment,
    stop: Moment,
    /// What the kernel's hooks call; null for nothing.
    connected: *const Ops,
    /// The open file that holds the recorder; null for none. Only compared.
    holder: *const c_void,
    /// The process that opened it for that, referenced; null for none.
    process: *mut c_void,
}

struct StateCell(UnsafeCell<State>);

// SAFETY: only `kutrace_control`, `kutrace_close`, `prepare` and `end` use it: under the control lock, and while there
// is no device.
unsafe impl Sync for StateCell {}

static STATE: StateCell = StateCell(UnsafeCell::new(State {
    state: STATE_EMPTY,
    setup: Setup { flags: 0, shift: 0, blocks: 0 },
    start: Moment { tsc: 0, realtime_ns: 0, monotonic_ns: 0 },
    stop: Moment { tsc: 0, realtime_ns: 0, monotonic_ns: 0 },
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
        IOCTL_RESET | IOCTL_START | IOCTL_STOP | IOCTL_HOLD if state.is_held_by_other_than(file) => Err(code::EBUSY),
        IOCTL_INFO => {
            // SAFETY: `argument` is valid for an Info.
            unsafe { argument.cast::<Info>().write(state.info()) };
            Ok(())
        }
        // SAFETY: `argument` is valid for a Setup.
        IOCTL_RESET => state.reset(unsafe { argument.cast::<Setup>().read() }),
        IOCTL_START => state.start(),
        IOCTL_STOP => {
            state.stop();
            Ok(())
        }
        // SAFETY: `argument` is valid for a Moment.
        IOCTL_SNAPSHOT => state.snapshot().map(|moment| unsafe { argument.cast::<Moment>().write(moment) }),
        IOCTL_HOLD => {
            state.hold(file);
            Ok(())
        }
        IOCTL_RELEASE => {
            state.release(file);
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
        state.stop();
    }
}

/// Prepares a first trace, when the module is loaded.
pub fn prepare(setup: Setup) -> Result {
    // SAFETY: the device does not exist yet.
    let state = unsafe { &mut *STATE.0.get() };
    state.reset(setup)?;
    state.connect()
}

/// Ends a trace that is running, when the module is unloaded. On return no hook runs.
pub fn end() {
    // SAFETY: the device does not exist any more.
    unsafe { &mut *STATE.0.get() }.disconnect();
    counters::close();
}

impl State {
    fn info(&self) -> Info {
        let (blocks, blocks_taken) = buffer::usage();
        Info {
            version: VERSION,
            state: self.state,
            flags: self.setup.flags,
            shift: self.setup.shift,
            cpus: buffer::cpus(),
            blocks,
            tsc_khz: clock::tsc_khz(),
            blocks_taken,
            lost: buffer::lost(),
            start: self.start,
            stop: self.stop,
            // SAFETY: the process is null or referenced.
            holder: unsafe { ffi::kutrace_shim_process_number(self.process) },
            reserved: 0,
        }
    }

    fn is_held_by_other_than(&self, file: *const c_void) -> bool {
        !self.holder.is_null() && !ptr::eq(self.holder, file)
    }

    fn hold(&mut self, file: *const c_void) {
        self.release(file);
        self.holder = file;
        // SAFETY: called by a process.
        self.process = unsafe { ffi::kutrace_shim_process() };
    }

    /// Whether it was held by `file`.
    fn release(&mut self, file: *const c_void) -> bool {
        let held = ptr::eq(self.holder, file);
        if held {
            self.holder = ptr::null();
            // SAFETY: the reference that `hold` took is given back once.
            unsafe { ffi::kutrace_shim_process_put(self.process) };
            self.process = ptr::null_mut();
        }
        held
    }

    fn reset(&mut self, setup: Setup) -> Result {
        if setup.flags & !(WRAP | IPC | LLC) != 0 || setup.shift > MAX_SHIFT || setup.blocks > BLOCKS_MAX {
            return Err(code::EINVAL);
        }
        if self.state == STATE_TRACING {
            return Err(code::EBUSY);
        }
        // Where they cannot be had, the trace in the pool stays.
        counters::open(setup.flags)?;
        counters::close();
        buffer::resize(setup.blocks)?;
        buffer::reset(setup.flags, setup.shift);
        self.state = STATE_EMPTY;
        self.setup = setup;
        (self.start, self.stop) = (Moment::default(), Moment::default());
        Ok(())
    }

    /// Lets the kernel's hooks call what records in the present mode.
    fn connect(&mut self) -> Result {
        let table = hooks::table(self.setup.flags);
        if ptr::eq(self.connected, table) {
            return Ok(());
        }
        self.disconnect();
        // SAFETY: the table lives as long as the module, which disconnects before it goes.
        kernel::error::to_result(unsafe { ffi::kutrace_register(table) })?;
        self.connected = table;
        Ok(())
    }

    fn disconnect(&mut self) {
        if !self.connected.is_null() {
            // SAFETY: this module is connected; on return no hook runs.
            unsafe { ffi::kutrace_unregister() };
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
        self.connect()?;
        counters::open(self.setup.flags)?;
        self.state = STATE_TRACING;
        // The hooks go on one after the other. Recording begins when all are on, for all CPUs at once: else a
        // switch whose hook was still off would be missing from the trace.
        // SAFETY: the operations are registered and the buffers are reset.
        unsafe { ffi::kutrace_enable() };
        self.start = clock::moment();
        buffer::open();
        // SAFETY: no precondition; every other CPU takes an interrupt, and so begins its first block.
        unsafe { ffi::kick_all_cpus_sync() };
        Ok(())
    }

    fn stop(&mut self) {
        if self.state != STATE_TRACING {
            return;
        }
        // The hooks go off one after the other. Recording ends before that, on each CPU at one moment.
        buffer::close();
        self.stop = clock::moment();
        on_each_cpu::close();
        // SAFETY: no precondition; on return no hook runs.
        unsafe { ffi::kutrace_disable() };
        counters::close();
        buffer::finish(clock::tsc() >> self.setup.shift);
        #[cfg(kutrace_count)]
        buffer::print_counts();
        self.state = STATE_STOPPED;
    }

    fn snapshot(&mut self) -> Result<Moment> {
        if self.state != STATE_TRACING || self.setup.flags & WRAP == 0 {
            return Err(code::EINVAL);
        }
        let end = clock::moment();
        if !on_each_cpu::rotate() {
            return Err(code::EAGAIN);
        }
        buffer::wait_for_claims();
        Ok(end)
    }
}
