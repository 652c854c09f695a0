// SPDX-License-Identifier: BSD-3-Clause
//! A recording reports that it matches the kernel's counters, and one with removed entries that it does not.

use std::fs;
use std::mem::offset_of;
use std::path::Path;

use kutrace_format::abi::block::{Header, BYTES, HEADER_WORDS};
use kutrace_format::abi::event::{argument_words, IRQ, IRQ_RETURN};
use kutrace_format::abi::word;
use kutrace_tests::sign;
use postprocess::inspect::verdict::{judge, verdict, Verdict};

/// The vector of the timer.
const TIMER: u16 = 0xec;
/// A vector without a user.
const NOBODYS: u16 = 0xf0;
/// Entries that are taken out.
const TAKEN: usize = 20;

/// A raw file has the kernel's count for each kind, all of them right; and without some of its entries, it reports that
/// it lacks those.
pub fn certifies(path: &Path, kinds: &[&str]) {
    let mut bytes = fs::read(path).unwrap();
    let found = judge(&bytes).unwrap();
    let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
    eprintln!("{text}");
    assert_ne!(verdict(&found), Verdict::Fail, "{text}");
    for kind in kinds {
        assert!(text.contains(&format!("info  {kind}: the kernel counted ")), "{kind}: {text}");
    }
    assert!(!text.contains("; without ") && !text.contains("not judged"), "{text}");
    assert_eq!(take_timers(&mut bytes), TAKEN);
    let found = judge(&bytes).unwrap();
    let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
    assert_eq!(verdict(&found), Verdict::Fail, "{text}");
    assert!(text.contains("FAIL  timer interrupts on cpu "), "{text}");
}

/// Removes timer interrupts from the middle of a trace, all of one CPU: makes them others, which are not counted. The
/// times stay, and nothing else shows the change.
fn take_timers(bytes: &mut [u8]) -> usize {
    let blocks = bytes.len() % BYTES;
    let all = bytes.len() / BYTES;
    let (mut taken, mut of) = (0, None);
    for number in all / 3..all {
        let block = &mut bytes[blocks + number * BYTES..][..BYTES];
        let long = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
        let cpu = long(offset_of!(Header, cpu)) as u32;
        if *of.get_or_insert(cpu) != cpu || taken == TAKEN {
            continue;
        }
        let end = (long(offset_of!(Header, content_bits)) / 8) as usize;
        let mut at = HEADER_WORDS * 4;
        while at < end {
            let entry = u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
            let number = word::event(entry);
            let is_timer = number == IRQ + TIMER || number == IRQ_RETURN + TIMER;
            // Both, so that no return is without its call.
            let wanted = taken < TAKEN || number != IRQ + TIMER;
            if is_timer && wanted && (number == IRQ + TIMER || taken > 0) {
                taken += usize::from(number == IRQ + TIMER);
                let other = word::entry(number - TIMER + NOBODYS, u64::from(word::time(entry)));
                block[at..at + 4].copy_from_slice(&other.to_le_bytes());
                if taken == TAKEN && number != IRQ + TIMER {
                    break;
                }
            }
            at += 4 * (1 + argument_words(number).unwrap());
        }
        sign(block);
    }
    taken
}
