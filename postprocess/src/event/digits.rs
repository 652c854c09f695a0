// SPDX-License-Identifier: BSD-3-Clause
//! Integers to and from decimal text, without the machinery of `fmt`: the hot loop of the text stages.

/// Upper limit, exclusive, of the bytes of a line's numbers and the text between them.
const ROOM: usize = 256;
/// Maximum number of bytes written at once.
const AT_ONCE: usize = 8;
/// Maximum number of digits of a number that is read.
const LONGEST: usize = 18;

/// The numbers of a line, collected before they are appended to a text at once.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; ROOM + AT_ONCE],
    /// A byte, so that every write surely has room.
    end: u8,
}

impl Line {
    /// An empty line.
    #[inline]
    pub fn empty() -> Line {
        Line { bytes: [0; ROOM + AT_ONCE], end: 0 }
    }

    /// Forgets the line's text.
    #[inline]
    pub fn clear(&mut self) {
        self.end = 0;
    }

    /// The line's text.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.end.into()]
    }

    /// Appends bytes.
    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.begin(bytes, N as u8);
    }

    /// Appends the first of these bytes; the next write overwrites the others.
    #[inline]
    fn begin<const N: usize>(&mut self, bytes: &[u8; N], length: u8) {
        let end = usize::from(self.end);
        self.bytes[end..end + N].copy_from_slice(bytes);
        self.end += length;
    }

    /// Appends a number, in decimal.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.put(b"-");
        }
        self.unsigned(value.unsigned_abs());
    }

    /// Appends a number, in decimal.
    #[inline]
    pub fn unsigned(&mut self, value: u64) {
        if value >= 1000 {
            return self.long(value);
        }
        let (digits, zeros) = (three(value), three(value) >> 24);
        self.begin(&(digits >> (8 * zeros)).to_le_bytes(), 3 - zeros as u8);
    }

    #[inline(never)]
    fn long(&mut self, value: u64) {
        self.unsigned(value / 1000);
        self.begin(&three(value).to_le_bytes(), 3);
    }

    /// Appends a number below 100,000,000, in eight digits.
    #[inline]
    pub fn eight(&mut self, value: u64) {
        self.begin(&(three(value / 1_000_000) >> 8).to_le_bytes(), 2);
        self.begin(&three(value / 1000).to_le_bytes(), 3);
        self.begin(&three(value).to_le_bytes(), 3);
    }
}

/// The last three digits of a number, as in [`THREE`].
#[inline]
fn three(value: u64) -> u32 {
    THREE[(value % 1000) as usize]
}

/// Numbers as text of three digits, the first in the lowest byte; the highest byte counts the unneeded leading zeros.
static THREE: [u32; 1000] = {
    let (mut all, mut n) = ([0; 1000], 0);
    while n < 1000 {
        let [hundreds, tens, ones] = [n / 100, n / 10 % 10, n % 10];
        let zeros = (n < 100) as u8 + (n < 10) as u8;
        all[n] = u32::from_le_bytes([b'0' + hundreds as u8, b'0' + tens as u8, b'0' + ones as u8, zeros]);
        n += 1;
    }
    all
};

/// Eight digits 0, as text.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// The number of eight digits; `None` if one of them is not a digit.
#[inline]
pub fn eight_digits(text: &[u8; 8]) -> Option<i64> {
    let ones = u64::from_le_bytes(*text) ^ ZEROS;
    // The highest bit of each byte above 9.
    if (ones.wrapping_add(0x7676_7676_7676_7676) | ones) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some(((fours * 10_000 + (fours >> 32)) & 0xffff_ffff) as i64)
}

/// Reads the decimal number at the start of `text`, and returns the rest, too; `None` if there is none, or one of more
/// than 18 digits.
#[inline]
pub fn split(text: &[u8]) -> Option<(i64, &[u8])> {
    let (digits, negative) = match text {
        [b'-', rest @ ..] => (rest, true),
        _ => (text, false),
    };
    let (mut value, mut rest) = (0i64, digits);
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        value = value.wrapping_mul(10).wrapping_add((digit - b'0').into());
        rest = behind;
    }
    let read = (1..=LONGEST).contains(&(digits.len() - rest.len()));
    read.then_some((if negative { value.wrapping_neg() } else { value }, rest))
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
