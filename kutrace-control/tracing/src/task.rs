// SPDX-License-Identifier: BSD-3-Clause
//! Futures by name and number: each poll of one is a part of whichever thread polls it, its life a row of its own.

use std::cell::RefCell;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use foldhash::{HashMap, HashMapExt};
use kutrace::{Fields, Site};

/// The number of the next task.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The places of a name: of its polls, and of its life.
type Sites = (&'static Site, &'static Site);

static ALL: Mutex<Option<HashMap<String, Sites>>> = Mutex::new(None);

thread_local! {
    static KNOWN: RefCell<HashMap<String, Sites>> = RefCell::new(HashMap::new());
}

/// The same future, which says in the trace when it is polled, as a part `NAME(task=NUMBER)` of the thread that polls it,
/// and from its first poll to its end, as a part `NAME(id=NUMBER)` that no thread has. Numbers are those of a process.
///
/// ```
/// # async fn answer() {}
/// # fn spawn(_: impl std::future::Future<Output = ()>) {}
/// spawn(kutrace_tracing::task("answer", answer()));
/// ```
///
/// Names should be few: each is kept for good.
pub async fn task<F: Future>(name: &str, future: F) -> F::Output {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (polled, lives) = sites(name);
    let fields = Fields::default().u64(number);
    // What was not traced when it began has no end either.
    let _life = lives.async_begin(number, &Fields::default()).then(|| AtEnd(|| lives.async_end(number)));
    let mut future = pin!(future);
    poll_fn(|context| {
        let _part = polled.begin_with(&fields).then(|| AtEnd(|| polled.end()));
        future.as_mut().poll(context)
    })
    .await
}

/// Says so when something ends, by a panic, too, or because nobody wants a future any more.
struct AtEnd<F: Fn() -> bool>(F);

impl<F: Fn() -> bool> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn sites(name: &str) -> Sites {
    let shared = || {
        let mut all = ALL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let made = || (Site::leaked(&format!("{name}\0utask")), Site::leaked(name));
        *all.get_or_insert_default().entry(name.to_owned()).or_insert_with(made)
    };
    let known = |known: &RefCell<HashMap<String, Sites>>| {
        let found = known.borrow().get(name).copied();
        found.unwrap_or_else(|| *known.borrow_mut().entry(name.to_owned()).or_insert_with(shared))
    };
    KNOWN.try_with(known).unwrap_or_else(|_| shared())
}
