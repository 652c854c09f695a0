// SPDX-License-Identifier: BSD-3-Clause
//! Effect of layer, subscriber and tasks on a program: none, for any spans and events, and other layers see all of
//! them.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{self, Poll, Waker};

use tracing::level_filters::LevelFilter;
use tracing::{debug_span, info, info_span, Event, Instrument, Span, Subscriber};
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

#[test]
fn spans_of_the_subscriber_are_where_the_program_is() {
    let name = || Span::current().metadata().map_or("", |metadata| metadata.name());
    tracing::subscriber::with_default(kutrace_tracing::subscriber().lives().up_to(LevelFilter::INFO), || {
        assert_eq!(name(), "");
        let (outer, inner) = (info_span!("outer", size = 17_u64), info_span!("inner"));
        assert!(debug_span!("skipped").is_disabled());
        let entered = outer.clone().entered();
        let inside = inner.enter();
        assert_eq!(name(), "inner");
        // Left in the wrong order.
        drop(entered);
        assert_eq!(name(), "inner");
        drop(inside);
        assert_eq!(name(), "");
        let mut late = pin!(outer.in_scope(|| async { name() }.in_current_span()));
        assert_eq!(late.as_mut().poll(&mut task::Context::from_waker(Waker::noop())), Poll::Ready("outer"));
        // Deeper than the maximum depth.
        fn deep(levels: usize) {
            if levels > 0 {
                info_span!("deep", levels).in_scope(|| deep(levels - 1));
            }
        }
        deep(1000);
        outer.record("size", 18_u64);
        info!(size = 1, "{}", 2);
        assert_eq!(name(), "");
    });
}

#[test]
fn a_task_passes_on_to_whom_it_is_polled_for_last() {
    struct Counting(AtomicUsize);
    impl task::Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let counts = [(); 2].map(|()| Arc::new(Counting(AtomicUsize::new(0))));
    let mut woken = None;
    let mut task = Box::pin(kutrace_tracing::task(
        &String::from("some"),
        std::future::poll_fn(|context| {
            woken = Some(context.waker().clone());
            Poll::<()>::Pending
        }),
    ));
    for count in &counts {
        assert!(task.as_mut().poll(&mut task::Context::from_waker(&count.clone().into())).is_pending());
    }
    drop(task);
    woken.expect("a waker").wake();
    assert_eq!(counts.map(|count| count.0.load(Ordering::Relaxed)), [0, 1]);
}
