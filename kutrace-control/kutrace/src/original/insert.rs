// SPDX-License-Identifier: BSD-3-Clause
//! Input of the recorder from programs: events and names.

use std::io;

use kutrace_format::abi::event::line::{LOCK_NAME, METHOD_NAME, QUEUE_NAME, RESOURCE_NAME};
use kutrace_format::abi::event::{NAME_BYTES, NAME_LENGTH};
use kutrace_format::abi::user::{INSERT, WORDS};

use super::event::{MARK_A, MARK_B, MARK_C, MARK_D};
use super::text;
use crate::state;

/// Things that a program can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Named {
    /// The method of an RPC, by the RPC's id.
    Method = METHOD_NAME,
    /// A lock, by its number.
    Lock = LOCK_NAME,
    /// A queue, by its number.
    Queue = QUEUE_NAME,
    /// A resource, by its number.
    Resource = RESOURCE_NAME,
}

/// Marks this moment with a label of up to six characters; any other than `a-z0-9-./` becomes a dot.
///
/// A range between the labels `text` and `/text` is what `spantotrim text` cuts out of a trace.
#[inline]
pub fn mark_a(label: &str) -> bool {
    state::trace() != 0 && mark(MARK_A, label)
}

/// Like [`mark_a`], another kind of mark.
#[inline]
pub fn mark_b(label: &str) -> bool {
    state::trace() != 0 && mark(MARK_B, label)
}

/// Like [`mark_a`], a third kind of mark.
#[inline]
pub fn mark_c(label: &str) -> bool {
    state::trace() != 0 && mark(MARK_C, label)
}

/// Marks this moment with a number.
#[inline]
pub fn mark_d(number: u32) -> bool {
    state::trace() != 0 && event(MARK_D, number) > 0
}

/// Records an event by its number: those of the other functions, and the few without a function (docs/marks.md).
///
/// # Errors
/// EINVAL for an event that only the kernel records.
#[inline]
pub fn addevent(event: u16, value: u32) -> io::Result<bool> {
    if state::trace() == 0 {
        return Ok(false);
    }
    state::answer(self::event(event, value)).map(|words| words != 0)
}

/// Names a number from here on, in up to 56 bytes of UTF-8. An empty name is not recorded.
///
/// The other functions name their records themselves.
///
/// # Errors
/// The recorder's error; none is known.
#[inline]
pub fn addname(named: Named, number: u32, name: &str) -> io::Result<bool> {
    if state::trace() == 0 {
        return Ok(false);
    }
    state::answer(self::name(named as u32, number, name.as_bytes())).map(|words| words != 0)
}

#[cold]
fn mark(event: u16, label: &str) -> bool {
    self::event(event, text::base40(label.as_bytes())) > 0
}

/// Records an event. Returns 1, 0 if nothing is traced, or a negative errno.
#[cold]
pub fn event(event: u16, value: u32) -> i64 {
    state::call(INSERT, u64::from(event) << 32 | u64::from(value))
}

/// Records a name, truncated to [`NAME_BYTES`]. Returns its number of words, 0 if nothing is traced or it is empty, or
/// a negative errno.
#[cold]
pub fn name(kind: u32, number: u32, name: &[u8]) -> i64 {
    let name = &name[..name.len().min(NAME_BYTES)];
    if name.is_empty() {
        return 0;
    }
    let mut words = [0; WORDS];
    let used = 1 + name.len().div_ceil(8);
    words[0] = u64::from(kind | (used as u32) << NAME_LENGTH.trailing_zeros()) << 32 | u64::from(number);
    for (word, bytes) in words[1..].iter_mut().zip(name.chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(eight);
    }
    state::insert_many(&words)
}
