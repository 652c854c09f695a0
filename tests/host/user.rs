// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023: the requests of programs, and their effects.

use kutrace_format::abi::event::{
    argument_words, line, original, DEQUEUE, ENQUEUE, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_A, MARK_D, NAME,
    RESOURCE, RPC_MIDDLE, RPC_REQUEST, RPC_RESPONSE, RX_USER, TX_USER,
};
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
    for event in [
        RPC_REQUEST,
        RPC_RESPONSE,
        RPC_MIDDLE,
        MARK_A,
        MARK_D,
        LOCK_TRY,
        LOCK_ACQUIRED,
        LOCK_RELEASED,
        RX_USER,
        TX_USER,
        RESOURCE,
        ENQUEUE,
        DEQUEUE,
    ] {
        let accepted = Request::Event { event, value: 0x8000_0001 };
        assert_eq!(insert(u64::from(event) << 32 | 0x8000_0001), Ok(accepted));
        assert_eq!(argument_words(event), Some(1));
    }
}

#[test]
fn what_the_kernel_records_is_refused() {
    for event in [
        line::NAMES,
        line::PID_NAME,
        line::METHOD_NAME,
        line::SWITCH,
        line::RUNNABLE,
        line::IPI,
        line::MWAIT,
        line::MONITOR_STORE,
        line::SPECIAL_LAST,
        line::TRAP + 0x0e,
        line::IRQ + 0xec,
        line::SYSCALL + 39,
        line::SCHED,
        line::SCHED_RETURN,
    ] {
        assert_eq!(insert(u64::from(event) << 32), Err(Refused::Invalid), "{event:#x}");
    }
    for kind in [
        0,
        line::NAMES,
        line::PID_NAME,
        4,
        line::IRQ_NAME,
        line::SYSCALL_NAME,
        line::ERRNO_NAME,
        original::PC_OLD,
        line::HOST_NAME,
        line::OPEN_CALL,
        line::SWITCH,
        1 << 12 | line::METHOD_NAME,
    ] {
        assert_eq!(request(INSERT_MANY, &name(kind.into(), 2, 0, [0; 7])), Err(Refused::Invalid), "{kind:#x}");
    }
}

#[test]
fn an_event_cannot_bring_its_own_time() {
    assert_eq!(insert(1 << 44 | u64::from(MARK_D) << 32), Err(Refused::Invalid));
}

#[test]
fn a_name_is_as_long_as_it_says() {
    let text = [0x6162_6364_6566_6768; 7];
    for len in 2..=8 {
        let Ok(Request::Name { len: answer, words }) =
            request(INSERT_MANY, &name(line::QUEUE_NAME.into(), len, 9, text))
        else {
            panic!("refused: {len}");
        };
        assert_eq!((answer, &words[..2]), (len as i64, &[line::QUEUE_NAME, 9][..]));
        let (said, rest) = words[2..].split_at(2 * (len as usize - 1));
        assert!(said.chunks(2).all(|pair| pair == [0x6566_6768, 0x6162_6364]) && rest.iter().all(|&word| word == 0));
        assert_eq!(argument_words(NAME), Some(words.len()));
    }
    for len in [0, 1, 9, 15] {
        assert_eq!(request(INSERT_MANY, &name(line::QUEUE_NAME.into(), len, 9, text)), Err(Refused::Invalid), "{len}");
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
    fn whatever_is_asked_an_accepted_event_has_one_word(command: u64, word: u64, hint in 0u64..u64::from(line::WAIT_A)) {
        for (command, word) in [(command, word), (INSERT, word), (INSERT, hint << 32 | word & 0xffff_ffff)] {
            if let Ok(Request::Event { event, value }) = request(command, &[word; WORDS]) {
                prop_assert_eq!((u64::from(event) << 32 | u64::from(value), argument_words(event)), (word, Some(1)));
            }
        }
    }
}
