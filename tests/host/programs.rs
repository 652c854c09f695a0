// SPDX-License-Identifier: BSD-3-Clause
//! What programs recorded, whatever one of them wrote: nothing is believed of it beyond its own threads and times, damage
//! is reported, and others are whole.

use std::collections::BTreeSet;

use kutrace_format::abi::event::SWITCH;
use kutrace_format::abi::programs::{word, ASYNC_BEGIN, ASYNC_END, BEGIN, END, FULL_TIME, MARK, OPEN, VALUE};
use kutrace_tests::fuzz::raw_file;
use kutrace_tests::program::{with, Program};
use kutrace_tests::{TraceBuilder, SHIFT, START};
use postprocess::event::number::{PROGRAM_ASYNC_BEGIN, PROGRAM_ASYNC_END, PROGRAM_BEGIN, PROGRAM_MARK};
use postprocess::event::Events;
use postprocess::source;
use postprocess::span::build;
use proptest::prelude::*;

/// Two CPUs that run thread 7 of process 7, and thread 8 of process 8, all the time.
fn kernel() -> Vec<u8> {
    let mut trace = TraceBuilder::new(2, 10_000);
    for cpu in 0..2 {
        trace.cpu(cpu).entry(10, SWITCH, &[7 + cpu]);
    }
    trace.bytes()
}

/// A whole TSC, this many counts after the start.
const fn tsc(counts: u64) -> u64 {
    (START + counts) << SHIFT
}

/// The low half of that.
const fn at(counts: u64) -> u64 {
    tsc(counts) & 0xffff_ffff
}

/// Process 8, which says three things.
fn honest() -> Program {
    let (mut program, numbers) = Program::new(8, &["work", "reply\0ustatus\0spath", "work"]);
    let [work, reply, other] = numbers[..] else { unreachable!() };
    program.grant(
        8,
        tsc(20),
        &[
            word(FULL_TIME, 1, 0) | at(30),
            tsc(30),
            word(BEGIN, 0, work) | at(30),
            word(MARK, 2, reply) | at(40),
            200,
            u64::from_le_bytes(*b"\x02/a\0\0\0\0\0"),
            // Another place of the same name ends it.
            word(END, 0, other) | at(50),
        ],
    );
    program
}

/// What the trace has of process 8.
fn of_honest(events: &Events) -> Vec<(u32, String)> {
    let of_8 =
        events.events.iter().filter(|e| e.pid.number() == 8 && (PROGRAM_MARK..=PROGRAM_ASYNC_END).contains(&e.event()));
    of_8.map(|e| (e.event(), events.names.text(e.name).to_owned())).collect()
}

#[test]
fn places_of_a_name_are_one_and_fields_are_part_of_what_an_entry_is_called() {
    let events = source::decode(&with(&kernel(), &[honest()])).unwrap();
    assert!(events.meta.is_whole(), "{:?}", events.meta.quality);
    let said = of_honest(&events);
    let names: Vec<&str> = said.iter().map(|(_, name)| &name[..]).collect();
    assert_eq!(names, ["work", "reply(status=200,path=/a)", "/work"]);
    let (spans, _) = build(events);
    let part = spans.spans.iter().find(|span| span.event() == PROGRAM_BEGIN as i32).unwrap();
    assert_eq!(part.dur.0, 20);
}

#[test]
fn parts_of_one_number_are_told_apart_by_name_program_and_time() {
    let mut programs = Vec::new();
    for process in [7, 8] {
        let (mut program, numbers) = Program::new(process, &["a\0usize", "b"]);
        let [a, b] = numbers[..] else { unreachable!() };
        let words = [
            [word(ASYNC_BEGIN, 2, a) | at(30), 1, 9].to_vec(),
            [word(ASYNC_BEGIN, 1, b) | at(40), 1].to_vec(),
            [word(ASYNC_END, 1, a) | at(50), 1].to_vec(),
            [word(ASYNC_BEGIN, 1, a) | at(60), 1].to_vec(),
            // Never begun.
            [word(ASYNC_END, 1, b) | at(70), 2].to_vec(),
        ];
        program.grant(process, tsc(30), &words.concat());
        programs.push(program);
    }
    let (spans, _) = build(source::decode(&with(&kernel(), &programs)).unwrap());
    let parts = spans.spans.iter().filter(|span| span.event() == PROGRAM_ASYNC_BEGIN as i32);
    let mut parts: Vec<_> = parts.map(|s| (s.start.0 % 1000, s.dur.0, &spans.names[s.name][..])).collect();
    parts.sort_unstable();
    // What is open at the end lasts up to the last event.
    let once = [(30, 20, "a(id=1,size=9)"), (40, 31, "b(id=1)"), (60, 11, "a(id=1,size=?)")];
    let twice: Vec<_> = once.iter().flat_map(|part| [*part, *part]).collect();
    assert_eq!(parts, twice);
}

/// Words that are nearly right as often as not.
fn words() -> impl Strategy<Value = Vec<u64>> {
    let kind = prop::sample::select(vec![0, MARK, BEGIN, END, VALUE, ASYNC_BEGIN, ASYNC_END, FULL_TIME]);
    let nearly =
        (kind, 0..16_usize, 0..600_u32, 0..12_000_u64, any::<bool>()).prop_map(|(kind, payload, name, time, open)| {
            word(kind, payload, name) | at(time) | if open { OPEN } else { 0 }
        });
    prop::collection::vec(prop_oneof![nearly, 0..300_u64, any::<u64>(), Just(tsc(50))], 0..200)
}

proptest! {
    #[test]
    fn nothing_that_a_program_writes_harms_another(
        words in words(),
        names in prop::collection::vec(any::<u8>(), 4096),
        grants in prop::collection::vec((0..6000_u32, 0..3000_u32, 6..10_u32, 0..12_000_u64), 0..4),
        damaged in any::<Option<prop::sample::Index>>(),
    ) {
        let (mut hostile, _) = Program::new(7, &[]);
        hostile.area.copy_from_slice(&names);
        hostile.grant(7, tsc(15), &words);
        hostile.grants.extend(grants.iter().map(|&(offset, bytes, thread, time)| (8 * offset, 8 * bytes, thread, tsc(time))));
        // The recorder grants to no thread of another process.
        hostile.grants.retain(|grant| grant.2 != 8);
        let mut file = with(&kernel(), &[hostile, honest()]);
        if let Some(place) = damaged {
            // Somewhere in its section: then the checksum says so.
            let section = file.windows(4).position(|tag| tag == kutrace_format::file::PROGRAM).unwrap();
            file[section + 40 + place.index(4096)] ^= 1;
        }
        raw_file(&file);
        let events = source::decode(&file).unwrap();
        prop_assert_eq!(of_honest(&events), of_honest(&source::decode(&with(&kernel(), &[honest()])).unwrap()));
        let threads: BTreeSet<_> = events.events.iter().filter(|e| e.event() == PROGRAM_MARK).map(|e| e.pid.number()).collect();
        prop_assert!(threads.iter().all(|thread| [7, 8].contains(thread)), "{:?}", threads);
        if damaged.is_some() {
            prop_assert!(events.meta.quality.iter().any(|fact| fact.contains("checksum of a program's section")));
        }
    }
}
