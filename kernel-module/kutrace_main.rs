// SPDX-License-Identifier: GPL-2.0
//! KUtrace recorder: a loadable module that records every transition on every CPU in four-byte entries.
//!
//! The path of an event: [`ops`] -> [`entry`] -> [`claim`] -> [`this_cpu`] -> [`pool`]; `recorder/` has the part
//! between source and CPU, which depends on neither. Events that a program inserts come through [`user`], commands
//! through [`control`] to [`state`].

// `pub` means visible to the other files of this module.
#![allow(unreachable_pub)]

use kernel::prelude::*;

#[path = "format/src/abi/mod.rs"]
#[allow(dead_code)]
mod abi;
#[path = "source/ops.rs"]
mod ops;
mod user;
#[path = "recorder/src/entry.rs"]
mod entry;
#[path = "recorder/src/claim.rs"]
mod claim;
#[path = "recorder/src/call.rs"]
mod call;
#[path = "recorder/src/lane.rs"]
mod lane;
#[path = "recorder/src/owners.rs"]
mod owners;
#[path = "recorder/src/budget.rs"]
mod budget;
mod this_cpu;
#[path = "arch/x86_64.rs"]
mod arch;
mod per_cpu;
mod reserved;
mod pool;
mod task;
mod counters;
mod clock;
mod on_each_cpu;
mod lifecycle;
mod stream;
mod landmark;
mod state;
mod control;
mod ffi;

// shim.c has the author and the description: the names of these keys differ between versions of the kernel crate.
module! {
    type: Recorder,
    name: "kutrace",
    license: "GPL",
}

/// The loaded module: buffers are allocated, hooks are connected but off, /dev/kutrace exists.
struct Recorder;

impl kernel::Module for Recorder {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let setup = abi::command::Setup { flags: 0, blocks: 0 };
        // SAFETY: the module is being loaded, and there is no device before the pool is allocated and reset.
        let ready = unsafe {
            let add_device = |()| kernel::error::to_result(ffi::kutrace_shim_device_add());
            reserved::find().and_then(|()| control::prepare(setup)).and_then(|()| control::go()).and_then(add_device)
        };
        // SAFETY: the device was not added.
        ready.inspect_err(|_| unsafe { end() }).map(|()| Recorder)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: the device was added; no command runs after its removal, so none can switch hooks on.
        unsafe {
            ffi::kutrace_shim_device_remove();
            end();
        }
    }
}

/// Releases everything.
///
/// # Safety
/// There is no device.
unsafe fn end() {
    // SAFETY: there is no device, as the caller guarantees: no hook runs after the first call, and there is no pool
    // after the second.
    unsafe {
        control::end();
        pool::free();
        reserved::leave();
    }
}
