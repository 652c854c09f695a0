// SPDX-License-Identifier: GPL-2.0
//! The commands of /dev/kutrace: info, reset, start, stop, snapshot, acquire, release, the commands of a stream, and
//! queries.
//!
//! device.c checks the caller's rights, copies the argument in and out and holds the lock that serializes commands.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::sync::atomic::Ordering;

use kernel::error::{code, to_result};
use kernel::prelude::*;

use crate::abi::command::{
    Blocks, Cpu, Info, Moment, Ports, Setup, Tracepoints, Vector, IOCTL_ACQUIRE, IOCTL_CPU, IOCTL_FLUSH, IOCTL_FORGET,
    IOCTL_FREE, IOCTL_FULL, IOCTL_INFO, IOCTL_KEPT, IOCTL_LOOK, IOCTL_PORTS, IOCTL_RELEASE, IOCTL_RESET,
    IOCTL_SNAPSHOT, IOCTL_START, IOCTL_STOP, IOCTL_TRACEPOINTS, IOCTL_VECTOR, NOTE_SLEEP, STREAM, WRAP,
};
use crate::abi::event::MARK_A;
use crate::abi::landmark::PANIC;
use crate::abi::programs::{IOCTL_QUOTA, IOCTL_REFUSED, IOCTL_TAKEN};
use crate::state::{State, ASLEEP};
use crate::{arch, ffi, landmark, lifecycle, ops, pool, reserved, stream};

struct StateCell(UnsafeCell<State>);

// SAFETY: only `kutrace_control`, `kutrace_close`, `kutrace_may_note`, `kutrace_end_for_sleep`,
// `kutrace_end_for_shutdown`, `prepare`, `go` and `end` use it: under the control lock, or while there is no device;
// and `kutrace_end_for_panic`, which reads the flags when no other code runs any more.
unsafe impl Sync for StateCell {}

// SAFETY: it is the only `State`, and only the functions named above use it: under the control lock, or alone.
static STATE: StateCell = StateCell(UnsafeCell::new(unsafe { State::new() }));

/// Runs one ioctl of the open file `file`. `argument` is 256 zeroed bytes with the caller's structure at its start.
///
/// # Safety
/// The control lock is held and `argument` is valid and aligned for any of the structures.
#[no_mangle]
unsafe extern "C" fn kutrace_control(file: *const c_void, command: c_uint, argument: *mut u8) -> c_long {
    // SAFETY: the control lock is held.
    let state = unsafe { &mut *STATE.0.get() };
    let result = match command {
        IOCTL_RESET | IOCTL_PORTS | IOCTL_TRACEPOINTS | IOCTL_START | IOCTL_STOP | IOCTL_ACQUIRE | IOCTL_FORGET
        | IOCTL_QUOTA | IOCTL_TAKEN
            if state.is_held_by_other_than(file) =>
        {
            Err(code::EBUSY)
        }
        IOCTL_INFO => {
            // SAFETY: `argument` is valid for an Info.
            unsafe { argument.cast::<Info>().write(state.info()) };
            Ok(())
        }
        // SAFETY: the control lock is held, and `argument` is valid for a Cpu.
        IOCTL_CPU => unsafe {
            let asked = argument.cast::<Cpu>();
            lifecycle::cpu((*asked).cpu).map(|cpu| asked.write(cpu))
        },
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
            // SAFETY: the control lock is held, and `argument` is valid for a u64.
            unsafe { argument.cast::<u64>().write(ffi::kutrace_shim_reserved_kept()) };
            Ok(())
        }
        IOCTL_FORGET => {
            // SAFETY: the control lock is held.
            unsafe { ffi::kutrace_shim_reserved_forget() };
            Ok(())
        }
        IOCTL_QUOTA | IOCTL_TAKEN | IOCTL_REFUSED => {
            // SAFETY: the control lock is held, and `argument` is valid for the structure of each.
            to_result(unsafe { ffi::kutrace_programs_control(command, argument.cast()) } as c_int)
        }
        _ => Err(code::ENOTTY),
    };
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno().into(),
    }
}

/// Handles the close of an open file, by its process or because the process ended.
///
/// # Safety
/// The control lock is held.
#[no_mangle]
unsafe extern "C" fn kutrace_close(file: *const c_void) {
    // SAFETY: the control lock is held.
    unsafe { &mut *STATE.0.get() }.close(file);
}

/// Returns 0 if the open file `file` may leave something with the trace, else an errno.
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

/// The machine is about to sleep. Its TSC may restart when it wakes, and its CPUs and devices go and come: a trace ends
/// before that, and none begins until [`kutrace_end_of_sleep`].
///
/// # Safety
/// The control lock is held.
#[no_mangle]
unsafe extern "C" fn kutrace_end_for_sleep() {
    // SAFETY: the control lock is held.
    unsafe { &mut *STATE.0.get() }.stop(NOTE_SLEEP);
    ASLEEP.store(true, Ordering::Relaxed);
}

/// The machine has slept, or will not. Traces can begin again.
#[no_mangle]
extern "C" fn kutrace_end_of_sleep() {
    ASLEEP.store(false, Ordering::Relaxed);
}

/// The kernel panics. This CPU often continues to take interrupts for as long as the machine has power: no block of the
/// trace may be reused for them.
///
/// # Safety
/// The kernel panics: interrupts are off, and all other CPUs have stopped, if they could.
#[no_mangle]
unsafe extern "C" fn kutrace_end_for_panic(realtime_ns: u64, monotonic_ns: u64) {
    if !pool::pool().is_open() {
        ffi::kutrace_shim_reserved_flush();
        return;
    }
    let moment = Moment { tsc: arch::tsc(), realtime_ns, monotonic_ns };
    // SAFETY: as the caller guarantees.
    unsafe { landmark::put_panic(moment) };
    // SAFETY: as the caller guarantees. The holder of the control lock, if there was one, never changes the flags any
    // more; a raw pointer, since the holder may have a reference to the whole state.
    let flags = unsafe { (&raw const (*STATE.0.get()).setup.flags).read() };
    // SAFETY: hooks are called with preemption off, and so is this.
    unsafe { (ops::table(flags).ops.value)(MARK_A.into(), PANIC) };
    pool::close();
    // SAFETY: as the caller guarantees.
    unsafe { landmark::sight(moment) };
    ffi::kutrace_shim_reserved_flush();
}

/// The machine is about to go down: completes the trace in memory that outlives the reboot.
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
    ffi::kutrace_shim_reserved_flush();
}

/// Prepares a first trace, when the module is loaded.
///
/// # Safety
/// Neither the device nor the sleep notifier exists yet, so nothing else can get here.
pub unsafe fn prepare(setup: Setup) -> Result {
    // SAFETY: as the caller guarantees.
    let state = unsafe { &mut *STATE.0.get() };
    // SAFETY: the module is being loaded.
    to_result(unsafe { ffi::kutrace_source_choose() })?;
    state.reset(setup)?;
    state.connect()
}

/// Starts a trace when the module is loaded, if its parameter requests that.
///
/// # Safety
/// See [`prepare`], which has been called.
pub unsafe fn go() -> Result {
    let asked = ffi::kutrace_shim_go();
    to_result(asked.min(0))?;
    if asked > 0 {
        // SAFETY: as the caller guarantees.
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
/// Neither the device nor the sleep notifier exists, so nothing else can get here.
pub unsafe fn end() {
    // SAFETY: as the caller guarantees; from the disconnection on no hook runs.
    unsafe {
        landmark::unwatch();
        (*STATE.0.get()).disconnect();
        lifecycle::close_counters();
        ffi::kutrace_shim_note_clear();
        landmark::take_away();
    }
}
