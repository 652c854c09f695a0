// SPDX-License-Identifier: BSD-3-Clause
//! Live spans and events of `tracing`, for programs in which nothing else uses them.

use std::cell::Cell;

use kutrace::Site;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{set_global_default, Interest, SetGlobalDefaultError};
use tracing::{Event, Metadata};
use tracing_core::span::Current;

use crate::layer::Lives;
use crate::packed::Packed;
use crate::place::{self, Shape};
use crate::spans::{self, Span};

/// Records the spans and events of `tracing`. See [`subscriber`].
#[derive(Debug)]
pub struct Subscriber {
    lives: Option<Lives>,
    most: LevelFilter,
}

/// Records the same as a [layer](crate::layer()), without a registry: for programs that use their spans for nothing
/// else. A span costs a fraction of its cost with a registry.
///
/// ```
/// kutrace_tracing::subscriber().install()?;
/// # Ok::<(), tracing::subscriber::SetGlobalDefaultError>(())
/// ```
pub fn subscriber() -> Subscriber {
    Subscriber { lives: None, most: LevelFilter::TRACE }
}

impl Subscriber {
    /// Like [`crate::Layer::lives`].
    #[must_use]
    pub fn lives(self) -> Subscriber {
        Subscriber { lives: Some(Lives), ..self }
    }

    /// Excludes spans and events that are less important than this level.
    #[must_use]
    pub fn up_to(self, most: LevelFilter) -> Subscriber {
        Subscriber { most, ..self }
    }

    /// Makes it the program's subscriber.
    ///
    /// # Errors
    /// If the program has one already.
    pub fn install(self) -> Result<(), SetGlobalDefaultError> {
        set_global_default(self)
    }
}

/// Maximum depth of a thread's spans; deeper ones are ignored.
const DEPTH: usize = 128;

thread_local! {
    static INSIDE: Inside = const { Inside { depth: Cell::new(0), spans: [const { Cell::new((0, None)) }; DEPTH] } };
}

/// The spans that a thread is in, the outermost first: their ids, and the place under which they are recorded, if they
/// were entered while something was traced.
struct Inside {
    depth: Cell<usize>,
    spans: [Cell<(u64, Option<&'static Site>)>; DEPTH],
}

impl tracing::Subscriber for Subscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let (metadata, has_life) = (attributes.metadata(), self.lives.is_some());
        if !kutrace::is_on() || (metadata.fields().is_empty() && !has_life) {
            return spans::plain(place::plain(metadata));
        }
        let mut packed = Packed::NOTHING;
        attributes.record(&mut packed);
        let shape = place::shape(metadata, &packed);
        let Some(id) = spans::create(shape, &packed.fields) else { return spans::plain(place::plain(metadata)) };
        if has_life {
            shape.site.async_begin(id.into_u64(), &packed.fields);
        }
        id
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(shape) = shape(id.into_u64()).filter(|_| kutrace::is_on()) {
            let packed = Packed::of(|visit| values.record(visit));
            place::site(shape.metadata, &packed).mark_as_typed(&packed.fields);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if kutrace::is_on() {
            let packed = Packed::of(|visit| event.record(visit));
            place::site(event.metadata(), &packed).mark_as_typed(&packed.fields);
        }
    }

    fn enter(&self, id: &Id) {
        let id = id.into_u64();
        let span = if kutrace::is_on() { spans::span(id) } else { None };
        let site = span.as_ref().and_then(Span::shape).map(|shape| shape.site);
        INSIDE.with(|inside| inside.enter(id, site));
        match (site, span) {
            (Some(site), Some(Span::Kept(room))) => _ = site.begin_as_typed(&room.fields()),
            (Some(site), _) => _ = site.begin(),
            (None, _) => {}
        }
    }

    fn exit(&self, id: &Id) {
        let id = id.into_u64();
        let site = INSIDE.with(|inside| inside.exit(id));
        if kutrace::is_on() {
            site.or_else(|| Some(shape(id)?.site)).map(Site::end);
        }
    }

    fn clone_span(&self, id: &Id) -> Id {
        spans::share(id.into_u64());
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        spans::close(id.into_u64(), |room| {
            if self.lives.is_some() {
                room.shape().map(|shape| shape.site.async_end(id.into_u64()));
            }
        })
    }

    fn current_span(&self) -> Current {
        let last = INSIDE.with(Inside::last);
        match last.and_then(|id| Some((id, shape(id)?.metadata))) {
            Some((id, metadata)) => Current::new(Id::from_u64(id), metadata),
            None => Current::none(),
        }
    }
}

/// The place of a span.
#[inline]
fn shape(id: u64) -> Option<&'static Shape> {
    spans::span(id)?.shape()
}

impl Inside {
    #[inline]
    fn enter(&self, id: u64, site: Option<&'static Site>) {
        let depth = self.depth.get();
        if let Some(at) = self.spans.get(depth) {
            at.set((id, site));
        }
        self.depth.set(depth + 1);
    }

    /// Leaves the innermost span with this id.
    #[inline]
    fn exit(&self, id: u64) -> Option<&'static Site> {
        let last = self.depth.get().checked_sub(1)?;
        self.depth.set(last);
        match self.spans.get(last)?.get() {
            (innermost, site) if innermost == id => site,
            _ => self.close_gap(last, id),
        }
    }

    /// A span was left that is not the innermost: those inside it move out by one.
    #[cold]
    fn close_gap(&self, last: usize, id: u64) -> Option<&'static Site> {
        let Some(gap) = self.spans[..last].iter().rposition(|at| at.get().0 == id) else {
            self.depth.set(last + 1);
            return None;
        };
        let (_, site) = self.spans[gap].get();
        for at in gap..last {
            self.spans[at].set(self.spans[at + 1].get());
        }
        site
    }

    fn last(&self) -> Option<u64> {
        self.spans.get(self.depth.get().checked_sub(1)?).map(|at| at.get().0)
    }
}
