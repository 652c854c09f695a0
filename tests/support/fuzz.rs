// SPDX-License-Identifier: BSD-3-Clause
//! Properties of any input of the readers, and inputs to begin with.
//!
//! `tests/fuzz` searches for an input that breaks it, for as long as one likes; `tests/host/fuzz.rs` repeats a short
//! search, and every input that once broke it.
//!
//! Blocks are long, and a checksum keeps almost every change of one from being read. So a raw file to be searched is
//! packed: blocks without the zeros at their ends, sizes and checksums put right when it is unpacked. So are frames.

use std::num::NonZeroU32;

use kutrace_format::abi::block::{self, HEADER_WORDS};
use kutrace_format::abi::event::{self, line};
use kutrace_format::file::{self, Section};
use postprocess::event::batch::{Row, COLUMNS};
use postprocess::event::number::SWITCH;
use postprocess::event::write::Writer;
use postprocess::event::{Event, Events};
use postprocess::sink::profile::{profile, Rows};
use postprocess::source::events::read;
use postprocess::span::build::Builder;
use postprocess::span::check::Check;
use postprocess::span::coarsen::coarsen;
use postprocess::span::limit::SpanLimit;
use postprocess::span::trim::{trim, Range};
use postprocess::span::{build, check, Span, Spans};
use postprocess::time::Time;
use postprocess::why::carry::carried;
use postprocess::{frame, sink, source};

use crate::draw::{drawn, made};
use crate::original::{self, rich};
use crate::{busy, program, sign, TraceBuilder};

/// A reader: its name, what must hold of any input, inputs to begin with.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

/// All readers.
pub const TARGETS: [Target; 8] = [
    ("raw", |packed| raw_file(&unpacked(packed)), || raw_files().iter().map(|f| self::packed(f)).collect()),
    ("original", |packed| raw_file(&unpacked_original(packed)), original_files),
    ("text", text, || raw_files().iter().map(|f| written(&decoded(f))).collect()),
    ("json", spans, || raw_files().iter().map(|f| as_json(f)).collect()),
    ("programs", |packed| raw_file(&program::unpacked(packed)), || vec![program::packed(&program::honest())]),
    ("frames", |packed| frames(&unpacked_frames(packed)), all_frames),
    ("tracepoints", recording, tracepoints),
    ("perfetto", recording, || vec![drawn(&made()).0]),
];

/// The reader of this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> Target {
    TARGETS.into_iter().find(|t| t.0 == name).expect("one of the targets")
}

/// Spans that are checked at a time.
const SPANS: usize = 40;
/// Blocks of a file that is unpacked, at most.
const BLOCKS_MAX: usize = 8;
/// Word between the blocks of a packed file of the original.
const SEPARATOR: &[u8] = b"|BLOCK|";
/// Word before the kind of each packed frame.
const FRAME: &[u8] = b"|FRAME|";
/// Bytes of a block of the original, and of its counters.
const ORIGINAL: (usize, usize) = (65536, 8192);

/// A raw file is read to sound spans, in memory that its size bounds, and its events survive the text.
pub fn raw_file(bytes: &[u8]) {
    let Ok(events) = source::decode(bytes) else { return };
    let blocks = bytes.len().div_ceil(block::BYTES);
    // An entry has four bytes or more, and is at most four events: a task's name and call, a switch, a loss.
    assert!(events.events.len() <= bytes.len() + 8 * blocks, "{} events", events.events.len());
    assert!(events.meta.quality.len() <= 4 * blocks + 16, "{:?}", events.meta.quality);
    let again = read(&mut &written(&events)[..]).expect("memory can be read");
    assert_eq!(again.meta.quality, events.meta.quality);
    assert_eq!(again.meta.intervals, events.meta.intervals);
    assert_eq!(again.events.len(), events.events.len());
    for (again, event) in again.events.iter().zip(&events.events) {
        // Names have no duration, the text gives them one.
        let dur = if event.event() < SWITCH { again.dur } else { event.dur };
        assert_eq!(Event { name: event.name, ..*again }, Event { dur, ..*event });
    }
    let texts = |all: &Events| all.events.iter().map(|e| all.names.text(e.name).to_string()).collect::<Vec<_>>();
    let (texts, again) = (texts(&events), texts(&again));
    assert_eq!(again.iter().zip(&texts).find(|(a, b)| a != b), None);
    sound(events);
}

/// Text is read to sound spans, in memory that its size bounds.
pub fn text(bytes: &[u8]) {
    let events = read(&mut &bytes[..]).expect("memory can be read");
    let lines = bytes.iter().filter(|&&c| c == b'\n').count() + 1;
    assert!(events.events.len() <= lines && events.meta.quality.len() <= lines + 1);
    sound(events);
}

/// A recording of others is read to sound spans, in memory that its size bounds.
pub fn recording(bytes: &[u8]) {
    let events = read(&mut &bytes[..]).expect("memory can be read");
    // The names of all calls and interrupts are events, too.
    let happened = events.events.iter().filter(|e| e.what.is_event()).count();
    assert!(happened <= bytes.len(), "{happened} events of {} bytes", bytes.len());
    assert!(events.meta.quality.len() <= bytes.len() + 1);
    sound(events);
}

/// JSON is read to spans that come back from JSON, and that every companion can take.
pub fn spans(bytes: &[u8]) {
    let spans = source::json::read(&mut &bytes[..]).expect("memory can be read");
    let lines = bytes.iter().filter(|&&c| c == b'\n').count() + 1;
    assert!(spans.spans.len() <= lines && spans.names.len() <= lines);
    assert!(spans.spans.is_sorted_by_key(|s| s.start));
    let again = source::json::read(&mut &json_of(&spans)[..]).expect("memory can be read");
    assert_eq!(again.spans.len(), spans.spans.len());
    for (again_span, span) in again.spans.iter().zip(&spans.spans) {
        assert_eq!(Span { name: span.name, ..*again_span }, *span);
        assert_eq!(again.names[again_span.name], spans.names[span.name]);
    }
    companions(&spans);
}

/// Frames are read to rows that come back from frames, in memory that their size bounds, and what takes such rows can.
pub fn frames(bytes: &[u8]) {
    if frame::begins::<Event>(&mut &bytes[..]).unwrap_or(false) {
        let events = read(bytes).expect("memory can be read");
        assert!(events.events.len() * COLUMNS <= bytes.len() && events.names.since(0).len() <= bytes.len() + 1);
        let again = read(&events_framed(&events)[..]).expect("memory can be read");
        assert_eq!(again.meta, events.meta);
        assert!(named(&again.events, again.names.since(0)) == named(&events.events, events.names.since(0)));
        sound(events);
    } else if frame::begins::<Span>(&mut &bytes[..]).unwrap_or(false) {
        let spans = source::open(bytes)
            .expect("memory can be read")
            .spans(SpanLimit::new(usize::MAX))
            .expect("memory can be read");
        assert!(spans.spans.len() * COLUMNS <= bytes.len() && spans.names.len() <= bytes.len() + 1);
        let again = source::open(&spans_framed(&spans)[..])
            .expect("memory can be read")
            .spans(SpanLimit::new(usize::MAX))
            .expect("memory can be read");
        assert_eq!(again.meta, spans.meta);
        assert!(named(&again.spans, &again.names) == named(&spans.spans, &spans.names));
        source::json::read(&mut &json_of(&spans)[..]).expect("memory can be read");
        companions(&spans);
    }
}

/// Every row, with its name in place of the name's number.
fn named<T: Row>(rows: &[T], names: &[impl AsRef<str>]) -> Vec<([i64; COLUMNS], String)> {
    let one = |row: &T| {
        let mut row = *row;
        let name = std::mem::take(row.name());
        (row.columns(), names[name.index()].as_ref().to_string())
    };
    rows.iter().map(one).collect()
}

/// Every companion can take these spans, and a page.
fn companions(spans: &Spans) {
    let middle = spans.spans.get(spans.spans.len() / 2).map_or(Time::ZERO, |s| s.start);
    trim(&mut spans.clone(), Range { from: middle, to: middle.saturating_add(Time(1_000)) });
    coarsen(&mut spans.clone(), NonZeroU32::MIN.saturating_add(999));
    profile(&mut spans.clone(), Rows::Each);
    profile(&mut spans.clone(), Rows::Groups(2));
    drop(carried(spans));
}

/// Builds spans and checks them, all at once and some at a time.
fn sound(events: Events) {
    let (count, intervals) = (events.events.len(), events.meta.intervals.clone());
    let (mut builder, mut checked) = (Builder::new(&events.meta, events.names.clone()), Check::default());
    for event in &events.events {
        builder.push(event);
        if builder.written().len() > SPANS {
            builder.take().iter().for_each(|span| checked.span(span));
        }
    }
    let (last, tally) = builder.finish(events.meta.clone());
    last.spans.iter().for_each(|span| checked.span(span));
    assert_eq!(checked.finish(&intervals, &tally), [""; 0]);
    let (spans, of_all) = build(events);
    assert_eq!(of_all, tally);
    assert_eq!(check(&spans, &intervals, &tally), [""; 0]);
    assert!(spans.spans.len() <= 32 * (count + intervals.len() + 1), "{} spans", spans.spans.len());
}

/// The text of `events`.
fn written(events: &Events) -> Vec<u8> {
    let mut text = Vec::new();
    let mut out = Writer::new(&mut text);
    let done = out.head(events.meta.format, events.meta.flags, 0, &[]);
    let done = events.events.iter().fold(done, |done, e| done.and(out.event(e, &events.names)));
    done.and(out.finish(&events.meta)).expect("memory can be written");
    text
}

fn json_of(spans: &Spans) -> Vec<u8> {
    let mut text = Vec::new();
    sink::json::write(spans, &mut text).expect("memory can be written");
    text
}

fn events_framed(events: &Events) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = frame::Writer::new(&mut bytes).expect("memory can be written");
    let names = events.names.since(0);
    let done = events.events.iter().fold(out.about(&events.meta), |done, e| done.and(out.row(e, names)));
    done.and(out.finish(&events.meta, names)).expect("memory can be written");
    bytes
}

fn spans_framed(spans: &Spans) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = frame::Writer::new(&mut bytes).expect("memory can be written");
    let done = spans.spans.iter().try_for_each(|s| out.row(s, &spans.names));
    done.and(out.finish(&spans.meta, &spans.names)).expect("memory can be written");
    bytes
}

fn decoded(raw: &[u8]) -> Events {
    source::decode(raw).expect("a raw file of ours")
}

fn as_json(raw: &[u8]) -> Vec<u8> {
    json_of(&build(decoded(raw)).0)
}

/// Small raw files of format 5, with most that can be in one.
fn raw_files() -> Vec<Vec<u8>> {
    let mut counted = busy(1, 60, 5);
    counted.header.flags = file::FLAG_IPC | file::FLAG_WRAP | file::FLAG_WRAPPED;
    let mut lossy = TraceBuilder::new(2, 5_000_000);
    lossy.name_on(1, 0x21, "eth0");
    let cpu = lossy.cpu(0).small_blocks(60).running(4_194_303, "a", Some(202)).small_return(5, 0).call(9, 1, 4);
    cpu.task(20, 9, "b", Some(59)).switch(30, 9, "b").lose(3).skip(1, 9).entry(4_000_000, event::IRQ + 0xec, &[]);
    lossy.cpu(1).name(8, 7, 3, "mutex").entry(10, event::LOCK_TRY, &[3]).entry(20, event::LOCK_ACQUIRED, &[3]).entry(
        40,
        event::LOCK_RELEASED,
        &[3],
    );
    vec![busy(2, 150, 3).bytes(), counted.bytes(), lossy.bytes()]
}

/// Lines of ftrace's and of perf's.
fn tracepoints() -> Vec<Vec<u8>> {
    let ftrace = [
        "# tracer: nop",
        "# entries-in-buffer/entries-written: 9/12   #P:2",
        "  a b-7   (      7) [000] d..2.   1.000000: sys_enter: NR 0 (3, 7f, 0, 0, 0, 0)",
        "  a b-7   (      7) [000] d..2.   1.000004: tracing_mark_write: trace:4bf9",
        "  a b-7   (      7) [000] d..2.   1.000010: sched_switch: prev_comm=a b prev_pid=7 prev_prio=120 prev_state=S \
         ==> next_comm=c next_pid=8 next_prio=120",
        "    c-8   (      8) [000] d.h..   1.000020: irq_handler_entry: irq=25 name=virtio2",
        "    c-8   (      8) [000] d.h..   1.000030: irq_handler_exit: irq=25 ret=handled",
        "CPU:1 [LOST 12 EVENTS]",
        "<idle>-0  (-------) [001] d.s..   1.000040: softirq_entry: vec=1 [action=TIMER]",
        "<idle>-0  (-------) [001] d.s..   1.000050: sched_waking: comm=a b pid=7 prio=120 target_cpu=000",
        "<idle>-0  (-------) [001] d.s..   1.000060: softirq_exit: vec=1 [action=TIMER]",
        "<idle>-0  (-------) [001] d....   1.000070: cpu_frequency: state=2600000 cpu_id=1",
    ];
    let perf = [
        "# ========",
        "# hostname : box",
        "# os release : 6.1.0",
        "# ========",
        "  perf   260 [000]    43.502831093:   irq_vectors:reschedule_entry: vector=253",
        "  perf   260 [000]    43.502853843:    irq_vectors:reschedule_exit: vector=253",
        "  true   309/310 [001]    43.503000000:  raw_syscalls:sys_exit: NR 3 = -11",
        "  true   309/310 [001]    43.503122231:  exceptions:page_fault_user: address=0x5 ip=0x7f error_code=0x4",
        "  true   309/310 [001]    43.503200000:  ipi:ipi_send_cpumask: cpumask=0,1 callsite=0xff callback=0x0",
        "  true   309/310 [001]    43.503300000:  PERF_RECORD_LOST lost 7",
    ];
    [&ftrace[..], &perf].map(|lines| lines.join("\n").into_bytes()).to_vec()
}

fn original_files() -> Vec<Vec<u8>> {
    let mut small = original::File::new(3);
    small.block(0, 0, 7, "a").entry(5, line::SYSCALL + 1, 0).entry(500_000, line::TSDELTA, 499_995).entry(
        500_000,
        line::SYSCALL + 2,
        0,
    );
    [rich(300), small].iter().map(|f| packed_original(&f.bytes(), f.flags & 0xa0 != 0)).collect()
}

/// Removes the zeros at the ends of blocks. The first byte selects the parts to be put right: bit 0 the checksums, bit
/// 1 the sizes.
fn packed(file: &[u8]) -> Vec<u8> {
    let head = file.windows(4).position(|w| w == file::BLOCKS).unwrap_or(0) + file::SECTION_BYTES;
    let mut out = vec![3];
    out.extend(&file[..head]);
    file[head..].chunks(block::BYTES).for_each(|b| out.extend(without_zeros(b)));
    out
}

/// The file of [`packed`]: a block begins where its magic number is.
pub fn unpacked(packed: &[u8]) -> Vec<u8> {
    let Some((&control, bytes)) = packed.split_first() else { return Vec::new() };
    let mut starts: Vec<usize> = bytes.windows(4).enumerate().filter(|(_, w)| *w == MAGIC).map(|(at, _)| at).collect();
    starts.truncate(BLOCKS_MAX);
    let head = starts.first().copied().unwrap_or(bytes.len());
    let mut out = bytes[..head].to_vec();
    if control & 2 != 0 {
        resize(&mut out, starts.len() as u64);
    }
    if control & 1 != 0 {
        sign_head(&mut out);
    }
    for (n, &start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(bytes.len());
        let words = ((end - start) / 4).clamp(HEADER_WORDS, block::WORDS);
        let mut one = bytes[start..end].to_vec();
        one.resize(block::BYTES, 0);
        if control & 2 != 0 {
            one[CONTENT_BITS..CONTENT_BITS + 8].copy_from_slice(&(words as u64 * 32).to_le_bytes());
        }
        if control & 1 != 0 {
            sign(&mut one);
        }
        out.extend(one);
    }
    out
}

const MAGIC: [u8; 4] = block::MAGIC.to_le_bytes();
/// Byte offset of the content size in a block header.
const CONTENT_BITS: usize = 40;
/// Byte offset of the number of blocks in the file header.
const BLOCKS_AT: usize = 40;

/// Puts the number of blocks into the header and into the last section's.
fn resize(head: &mut [u8], blocks: u64) {
    let last = head.len().saturating_sub(file::SECTION_BYTES);
    if last < file::HEADER_BYTES {
        return;
    }
    head[BLOCKS_AT..BLOCKS_AT + 8].copy_from_slice(&blocks.to_le_bytes());
    let section = Section { tag: file::BLOCKS, crc32: 0, bytes: blocks * block::BYTES as u64, items: blocks };
    head[last..].copy_from_slice(&section.to_bytes());
}

/// Puts the checksums of the header and of the names after it right.
fn sign_head(head: &mut [u8]) {
    let names = file::HEADER_BYTES + file::SECTION_BYTES;
    if let Some(header) = head.get(file::HEADER_BYTES..names).and_then(|h| h.first_chunk()) {
        let bytes = usize::try_from(Section::from_bytes(header).bytes).unwrap_or(usize::MAX);
        if let Some(payload) = head.get(names..names.saturating_add(bytes)) {
            let crc = crc32fast::hash(payload);
            head[file::HEADER_BYTES + 4..file::HEADER_BYTES + 8].copy_from_slice(&crc.to_le_bytes());
        }
    }
    if let Some(header) = head.get_mut(..file::HEADER_BYTES) {
        header[file::CRC_AT..file::CRC_AT + 4].fill(0);
        let crc = crc32fast::hash(header);
        header[file::CRC_AT..file::CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Removes the counters and the zeros at the ends of blocks.
fn packed_original(file: &[u8], counted: bool) -> Vec<u8> {
    let stride = ORIGINAL.0 + if counted { ORIGINAL.1 } else { 0 };
    file.chunks(stride).map(|b| without_zeros(&b[..ORIGINAL.0])).collect::<Vec<_>>().join(SEPARATOR)
}

/// The file of [`packed_original`]. Counters, if the first block announces any, are all the same.
fn unpacked_original(packed: &[u8]) -> Vec<u8> {
    let counted = packed.get(15).is_some_and(|flags| flags & 0xa0 != 0);
    let (mut out, mut rest) = (Vec::new(), Some(packed));
    while let Some(bytes) = rest.filter(|_| out.len() < BLOCKS_MAX * ORIGINAL.0) {
        let at = bytes.windows(SEPARATOR.len()).position(|w| w == SEPARATOR);
        rest = at.map(|at| &bytes[at + SEPARATOR.len()..]);
        let one = &bytes[..at.unwrap_or(bytes.len()).min(ORIGINAL.0)];
        out.extend(one);
        out.resize(out.len() + ORIGINAL.0 - one.len(), 0);
        out.resize(out.len() + if counted { ORIGINAL.1 } else { 0 }, 0x35);
    }
    out
}

fn all_frames() -> Vec<Vec<u8>> {
    let of = |f: &Vec<u8>| [events_framed(&decoded(f)), spans_framed(&build(decoded(f)).0)];
    raw_files().iter().flat_map(of).map(|frames| packed_frames(&frames)).collect()
}

/// Removes the sizes and checksums. The first byte states whether they are to be put right.
fn packed_frames(frames: &[u8]) -> Vec<u8> {
    let (magic, mut rest) = frames.split_at(8);
    let mut out = [&[1], magic].concat();
    while let Some((&[kind, a, b, c, d, ..], behind)) = rest.split_first_chunk::<9>() {
        let (payload, behind) = behind.split_at(u32::from_le_bytes([a, b, c, d]) as usize);
        out.extend([FRAME, &[kind], payload].concat());
        rest = behind;
    }
    out
}

/// The frames of [`packed_frames`]; or any bytes, following a different first byte.
fn unpacked_frames(packed: &[u8]) -> Vec<u8> {
    let Some((1, mut rest)) = packed.split_first() else { return packed.get(1..).unwrap_or_default().to_vec() };
    let next = |rest: &[u8]| rest.windows(FRAME.len()).position(|w| w == FRAME).unwrap_or(rest.len());
    let mut out = rest[..next(rest)].to_vec();
    loop {
        rest = &rest[next(rest)..];
        let Some((&kind, behind)) = rest.get(FRAME.len()..).and_then(<[u8]>::split_first) else { return out };
        let payload = &behind[..next(behind)];
        out.push(kind);
        out.extend((payload.len() as u32).to_le_bytes());
        out.extend(crc32fast::hash(payload).to_le_bytes());
        out.extend(payload);
        rest = behind;
    }
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
    &bytes[..end]
}
