// SPDX-License-Identifier: BSD-3-Clause
//! Counters: codes against the original's mapping, and the way of a counter byte from block to span.

use kutrace_format::abi::block::{BYTES, COUNTED_WORDS, COUNTERS_AT, HEADER_WORDS};
use kutrace_format::abi::counter::{byte, ipc, ipc_code, llc, llc_code};
use kutrace_format::abi::event::{IRQ, IRQ_RETURN, MARK_D, RUNNABLE};
use kutrace_format::file::{FLAG_IPC, FLAG_LLC};
use kutrace_tests::number::on_cpu;
use kutrace_tests::TraceBuilder;
use postprocess::event::{number, Event, Events};
use postprocess::raw::counter::Counting;
use postprocess::source;
use postprocess::span::{build, check};
use postprocess::time::Time;

/// The original's IPC code of each number of eighths below 32; from there on it is 15.
const IPC: [u8; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15,
];

#[test]
fn ipc_codes_are_the_original_s() {
    for cycles in [1u64, 2, 3, 7, 8, 1000, 4095, 1 << 20] {
        for (eighths, code) in (0u64..).zip(IPC) {
            // The fewest and the most instructions that round down to that many eighths.
            let (min, next) = ((eighths * cycles).div_ceil(8), ((eighths + 1) * cycles).div_ceil(8));
            for instructions in [min, next - 1].into_iter().filter(|n| (min..next).contains(n)) {
                assert_eq!(ipc_code(instructions, cycles), code, "{instructions} instructions in {cycles} cycles");
            }
        }
    }
}

#[test]
fn llc_codes_are_the_original_s() {
    let from = [0, 1, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16];
    for misses in 0..200_000 {
        let code = from.iter().rposition(|first| *first <= misses).unwrap();
        assert_eq!(usize::from(llc_code(misses)), code, "{misses} misses");
    }
}

#[test]
fn no_count_makes_a_wild_code() {
    for count in [0, 1, 255, 1 << 32, u64::MAX / 8, u64::MAX - 1, u64::MAX] {
        for cycles in [0, 1, 1 << 40, u64::MAX] {
            assert!(ipc_code(count, cycles) < 16);
        }
        assert!(llc_code(count) < 16);
    }
    assert_eq!((ipc_code(u64::MAX, 1), ipc_code(9, 0), llc_code(u64::MAX)), (15, 0, 15));
}

#[test]
fn a_byte_keeps_both_codes() {
    for (low, high) in (0..16).flat_map(|low| (0..16).map(move |high| (low, high))) {
        assert_eq!((ipc(byte(low, high)), llc(byte(low, high))), (low, high));
    }
}

#[test]
fn with_both_counters_the_code_is_the_original_s() {
    let class = |llc| match llc {
        0..=1 => 0,
        2..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    for all in 0..=255 {
        assert_eq!(Counting::Both.code(all), ipc(all) / 4 * 4 + class(llc(all)));
        assert_eq!((Counting::Ipc.code(all), Counting::Llc.code(all)), (ipc(all), llc(all)));
    }
}

#[test]
fn entries_and_counter_bytes_fill_a_block() {
    let words_end = (HEADER_WORDS + COUNTED_WORDS) * 4;
    assert!(words_end <= COUNTERS_AT && COUNTERS_AT + COUNTED_WORDS == BYTES);
    assert!(words_end + 5 > COUNTERS_AT, "no room is left for one more");
}

/// A user program that makes a call with its return folded in, is interrupted, and is marked.
fn counted(flags: u32) -> TraceBuilder {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.header.flags |= flags;
    let cpu = trace.cpu(0).running(7, "a", None);
    cpu.folded(100, 39, 5, 20, 0).counted(1, &[0x31, 0xac]);
    cpu.entry(300, IRQ + 0xec, &[]).counted(0, &[0x42]);
    cpu.entry(310, RUNNABLE, &[9]).counted(1, &[0x5d]);
    cpu.entry(320, IRQ_RETURN + 0xec, &[]).counted(0, &[0x63]);
    cpu.entry(5_000_000, MARK_D, &[1]).counted(1, &[0x7e]);
    trace
}

fn decode(trace: &TraceBuilder) -> Events {
    let events = source::decode(&trace.bytes()).unwrap();
    assert_eq!(events.meta.quality, [""; 0]);
    events
}

/// The codes of the events that are no statements and no names.
fn codes(trace: &TraceBuilder) -> Vec<u8> {
    let said = |e: &&Event| e.event() > number::SWITCH && e.ts > Time::ZERO;
    decode(trace).events.iter().filter(said).map(|e| e.ipc).collect()
}

#[test]
fn an_event_has_the_code_of_the_time_before_it_and_a_folded_call_that_of_itself() {
    assert_eq!(codes(&counted(FLAG_IPC)), [0xc1, 2, 13, 3, 14]);
    assert_eq!(codes(&counted(FLAG_LLC)), [0xa3, 4, 5, 6, 7]);
    assert_eq!(codes(&counted(FLAG_IPC | FLAG_LLC)), [0xf1, 1, 0xe, 2, 0xe]);
    assert_eq!(codes(&counted(0)), [0; 5]);
}

#[test]
fn the_flags_are_the_original_s() {
    for (flags, said) in [(0, 5), (FLAG_IPC, 0x85), (FLAG_LLC, 0x25), (FLAG_IPC | FLAG_LLC, 0xa5)] {
        assert_eq!(decode(&counted(flags)).meta.flags, said);
    }
}

#[test]
fn a_span_has_the_code_of_its_own_time() {
    let events = decode(&counted(FLAG_IPC));
    let intervals = events.meta.intervals.clone();
    let (spans, tally) = build(events);
    assert_eq!(check(&spans, &intervals, &tally), [""; 0]);
    let line = |s: &postprocess::span::Span| (spans.names[s.name].clone(), s.start, s.ipc);
    let executed = spans.spans.iter().filter(|s| s.dur > Time(1) && s.cpu == on_cpu(0));
    let said: Vec<_> = executed.map(line).collect();
    let expected = [("a.7", 0, 1), ("getpid", 100, 12), ("a.7", 120, 2), ("local_timer", 300, 3), ("a.7", 320, 14)];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, (name, start, ipc)) in said.iter().zip(expected) {
        assert_eq!((said.0.as_str(), said.1 .0, said.2), (name, start, ipc));
    }
}

#[test]
fn counter_bytes_follow_their_words_into_the_next_block() {
    let mut trace = TraceBuilder::new(1, 1 << 30);
    trace.header.flags = FLAG_IPC;
    let cpu = trace.cpu(0).small_blocks(64);
    let mut at = 1;
    for n in 0..200u8 {
        at += 1 << 19 | u64::from(n % 3) << 20;
        cpu.entry(at, MARK_D, &[n.into()]).counted(1, &[n % 16]);
    }
    let expected: Vec<u8> = (0..200).map(|n| n % 16).collect();
    assert_eq!(codes(&trace), expected);
}
