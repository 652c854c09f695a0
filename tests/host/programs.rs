// SPDX-License-Identifier: BSD-3-Clause
//! Programs' own records, with any content: a program is believed only about its own threads and times, damage is
//! reported, and the records of others are complete.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use kutrace_format::abi::programs::{word, ASYNC_BEGIN, ASYNC_END, BEGIN, END, FULL_TIME, MARK, OPEN, VALUE};
use kutrace_tests::fuzz::raw_file;
use kutrace_tests::musl;
use kutrace_tests::program::{at, honest, kernel, kernel_ring, kernel_stream, tsc, with, with_sections, Program};
use postprocess::event::number::{PROGRAM_ASYNC_BEGIN, PROGRAM_ASYNC_END, PROGRAM_BEGIN, PROGRAM_MARK, PROGRAM_VALUE};
use postprocess::event::write::Writer;
use postprocess::event::{Event, Events};
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::source;
use postprocess::span::build;
use proptest::prelude::*;

/// The trace's records of process 8.
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
fn a_stream_has_what_programs_recorded_as_any_file() {
    let events = source::decode(&with(&kernel_stream(), &[honest()])).unwrap();
    assert!(events.meta.is_whole(), "{:?}", events.meta.quality);
    assert_eq!(of_honest(&events), of_honest(&source::decode(&with(&kernel(), &[honest()])).unwrap()));
}

#[test]
fn sections_of_one_program_are_one() {
    let whole = Program { is_whole: true, ..honest() };
    let said = of_honest(&source::decode(&with(&kernel(), &[honest()])).unwrap());
    assert_eq!(said, of_honest(&source::decode(&with(&kernel(), &[whole])).unwrap()), "in the other layout");
    // A name that two sections have, and a part that begins in one and ends in the other.
    let begins = Program { grants: vec![(4096, 24, 8, tsc(20))], ..honest() };
    let marks = Program { grants: vec![(4120, 24, 8, tsc(30))], ..honest() };
    let ends = Program { grants: vec![(4144, 8, 8, tsc(40))], ..honest() };
    let mut others = Program { process: 7, ..honest() };
    others.grants.iter_mut().for_each(|grant| grant.2 = 7);
    let sections = [(1, &begins), (2, &others), (1, &ends), (1, &marks)];
    let events = source::decode(&with_sections(&kernel_stream(), sections)).unwrap();
    assert!(events.meta.is_whole(), "{:?}", events.meta.quality);
    assert_eq!(said, of_honest(&events));
    // Each counts losses from the start on.
    let lost = [&begins, &marks, &ends].map(|part| {
        let mut part = part.clone();
        part.area[0] = 5;
        part
    });
    let events = source::decode(&with_sections(&kernel_stream(), lost.iter().map(|part| (1, part)))).unwrap();
    let lost: Vec<_> = events.meta.quality.iter().filter(|said| said.contains("5 marks had no room")).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
}

#[test]
fn what_a_program_had_no_room_for_or_did_not_complete_leaves_a_trace_incomplete_and_not_damaged() {
    let (mut full, mut killed) = (honest(), honest());
    full.area[0] = 5;
    killed.grant(8, tsc(60), &[word(VALUE, 1, 8) | at(60) | OPEN, 0]);
    for file in [kernel(), kernel_stream()] {
        for (program, said) in [(&full, "5 marks had no room"), (&killed, "1 marks were incomplete when it ended")] {
            let found = judge(&with(&file, std::slice::from_ref(program))).unwrap();
            let text: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(verdict(&found), Verdict::Incomplete, "{text:#?}");
            let is_said = |text: &String| text.starts_with("warn  ") && text.contains(said);
            assert!(text.iter().any(is_said), "{text:#?}");
        }
        assert_eq!(verdict(&judge(&with(&file, &[honest()])).unwrap()), Verdict::Pass);
    }
}

#[test]
fn each_mark_is_in_one_file_of_a_ring_whose_cpus_end_their_blocks_one_after_the_other() {
    // Both files have all of a program, as it was copied while one was cut.
    let program = |thread: u32, times: &[u64]| {
        let (mut program, numbers) = Program::new(thread, &["mark"]);
        let words: Vec<u64> = times.iter().map(|counts| word(MARK, 0, numbers[0]) | at(*counts)).collect();
        program.grant(thread, tsc(20), &words);
        program
    };
    let programs = [program(7, &[40, 105, 130, 190, 260, 290, 320, 400]), program(8, &[40, 105, 130, 190])];
    let files = kernel_ring().map(|file| source::decode(&with(&file, &programs)).unwrap());
    let marks = files.each_ref().map(|file| {
        assert!(file.meta.is_whole(), "{:?}", file.meta.quality);
        let marks = file.events.iter().filter(|e| e.event() == PROGRAM_MARK);
        marks.map(|e| (e.pid.number(), e.cpu.number())).collect::<Vec<_>>()
    });
    let of =
        |file: usize, pid: u32| marks[file].iter().filter(|mark| mark.0 == pid).map(|mark| mark.1).collect::<Vec<_>>();
    assert_eq!((of(0, 7), of(1, 7)), (vec![0, 0, 1, 1], vec![0, 0, 1, 1]));
    assert_eq!((of(0, 8), of(1, 8)), (vec![1; 4], vec![]));
    let ends = files[0].meta.intervals.iter().map(|interval| interval.to);
    assert!(ends.is_sorted_by(|first, second| first < second), "each CPU as long as it was recorded");
    let begins = files[1].meta.intervals.iter().map(|interval| interval.from);
    assert!(begins.is_sorted_by(|first, second| first < second));
}

#[test]
fn values_of_a_name_have_that_name_alone_and_are_shown_with_it() {
    let said = [3, -1, i64::MAX, i64::MIN, 1 << 40];
    let (mut program, numbers) = Program::new(8, &["queued"]);
    let entry = |n: usize| [word(VALUE, 1, numbers[0]) | at(30 + n as u64), said[n] as u64];
    program.grant(8, tsc(30), &(0..said.len()).flat_map(entry).collect::<Vec<_>>());
    let events = source::decode(&with(&kernel(), &[program])).unwrap();
    let found: Vec<_> = events.events.iter().filter(|e| e.event() == PROGRAM_VALUE).copied().collect();
    assert!(found.iter().map(Event::value).eq(said) && found.iter().all(|e| events.names.text(e.name) == "queued"));
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    writer.head(5, 5, 0, &[]).unwrap();
    events.events.iter().for_each(|event| writer.event(event, &events.names).unwrap());
    writer.finish(&events.meta).unwrap();
    let lines = String::from_utf8(text.clone()).unwrap();
    for value in said {
        assert_eq!(lines.matches(&format!(" queued={value} (233)\n")).count(), 1, "{lines}");
    }
    let again = source::events::read(&text[..]).unwrap();
    let same = |e: &Event| (e.ts, e.arg, e.ret, "queued");
    let read = again.events.iter().filter(|e| e.event() == PROGRAM_VALUE);
    assert!(read.map(|e| (e.ts, e.arg, e.ret, again.names.text(e.name))).eq(found.iter().map(same)));
    let (spans, _) = build(events);
    let spans = spans.spans.iter().filter(|span| span.event() == PROGRAM_VALUE as i32);
    // The least number means none.
    assert!(spans.map(|span| span.arg).eq(said.map(|value| value.max(i64::MIN + 1))));
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
    // An open span at the end lasts up to the last event.
    let once = [(30, 20, "a(id=1,size=9)"), (40, 31, "b(id=1)"), (60, 11, "a(id=1,size=?)")];
    let twice: Vec<_> = once.iter().flat_map(|part| [*part, *part]).collect();
    assert_eq!(parts, twice);
}

#[test]
fn programs_that_are_linked_with_musl_do_their_work_untraced() {
    for program in musl::programs(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("musl")) {
        let run = Command::new(&program).env_clear().output().unwrap();
        assert!(run.status.success() && run.stdout.is_empty(), "{program:?}: {run:?}");
    }
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
            // Damage anywhere in its section is found by the checksum.
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
