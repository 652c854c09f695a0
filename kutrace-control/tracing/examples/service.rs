// SPDX-License-Identifier: BSD-3-Clause
//! Spans, events and log lines of a program that uses KUtrace only in two lines of `main`.
//!
//! `kutrace_control go; ./service; kutrace_control stop t.trace`; with an argument it has a registry, and a layer.

use std::future::{poll_fn, Future};
use std::sync::mpsc::{channel, Sender};
use std::task::{Context, Poll, Waker};
use std::thread;

use tracing::{info, info_span, instrument};
use tracing_subscriber::prelude::*;

#[instrument]
fn handle(path: &str, size: u64) -> u64 {
    let found = info_span!("find", cached = false).in_scope(|| size / 2);
    info!(status = 200, ratio = 0.5, "answered {path}");
    found
}

/// A future that has to wait once, and sends its waker.
async fn later(waits: Sender<Waker>) {
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        if polls == 2 {
            return Poll::Ready(());
        }
        let _ = waits.send(context.waker().clone());
        Poll::Pending
    })
    .await;
}

fn main() {
    if std::env::args().len() > 1 {
        tracing_subscriber::registry().with(kutrace_tracing::layer().lives()).init();
    } else {
        let installed = kutrace_tracing::subscriber().lives().install();
        assert!(installed.is_ok());
    }
    let logged = kutrace_tracing::Logger::new().install(log::LevelFilter::Info);
    log::info!("ready: {}", logged.is_ok());
    // A span that another thread leaves and closes.
    let upload = info_span!("upload", id = 7_u64);
    upload.in_scope(|| handle("/index", 34));
    let ended = thread::spawn(move || upload.in_scope(|| handle("/other", 17))).join();
    // A task that begins on one thread and ends on another, as with a multithreaded runtime.
    let (waits, waiting) = channel();
    let mut task = Box::pin(kutrace_tracing::task("answer", later(waits)));
    let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    waiting.iter().take(1).for_each(Waker::wake);
    let polled = thread::spawn(move || task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()).join();
    assert!(polled.is_ok_and(|is_ready| is_ready));
    log::warn!("done: {}", ended.is_ok());
}
