// SPDX-License-Identifier: BSD-3-Clause
//! A trace that was written while it was recorded reads like any other, and as far as it goes where its writer was cut
//! off.

use kutrace_format::abi::block;
use kutrace_format::file::{FLAG_STREAM, HEADER_BYTES, SECTION_BYTES};
use kutrace_tests::cases::one_in;
use kutrace_tests::{busy, TraceBuilder};
use postprocess::raw::file;
use postprocess::sink::verdict::{judge, verdict, Verdict};
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

/// Wherever the writer was cut off: what is there is used, and nothing is called damaged.
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
    let second = HEADER_BYTES + SECTION_BYTES + block::BYTES + SECTION_BYTES + 24;
    // The tag of a section of blocks, its size, the tag of a moment.
    for at in [second, second + 9, second - SECTION_BYTES - 24] {
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
