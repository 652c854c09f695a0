// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023: what programs may ask for, and what is made of it.

use kutrace_format::abi::event::{argument_words, NAME};
use kutrace_format::abi::user::{request, Refused, Request, COMMAND_LAST, INSERT, INSERT_MANY, TEST, VERSION, WORDS};
use proptest::prelude::*;

/// The words of a name of `len` words.
fn name(kind: u64, len: u64, number: u32, text: [u64; 7]) -> [u64; WORDS] {
    let mut words = [(kind | len << 4) << 32 | u64::from(number); WORDS];
    words[1..].copy_from_slice(&text);
    words
}

fn insert(word: u64) -> Result<Request, Refused> {
    let asked = request(INSERT, &[word; WORDS]);
    assert_eq!(asked, request(!INSERT, &[word; WORDS]));
    asked
}

#[test]
fn marks_and_other_events_of_programs_are_accepted() {
    for event in [0x201, 0x202, 0x203, 0x20a, 0x20d, 0x210, 0x211, 0x212, 0x216, 0x217, 0x219, 0x21a, 0x21b] {
        let accepted = Request::Event { event, value: 0x8000_0001 };
        assert_eq!(insert(u64::from(event) << 32 | 0x8000_0001), Ok(accepted));
        assert_eq!(argument_words(event), Some(1));
    }
}

#[test]
fn what_the_kernel_records_is_refused() {
    for event in [0x001, 0x002, 0x003, 0x200, 0x206, 0x207, 0x208, 0x21e, 0x27f, 0x40e, 0x5ec, 0x827, 0xdff, 0xfff] {
        assert_eq!(insert(event << 32), Err(Refused::Invalid), "{event:#x}");
    }
    for kind in [0x000, 0x001, 0x002, 0x004, 0x005, 0x008, 0x00e, 0x100, 0x101, 0x104, 0x107, 0x200, 0x1003] {
        assert_eq!(request(INSERT_MANY, &name(kind, 2, 0, [0; 7])), Err(Refused::Invalid), "{kind:#x}");
    }
}

#[test]
fn an_event_cannot_bring_its_own_time() {
    assert_eq!(insert(1 << 44 | 0x20d << 32), Err(Refused::Invalid));
}

#[test]
fn a_name_is_as_long_as_it_says() {
    let text = [0x6162_6364_6566_6768; 7];
    for len in 2..=8 {
        let Ok(Request::Name { len: answer, words }) = request(INSERT_MANY, &name(0x105, len, 9, text)) else {
            panic!("refused: {len}");
        };
        assert_eq!((answer, &words[..2]), (len as i64, &[0x105, 9][..]));
        let (said, rest) = words[2..].split_at(2 * (len as usize - 1));
        assert!(said.chunks(2).all(|pair| pair == [0x6566_6768, 0x6162_6364]) && rest.iter().all(|&word| word == 0));
        assert_eq!(argument_words(NAME), Some(words.len()));
    }
    for len in [0, 1, 9, 15] {
        assert_eq!(request(INSERT_MANY, &name(0x105, len, 9, text)), Err(Refused::Invalid), "{len}");
    }
}

#[test]
fn questions_are_answered_and_control_is_refused() {
    for command in 0..=COMMAND_LAST {
        let expected = match command {
            TEST => Ok(Request::Test),
            VERSION => Ok(Request::Version),
            INSERT | INSERT_MANY => Err(Refused::Invalid),
            _ => Err(Refused::Control),
        };
        assert_eq!(request(command, &[0; WORDS]), expected, "{command}");
    }
    assert_eq!(request(COMMAND_LAST + 1, &[0; WORDS]), Err(Refused::Invalid));
    assert_eq!(request(!TEST, &[0; WORDS]), Err(Refused::Invalid));
}

proptest! {
    #[test]
    fn whatever_is_asked_an_accepted_event_has_one_word(command: u64, word: u64, hint in 0u64..0x300) {
        for (command, word) in [(command, word), (INSERT, word), (INSERT, hint << 32 | word & 0xffff_ffff)] {
            if let Ok(Request::Event { event, value }) = request(command, &[word; WORDS]) {
                prop_assert_eq!((u64::from(event) << 32 | u64::from(value), argument_words(event)), (word, Some(1)));
            }
        }
    }
}
