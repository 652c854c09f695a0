// SPDX-License-Identifier: BSD-3-Clause
//! A trace that was written while it was recorded reads like any other, and as far as it goes where its writer was cut
//! off.

use std::io::{self, Read};

use kutrace_format::abi::block;
use kutrace_format::file::{FLAG_STREAM, HEADER_BYTES, MOMENT_BYTES, SECTION_BYTES};
use kutrace_tests::cases::one_in;
use kutrace_tests::{busy, TraceBuilder};
use postprocess::event::names::Names;
use postprocess::event::{Event, Meta};
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::raw::file;
use postprocess::raw::live::Live;
use postprocess::source;

fn trace() -> TraceBuilder {
    busy(3, 60_000, 7)
}

fn judged(bytes: &[u8]) -> (Verdict, String) {
    let found = judge(bytes).unwrap();
    (verdict(&found), found.iter().map(|f| format!("{f}\n")).collect())
}

#[test]
fn a_stream_has_the_events_of_the_file_that_was_written_at_the_end() {
    let (stream, file) = (trace().stream(), trace().bytes());
    let (of_stream, of_file) = (source::decode(&stream).unwrap(), source::decode(&file).unwrap());
    assert_eq!(of_stream.events.len(), of_file.events.len());
    assert!(of_stream.events == of_file.events, "other events");
    assert_eq!(of_stream.meta, of_file.meta);
    assert_eq!(judged(&stream).0, Verdict::Pass);
}

#[test]
fn a_stream_ends_where_it_says() {
    let stream = trace().stream();
    assert_eq!(file::size(&stream), Some(stream.len()));
    assert_eq!(file::size(&stream[..stream.len() - 1]), None);
    let (verdict, text) = judged(&[&stream[..], b"more"].concat());
    assert_eq!(verdict, Verdict::Fail);
    assert!(text.contains("something follows the end"), "{text}");
}

/// Wherever the writer was cut off: the written part is used, and nothing is called damaged.
#[test]
fn a_stream_that_was_cut_off_is_whole_up_to_there() {
    let stream = trace().stream();
    let whole = source::decode(&stream).unwrap();
    let first = HEADER_BYTES + SECTION_BYTES + block::BYTES;
    let places = [first, first + 10, first + 40, first + 100, stream.len() / 2, stream.len() * 3 / 4];
    let ends = (1..400).step_by(one_in(8)).map(|back| stream.len() - back);
    let mut before = 0;
    for at in places.into_iter().chain(ends) {
        let cut = &stream[..at];
        let events = source::decode(cut).unwrap();
        let quality = &events.meta.quality;
        assert!(quality.len() == 1 && quality[0].starts_with("the stream has no end"), "{at}: {quality:?}");
        let happened = |events: &[postprocess::event::Event]| events.iter().filter(|e| e.what.is_event()).count();
        let found = happened(&events.events);
        assert!(found > 0 && found <= happened(&whole.events) + 3, "{at}: {found}");
        if at < stream.len() / 2 {
            assert!(found >= before, "{at}");
            before = found;
        }
    }
    let (verdict, text) = judged(&stream[..stream.len() / 2]);
    assert_eq!(verdict, Verdict::Incomplete, "{text}");
}

#[test]
fn a_damaged_section_of_a_stream_costs_no_other() {
    let stream = trace().stream();
    let whole = source::decode(&stream).unwrap();
    let moment = MOMENT_BYTES + 8;
    let second = HEADER_BYTES + SECTION_BYTES + block::BYTES + SECTION_BYTES + moment;
    // The tag of a section of blocks, its size, the tag of a moment.
    for at in [second, second + 9, second - SECTION_BYTES - moment] {
        let mut damaged = stream.clone();
        damaged[at] ^= 0x80;
        let events = source::decode(&damaged).unwrap();
        assert!(!events.meta.quality.is_empty(), "byte {at}");
        assert!(events.events.len() * 10 > whole.events.len() * 3, "byte {at}: {} events", events.events.len());
        assert_eq!(judged(&damaged).0, Verdict::Fail);
    }
}

#[test]
fn a_stream_of_one_block_and_one_of_none_are_read() {
    let mut small = TraceBuilder::new(1, 1_000);
    small.cpu(0).call(10, 39, 0);
    assert_eq!(judged(&small.stream()).0, Verdict::Pass);
    let none = TraceBuilder::new(1, 1_000).stream();
    let (verdict, text) = judged(&none);
    assert_eq!(verdict, Verdict::Fail);
    assert!(text.contains("nothing was recorded"), "{text}");
    assert_eq!(none[16] & FLAG_STREAM as u8, FLAG_STREAM as u8);
}

/// Results of decoding a stream while it is read: the events, their number after each number of bytes, and the facts at
/// the end.
type Told = (Vec<Event>, Vec<(usize, usize)>, Meta);

fn live(stream: &[u8]) -> io::Result<Told> {
    struct Counted<'a>(&'a [u8], &'a std::cell::Cell<usize>);
    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            // As a pipe gives it: in parts that are no section's.
            let most = buffer.len().min(1013);
            let read = self.0.read(&mut buffer[..most])?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }
    let read = std::cell::Cell::new(0);
    let (mut live, mut names) = (Live::open(Counted(stream, &read))?, Names::default());
    let (mut events, mut turns) = (Vec::new(), Vec::new());
    loop {
        let more = live.turn(&mut names, |event, _| {
            events.push(*event);
            Ok(())
        })?;
        turns.push((read.get(), events.len()));
        if !more {
            return Ok((events, turns, live.meta()));
        }
    }
}

/// The events, without names: a stream has most of them at its end.
fn told(events: &[Event]) -> Vec<(i64, u32, u32, u32, u32, i32)> {
    let events = events.iter().filter(|e| e.what.is_event());
    events.map(|e| (e.ts.0, e.what.number(), e.cpu.number(), e.pid.number(), e.arg, e.ret)).collect()
}

#[test]
fn a_stream_on_its_way_has_the_events_of_the_whole_one_as_soon_as_no_other_can_come_before_them() {
    let stream = trace().stream();
    let whole = source::decode(&stream).unwrap();
    let (events, turns, meta) = live(&stream).unwrap();
    let (events, whole_events) = (told(&events), told(&whole.events));
    let differs = events.iter().zip(&whole_events).position(|(live, whole)| live != whole);
    assert_eq!(differs.map(|at| (events[at], whole_events[at])), None);
    assert_eq!(events.len(), whole_events.len());
    assert_eq!((meta.lost, &meta.quality, &meta.intervals), (0, &whole.meta.quality, &whole.meta.intervals));
    // When half of the stream is read, half of the events are there, except for one block of each CPU.
    let (_, half) = *turns.iter().find(|(read, _)| *read * 2 > stream.len()).unwrap();
    assert!(turns.len() > 5 && half * 3 > whole_events.len(), "{half} of {}: {turns:?}", whole_events.len());
}

#[test]
fn a_stream_on_its_way_that_is_cut_or_damaged_ends_with_what_it_has() {
    let stream = trace().stream();
    let whole = told(&live(&stream).unwrap().0);
    for at in (HEADER_BYTES..stream.len()).step_by(one_in(stream.len() / 50)) {
        let (events, _, meta) = live(&stream[..at]).unwrap();
        assert!(meta.quality.iter().any(|said| said.starts_with("the stream has no end")), "{at}: {:?}", meta.quality);
        // What other CPUs did in the blocks that are missing is not known; each CPU's own time is as it was.
        for cpu in 0..3 {
            let times = |events: &[_]| -> Vec<i64> {
                let of_cpu = events.iter().filter(|event: &&(i64, u32, u32, u32, u32, i32)| event.2 == cpu);
                of_cpu.map(|event| event.0).collect()
            };
            let (cut, whole) = (times(&told(&events)), times(&whole));
            let same = cut.iter().zip(&whole).take_while(|(cut, whole)| cut == whole).count();
            assert!(same + 3 >= cut.len(), "{at}, CPU {cpu}: {same} of {}", cut.len());
        }
        let mut damaged = stream.clone();
        damaged[at] ^= 0x40;
        let _ = live(&damaged);
    }
    assert!(live(&trace().bytes()).is_err(), "no stream");
    assert!(live(b"hello").is_err());
}
