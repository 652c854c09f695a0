// SPDX-License-Identifier: BSD-3-Clause
//! A place in the library's sense for each place that `tracing` knows, by the types its fields have there.
//!
//! Each is made once and stays, as the places of `tracing` do. A thread that has met one finds it without a lock.

use std::cell::RefCell;
use std::sync::Mutex;

use foldhash::{HashMap, HashMapExt};
use kutrace::Site;
use tracing::Metadata;

use crate::packed::Packed;

/// What is recorded there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// A span, called by its name.
    Span,
    /// An event, called by its target.
    Event,
}

/// A place of `tracing`, by its address, with types and what had no room.
type Key = (usize, Of, [(u8, u8); 15], u8);
type Sites = HashMap<Key, &'static Site>;

static ALL: Mutex<Option<Sites>> = Mutex::new(None);

thread_local! {
    static KNOWN: RefCell<Sites> = RefCell::new(HashMap::new());
}

/// The place of this `metadata` for what is recorded there with these fields.
pub fn site(metadata: &'static Metadata<'static>, of: Of, packed: &Packed) -> &'static Site {
    let key = (std::ptr::from_ref(metadata).addr(), of, packed.kinds, packed.left_out);
    let known = KNOWN.try_with(|known| *known.borrow_mut().entry(key).or_insert_with(|| shared(key, metadata, packed)));
    known.unwrap_or_else(|_| shared(key, metadata, packed))
}

/// The same of all threads.
fn shared(key: Key, metadata: &Metadata<'_>, packed: &Packed) -> &'static Site {
    let mut all = ALL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.get_or_insert_default().entry(key).or_insert_with(|| Site::leaked(&text(key.1, metadata, packed)))
}

/// The name, and after it the fields as the library has them.
fn text(of: Of, metadata: &Metadata<'_>, packed: &Packed) -> String {
    let mut text = match of {
        Of::Span => metadata.name().to_owned(),
        Of::Event => format!("{}\0=level={}", metadata.target(), metadata.level()),
    };
    for &(index, kind) in packed.kinds() {
        let name = metadata.fields().iter().nth(index.into());
        text.extend(['\0', kind.into()]);
        text.push_str(name.as_ref().map_or("?", |field| field.name()));
    }
    if packed.left_out > 0 {
        text.push_str(&format!("\0=left_out={}", packed.left_out));
    }
    text
}
