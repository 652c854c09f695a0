// SPDX-License-Identifier: BSD-3-Clause
//! Spans, fields, a counter and a span that another thread ends, in Rust, without a system call for any. Run it while a
//! trace is recorded: `kutrace_control go; cargo run --example requests; kutrace_control stop t.trace`

use std::thread;

fn handle(path: &str) -> bool {
    let _handle = kutrace::span!("rust.handle");
    {
        let _find = kutrace::span!("rust.find", path = path, cached = false);
        kutrace::counter!("rust.queued", -3);
    }
    kutrace::mark!("rust.found");
    kutrace::mark!("rust.reply", status = 200, ratio = 0.5, http.path = path)
}

fn main() {
    let replied = handle("/index");
    let upload = kutrace::async_span!("rust.upload", 7, size = 4096);
    let ended = thread::spawn(|| drop(upload)).join();
    kutrace::log!("disk {} full", "sda");
    // While nothing is traced, nothing is recorded, and the program does the same.
    assert!(replied == kutrace::is_on() && ended.is_ok());
}
