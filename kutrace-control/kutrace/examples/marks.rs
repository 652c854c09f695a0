// SPDX-License-Identifier: BSD-3-Clause
//! What a program can put into a trace. Run it while one is recorded:
//! `kutrace_control go; cargo run --example marks; kutrace_control stop t.trace`

use std::thread;
use std::time::Duration;

fn main() {
    kutrace::mark_a("rust");
    kutrace::mark_b("two");
    kutrace::mark_c("three");
    kutrace::mark_d(123_456);
    {
        let _outer = kutrace::span("rust outer");
        thread::sleep(Duration::from_millis(1));
        {
            let _inner = kutrace::span("rust inner");
            thread::sleep(Duration::from_millis(1));
        }
        work();
    }
    thread::spawn(serve).join().expect("the server ends");
    kutrace::mark_a("/rust");
}

/// A request that waits in a queue, is taken out by the same thread, and answered.
fn serve() {
    kutrace::rpc_request("rust_get", 77, 1000);
    work();
    kutrace::enqueue("rust_queue");
    kutrace::rpc_end();
    thread::sleep(Duration::from_millis(1));
    kutrace::dequeue("rust_queue");
    kutrace::rpc_resume("rust_get", 77);
    kutrace::lock_try("rust_lock");
    work();
    kutrace::lock_acquired("rust_lock");
    work();
    kutrace::lock_released("rust_lock");
    kutrace::rpc_response("rust_get", 77, 30);
    kutrace::rpc_end();
}

fn work() {
    let sum: u64 = (0..100_000).map(std::hint::black_box).sum();
    std::hint::black_box(sum);
}
