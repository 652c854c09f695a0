// SPDX-License-Identifier: BSD-3-Clause
//! Integers to and from decimal text, without the machinery of `fmt`: the hot loop of both text stages.

/// Appends `value` in decimal.
#[inline]
pub fn put(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_unsigned(out, value.unsigned_abs());
}

/// Appends `value` in decimal.
#[inline]
pub fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    let mut digits = [0; 20];
    let mut at = digits.len();
    while value >= 10 {
        let pair = 2 * (value % 100) as usize;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value > 0 {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
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

/// Appends `value`, below 2^12 or more, as three or more digits of lower-case hex.
#[inline]
pub fn put_hex(out: &mut Vec<u8>, value: u32) {
    let nibbles = (8 - value.leading_zeros() / 4).max(3);
    for n in (0..nibbles).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * n) & 15) as usize]);
    }
}

/// Reads the decimal number that `text` begins with, and answers what follows it; `None` if there is none, or one of
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
    read.then_some((if negative { -value } else { value }, &digits[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 7, -1, 10, 99, 100, 101, -999, 4_294_967_295, -123_456_789_012_345_678] {
            let mut text = Vec::new();
            put(&mut text, value);
            text.push(b' ');
            assert_eq!(split(&text), Some((value, &b" "[..])));
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "+1", "a1", "9999999999999999999"] {
            assert_eq!(split(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn hex_has_three_digits_or_more() {
        let mut text = Vec::new();
        put_hex(&mut text, 0x2);
        put_hex(&mut text, 0x5ff);
        put_hex(&mut text, 0x30000);
        assert_eq!(text, b"0025ff30000");
    }
}
