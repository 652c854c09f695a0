// SPDX-License-Identifier: BSD-3-Clause
//! Words, headers and names survive a round trip.

use kutrace_format::abi::word::{entry, event, time, Call, FOLD_MAX};
use proptest::prelude::*;

proptest! {
    #[test]
    fn an_entry_keeps_its_event_and_the_low_20_bits_of_the_counter(e in 0u16..4096, counter: u64) {
        let word = entry(e, counter);
        prop_assert_eq!(event(word), e);
        prop_assert_eq!(u64::from(time(word)), counter & 0xf_ffff);
    }

    #[test]
    fn an_open_call_keeps_the_low_16_bits_of_its_argument(arg: u64) {
        prop_assert_eq!(Call::decode(Call::open(arg)), Call { arg: arg as u16, folded: None });
    }

    #[test]
    fn a_folded_call_keeps_argument_duration_and_value(arg: u64, dur in 0..=FOLD_MAX + 9, ret in -130i64..=130) {
        let fits_long = arg as i16 == i16::from(arg as i8);
        match Call::fold(Call::open(arg), dur, ret) {
            Some(word) => prop_assert_eq!(
                Call::decode(word),
                Call { arg: arg as u16, folded: Some((dur as u16, ret as i8)) }
            ),
            None => prop_assert!(!(-127..128).contains(&ret) || dur > FOLD_MAX || (dur > 127 && !fits_long)),
        }
    }
}
