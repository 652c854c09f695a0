// SPDX-License-Identifier: BSD-3-Clause
//! Texts and sizes as numbers, in the original's codes.

use kutrace_format::base40::{digit, value, LENGTH};

/// The digit of a dot, which replaces characters that base 40 does not have.
const DOT: u32 = 38;

/// Up to six characters, the first in the lowest digit. Capital letters become small ones, any other than `a-z0-9-./` a
/// dot.
pub fn base40(text: &[u8]) -> u32 {
    value(text.iter().take(LENGTH).map(|&c| digit(c).unwrap_or(DOT)))
}

/// The number of a name without one: 1 to 65535, the same in every program. FNV-1a, folded.
pub fn number(name: &[u8]) -> u16 {
    let hash = name.iter().fold(0x811c_9dc5_u32, |hash, &c| (hash ^ u32::from(c)).wrapping_mul(0x0100_0193));
    ((hash ^ hash >> 16) as u16).max(1)
}

/// 2 to the power of 1/20, 3/20, ... 19/20, times 2 to the 31.
const STEPS: [u64; 10] = [
    0x8483_8fa0,
    0x8e06_5f5a,
    0x9837_f052,
    0xa324_cd7a,
    0xaeda_683a,
    0xbb67_28fc,
    0xc8da_80e2,
    0xd744_fccb,
    0xe6b8_59af,
    0xf747_9a6f,
];

/// The size of a message: ten times the logarithm to base 2 of its bytes, 255 at most; 0 for no bytes.
pub fn size_code(bytes: u64) -> u8 {
    let Some(log) = bytes.checked_ilog2() else { return 0 };
    let fraction = bytes << (63 - log) >> 32;
    let tenths = STEPS.iter().filter(|&&step| fraction >= step).count();
    (log as usize * 10 + tenths).min(255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_the_original_s_value() {
        assert_eq!([&b"hello"[..], b"/hello", b"Hello", b""].map(base40), [39_187_408, 1_567_496_359, 39_187_408, 0]);
        assert_eq!(base40(b"a b\xff"), base40(b"a.b."));
        assert_eq!(base40(b"//////more"), u32::try_from(40_u64.pow(6) - 1).unwrap());
    }

    #[test]
    fn names_have_numbers_that_are_not_zero() {
        let numbers = ["parse", "reply", "lock", "", "a"].map(|name| number(name.as_bytes()));
        assert!(numbers.iter().all(|&n| n > 0));
        assert_eq!(numbers.iter().collect::<std::collections::HashSet<_>>().len(), numbers.len());
    }

    #[test]
    fn a_size_has_the_original_s_code() {
        assert_eq!([0, 1, 2, 90, 1024, 47_453_132, u64::MAX].map(size_code), [0, 0, 10, 65, 100, 255, 255]);
        for bytes in 1..100_000_u32 {
            let code = (f64::from(bytes).log2() * 10.0).round() as u8;
            assert_eq!(size_code(bytes.into()), code, "{bytes}");
        }
    }
}
