// SPDX-License-Identifier: BSD-3-Clause
//! Futures by name and number: each poll of one is a part of whichever thread polls it; its life, and each time in which it
//! could go on and nobody polled it, are on a row of its own.

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

/// The places of a name.
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

/// The same future, which says in the trace when it is polled, as a part `NAME(task=NUMBER)` of the thread that polls it;
/// from this call to its end, as a part `NAME(id=NUMBER)` that no thread has; and, as such a part `NAME.ready(id=NUMBER)`
/// of whichever thread woke it, how long it waited then to be polled. Numbers are those of a process.
///
/// ```
/// # async fn answer() {}
/// # fn spawn(_: impl std::future::Future<Output = ()>) {}
/// spawn(kutrace_tracing::task("answer", answer()));
/// ```
///
/// Names should be few: each is kept for good.
pub fn task<F: Future>(name: &str, future: F) -> impl Future<Output = F::Output> + use<F> {
    let (number, sites) = (NEXT.fetch_add(1, Ordering::Relaxed), sites(name));
    // What was not traced when it began has no end either.
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

/// Says so when something ends, by a panic, too, or because nobody wants a future any more.
struct AtEnd<F: Fn() -> bool>(F);

impl<F: Fn() -> bool> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Who wakes a task, and since when it could go on.
struct Wakes {
    number: u64,
    site: &'static Site,
    /// In the lower two bits; above them how often it was polled after somebody woke it.
    state: AtomicU64,
    /// The runtime's.
    waker: Mutex<Waker>,
}

/// [`Wakes::state`]: nothing is to be done, or the task is polled.
const IDLE: u64 = 0;
/// [`Wakes::state`]: somebody is about to say that it could go on.
const WAKING: u64 = 1;
/// [`Wakes::state`]: that is in the trace.
const READY: u64 = 2;
/// The bits of these.
const STATE: u64 = 3;

impl Wakes {
    fn new(number: u64, site: &'static Site) -> Wakes {
        Wakes { number, site, state: AtomicU64::new(IDLE), waker: Mutex::new(Waker::noop().clone()) }
    }

    /// From now on it could go on. Says so once, until it is polled.
    fn ready(&self) {
        let idle = self.state.load(Ordering::Relaxed);
        if !kutrace::is_on() || idle & STATE != IDLE || !self.turns(idle, idle | WAKING) {
            return;
        }
        let is_recorded = self.site.async_begin(self.number, &Fields::new());
        // It may have been polled meanwhile, by another thread, which left the end to this one.
        if !self.turns(idle | WAKING, idle | if is_recorded { READY } else { IDLE }) && is_recorded {
            self.site.async_end(self.number);
        }
    }

    /// It is polled, or nobody wants it any more.
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
        // Not under the lock: what wakes may poll at once.
        let waker = self.waker().clone();
        waker.wake();
    }
}

/// Ends what has begun when the task is dropped.
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
