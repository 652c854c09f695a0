// SPDX-License-Identifier: BSD-3-Clause
//! Marks, spans, an RPC, a queue and a lock of the original library. Run it while a trace is recorded:
//! `kutrace_control go; cargo run --example original; kutrace_control stop t.trace`

use std::thread;
use std::time::Duration;

use kutrace::original;

fn main() {
    original::mark_a("rust");
    original::mark_b("two");
    original::mark_c("three");
    original::mark_d(123_456);
    {
        let _outer = original::span("rust outer");
        thread::sleep(Duration::from_millis(1));
        {
            let _inner = original::span("rust inner");
            thread::sleep(Duration::from_millis(1));
        }
        work();
    }
    thread::spawn(serve).join().expect("the server ends");
    original::mark_a("/rust");
}

/// A request that waits in a queue, is taken out by the same thread, and answered.
fn serve() {
    original::rpc_request("rust_get", 77, 1000);
    work();
    original::enqueue("rust_queue");
    original::rpc_end();
    thread::sleep(Duration::from_millis(1));
    original::dequeue("rust_queue");
    original::rpc_resume("rust_get", 77);
    original::lock_try("rust_lock");
    work();
    original::lock_acquired("rust_lock");
    work();
    original::lock_released("rust_lock");
    original::rpc_response("rust_get", 77, 30);
    original::rpc_end();
}

fn work() {
    let sum: u64 = (0..100_000).map(std::hint::black_box).sum();
    std::hint::black_box(sum);
}
