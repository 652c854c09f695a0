// SPDX-License-Identifier: BSD-3-Clause
//! A place of the library for each place of `tracing` and each combination of types that its fields have there.
//!
//! Each is created once and stays, like the places of `tracing`. A thread that has met one finds it without a lock.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::HashMap;
use kutrace::Site;
use tracing::Metadata;

use crate::growing::Growing;
use crate::packed::{Kinds, Packed};

/// A place of `tracing`: a span is named by its name, an event by its target.
#[derive(Debug)]
pub struct Place {
    metadata: &'static Metadata<'static>,
    first: OnceLock<&'static Shape>,
}

/// A place with the types of its fields that have room.
#[derive(Debug)]
pub struct Shape {
    /// The metadata of `tracing`.
    pub metadata: &'static Metadata<'static>,
    /// The place of the library.
    pub site: &'static Site,
    /// The number for [`Shape::of`].
    pub number: u32,
    kinds: Kinds,
    next: OnceLock<&'static Shape>,
}

type Places = HashMap<usize, &'static Place>;

static ALL: Mutex<Option<Places>> = Mutex::new(None);
static SHAPES: Growing<OnceLock<&'static Shape>> = Growing::new();

/// Number of places that a thread finds without a lock.
const NEAR: usize = 128;

thread_local! {
    /// By address; of two with the same index, the later one.
    static KNOWN: [Cell<Option<&'static Place>>; NEAR] = const { [const { Cell::new(None) }; NEAR] };
}

/// The place of this `metadata` for records with these fields.
#[inline]
pub fn site(metadata: &'static Metadata<'static>, packed: &Packed) -> &'static Site {
    place(metadata).shape(packed).site
}

/// The place of a span without fields, with its metadata.
#[inline]
pub fn plain(metadata: &'static Metadata<'static>) -> &'static Shape {
    static NOTHING: Packed = Packed::NOTHING;
    place(metadata).shape(&NOTHING)
}

/// Like [`plain`], with fields.
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
    /// The shape with this number.
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

    /// Searches beyond the first shape, and creates one if there is none.
    #[cold]
    fn other_shape(&self, packed: &Packed) -> &'static Shape {
        // The lock makes this thread the only creator, so that there is one of each kind.
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

/// The place shared by all threads.
fn shared(key: usize, metadata: &'static Metadata<'static>) -> &'static Place {
    let made = || &*Box::leak(Box::new(Place { metadata, first: OnceLock::new() }));
    all().get_or_insert_default().entry(key).or_insert_with(made)
}

/// The name, followed by the fields in the library's encoding.
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
