// SPDX-License-Identifier: BSD-3-Clause
//! Futures by name and number: each poll is a part of the polling thread; the life of a future, and each time that it
//! was ready and waited for a poll, are on a row of their own.

use std::cell::RefCell;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use foldhash::{HashMap, HashMapExt};
use kutrace::{Fields, Site};

/// The number of the next task.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The places for a name.
#[derive(Clone, Copy)]
struct Sites {
    life: &'static Site,
    poll: &'static Site,
    ready: &'static Site,
}

static ALL: Mutex<Option<HashMap<String, Sites>>> = Mutex::new(None);

thread_local! {
    static KNOWN: RefCell<HashMap<String, Sites>> = RefCell::new(HashMap::new());
}

/// Wraps a future so that the trace shows its polls, as a part `NAME(task=NUMBER)` of the polling thread; its life from
/// this call to its end, as a part `NAME(id=NUMBER)` of no thread; and, as a part `NAME.ready(id=NUMBER)` that starts
/// in the waking thread, the time that it waited for its next poll. Numbers are unique within a process.
///
/// ```
/// # async fn answer() {}
/// # fn spawn(_: impl std::future::Future<Output = ()>) {}
/// spawn(kutrace_tracing::task("answer", answer()));
/// ```
///
/// Use few different names: each is kept forever.
pub fn task<F: Future>(name: &str, future: F) -> impl Future<Output = F::Output> + use<F> {
    let (number, sites) = (NEXT.fetch_add(1, Ordering::Relaxed), sites(name));
    // A life whose start was not traced has no end either.
    let life = sites.life.async_begin(number, &Fields::new()).then(|| AtEnd(move || sites.life.async_end(number)));
    let wakes = AtEndOfTask(Arc::new(Wakes::new(number, sites.ready)));
    wakes.0.ready();
    async move {
        let _life = life;
        let waker = Waker::from(Arc::clone(&wakes.0));
        let mut future = pin!(future);
        poll_fn(|context| {
            wakes.0.polled();
            if !kutrace::is_on() {
                return future.as_mut().poll(context);
            }
            wakes.0.pass_on_to(context.waker());
            let _part = sites.poll.begin_as_typed(&Fields::new().u64(number)).then(|| AtEnd(|| sites.poll.end()));
            future.as_mut().poll(&mut Context::from_waker(&waker))
        })
        .await
    }
}

/// Records the end of something, also if it ends by a panic, or because a future is dropped.
struct AtEnd<F: Fn() -> bool>(F);

impl<F: Fn() -> bool> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Waker of a task, and the state of its wakeup.
struct Wakes {
    number: u64,
    site: &'static Site,
    /// State in the lower two bits; above them the number of polls after a wakeup.
    state: AtomicU64,
    /// The runtime's waker.
    waker: Mutex<Waker>,
}

/// [`Wakes::state`]: not ready, or being polled.
const IDLE: u64 = 0;
/// [`Wakes::state`]: a thread is about to record that the task is ready.
const WAKING: u64 = 1;
/// [`Wakes::state`]: the trace has the record that the task is ready.
const READY: u64 = 2;
/// Mask of the states.
const STATE: u64 = 3;

impl Wakes {
    fn new(number: u64, site: &'static Site) -> Wakes {
        Wakes { number, site, state: AtomicU64::new(IDLE), waker: Mutex::new(Waker::noop().clone()) }
    }

    /// Marks the task as ready. Records it once, until the task is polled.
    fn ready(&self) {
        let idle = self.state.load(Ordering::Relaxed);
        if !kutrace::is_on() || idle & STATE != IDLE || !self.turns(idle, idle | WAKING) {
            return;
        }
        let is_recorded = self.site.async_begin(self.number, &Fields::new());
        // Another thread may have polled the task in between, and left the end to this thread.
        if !self.turns(idle | WAKING, idle | if is_recorded { READY } else { IDLE }) && is_recorded {
            self.site.async_end(self.number);
        }
    }

    /// Handles a poll, or the drop of the task.
    fn polled(&self) {
        let mut seen = self.state.load(Ordering::Relaxed);
        while seen & STATE != IDLE && !self.turns(seen, (seen | STATE) + 1) {
            seen = self.state.load(Ordering::Relaxed);
        }
        if seen & STATE == READY {
            self.site.async_end(self.number);
        }
    }

    fn turns(&self, from: u64, to: u64) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn pass_on_to(&self, waker: &Waker) {
        self.waker().clone_from(waker);
    }

    fn waker(&self) -> MutexGuard<'_, Waker> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready();
        // Not under the lock: a waker may poll at once.
        let waker = self.waker().clone();
        waker.wake();
    }
}

/// Ends open records when the task is dropped.
struct AtEndOfTask(Arc<Wakes>);

impl Drop for AtEndOfTask {
    fn drop(&mut self) {
        self.0.polled();
    }
}

fn sites(name: &str) -> Sites {
    let shared = || {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Sites {
            life: Site::leaked(name),
            poll: Site::leaked(&format!("{name}\0utask")),
            ready: Site::leaked(&format!("{name}.ready")),
        };
        *all.get_or_insert_default().entry(name.to_owned()).or_insert_with(made)
    };
    let known = |known: &RefCell<HashMap<String, Sites>>| {
        let found = known.borrow().get(name).copied();
        found.unwrap_or_else(|| *known.borrow_mut().entry(name.to_owned()).or_insert_with(shared))
    };
    KNOWN.try_with(known).unwrap_or_else(|_| shared())
}
