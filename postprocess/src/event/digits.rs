// SPDX-License-Identifier: BSD-3-Clause
//! Integers to and from decimal text, without the machinery of `fmt`: the hot loop of the text stages.

/// Bytes of the numbers of a line and what stands between them, at most.
const ROOM: usize = 256;
/// Bytes of a number, at most.
const LONGEST: usize = 20;

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
    pub fn unsigned(&mut self, mut value: u64) {
        if value < 10 {
            return self.put(&[b'0' + value as u8]);
        }
        let length = value.ilog10() as usize + 1;
        let digits = &mut self.bytes[self.end..self.end + LONGEST];
        let mut at = length;
        while at >= 2 {
            let pair = 2 * (value % 100) as usize;
            value /= 100;
            at -= 2;
            digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        }
        if at > 0 {
            digits[0] = b'0' + value as u8;
        }
        self.end += length;
    }

    /// Puts a number here, in two digits for each hundredfold below `scale`, which is a power of 100 and above it.
    #[inline]
    pub fn decimals(&mut self, mut value: u32, mut scale: u32) {
        while scale > 1 {
            scale /= 100;
            let pair = 2 * (value / scale) as usize;
            self.put(&[PAIRS[pair], PAIRS[pair + 1]]);
            value %= scale;
        }
    }
}

/// The digits of 00 to 99.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut n = 0;
    while n < 100 {
        pairs[2 * n] = b'0' + (n / 10) as u8;
        pairs[2 * n + 1] = b'0' + (n % 10) as u8;
        n += 1;
    }
    pairs
};

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
    let read = (1..=18).contains(&length);
    read.then_some((if negative { value.wrapping_neg() } else { value }, &digits[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_longest_numbers_fit() {
        let mut line = Line::empty();
        (0..9).for_each(|_| line.signed(i64::MIN));
        line.unsigned(u64::MAX);
        assert!(line.text().ends_with(b"-9223372036854775808-922337203685477580818446744073709551615"));
    }

    #[test]
    fn decimals_have_all_their_zeros() {
        let mut line = Line::empty();
        [0, 1, 99_999_999, 12_345_678].iter().for_each(|&value| line.decimals(value, 100_000_000));
        assert_eq!(line.text(), b"00000000000000019999999912345678");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "+1", "a1", "9999999999999999999", "-9223372036854775808"] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
    }
}
