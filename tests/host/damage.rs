// SPDX-License-Identifier: BSD-3-Clause
//! Damaged raw files: the damage is reported, the rest is used, nothing panics, and spans still cover all time.

use std::process::Command;

use kutrace_format::abi::block::{self, COUNTED_WORDS, HEADER_WORDS};
use kutrace_format::abi::event::{FULL_TIME, RUNNABLE, SMALL_RETURN_LAST};
use kutrace_format::abi::word;
use kutrace_format::file::{self, FLAG_IPC, FLAG_LLC, HEADER_BYTES, SECTION_BYTES};
use kutrace_tests::{busy, sign, Random, TraceBuilder};
use postprocess::event::{number, Meta};
use postprocess::raw::damage::NotATrace;
use postprocess::source;
use postprocess::span::{build, check};

use kutrace_tests::cases::{cases, one_in};

/// Everything from bytes to checked spans; returns the number of events and the facts about the whole trace.
fn run(bytes: &[u8]) -> Result<(u64, Meta), NotATrace> {
    let events = source::decode(bytes)?;
    let count = events.events.iter().filter(|e| e.event() >= number::SWITCH).count() as u64;
    let meta = events.meta.clone();
    let (spans, tally) = build(events);
    assert_eq!(check(&spans, &meta.intervals, &tally), [""; 0]);
    Ok((count, meta))
}

/// Two CPUs with three blocks each, every block with entries.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new(2, 100_000);
    for cpu in 0..2 {
        for n in 0..150 {
            trace.cpu(cpu).small_blocks(140).entry(n * 100 + u64::from(cpu), RUNNABLE, &[n as u32]);
        }
    }
    trace
}

fn names_at() -> usize {
    HEADER_BYTES
}

/// Offset of the section header of the blocks.
fn blocks_at(bytes: &[u8]) -> usize {
    let at = bytes.windows(4).position(|w| w == file::BLOCKS);
    at.unwrap()
}

fn block(bytes: &mut [u8], n: usize) -> &mut [u8] {
    let at = blocks_at(bytes) + SECTION_BYTES + n * block::BYTES;
    &mut bytes[at..at + block::BYTES]
}

#[test]
fn an_undamaged_file_has_nothing_to_report() {
    let (events, meta) = run(&trace().bytes()).unwrap();
    assert_eq!((events, meta.is_whole()), (302, true));
}

#[test]
fn where_the_clock_stepped_back_times_go_on_and_it_is_said() {
    let mut trace = TraceBuilder::new(1, 400_000);
    trace.cpu(0).entry(300_000, RUNNABLE, &[1]).step_back(200_000).entry(100_160, RUNNABLE, &[2]);
    trace.cpu(0).entry(100_480, RUNNABLE, &[3]);
    let bytes = trace.bytes();
    let times: Vec<i64> = source::decode(&bytes)
        .unwrap()
        .events
        .iter()
        .filter(|e| e.event() == u32::from(RUNNABLE))
        .map(|e| e.ts.0)
        .collect();
    let (step, after) = (times[1] - times[0], times[2] - times[1]);
    // 160 and 320 counts, at the rate of the file.
    assert!(step > 0 && (after - 2 * step).abs() <= 2, "{times:?}");
    let (_, meta) = run(&bytes).unwrap();
    let said: Vec<&String> =
        meta.quality.iter().filter(|line| line.contains("stepped back by 200000 counts")).collect();
    assert_eq!(said.len(), 1, "{:?}", meta.quality);
}

/// A trace of one CPU on which the counter steps back by `back` counts between the second and the third entry, which no
/// FULL_TIME follows.
fn steps_back_a_little(back: u64) -> Vec<u8> {
    let mut trace = TraceBuilder::new(1, 2_000);
    let jump = word::TIME_PERIOD - back;
    trace.cpu(0).entry(100, RUNNABLE, &[1]).entry(900, RUNNABLE, &[2]).entry(900 + jump, RUNNABLE, &[3]);
    let mut bytes = trace.bytes();
    let end = (kutrace_tests::START + 2_000).to_le_bytes();
    block(&mut bytes, 0)[32..40].copy_from_slice(&end);
    sign(block(&mut bytes, 0));
    bytes
}

#[test]
fn where_the_clock_stepped_back_a_little_before_the_end_of_all_it_is_said() {
    for back in [1, 500, 800, 100_000] {
        let (_, meta) = run(&steps_back_a_little(back)).unwrap();
        assert!(meta.quality.iter().any(|line| line.contains("time goes back by ")), "{back}: {:?}", meta.quality);
    }
}

/// A trace of one CPU on which the counter steps back from 900 to 400, and a FULL_TIME at 500 gives its position.
pub fn slipped() -> TraceBuilder {
    let (period, full) = (word::TIME_PERIOD, kutrace_tests::START + 500);
    let mut trace = TraceBuilder::new(1, 4 * period);
    // From here on the entries have the lowest bits alone.
    let cpu = trace.cpu(0).entry(900, RUNNABLE, &[1]).entry(period + 400, RUNNABLE, &[2]);
    cpu.entry(period + 500, FULL_TIME, &[full as u32, (full >> 32) as u32]);
    for counter in [600, 800, period / 2, period + 800] {
        cpu.entry(period + counter, RUNNABLE, &[3]);
    }
    trace
}

#[test]
fn where_the_clock_stepped_back_a_little_times_are_held_until_it_has_caught_up() {
    let events = source::decode(&slipped().bytes()).unwrap().events;
    let times: Vec<i64> = events.iter().filter(|e| e.event() == u32::from(RUNNABLE)).map(|e| e.ts.0).collect();
    assert_eq!(times[1..5], [times[1]; 4]);
    let units = |counts: u64| counts as i64 * (times[1] - times[0]) / (word::TIME_PERIOD as i64 - 500);
    assert!((times[5] - times[0] - units(word::TIME_PERIOD - 100)).abs() <= 2, "{times:?}");
}

#[test]
fn a_file_that_is_no_trace_is_refused_with_one_sentence() {
    for bytes in [&b""[..], b"KUtrac", b"hello, world", &[0; 70_000]] {
        assert_eq!(run(bytes).unwrap_err(), NotATrace::Unknown);
    }
    assert_eq!(run(b"KUtrace5 and little more").unwrap_err(), NotATrace::Cut);
}

/// Runs this test again by itself in a process that may have `MEMORY_KIB` of address space, and there `work`. What asks
/// for more there is ended.
pub fn in_bounded_memory(test: &str, work: impl FnOnce()) {
    const BOUNDED: &str = "KUTRACE_BOUNDED";
    const MEMORY_KIB: u32 = 256 << 10;
    if std::env::var_os(BOUNDED).is_some() {
        return work();
    }
    let limited = format!("ulimit -v {MEMORY_KIB} && exec \"$0\" --exact {test} --test-threads 1");
    let this = std::env::current_exe().unwrap();
    let run = Command::new("sh").arg("-c").arg(limited).arg(this).env(BOUNDED, "").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// The first sentence that names a place, and that place: the number of the block if it is in one, and the byte.
fn place(meta: &Meta) -> Option<(Option<usize>, usize)> {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    meta.quality.iter().find_map(|sentence| {
        let (block, rest) = match sentence.strip_prefix("block ") {
            Some(rest) => (Some(number(rest)?), rest.split_once(", ")?.1),
            None => (None, sentence.as_str()),
        };
        Some((block, number(rest.strip_prefix("byte ")?)?))
    })
}

#[test]
fn every_truncation_is_used_as_far_as_it_goes_and_says_where_it_ends() {
    in_bounded_memory("damage::every_truncation_is_used_as_far_as_it_goes_and_says_where_it_ends", || {
        let bytes = busy(1, 60, 3).bytes();
        let (all, _) = run(&bytes).unwrap();
        let blocks = blocks_at(&bytes) + SECTION_BYTES;
        for len in (0..bytes.len()).step_by(one_in(10)) {
            match run(&bytes[..len]) {
                Ok((events, meta)) => {
                    assert!(events <= all && !meta.is_whole(), "{len}: {meta:?}");
                    let (block, at) = place(&meta).unwrap();
                    assert!(at <= len, "{len}: {meta:?}");
                    let cut = (len - blocks.min(len)) / block::BYTES;
                    assert!(block.is_none_or(|block| len > blocks && block == cut), "{len}: {meta:?}");
                }
                Err(e) => assert!(len < HEADER_BYTES, "{len}: {e}"),
            }
        }
    });
}

#[test]
fn a_flipped_byte_in_the_file_header_is_reported_and_the_blocks_are_used() {
    for at in [13, 17, 21, 26, 33, 38, 45, 60, 90, 110, 200] {
        let mut bytes = trace().bytes();
        bytes[at] ^= 0x10;
        let (events, meta) = run(&bytes).unwrap();
        assert_eq!((events, meta.is_whole()), (302, false), "byte {at}");
    }
}

#[test]
fn a_flipped_byte_in_the_names_costs_the_names() {
    let mut bytes = trace().bytes();
    bytes[names_at() + SECTION_BYTES + 20] ^= 1;
    let (events, meta) = run(&bytes).unwrap();
    assert_eq!(events, 302);
    assert!(meta.quality[0].contains("names"), "{:?}", meta.quality);
}

#[test]
fn a_flipped_byte_in_a_section_header_costs_no_event() {
    let bytes = trace().bytes();
    for section in [names_at(), blocks_at(&bytes)] {
        for at in (0..4).chain(8..24) {
            let mut bytes = bytes.clone();
            bytes[section + at] ^= 0x04;
            let (events, meta) = run(&bytes).unwrap();
            assert_eq!((events, meta.is_whole()), (302, false), "section at {section}, byte {at}");
        }
    }
}

#[test]
fn a_block_with_a_flipped_byte_is_skipped_and_its_time_is_a_gap() {
    for n in 0..6 {
        let mut bytes = trace().bytes();
        block(&mut bytes, n)[300] ^= 1;
        let (events, meta) = run(&bytes).unwrap();
        assert!((200..302).contains(&events), "{events}");
        let first = &meta.quality[0];
        assert!(first.starts_with(&format!("block {n}, byte ")) && first.contains("cpu"), "{first}");
        assert!(meta.quality.iter().any(|s| s.contains("gap")), "{:?}", meta.quality);
    }
}

#[test]
fn a_cpu_without_a_sound_block_is_lost_for_the_whole_trace() {
    let mut bytes = trace().bytes();
    for n in [0, 2, 4] {
        block(&mut bytes, n)[300] ^= 1;
    }
    let (_, meta) = run(&bytes).unwrap();
    assert_eq!(meta.intervals.len(), 2);
}

#[test]
fn an_unknown_event_ends_its_block_only() {
    let mut bytes = trace().bytes();
    let second = block(&mut bytes, 2);
    let unknown = SMALL_RETURN_LAST + 1;
    second[160..164].copy_from_slice(&word::entry(unknown, 0).to_le_bytes());
    sign(second);
    let (events, meta) = run(&bytes).unwrap();
    assert!((250..302).contains(&events), "{events}");
    assert!(meta.quality[0].contains(&format!("{unknown:#x}")), "{:?}", meta.quality);
}

#[test]
fn header_fields_out_of_range_cost_their_block() {
    let changes: [(usize, u64, &str); 5] = [
        (0, 0, "never used"),
        (40, 32, "content size"),
        (40, block::BYTES as u64 * 8 + 32, "content size"),
        (32, 1, "ends before"),
        (72, 7 | 7 << 32, "no such CPU"),
    ];
    for (at, value, fact) in changes {
        let mut bytes = trace().bytes();
        let first = block(&mut bytes, 1);
        first[at..at + 8].copy_from_slice(&value.to_le_bytes());
        sign(first);
        let (_, meta) = run(&bytes).unwrap();
        assert!(meta.quality.iter().any(|s| s.contains(fact)), "{fact}: {:?}", meta.quality);
    }
}

#[test]
fn entries_that_reach_into_the_counter_bytes_cost_their_block() {
    let max = (HEADER_WORDS + COUNTED_WORDS) as u64;
    for (flags, words, sound) in [(FLAG_IPC, max, true), (FLAG_LLC, max + 1, false), (0, max + 1, true)] {
        let mut trace = trace();
        trace.header.flags = flags;
        let mut bytes = trace.bytes();
        let last = block(&mut bytes, 5);
        last[40..48].copy_from_slice(&(words * 32).to_le_bytes());
        sign(last);
        let (_, meta) = run(&bytes).unwrap();
        assert_eq!(meta.quality.iter().any(|s| s.contains("content size")), !sound, "{:?}", meta.quality);
    }
}

#[test]
fn a_damaged_header_costs_the_counters_and_no_event() {
    let mut trace = trace();
    trace.header.flags = FLAG_IPC;
    let mut bytes = trace.bytes();
    bytes[16] ^= FLAG_LLC as u8;
    let (events, meta) = run(&bytes).unwrap();
    assert_eq!((events, meta.flags), (302, 5));
}

#[test]
fn a_block_of_another_trace_is_not_used() {
    let mut bytes = trace().bytes();
    let first = block(&mut bytes, 0);
    first[5] ^= 1;
    sign(first);
    assert!(run(&bytes).unwrap().1.quality[0].contains("another trace"));
}

#[test]
fn a_block_that_comes_twice_counts_once() {
    let mut bytes = trace().bytes();
    let copy = block(&mut bytes, 0).to_vec();
    block(&mut bytes, 2).copy_from_slice(&copy);
    let (_, meta) = run(&bytes).unwrap();
    assert!(meta.quality[0].contains("second block 0"), "{:?}", meta.quality);
}

#[test]
fn random_flips_are_survived_and_each_is_reported_where_it_is() {
    in_bounded_memory("damage::random_flips_are_survived_and_each_is_reported_where_it_is", || {
        let whole = busy(2, 300, 3).bytes();
        let blocks = blocks_at(&whole) + SECTION_BYTES;
        let mut random = Random(11);
        for round in 0..cases(1_000) {
            let mut bytes = whole.clone();
            let at = random.below(if round % 2 == 0 { 2_000 } else { bytes.len() as u64 }) as usize;
            bytes[at] ^= 1 << random.below(8);
            let Ok((_, meta)) = run(&bytes) else {
                assert!(at < 12, "byte {at} costs the whole trace");
                continue;
            };
            // The last eight bytes of a section header are spare, and the checksum of the section of blocks.
            let [names, last] = [names_at(), blocks - SECTION_BYTES].map(|section| at.wrapping_sub(section));
            let spare = (24..32).contains(&names) || matches!(last, 4..8 | 24..32);
            let n = at.checked_sub(blocks).map(|at| at / block::BYTES);
            let begin = n.map_or(0, |n| blocks + n * block::BYTES);
            let right = place(&meta).is_some_and(|(block, place)| block == n && (n.is_none() || place == begin));
            assert!(right != spare, "byte {at}: {meta:?}");
        }
    });
}

#[test]
fn hostile_words_under_a_right_checksum_are_survived() {
    let bytes = busy(2, 2_000, 5).bytes();
    let mut random = Random(13);
    for round in 0..300 {
        let mut bytes = bytes.clone();
        let one = block(&mut bytes, round % 2);
        for _ in 0..20 {
            let at = random.below(if round % 3 == 0 { 128 } else { 9_000 }) as usize;
            one[at] ^= 1 << random.below(8);
        }
        sign(one);
        let _ = run(&bytes);
    }
}

#[test]
fn lost_events_are_counted_and_their_cpu_is_lost_to_the_end() {
    let mut trace = trace();
    trace.cpu(1).lose(9);
    let bytes = trace.bytes();
    let (_, meta) = run(&bytes).unwrap();
    assert_eq!((meta.lost, meta.is_whole()), (9, false));
}
