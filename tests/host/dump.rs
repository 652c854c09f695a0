// SPDX-License-Identifier: BSD-3-Clause
//! The words of a raw file as text, and that no content is too bad for it.

use kutrace_format::abi::block;
use kutrace_format::abi::event::{line, IRQ, IRQ_RETURN, MARK_A};
use kutrace_tests::{busy, Random, TraceBuilder};
use postprocess::inspect::dump::write;
use postprocess::raw::damage::NotATrace;

use crate::golden::assert_golden;

fn text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write(bytes, &mut out).unwrap().unwrap();
    String::from_utf8(out).unwrap()
}

fn small() -> TraceBuilder {
    let mut trace = TraceBuilder::new(1, 10_000_000);
    let cpu = trace.cpu(0).running(70_000, "prog", None).entry(100, IRQ + 0xec, &[]).entry(110, IRQ_RETURN + 0xec, &[]);
    cpu.folded(200, 39, 1, 5, 7).entry(5_000_000, MARK_A, &[39_187_408]).switch(5_000_100, 0, "");
    trace
}

#[test]
fn entries_stand_with_their_arguments_behind_them() {
    assert_golden("dump.txt", &text(&small().bytes()));
}

#[test]
fn words_behind_an_unknown_event_are_marked() {
    let mut bytes = small().bytes();
    let first = bytes.len() - block::BYTES + block::HEADER_WORDS * 4;
    bytes[first..first + 4].copy_from_slice(&0xabcd_e3ff_u32.to_le_bytes());
    let text = text(&bytes);
    let line = text.lines().last().unwrap();
    assert!(text.contains(" abcde.3ff ?") && !line.contains('_'), "{text}");
}

#[test]
fn a_file_of_the_original_is_shown_in_words_of_eight_bytes() {
    let mut words = vec![0u64; block::BYTES / 8];
    let usec = 1_795_187_640_000_001;
    (words[0], words[1]) = (2 << 56 | 5_000, 3 << 56 | usec);
    (words[2], words[3], words[4], words[5]) = (5_000, usec, 9_000, usec + 80);
    words[8] = 66;
    // A name of two words, then an interrupt.
    (words[12], words[13], words[14]) =
        (0x12345 << 44 | u64::from(line::PID_NAME | 2 << 4) << 32 | 66, u64::from_le_bytes(*b"bash\0\0\0\0"), 0);
    words[14] = 0x12346 << 44 | u64::from(IRQ + 0xec) << 32;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(
        text(&bytes),
        "block 0 at 0  cpu 2  2026-11-20_15:14:00.000001  flags 03  pid 66\n\
         00000060  12345.02200000042 _0000000068736162 12346.5ec00000000 00000.00000000000\n"
    );
}

#[test]
fn what_is_no_trace_is_refused_and_any_damage_is_shown() {
    assert_eq!(write(b"something else", &mut Vec::new()).unwrap_err(), NotATrace::Unknown);
    let bytes = busy(2, 2_000, 1).bytes();
    let mut random = Random(7);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..8 {
            let at = 8 + random.below(bytes.len() as u64 - 8) as usize;
            damaged[at] ^= 1 << random.below(8);
        }
        damaged.truncate(300 + random.below(bytes.len() as u64 - 300) as usize);
        let _ = write(&damaged, &mut Vec::new());
    }
}
