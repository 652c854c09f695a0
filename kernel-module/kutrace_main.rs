// SPDX-License-Identifier: GPL-2.0
//! KUtrace recorder: a loadable module that records every transition on every CPU in four-byte entries.
//!
//! The way of an event: [`hooks`] -> [`entry`] -> [`claim`] -> [`lane`] -> [`buffer`].
//! What a program inserts comes through [`user`].

// `pub` here means: for the other files of this module.
#![allow(unreachable_pub)]

use kernel::prelude::*;

#[path = "format/src/abi/mod.rs"]
#[allow(dead_code)]
mod abi;
mod hooks;
mod entry;
mod claim;
mod lane;
mod field;
mod per_cpu;
mod buffer;
mod task;
mod clock;
mod counters;
mod control;
mod on_each_cpu;
mod user;
mod budget;
mod ffi;

module! {
    type: Recorder,
    name: "kutrace",
    author: "KUtrace in Rust developers",
    description: "KUtrace recorder",
    license: "GPL",
}

/// The loaded module: buffers allocated, hooks connected but off, /dev/kutrace there.
struct Recorder;

impl kernel::Module for Recorder {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let setup = abi::command::Setup { flags: 0, blocks: 0 };
        // SAFETY: the pool is allocated and reset.
        let add_device = |()| kernel::error::to_result(unsafe { ffi::kutrace_shim_device_add() });
        let ready = control::prepare(setup).and_then(add_device);
        if ready.is_err() {
            control::end();
            buffer::free();
        }
        ready.map(|()| Recorder)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: the device was added; no command runs behind this, so none can switch hooks on.
        unsafe { ffi::kutrace_shim_device_remove() };
        control::end();
        buffer::free();
    }
}
