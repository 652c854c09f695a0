// SPDX-License-Identifier: BSD-3-Clause
//! A place in the library's sense for each place that `tracing` knows, by the types its fields have there.
//!
//! Each is made once and stays, as the places of `tracing` do. A thread that has met one finds it without a lock.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::HashMap;
use kutrace::Site;
use tracing::Metadata;

use crate::growing::Growing;
use crate::packed::{Kinds, Packed};

/// A place of `tracing`: a span is called by its name, an event by its target.
#[derive(Debug)]
pub struct Place {
    metadata: &'static Metadata<'static>,
    first: OnceLock<&'static Shape>,
}

/// A place with the types that its fields have, of those that have room.
#[derive(Debug)]
pub struct Shape {
    /// What `tracing` knows of the place.
    pub metadata: &'static Metadata<'static>,
    /// What it is to the library.
    pub site: &'static Site,
    /// By which [`Shape::of`] finds it.
    pub number: u32,
    kinds: Kinds,
    next: OnceLock<&'static Shape>,
}

type Places = HashMap<usize, &'static Place>;

static ALL: Mutex<Option<Places>> = Mutex::new(None);
static SHAPES: Growing<OnceLock<&'static Shape>> = Growing::new();

/// Places that a thread finds again at once.
const NEAR: usize = 128;

thread_local! {
    /// By address; of two that fall together, the last.
    static KNOWN: [Cell<Option<&'static Place>>; NEAR] = const { [const { Cell::new(None) }; NEAR] };
}

/// The place of this `metadata` for what is recorded there with these fields.
#[inline]
pub fn site(metadata: &'static Metadata<'static>, packed: &Packed) -> &'static Site {
    place(metadata).shape(packed).site
}

/// That of a span without fields, with what else is known of it.
#[inline]
pub fn plain(metadata: &'static Metadata<'static>) -> &'static Shape {
    static NOTHING: Packed = Packed::NOTHING;
    place(metadata).shape(&NOTHING)
}

/// The same with fields.
#[inline]
pub fn shape(metadata: &'static Metadata<'static>, packed: &Packed) -> &'static Shape {
    place(metadata).shape(packed)
}

#[inline]
fn place(metadata: &'static Metadata<'static>) -> &'static Place {
    let at = std::ptr::from_ref(metadata).addr();
    KNOWN.with(|known| {
        let near = &known[((at / align_of::<Metadata<'_>>()) ^ (at >> 10)) % NEAR];
        match near.get() {
            Some(place) if std::ptr::eq(place.metadata, metadata) => place,
            _ => {
                let place = shared(at, metadata);
                near.set(Some(place));
                place
            }
        }
    })
}

impl Shape {
    /// The one that has this number.
    #[inline]
    pub fn of(number: u32) -> Option<&'static Shape> {
        SHAPES.get(number)?.get().copied()
    }
}

impl Place {
    #[inline]
    fn shape(&self, packed: &Packed) -> &'static Shape {
        match self.first.get() {
            Some(shape) if shape.kinds == packed.kinds => shape,
            _ => self.other_shape(packed),
        }
    }

    /// Not the first, or there is none yet.
    #[cold]
    fn other_shape(&self, packed: &Packed) -> &'static Shape {
        // Who makes one is alone, so that there is one of each kind.
        let _alone = all();
        let mut at = &self.first;
        while let Some(shape) = at.get() {
            if shape.kinds == packed.kinds {
                return shape;
            }
            at = &shape.next;
        }
        at.get_or_init(|| Shape::leaked(self.metadata, packed))
    }
}

impl Shape {
    fn leaked(metadata: &'static Metadata<'static>, packed: &Packed) -> &'static Shape {
        let site = Site::leaked(&text(metadata, packed));
        let number = SHAPES.add(1);
        let number_or_none = number.unwrap_or(u32::MAX);
        let shape = Shape { metadata, site, number: number_or_none, kinds: packed.kinds, next: OnceLock::new() };
        let shape: &Shape = Box::leak(Box::new(shape));
        if let Some(slot) = number.and_then(|number| SHAPES.get(number)) {
            slot.get_or_init(|| shape);
        }
        shape
    }
}

fn all() -> MutexGuard<'static, Option<Places>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// That of all threads.
fn shared(key: usize, metadata: &'static Metadata<'static>) -> &'static Place {
    let made = || &*Box::leak(Box::new(Place { metadata, first: OnceLock::new() }));
    all().get_or_insert_default().entry(key).or_insert_with(made)
}

/// The name, and after it the fields as the library has them.
fn text(metadata: &Metadata<'_>, packed: &Packed) -> String {
    let mut text = if metadata.is_span() {
        metadata.name().to_owned()
    } else {
        format!("{}\0=level={}", metadata.target(), metadata.level())
    };
    for (index, kind) in packed.kinds.iter() {
        let name = metadata.fields().iter().nth(index);
        text.extend(['\0', kind]);
        text.push_str(name.as_ref().map_or("?", |field| field.name()));
    }
    if packed.kinds.left_out > 0 {
        text.push_str(&format!("\0=left_out={}", packed.kinds.left_out));
    }
    text
}
