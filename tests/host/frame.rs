// SPDX-License-Identifier: BSD-3-Clause
//! Frames: written data reads back the same, and damaged or cut frames are reported.

use std::io::{self, Cursor};

use kutrace_tests::{busy, Random};
use postprocess::direct::build_from;
use postprocess::event::batch::Row;
use postprocess::event::names::{NameId, Names};
use postprocess::event::{Event, Events};
use postprocess::frame::Writer;
use postprocess::source::events::read;
use postprocess::span::limit::{SpanLimit, OF_A_PART};
use postprocess::span::runs::Runs;
use postprocess::span::{build, Span, Spans};
use postprocess::time::Time;
use postprocess::{direct, source};

use kutrace_tests::cases::cases;

fn events() -> Events {
    source::decode(&busy(3, 20_000, 5).bytes()).unwrap()
}

fn frames(events: &Events) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.about(&events.meta).unwrap();
    events.events.iter().for_each(|e| writer.row(e, events.names.since(0)).unwrap());
    writer.finish(&events.meta, events.names.since(0)).unwrap();
    bytes
}

fn named(events: &Events) -> Vec<(Event, &str)> {
    events.events.iter().map(|e| (Event { name: NameId::EMPTY, ..*e }, events.names.text(e.name))).collect()
}

fn spelled(spans: &Spans) -> Vec<(Span, &str)> {
    spans.spans.iter().map(|s| (Span { name: NameId::EMPTY, ..*s }, spans.names[s.name].as_str())).collect()
}

#[test]
fn events_come_back_the_same() {
    let sent = events();
    let back = read(&frames(&sent)[..]).unwrap();
    assert_eq!(back.meta, sent.meta);
    assert!(named(&back) == named(&sent));
}

#[test]
fn spans_come_back_the_same() {
    let mut sent = build(events()).0;
    sent.meta.quality.push("a sentence".to_string());
    sent.spans[0] =
        Span { start: Time(i64::MIN), dur: Time(i64::MAX), arg: i64::MIN, ret: -1, ipc: 255, ..sent.spans[0] };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    sent.spans.iter().for_each(|s| writer.row(s, &sent.names).unwrap());
    writer.finish(&sent.meta, &sent.names).unwrap();
    let back = source::open(&bytes[..]).expect("memory can be read").spans(SpanLimit::new(usize::MAX)).unwrap();
    assert_eq!(back.meta, sent.meta);
    assert!(spelled(&back) == spelled(&sent));
}

#[test]
fn spans_are_the_same_by_every_way() {
    let bytes = busy(3, 20_000, 5).bytes();
    let expected = build(events());
    let direct = direct::spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap();
    let sent = frames(&events());
    let source = source::open(&sent[..]).unwrap().events().unwrap();
    let never = |_: Vec<Span>, _: &Names| -> io::Result<()> { unreachable!() };
    let (framed, tally, meta) = build_from(source, usize::MAX, never).unwrap();
    assert_eq!((direct.1, tally), (expected.1, expected.1));
    assert_eq!((&direct.0.meta, &framed.meta, meta), (&expected.0.meta, &expected.0.meta, events().meta));
    assert!(spelled(&direct.0) == spelled(&expected.0));
    assert!(spelled(&framed) == spelled(&expected.0));
}

#[test]
fn spans_are_the_same_when_some_wait_in_files() {
    let expected = build(events());
    let mut runs = Runs::default();
    let bytes = frames(&events());
    let source = source::open(&bytes[..]).unwrap().events().unwrap();
    let away = |spans, _: &Names| runs.add(spans, Cursor::new(Vec::new()));
    let (last, tally, _) = build_from(source, 5_000, away).unwrap();
    assert!(runs.spans() > 10_000 && runs.spans() + last.spans.len() == expected.0.spans.len());
    let mut spans = Vec::new();
    let keep = |span: &Span| {
        spans.push(*span);
        Ok(())
    };
    runs.merge(&last.spans, keep).unwrap();
    assert_eq!((tally, &last.meta), (expected.1, &expected.0.meta));
    assert!(spelled(&Spans { spans, ..last }) == spelled(&expected.0));
}

#[test]
fn frames_that_are_cut_anywhere_are_read_to_there_and_say_so() {
    let whole = frames(&events());
    let mut random = Random(7);
    let cuts = (8..200).chain((0..100).map(|_| 8 + random.below(whole.len() as u64 - 8) as usize));
    for cut in cuts.chain([whole.len() - 1]) {
        let back = read(&whole[..cut]).unwrap();
        let said = back.meta.quality.last().unwrap_or_else(|| panic!("the cut at {cut} is not reported"));
        assert!(said.ends_with("the frames end before their end mark"), "{said}");
    }
    assert_eq!(read(&whole[..]).unwrap().meta.quality.len(), 0);
}

#[test]
fn a_damaged_frame_is_skipped_with_its_place_and_its_rows_are_missed() {
    let sent = events();
    let mut bytes = frames(&sent);
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let back = read(&bytes[..]).unwrap();
    let (read, all) = (back.events.len(), sent.events.len());
    assert!(read < all && read > all / 2);
    let [place, missing] = &back.meta.quality[..] else { panic!("{:?}", back.meta.quality) };
    assert!(place.starts_with("byte ") && place.ends_with(": the checksum of the frame does not match; skipped"));
    assert_eq!(*missing, format!("the frames have {read} of {all} rows"));
}

#[test]
fn no_flipped_bit_goes_unnoticed_or_panics() {
    let whole = frames(&events());
    let mut random = Random(11);
    for _ in 0..cases(200) {
        let mut bytes = whole.clone();
        let at = 8 + random.below(whole.len() as u64 - 8) as usize;
        bytes[at] ^= 1 << random.below(8);
        assert!(!read(&bytes[..]).unwrap().meta.is_whole(), "a bit of byte {at} of {}", whole.len());
    }
}

#[test]
fn another_version_is_refused() {
    let mut bytes = frames(&events());
    bytes[7] = b'1';
    assert_eq!(Event::MAGIC[7], b'3');
    assert_eq!(read(&bytes[..]).unwrap_err().to_string(), "byte 7: frames of a version not known");
}

#[test]
fn more_spans_than_fit_are_coarsened_and_cover_the_same_time() {
    let bytes = busy(3, 60_000, 6).bytes();
    let all = direct::spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap().0;
    let few = direct::spans_of_raw(&bytes, SpanLimit::new(all.spans.len() / 8)).unwrap().0;
    assert!(few.spans.len() <= all.spans.len() / 8, "{} of {}", few.spans.len(), all.spans.len());
    let [said] = &few.meta.quality[..] else { panic!("{:?}", few.meta.quality) };
    assert!(said.starts_with("there were more than") && said.ends_with(&format!("`{OF_A_PART}`")), "{said}");
    let time = |spans: &Spans| -> i64 {
        let of_cpus = spans.spans.iter().filter(|s| s.cpu.is_some() && s.is_execution());
        of_cpus.map(|s| s.dur.0).sum()
    };
    assert_eq!(time(&few), time(&all));
}
