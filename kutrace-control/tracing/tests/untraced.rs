// SPDX-License-Identifier: BSD-3-Clause
//! What the layer does to a program: nothing, whatever its spans and events are, and other layers see all of them.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{self, Poll, Waker};

use tracing::{info, info_span, Event, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;

struct Counting(Arc<AtomicUsize>);

impl<S: Subscriber> tracing_subscriber::Layer<S> for Counting {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn other_layers_see_what_they_saw_without_it() {
    let seen = Arc::new(AtomicUsize::new(0));
    let layers = tracing_subscriber::registry().with(kutrace_tracing::layer().lives()).with(Counting(seen.clone()));
    tracing::subscriber::with_default(layers, || {
        let span = info_span!("outer", size = 17_u64, late = tracing::field::Empty, what = ?Some("x"));
        span.record("late", -3_i64);
        let inner = span.in_scope(|| info_span!("inner"));
        std::thread::scope(|scope| {
            scope.spawn(|| inner.in_scope(|| drop(span)));
        });
        info!(text = "x".repeat(1000), big = u128::MAX, flag = true, "{} {}", 1, "two");
        info!(
            a = 1,
            b = 2,
            c = 3,
            d = 4,
            e = 5,
            f = 6,
            g = 7,
            h = 8,
            i = 9,
            j = 10,
            k = 11,
            l = 12,
            m = 13,
            n = 14,
            o = 15,
            p = 16
        );
    });
    assert_eq!(seen.load(Ordering::Relaxed), 2);
}

#[test]
fn a_task_gives_what_its_future_gives() {
    let mut ready = pin!(kutrace_tracing::task("some", async { 17 }));
    assert_eq!(ready.as_mut().poll(&mut task::Context::from_waker(Waker::noop())), Poll::Ready(17));
    let mut pending = Box::pin(kutrace_tracing::task("some", std::future::pending::<()>()));
    assert!(pending.as_mut().poll(&mut task::Context::from_waker(Waker::noop())).is_pending());
}
