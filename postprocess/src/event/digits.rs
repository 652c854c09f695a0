// SPDX-License-Identifier: BSD-3-Clause
//! Integers to and from decimal text, without the machinery of `fmt`: the hot loop of the text stages.

/// Bytes of the numbers of a line and what stands between them, at most.
const ROOM: usize = 256;
/// Digits of a number that is read, at most.
const LONGEST: usize = 18;

/// The numbers of a line, put side by side before they are appended to a text at once.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; ROOM],
    end: usize,
}

impl Line {
    /// Nothing yet.
    #[inline]
    pub fn empty() -> Line {
        Line { bytes: [0; ROOM], end: 0 }
    }

    /// What was put here.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Puts bytes here.
    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.bytes[self.end..self.end + N].copy_from_slice(bytes);
        self.end += N;
    }

    /// Puts a number here, in decimal.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.put(b"-");
        }
        self.unsigned(value.unsigned_abs());
    }

    /// Puts a number here, in decimal.
    #[inline]
    pub fn unsigned(&mut self, value: u64) {
        if value < 10 {
            return self.put(&[b'0' + value as u8]);
        }
        if value < 100 {
            return self.put(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
        }
        if value >= EIGHT {
            self.unsigned(value / EIGHT);
            return self.eight(value % EIGHT);
        }
        let digits = eight(value);
        // Below the first digit are bytes of no use, which the next overwrite.
        let zeros = (digits.trailing_zeros() / 8) as usize;
        let end = self.end + 8 - zeros;
        self.put(&((digits | ZEROS) >> (8 * zeros)).to_le_bytes());
        self.end = end;
    }

    /// Puts a number below 100,000,000 here, in eight digits.
    #[inline]
    pub fn eight(&mut self, value: u64) {
        self.put(&(eight(value) | ZEROS).to_le_bytes());
    }
}

/// The least number of more than eight digits.
const EIGHT: u64 = 100_000_000;
/// Eight digits 0, as text.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// The eight digits of a number below [`EIGHT`], the first in the lowest byte.
#[inline]
const fn eight(value: u64) -> u64 {
    // Halves, quarters and eighths of the word, each the quotient and the remainder of a division by multiplication.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

/// The number that eight digits are; `None` if one of them is none.
#[inline]
pub fn eight_digits(text: &[u8; 8]) -> Option<i64> {
    let ones = u64::from_le_bytes(*text) ^ ZEROS;
    // The highest bit of each byte that is above 9.
    if (ones.wrapping_add(0x7676_7676_7676_7676) | ones) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some(((fours * 10_000 + (fours >> 32)) & 0xffff_ffff) as i64)
}

/// Reads the decimal number that `text` begins with, and returns what follows it; `None` if there is none, or one of
/// more than 18 digits.
#[inline]
pub fn split(text: &[u8]) -> Option<(i64, &[u8])> {
    let (digits, negative) = match text {
        [b'-', rest @ ..] => (rest, true),
        _ => (text, false),
    };
    let (mut value, mut length) = (0i64, 0);
    while let Some(digit) = digits.get(length).map(|c| c.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(digit.into());
        length += 1;
    }
    let read = (1..=LONGEST).contains(&length);
    read.then_some((if negative { value.wrapping_neg() } else { value }, &digits[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 7, -1, 10, 99, 100, 101, -999, 1_000, 4_294_967_295, -123_456_789_012_345_678] {
            let mut line = Line::empty();
            line.put(b"x");
            line.signed(value);
            line.put(b" y");
            assert_eq!(line.text(), format!("x{value} y").as_bytes());
            assert_eq!(split(&line.text()[1..]), Some((value, &b" y"[..])));
        }
    }

    proptest! {
        #[test]
        fn numbers_are_as_others_write_and_read_them(value: i64, bits in 0..64u32, text in "[0-9]{0,7}[/-:0-9][0-9]{0,7}") {
            let value = value >> bits;
            let mut line = Line::empty();
            line.signed(value);
            let written = value.to_string();
            prop_assert_eq!(line.text(), written.as_bytes());
            let is_read = (1..=LONGEST).contains(&written.trim_start_matches('-').len());
            prop_assert_eq!(split(line.text()), is_read.then_some((value, &b""[..])));
            if let Ok(eight) = <&[u8; 8]>::try_from(text.as_bytes()) {
                let is_number = eight.iter().all(u8::is_ascii_digit);
                prop_assert_eq!(eight_digits(eight), is_number.then(|| text.parse().unwrap()));
            }
        }
    }

    #[test]
    fn the_longest_numbers_fit() {
        let mut line = Line::empty();
        (0..9).for_each(|_| line.signed(i64::MIN));
        line.unsigned(u64::MAX);
        assert!(line.text().ends_with(b"-9223372036854775808-922337203685477580818446744073709551615"));
    }

    #[test]
    fn eight_digits_have_all_their_zeros() {
        let mut line = Line::empty();
        [0, 1, 99_999_999, 12_345_678].iter().for_each(|&value| line.eight(value));
        assert_eq!(line.text(), b"00000000000000019999999912345678");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "+1", "a1", "9999999999999999999", "-9223372036854775808"] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
    }
}
