// SPDX-License-Identifier: BSD-3-Clause
//! Traces of hours, and pids of 22 bits: times and threads are right to the end, in text, spans, JSON and page.

use std::num::NonZeroU32;

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, RUNNABLE, SYSCALL_RETURN};
use kutrace_format::file::{FLAG_WRAP, FLAG_WRAPPED};
use kutrace_tests::number::{of_thread, on_cpu};
use kutrace_tests::TraceBuilder;
use postprocess::event::names::NameId;
use postprocess::event::number::TRAP;
use postprocess::event::write::Writer;
use postprocess::event::{Events, Interval};
use postprocess::id::{CpuId, Pid};
use postprocess::raw;
use postprocess::sink;
use postprocess::sink::page::{lift, render};
use postprocess::source::events::read;
use postprocess::source::{self, Trace as _};
use postprocess::span::coarsen::coarsen;
use postprocess::span::{build, check, Span, Spans};
use postprocess::time::Time;

/// Counts and units of an hour.
const HOUR: u64 = 3_600 * 100_000_000;
/// Time of the sleeper's wakeup.
const WOKEN: u64 = 29 * HOUR + 20;
/// The greatest there is.
const SLEEPER: u32 = 4_194_303;
/// Interrupts that come less than a period of the entries' 20 bits after each other.
const TICKS: u64 = 3_600;

/// CPU 0's thread sleeps for 29 hours; CPU 1's reads for 28 of them and then wakes it.
fn hours() -> TraceBuilder {
    let mut trace = TraceBuilder::new(2, 30 * HOUR);
    let cpu = trace.cpu(0).running(SLEEPER, "sleeper", None).call(100, 202, 1).switch(150, 0, "swapper");
    cpu.switch(WOKEN + 40, SLEEPER, "sleeper").small_return(WOKEN + 80, 0);
    let cpu = trace.cpu(1).running(9, "waker", None);
    for tick in 1..=TICKS {
        cpu.entry(tick * 1_000_000, IRQ + 0xec, &[]).entry(tick * 1_000_000 + 50, IRQ_RETURN + 0xec, &[]);
    }
    cpu.call(HOUR, 0, 3).entry(29 * HOUR, SYSCALL_RETURN, &[1]).call(29 * HOUR + 10, 202, 1);
    cpu.entry(WOKEN, RUNNABLE, &[SLEEPER]).small_return(WOKEN + 10, 1);
    trace
}

/// The text of a raw file.
fn text(bytes: &[u8]) -> String {
    let trace = raw::parse(bytes).unwrap();
    let (head, Events { names, events, meta }) = (trace.head(), source::decode(bytes).unwrap());
    let mut text = Vec::new();
    let mut out = Writer::new(&mut text);
    out.head(head.format, head.flags, head.base, &head.blocks).unwrap();
    events.iter().for_each(|event| out.event(event, &names).unwrap());
    out.finish(&meta).unwrap();
    String::from_utf8(text).unwrap()
}

/// The spans of a text, which must be sound.
fn spans(text: &str) -> Spans {
    let events = read(text.as_bytes()).unwrap();
    let intervals = events.meta.intervals.clone();
    let (spans, tally) = build(events);
    assert_eq!(check(&spans, &intervals, &tally), [""; 0]);
    assert_eq!((tally.repairs, tally.late, tally.unknown), (0, 0, 0));
    spans
}

/// Start, duration and thread of the only span of this name that is longer than a second or comes after the wakeup.
fn only(spans: &Spans, name: &str) -> (u64, u64, Option<Pid>) {
    let long = |s: &&Span| spans.names[s.name] == name && (s.dur > Time(100_000_000) || s.start.0 as u64 >= WOKEN);
    let found: Vec<&Span> = spans.spans.iter().filter(long).collect();
    let [one] = found[..] else { panic!("{name}: {found:?}") };
    (one.start.0 as u64, one.dur.0 as u64, one.pid)
}

#[test]
fn times_and_threads_are_right_after_29_hours() {
    let text = text(&hours().bytes());
    let end = WOKEN + 80;
    assert!(
        text.contains(&format!("\n{end} 0 2762 0  {SLEEPER} 0  0 0 0 /futex (aca)\n")),
        "{}",
        &text[text.len() - 900..]
    );
    assert!(text.contains(&format!("\n{} 0 1516 1  9 0  0 0 0 local_timer (5ec)\n", TICKS * 1_000_000)));
    let spans = spans(&text);
    let sleeper = of_thread(SLEEPER);
    assert_eq!(only(&spans, "read"), (HOUR, 28 * HOUR, of_thread(9)));
    assert_eq!(only(&spans, "wait_lock"), (170, WOKEN - 170, sleeper));
    assert_eq!(only(&spans, "wait_idle"), (WOKEN, 60, sleeper));
    assert_eq!(only(&spans, &format!("sleeper.{SLEEPER}")), (end, 30 * HOUR - end, sleeper));
}

#[test]
fn json_and_page_give_the_spans_of_hours_back() {
    let spans = spans(&text(&hours().bytes()));
    let mut lines = Vec::new();
    sink::json::write(&spans, &mut lines).unwrap();
    let line = format!("\n[104400.00000020, 0.00000060, -1, {SLEEPER}, 0, 776, 0, 0, 0, \"wait_idle\"],\n");
    assert!(String::from_utf8_lossy(&lines).contains(&line));
    let (mut page, spelled) = (Vec::new(), |all: &Spans| -> Vec<(Span, String)> {
        all.spans.iter().map(|s| (Span { name: NameId::EMPTY, ..*s }, all.names[s.name].clone())).collect()
    });
    render(&spans, &mut page).unwrap();
    for again in [source::json::read(&mut &lines[..]).unwrap(), lift(std::str::from_utf8(&page).unwrap()).unwrap()] {
        assert!(spelled(&again) == spelled(&spans));
    }
}

#[test]
fn coarse_spans_of_hours_cover_the_same_time() {
    let mut spans = spans(&text(&hours().bytes()));
    coarsen(&mut spans, NonZeroU32::MAX);
    let of = |cpu: u32| {
        spans
            .spans
            .iter()
            .filter(move |s| s.cpu == on_cpu(cpu) && s.event() >= TRAP as i32)
            .map(|s| s.dur.0 as u64)
            .sum()
    };
    let times: [u64; 2] = [0, 1].map(of);
    assert_eq!(times, [30 * HOUR; 2]);
}

#[test]
fn what_a_flight_recorder_keeps_after_a_day_has_its_times() {
    let mut trace = TraceBuilder::new(1, 30 * HOUR);
    trace.header.flags = FLAG_WRAP | FLAG_WRAPPED;
    let cpu = trace.cpu(0).running(7, "a", None).folded(100, 39, 0, 5, 7).folded(29 * HOUR, 39, 0, 5, 7);
    cpu.overwritten().folded(29 * HOUR + 1_000, 39, 0, 5, 7).next_block().folded(29 * HOUR + 2_000, 39, 0, 5, 7);
    let text = text(&trace.bytes());
    assert!(text.contains("\n# [1] 2026-11-21_20:14:00.000010 cpu 00"), "{text}");
    assert!(text.contains(&format!("\n{} 5 2087 0  7 0  0 7 0 getpid (827)\n", 29 * HOUR + 2_000)), "{text}");
    let (from, to) = ((29 * HOUR) as i64, (30 * HOUR) as i64);
    assert_eq!(
        read(text.as_bytes()).unwrap().meta.intervals,
        [Interval { cpu: CpuId::new(0), from: Time(from), to: Time(to) }]
    );
    assert_eq!(spans(&text).spans.iter().map(|s| s.start.0).min(), Some(from));
}
