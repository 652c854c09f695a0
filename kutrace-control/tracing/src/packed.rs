// SPDX-License-Identifier: BSD-3-Clause
//! The fields of one span or event, packed, and which they are.

use std::fmt::Debug;

use kutrace::Fields;
use tracing::field::{Field, Visit};

/// Values, and of which fields and types they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packed {
    /// The values.
    pub fields: Fields,
    /// For each value the number of its field among all of its place, and its type; then zeros.
    pub kinds: [(u8, u8); 15],
    used: usize,
    /// How many had no room.
    pub left_out: u8,
}

impl Packed {
    /// What `record` visits.
    pub fn of(record: impl FnOnce(&mut dyn Visit)) -> Packed {
        let mut packed = Packed::default();
        record(&mut packed);
        packed
    }

    /// The values' fields and types.
    pub fn kinds(&self) -> &[(u8, u8)] {
        &self.kinds[..self.used]
    }

    fn put(&mut self, field: &Field, kind: u8, put: impl FnOnce(Fields) -> Fields) {
        let (Ok(index), false) = (u8::try_from(field.index()), self.fields.is_full()) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        self.fields = put(self.fields);
        self.kinds[self.used] = (index, kind);
        self.used += 1;
    }
}

impl Visit for Packed {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, b'u', |fields| fields.u64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, b'i', |fields| fields.i64(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, b'f', |fields| fields.f64(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, b'b', |fields| fields.bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, b's', |fields| fields.str(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, b's', |fields| fields.display(format_args!("{value:?}")));
    }
}
