// SPDX-License-Identifier: BSD-3-Clause
//! Parts, fields, values and a part that another thread ends, in Rust, without a system call for any. Run it while a
//! trace is recorded: `kutrace_control go; cargo run --example requests; kutrace_control stop t.trace`

use std::thread;

fn handle(path: &str) -> bool {
    let _handle = kutrace::scope!("rust.handle");
    {
        let _find = kutrace::scope!("rust.find");
        kutrace::value!("rust.queued", -3);
    }
    kutrace::mark!("rust.found");
    kutrace::event!("rust.reply", status: u64 = 200, ratio: f64 = 0.5, path: str = path)
}

fn main() {
    let replied = handle("/index");
    kutrace::begin!("rust.upload", 7, size: u64 = 4096);
    let ended = thread::spawn(|| kutrace::end!("rust.upload", 7)).join();
    kutrace::log_line!("disk full");
    // While nothing is traced, nothing is recorded, and the program does the same.
    assert_eq!((replied, ended.ok()), (kutrace::is_on(), Some(replied)));
}
