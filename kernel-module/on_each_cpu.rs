// SPDX-License-Identifier: GPL-2.0
//! All CPUs: which exist, and the requests that each carries out in an interrupt: it ends its block, in the same way
//! with counters as without.
//!
//! A CPU that is stuck with interrupts off carries out no request. No caller waits for it longer than [`LIMIT_S`]: it
//! is then *mute*, and carries out the request whenever it comes back. A CPU that is stuck with interrupts on does
//! carry it out, but lets no other thread run: no caller waits longer for that either.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use kernel::prelude::*;

use crate::lane::End;
use crate::per_cpu::{Answer, PerCpu};
use crate::this_cpu::{on_this_cpu, ThisCpu};
use crate::{arch, claim, clock, ffi};

/// Seconds to wait for a CPU, or for the lock that keeps CPUs from coming and going.
const LIMIT_S: u64 = 10;
/// Milliseconds to wait even if the process is being killed: a CPU that takes interrupts answers within this time, and
/// is not counted as mute.
const ANSWER_MS: u64 = 100;

/// Number of possible CPUs.
pub fn cpus() -> u32 {
    ffi::kutrace_shim_cpus()
}

/// Calls `each` with every possible CPU and its state.
pub fn for_each_cpu(mut each: impl FnMut(u32, *mut PerCpu)) {
    for cpu in 0..cpus() {
        // SAFETY: `cpu` is below the number of CPUs.
        if unsafe { ffi::kutrace_shim_possible(cpu) } {
            // SAFETY: the CPU is possible, so it has per-CPU data.
            each(cpu, unsafe { ffi::kutrace_shim_cpu(cpu) }.cast());
        }
    }
}

/// While one exists, no CPU comes online or goes offline, and its owner holds the control lock.
pub struct Cpus(());

impl Cpus {
    /// Waits until no CPU is about to come or go; ETIMEDOUT if one does not finish, EINTR if the process is killed.
    ///
    /// # Safety
    /// The control lock is held until the value is dropped.
    pub unsafe fn hold() -> Result<Cpus> {
        // SAFETY: the caller may sleep, and `drop` releases the CPUs.
        wait_for(|| unsafe { ffi::kutrace_shim_try_hold_cpus() }).map(|()| Cpus(()))
    }
}

impl Drop for Cpus {
    fn drop(&mut self) {
        // SAFETY: held since `hold`.
        unsafe { ffi::kutrace_shim_release_cpus() }
    }
}

fn for_each_online(mut each: impl FnMut(u32, *mut PerCpu)) {
    for_each_cpu(|cpu, state| {
        if is_online(cpu) {
            each(cpu, state);
        }
    });
}

/// Returns whether a CPU is online, at this moment or for as long as [`Cpus`] are held.
pub fn is_online(cpu: u32) -> bool {
    // SAFETY: the number is below the number of CPUs.
    cpu < cpus() && unsafe { ffi::kutrace_shim_online(cpu) }
}

/// The result of a request to the CPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// Every CPU carried it out.
    All,
    /// A CPU found no block.
    Refused,
    /// A CPU gave no answer; [`PerCpu::is_mute`] finds out which.
    Mute,
}

/// Finds out whether every CPU takes interrupts.
pub fn ask(_: &Cpus) -> Round {
    round(answer_this)
}

/// Ends every CPU's block for good. The pool is closed, so a CPU that comes online in the meantime begins no block, and
/// one that goes offline ends its own.
///
/// # Safety
/// The control lock is held.
pub unsafe fn close() -> Round {
    round(close_this)
}

/// Ends every CPU's block and begins another.
pub fn rotate(_: &Cpus) -> Round {
    round(rotate_this)
}

/// Like [`rotate`], but only for the CPUs whose block has entries and began before the counter `before`.
pub fn rotate_older(_: &Cpus, before: u64) -> Round {
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, and the control lock, which `Cpus` requires, keeps the
    // pool.
    round_of(|state| unsafe { PerCpu::is_older(state, before) }, rotate_this)
}

/// Returns whether every CPU has answered its last request by now.
pub fn is_answered() -> bool {
    let mut answered = true;
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, which exists as long as the module.
    for_each_cpu(|_, state| answered &= !unsafe { PerCpu::is_mute(state) });
    answered
}

/// Waits until every claim under way has been left, including those of system calls; false if one was not left within
/// the limit. Mute CPUs are not waited for.
pub fn wait_for_claims() -> bool {
    let mut left = true;
    // SAFETY: `for_each_cpu` gives the address of a CPU's state, which exists as long as the module.
    for_each_cpu(|_, state| unsafe {
        left &= PerCpu::is_mute(state) || wait_for(|| !PerCpu::is_claiming(state)).is_ok();
    });
    left && (!is_answered() || wait_for_calls_in_haste().is_ok())
}

/// Waits until every CPU has let another thread run, or could have, so that every system call's claim under way has
/// been left; ETIMEDOUT if one does not. No CPU takes an interrupt for this.
pub fn wait_for_calls() -> Result {
    wait_for_grace(false)
}

/// Like [`wait_for_calls`], but interrupts busy CPUs: under load [`wait_for_calls`] may take seconds.
pub fn wait_for_calls_in_haste() -> Result {
    wait_for_grace(true)
}

fn wait_for_grace(in_haste: bool) -> Result {
    let grace = ffi::kutrace_shim_grace(in_haste);
    wait_for(|| ffi::kutrace_shim_is_over(grace))
}

fn round(call: unsafe extern "C" fn(*mut c_void)) -> Round {
    round_of(|_| true, call)
}

/// Has the CPUs that are `meant` make the call, and waits for their answers. The control lock is held.
fn round_of(meant: impl Fn(*mut PerCpu) -> bool, call: unsafe extern "C" fn(*mut c_void)) -> Round {
    for_each_online(|cpu, state| {
        if !meant(state) {
            return;
        }
        // SAFETY: it is a CPU's state.
        let answer = unsafe { PerCpu::answer(state) };
        answer.store(Answer::None as u32, Ordering::Relaxed);
        // A CPU that has not taken its previous interrupt will answer to that one, too late.
        // SAFETY: the control lock lets in one caller at a time. `call` takes any pointer, and stays until the CPU has
        // made the call: the module is not unloaded before a grace period has ended, and a CPU that has not taken the
        // interrupt, in the kernel with interrupts off, keeps the grace period from ending.
        let told = unsafe { ffi::kutrace_shim_call(cpu, call) };
        if !told && !is_online(cpu) {
            // The CPU has gone offline in between, since nothing holds the CPUs, and has nothing to do.
            answer.store(Answer::Yes as u32, Ordering::Relaxed);
        }
    });
    let mut refused = false;
    let answered = wait_for(|| {
        let mut all = true;
        for_each_online(|_, state| {
            // SAFETY: it is a CPU's state.
            let answer = unsafe { PerCpu::answer(state) }.load(Ordering::Acquire);
            all &= answer != Answer::None as u32;
            refused |= answer == Answer::No as u32;
        });
        all
    });
    match (answered, refused) {
        (Err(_), _) => Round::Mute,
        (Ok(()), true) => Round::Refused,
        (Ok(()), false) => Round::All,
    }
}

/// ETIMEDOUT, for which the kernel crate has no name: a CPU did not answer within the limit.
pub fn late() -> Error {
    Error::from_errno(-(kernel::bindings::ETIMEDOUT as c_int))
}

fn wait_for(mut done: impl FnMut() -> bool) -> Result {
    let (begin, ms) = (arch::tsc(), u64::from(clock::tsc_khz()));
    while !done() {
        // SAFETY: the caller may sleep.
        let killed = !unsafe { ffi::kutrace_shim_pause() };
        let waited = arch::tsc().saturating_sub(begin);
        if killed && waited >= ANSWER_MS * ms {
            return Err(EINTR);
        }
        if waited >= LIMIT_S * 1000 * ms {
            return Err(late());
        }
    }
    Ok(())
}

unsafe extern "C" fn answer_this(_: *mut c_void) {
    // SAFETY: interrupts are off.
    unsafe { on_this_cpu(|cpu: ThisCpu<'_, false>| cpu.answer(Answer::Yes)) }
}

unsafe extern "C" fn close_this(_: *mut c_void) {
    // SAFETY: interrupts are off.
    unsafe {
        on_this_cpu(|cpu: ThisCpu<'_, false>| {
            claim::close(cpu, End::Complete);
            cpu.answer(Answer::Yes);
        })
    }
}

unsafe extern "C" fn rotate_this(_: *mut c_void) {
    // SAFETY: interrupts are off.
    unsafe {
        on_this_cpu(|cpu: ThisCpu<'_, false>| cpu.answer(if claim::rotate(cpu) { Answer::Yes } else { Answer::No }))
    }
}
