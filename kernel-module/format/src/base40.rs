// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Base 40, the code of labels: six letters in 32 bits, the first the lowest digit, 0 for none.

/// The characters by their digit; the first stands for no character.
pub const ALPHABET: &[u8; 40] = b"\0abcdefghijklmnopqrstuvwxyz0123456789-./";
/// Characters that fit.
pub const LENGTH: usize = 6;

/// The digit of a character; capital letters are small ones. `None` if it has none.
pub fn digit(c: u8) -> Option<u32> {
    let at = ALPHABET[1..].iter().position(|&known| known == c.to_ascii_lowercase())?;
    Some(at as u32 + 1)
}

/// The value of these digits, [`LENGTH`] at most.
pub fn value(digits: impl DoubleEndedIterator<Item = u32>) -> u32 {
    digits.rev().fold(0, |value, digit| value * ALPHABET.len() as u32 + digit)
}

/// The characters of a value; digits that are no character are skipped.
pub fn text(mut value: u32) -> impl Iterator<Item = char> {
    let digits = core::iter::from_fn(move || {
        let digit = value as usize % ALPHABET.len();
        (value > 0).then(|| value /= ALPHABET.len() as u32)?;
        Some(digit)
    });
    digits.filter(|&digit| digit > 0).map(|digit| char::from(ALPHABET[digit]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_the_values_of_the_original() {
        for (label, number) in [("hello", 39_187_408), ("/hello", 1_567_496_359), ("initr", 47_374_969), ("", 0)] {
            assert_eq!(value(label.bytes().filter_map(digit)), number);
            assert!(text(number).eq(label.chars()), "{label}");
        }
        assert_eq!(value("panic".bytes().filter_map(digit)), crate::abi::landmark::PANIC);
        assert_eq!(value("//////".bytes().filter_map(digit)), u32::try_from(40_u64.pow(6) - 1).unwrap());
    }

    #[test]
    fn every_character_comes_back_and_others_have_no_digit() {
        for c in 0..=u8::MAX {
            match digit(c) {
                Some(digit) => assert!(text(digit).eq([char::from(c.to_ascii_lowercase())])),
                None => assert!(!c.is_ascii_alphanumeric() && !b"-./".contains(&c)),
            }
        }
    }
}
