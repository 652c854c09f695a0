// SPDX-License-Identifier: BSD-3-Clause
//! What the fields of an entry are, packed as the format has it. Nothing here allocates.

#![forbid(unsafe_code)]

use std::fmt::{self, Write};

use kutrace_format::abi::programs::{PAYLOAD_MAX, TEXT_CUT};

/// Values of fields, in the order in which the name has them: 15 words in all, of which a number takes one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Fields {
    used: usize,
    words: [u64; PAYLOAD_MAX],
}

impl Fields {
    pub(crate) const NONE: Fields = Fields::new();

    /// None.
    #[inline]
    pub const fn new() -> Fields {
        Fields { used: 0, words: [0; PAYLOAD_MAX] }
    }

    /// What they are packed into.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.get(..self.used).unwrap_or(&self.words)
    }

    /// A number; where there is no room it is left out.
    #[inline]
    #[must_use]
    pub fn u64(mut self, value: u64) -> Fields {
        self.push(value);
        self
    }

    /// The same in place.
    #[inline]
    pub fn push(&mut self, value: u64) {
        if let Some(word) = self.words.get_mut(self.used) {
            *word = value;
            self.used += 1;
        }
    }

    /// A number with its sign.
    #[inline]
    #[must_use]
    pub fn i64(self, value: i64) -> Fields {
        self.u64(value as u64)
    }

    /// A double.
    #[inline]
    #[must_use]
    pub fn f64(self, value: f64) -> Fields {
        self.u64(value.to_bits())
    }

    /// Yes or no.
    #[inline]
    #[must_use]
    pub fn bool(self, value: bool) -> Fields {
        self.u64(value.into())
    }

    /// A number that is shown in base 16.
    #[inline]
    #[must_use]
    pub fn hex(self, value: u64) -> Fields {
        self.u64(value)
    }

    /// A text, as much of it as has room.
    #[must_use]
    pub fn str(self, text: &str) -> Fields {
        self.text(text, false)
    }

    fn text(self, text: &str, cut: bool) -> Fields {
        let room = (8 * PAYLOAD_MAX.saturating_sub(self.used)).saturating_sub(1);
        let mut end = room.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes(&text.as_bytes()[..end], cut || end < text.len())
    }

    /// A text, as much of what `value` shows as has room.
    #[must_use]
    pub fn display(self, value: impl fmt::Display) -> Fields {
        let mut shown = Shown::default();
        let _ = write!(shown, "{value}");
        let text = std::str::from_utf8(&shown.bytes[..shown.used]).unwrap_or_default();
        self.text(text, shown.cut)
    }

    /// Whether nothing has room any more.
    pub fn is_full(&self) -> bool {
        self.used >= PAYLOAD_MAX
    }

    /// Bytes that are a text; `cut` says that there were more.
    pub(crate) fn bytes(mut self, text: &[u8], cut: bool) -> Fields {
        let room = 8 * PAYLOAD_MAX.saturating_sub(self.used);
        let Some(most) = room.checked_sub(1) else { return self };
        let len = text.len().min(most);
        let cut = if cut || len < text.len() { TEXT_CUT } else { 0 };
        let bytes = std::iter::once(len as u8 | cut).chain(text[..len].iter().copied());
        for (n, byte) in bytes.enumerate() {
            self.words[self.used + n / 8] |= u64::from(byte) << (8 * (n % 8));
        }
        self.used += (1 + len).div_ceil(8);
        self
    }
}

/// The beginning of a text that is being shown.
struct Shown {
    bytes: [u8; 8 * PAYLOAD_MAX],
    used: usize,
    cut: bool,
}

impl Default for Shown {
    fn default() -> Shown {
        Shown { bytes: [0; 8 * PAYLOAD_MAX], used: 0, cut: false }
    }
}

impl fmt::Write for Shown {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.used;
        let mut len = room.min(text.len());
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.bytes[self.used..self.used + len].copy_from_slice(&text.as_bytes()[..len]);
        self.used += len;
        self.cut = len < text.len();
        // What comes later is not looked at.
        if self.cut {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::program::{fields, Value};

    #[test]
    fn what_is_packed_is_read() {
        let text = "é".repeat(80);
        let packed = Fields::new().u64(7).i64(-7).f64(0.5).bool(true).hex(255).str("abc").str("abcdefgh").str(&text);
        let bytes: Vec<u8> = packed.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let (name, mut list) = fields(b"n\0ua\0ib\0fc\0bd\0xe\0sf\0sg\0=h=1\0si\0uj", &bytes);
        let values: Vec<_> = list.by_ref().map(|(_, value)| value).collect();
        let room = 8 * (15 - 8) - 1;
        let expected = [
            Value::Unsigned(7),
            Value::Signed(-7),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Hex(255),
            Value::Text(b"abc", false),
            Value::Text(b"abcdefgh", false),
            Value::Constant(b"1"),
            Value::Text(&text.as_bytes()[..room / 2 * 2], true),
            Value::Missing,
        ];
        assert_eq!((name, values, list.left()), (&b"n"[..], expected.to_vec(), 0));
        assert_eq!(packed.u64(1).str("x"), packed);
    }
}
