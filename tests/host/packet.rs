// SPDX-License-Identifier: BSD-3-Clause
//! The packet filter takes what its parameters say.

use kutrace_format::abi::packet::{hash, is_wanted, WORDS};
use proptest::prelude::*;

/// The signature that messages of the original's RPC library begin with.
const SIGNATURE: u32 = 0xd1c5_17e5;

fn words(bytes: &[u8; 32]) -> [u64; WORDS] {
    std::array::from_fn(|n| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().unwrap()))
}

#[test]
fn mask_0_takes_no_packet_and_minus_1_takes_all() {
    for value in [0, SIGNATURE] {
        assert!(!is_wanted(&[0; WORDS], 0, value));
        assert!(is_wanted(&[1; WORDS], -1, value));
    }
}

#[test]
fn the_default_filter_takes_messages_of_the_original_and_no_others() {
    let mut bytes = [7; 32];
    assert!(!is_wanted(&words(&bytes), 0xf, SIGNATURE));
    bytes[..4].copy_from_slice(&SIGNATURE.to_le_bytes());
    assert!(is_wanted(&words(&bytes), 0xf, SIGNATURE));
    bytes[3] ^= 1;
    assert!(!is_wanted(&words(&bytes), 0xf, SIGNATURE));
}

proptest! {
    #[test]
    fn the_filter_sums_the_selected_bytes_as_words_of_four(bytes: [u8; 32], mask in 1i64..1 << 24) {
        let masked = (0..24).map(|n| if mask >> n & 1 == 0 { 0 } else { bytes[n] }).collect::<Vec<u8>>();
        let sum = masked.chunks(4).fold(0, |sum, word| sum ^ u32::from_le_bytes(word.try_into().unwrap()));
        prop_assert!(is_wanted(&words(&bytes), mask, sum));
        prop_assert!(!is_wanted(&words(&bytes), mask, sum ^ 1 << 17));
    }

    #[test]
    fn the_hash_is_what_a_program_computes_of_a_message(bytes: [u8; 32]) {
        let sum = bytes.chunks(4).fold(0, |sum, word| sum ^ u32::from_le_bytes(word.try_into().unwrap()));
        prop_assert_eq!(hash(&words(&bytes)), sum);
    }
}
