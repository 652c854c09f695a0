// SPDX-License-Identifier: BSD-3-Clause
//! Values of the fields of an entry, packed in the encoding of the format. Nothing here allocates.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::marker::PhantomData;

use kutrace_format::abi::programs::{PAYLOAD_MAX, TEXT_CUT};

/// Values of fields, in the order of their names: 15 words in total, one for each number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Fields {
    used: usize,
    words: [u64; PAYLOAD_MAX],
}

impl Fields {
    /// No fields.
    #[inline]
    pub const fn new() -> Fields {
        Fields { used: 0, words: [0; PAYLOAD_MAX] }
    }

    /// The packed words.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.get(..self.used).unwrap_or(&self.words)
    }

    /// Adds a number; it is dropped if there is no room.
    #[inline]
    #[must_use]
    pub fn u64(mut self, value: u64) -> Fields {
        self.push(value);
        self
    }

    /// Like [`Fields::u64`], in place.
    #[inline]
    pub fn push(&mut self, value: u64) {
        if let Some(word) = self.words.get_mut(self.used) {
            *word = value;
            self.used += 1;
        }
    }

    /// Adds a text, truncated to the room left.
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

    /// Adds the text of `value`, truncated to the room left.
    #[must_use]
    pub fn display(self, value: impl fmt::Display) -> Fields {
        let mut shown = Shown::default();
        let _ = write!(shown, "{value}");
        let text = std::str::from_utf8(&shown.bytes[..shown.used]).unwrap_or_default();
        self.text(text, shown.cut)
    }

    /// Returns whether there is no room left.
    pub fn is_full(&self) -> bool {
        self.used >= PAYLOAD_MAX
    }

    /// Adds the bytes of a text; `cut` means that the text was longer.
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

/// The beginning of a formatted text.
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
        // The rest of the text is ignored.
        if self.cut {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

/// The types of fields, in their order, four bits each, from the lowest bits up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Kinds(pub u64);

impl Kinds {
    /// No fields, or the text of the name has their types.
    pub const KNOWN: Kinds = Kinds(0);

    const UNSIGNED: u64 = 1;
    const SIGNED: u64 = 2;
    const FLOAT: u64 = 3;
    const BOOL: u64 = 4;
    const HEX: u64 = 5;
    const TEXT: u64 = 6;
    /// The letter of each type in the format.
    const LETTERS: [u8; 16] = *b"?uifbxs?????????";

    /// A name and the names of its fields, each after a zero byte, in the encoding of the format: with each field's
    /// type before its name. `room` is the buffer for it.
    pub fn before<'a>(self, name: &'a [u8], room: &'a mut [u8]) -> &'a [u8] {
        if self == Kinds::KNOWN {
            return name;
        }
        let (mut used, mut left) = (0, self.0);
        let mut put = |byte| {
            if let Some(at) = room.get_mut(used) {
                *at = byte;
                used += 1;
            }
        };
        for &byte in name {
            put(byte);
            if byte == 0 {
                put(Kinds::LETTERS[(left & 15) as usize]);
                left >>= 4;
            }
        }
        &room[..used]
    }
}

/// Fields whose types are known at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Typed<L> {
    /// Their values.
    pub fields: Fields,
    types: PhantomData<L>,
}

/// The types of fields: none, or a list and the type of one more.
pub trait List {
    /// Number of fields.
    const COUNT: u32;
    /// Types of the fields.
    const KINDS: Kinds;
}

impl List for () {
    const COUNT: u32 = 0;
    const KINDS: Kinds = Kinds::KNOWN;
}

impl<L: List, V: Value> List for (L, V) {
    const COUNT: u32 = {
        assert!(L::COUNT < PAYLOAD_MAX as u32, "a mark has 15 fields at most");
        L::COUNT + 1
    };
    const KINDS: Kinds = Kinds(L::KINDS.0 | V::KIND << (4 * (Self::COUNT - 1)));
}

impl Typed<()> {
    /// No fields.
    #[inline]
    pub const fn none() -> Typed<()> {
        Typed { fields: Fields::new(), types: PhantomData }
    }
}

impl<L: List> Typed<L> {
    /// Adds a field.
    #[inline]
    pub fn with<V: Value>(self, value: &V) -> Typed<(L, V)> {
        Typed { fields: value.add_to(self.fields), types: PhantomData }
    }
}

/// Types that a field can have. No other crate can name this trait, so at each place a field has one type, also in
/// generic functions.
#[diagnostic::on_unimplemented(
    message = "a field of a mark is an integer, a float, a `bool` or a text, not `{Self}`",
    note = "`format_args!` turns any value into text, `kutrace::Hex` a number into one shown in base 16"
)]
pub trait Value {
    /// The type, as in [`Kinds`].
    const KIND: u64;
    /// Adds this value to fields.
    fn add_to(&self, fields: Fields) -> Fields;
}

/// Types that a counter can have: integers.
#[diagnostic::on_unimplemented(message = "a counter is an integer, not `{Self}`")]
pub trait Integer {
    /// The value in the trace; saturated to its range.
    fn counted(self) -> i64;
}

/// A number that is shown in base 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex(pub u64);

/// Numbers of one kind that take a word.
macro_rules! numbers {
    ($($number:ty: $kind:ident = |$value:ident| $word:expr;)*) => {$(
        impl Value for $number {
            const KIND: u64 = Kinds::$kind;
            #[inline]
            fn add_to(&self, fields: Fields) -> Fields {
                let $value = *self;
                fields.u64($word)
            }
        }
    )*};
}

numbers! {
    u8: UNSIGNED = |value| value.into();
    u16: UNSIGNED = |value| value.into();
    u32: UNSIGNED = |value| value.into();
    u64: UNSIGNED = |value| value;
    usize: UNSIGNED = |value| value as u64;
    i8: SIGNED = |value| value as u64;
    i16: SIGNED = |value| value as u64;
    i32: SIGNED = |value| value as u64;
    i64: SIGNED = |value| value as u64;
    isize: SIGNED = |value| value as u64;
    f32: FLOAT = |value| f64::from(value).to_bits();
    f64: FLOAT = |value| value.to_bits();
    bool: BOOL = |value| value.into();
    Hex: HEX = |value| value.0;
}

/// Types that are recorded as a text.
macro_rules! texts {
    ($($text:ty: |$value:ident, $fields:ident| $added:expr;)*) => {$(
        impl Value for $text {
            const KIND: u64 = Kinds::TEXT;
            fn add_to(&self, $fields: Fields) -> Fields {
                let $value = self;
                $added
            }
        }
    )*};
}

texts! {
    str: |text, fields| fields.str(text);
    String: |text, fields| fields.str(text);
    Cow<'_, str>: |text, fields| fields.str(text);
    fmt::Arguments<'_>: |text, fields| fields.display(text);
    char: |letter, fields| fields.display(letter);
    u128: |number, fields| fields.display(number);
    i128: |number, fields| fields.display(number);
}

impl<V: Value + ?Sized> Value for &V {
    const KIND: u64 = V::KIND;
    #[inline]
    fn add_to(&self, fields: Fields) -> Fields {
        V::add_to(self, fields)
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Integer for $integer {
            #[inline]
            fn counted(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::abi::programs::TEXT_MAX;
    use kutrace_format::program::{fields, Value as Read};

    fn kinds<L: List>(_: &Typed<L>) -> Kinds {
        L::KINDS
    }

    #[test]
    fn what_is_packed_is_read() {
        let (text, line) = ("é".repeat(80), format_args!("abc{}", "defgh"));
        let packed = Typed::none().with(&7_u16).with(&-7).with(&0.5_f32).with(&true).with(&Hex(255));
        let packed = packed.with(&"abc").with(&line).with(&text);
        let bytes: Vec<u8> = packed.fields.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut room = [0; TEXT_MAX];
        let (name, mut list) = fields(kinds(&packed).before(b"n\0a\0b\0c\0d.d\0e\0f\0g\0h", &mut room), &bytes);
        let (names, values): (Vec<_>, Vec<_>) = list.by_ref().unzip();
        let expected = [
            Read::Unsigned(7),
            Read::Signed(-7),
            Read::Float(0.5),
            Read::Bool(true),
            Read::Hex(255),
            Read::Text(b"abc", false),
            Read::Text(b"abcdefgh", false),
            Read::Text(&text.as_bytes()[..(8 * (15 - 8) - 1) / 2 * 2], true),
        ];
        assert_eq!((name, values, list.left()), (&b"n"[..], expected.to_vec(), 0));
        assert_eq!(names.concat(), b"abcd.defgh");
        assert_eq!(packed.fields.u64(1).str("x"), packed.fields);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_one_with_types_stays() {
        let mut room = [0; 4];
        assert_eq!(Kinds(0x21).before(b"n\0a\0b", &mut room), b"n\0ua");
        assert_eq!(Kinds::KNOWN.before(b"n\0ua\0=h=1", &mut room), b"n\0ua\0=h=1");
    }

    #[test]
    fn a_counter_is_the_nearest_number_that_a_trace_has() {
        assert_eq!([7_u8.counted(), (-7).counted(), u64::MAX.counted()], [7, -7, i64::MAX]);
    }
}
