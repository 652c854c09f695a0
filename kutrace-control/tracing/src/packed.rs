// SPDX-License-Identifier: BSD-3-Clause
//! The fields of one span or event, packed, and their kinds.

use std::fmt::Debug;

use kutrace::Fields;
use tracing::field::{Field, Visit};

/// Values, with their fields and types.
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    /// The values.
    pub fields: Fields,
    /// Their fields and types.
    pub kinds: Kinds,
}

/// Fields and types of the values, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    used: u16,
    /// Number of further values that did not fit.
    pub left_out: u16,
    /// For each value: the index of its field at its place and, in the upper half, its type.
    kinds: [u16; 15],
}

impl Kinds {
    /// Index and type of each value.
    pub fn iter(&self) -> impl Iterator<Item = (usize, char)> + '_ {
        self.used().map(|kind| (usize::from(kind & 0xff), char::from((kind >> 8) as u8)))
    }

    #[inline]
    fn used(&self) -> impl Iterator<Item = &u16> {
        self.kinds.iter().take(self.used.into())
    }
}

impl PartialEq for Kinds {
    /// One by one, as they were written: a wider load would have to wait for the narrower stores.
    #[inline]
    fn eq(&self, other: &Kinds) -> bool {
        (self.used, self.left_out) == (other.used, other.left_out) && self.used().zip(&other.kinds).all(|(a, b)| a == b)
    }
}

impl Packed {
    /// No fields.
    pub const NOTHING: Packed = Packed { fields: Fields::new(), kinds: Kinds { used: 0, left_out: 0, kinds: [0; 15] } };

    /// The values that `record` visits.
    #[inline]
    pub fn of(record: impl FnOnce(&mut dyn Visit)) -> Packed {
        let mut packed = Packed::NOTHING;
        record(&mut packed);
        packed
    }

    /// Adds the kind of a value of this field, if there is room; returns the fields to add the value to.
    #[inline]
    fn next(&mut self, field: &Field, kind: u8) -> Option<&mut Fields> {
        let Packed { fields, kinds } = self;
        let used = usize::from(kinds.used);
        match (u8::try_from(field.index()), kinds.kinds.get_mut(used)) {
            (Ok(index), Some(next)) if !fields.is_full() => {
                *next = u16::from(index) | u16::from(kind) << 8;
                kinds.used += 1;
                Some(fields)
            }
            _ => {
                kinds.left_out = kinds.left_out.saturating_add(1);
                None
            }
        }
    }

    #[inline]
    fn number(&mut self, field: &Field, kind: u8, value: u64) {
        if let Some(fields) = self.next(field, kind) {
            fields.push(value);
        }
    }
}

impl Visit for Packed {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, b'u', value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, b'i', value as u64);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.number(field, b'f', value.to_bits());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, b'b', value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if let Some(fields) = self.next(field, b's') {
            *fields = fields.str(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if let Some(fields) = self.next(field, b's') {
            *fields = fields.display(format_args!("{value:?}"));
        }
    }
}
