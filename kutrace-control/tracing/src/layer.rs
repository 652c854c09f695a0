// SPDX-License-Identifier: BSD-3-Clause
//! Live spans and events of `tracing`, for programs with a registry.

use kutrace::{Fields, Site};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::packed::Packed;
use crate::place;

/// Records the spans and events of `tracing`. See [`layer`].
#[derive(Debug, Default)]
pub struct Layer {
    lives: Option<Lives>,
}

#[derive(Debug)]
pub(crate) struct Lives;

/// A layer that records each stay of a thread in a span, and events.
pub fn layer() -> Layer {
    Layer::default()
}

impl Layer {
    /// Also records the life of each span, from its creation to the end of its last handle, regardless of the threads
    /// in it: for spans of futures, which are entered at each poll.
    #[must_use]
    pub fn lives(self) -> Layer {
        Layer { lives: Some(Lives) }
    }
}

/// Place and fields at a span's creation, if that was traced.
struct Created {
    site: &'static Site,
    fields: Fields,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        // For a span without fields the place is enough.
        let is_plain = attributes.metadata().fields().is_empty() && self.lives.is_none();
        if is_plain || !kutrace::is_on() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let packed = Packed::of(|visit| attributes.record(visit));
        let site = place::site(attributes.metadata(), &packed);
        if self.lives.is_some() {
            site.async_begin(id.into_u64(), &packed.fields);
        }
        span.extensions_mut().insert(Created { site, fields: packed.fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|_| kutrace::is_on()) else { return };
        let packed = Packed::of(|visit| values.record(visit));
        place::site(span.metadata(), &packed).mark_as_typed(&packed.fields);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if kutrace::is_on() {
            let packed = Packed::of(|visit| event.record(visit));
            place::site(event.metadata(), &packed).mark_as_typed(&packed.fields);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !kutrace::is_on() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        match span.extensions().get::<Created>() {
            Some(created) => created.site.begin_as_typed(&created.fields),
            None => place::plain(span.metadata()).site.begin(),
        };
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if !kutrace::is_on() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        match span.extensions().get::<Created>() {
            Some(created) => created.site.end(),
            None => place::plain(span.metadata()).site.end(),
        };
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if self.lives.is_none() || !kutrace::is_on() {
            return;
        }
        let Some(span) = context.span(&id) else { return };
        if let Some(created) = span.extensions().get::<Created>() {
            created.site.async_end(id.into_u64());
        };
    }
}
