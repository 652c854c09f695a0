// SPDX-License-Identifier: BSD-3-Clause
//! Event text: written text reads back the same, and unreadable lines are counted.

use kutrace_tests::busy;
use postprocess::event::names::{NameId, Names};
use postprocess::event::what::What;
use postprocess::event::write::Writer;
use postprocess::event::{number, BlockLine, Event, Events, Interval, Machine, Meta};
use postprocess::id::{CpuId, Pid};
use postprocess::raw;
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::{build, Span};
use postprocess::time::Time;
use proptest::prelude::*;

fn write(events: &[Event], names: &Names, meta: &Meta) -> Vec<u8> {
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    let block = BlockLine { ts: Time(2_488_582_818), cpu: CpuId::new(2), index: 0 };
    writer.head(5, 5, 1_795_187_640, &[block]).unwrap();
    writer.machines(&meta.machines).unwrap();
    for event in events {
        writer.event(event, names).unwrap();
    }
    writer.finish(meta).unwrap();
    text
}

fn parse(text: &str) -> Events {
    read(&mut text.as_bytes()).unwrap()
}

#[test]
fn columns_are_those_of_the_original() {
    let mut names = Names::default();
    let (write_name, comm) = (names.id("write"), names.id("a_thread_name"));
    let name = Event { ts: Time(-1), what: What::of(number::PID_NAME), arg: 70_000, name: comm, ..Event::default() };
    let (cpu, pid) = (CpuId::new(2), Pid::new(70_000));
    let call = Event {
        ts: Time(5),
        dur: Time(20),
        what: What::of(number::SYSCALL + 1),
        cpu,
        pid,
        arg: 1,
        ret: 65_534,
        ipc: 35,
        ..name
    };
    let text = write(&[name, Event { name: write_name, ..call }], &names, &Meta { flags: 5, ..Meta::default() });
    let expected = "# ## VERSION: 3
# ## FORMAT: 5
# ## EVENTS: ?
# [1] 2026-11-20_15:14:24.885828 cpu 02 flags 05 block 0
# TS DUR EVENT CPU PID RPC ARG0 RETVAL IPC NAME (t and dur multiples of 10ns)
-1 1 50 70000 a_thread_name
5 20 2049 2  70000 0  1 65534 35 write (801)
# ## FLAGS: 5
# ## LOST: 0
# ## EVENTS: 2
";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn what_is_known_of_the_whole_trace_travels_with_the_events() {
    let meta = Meta {
        format: 5,
        base: "2026-11-20_15:14:00".to_string(),
        flags: 0x45,
        lost: 7,
        quality: vec!["block 3 is damaged".to_string()],
        intervals: vec![Interval { cpu: CpuId::new(3), from: Time(-5), to: Time(1 << 50) }],
        unseen: 0,
        counted: vec!["switches: the kernel counted 3, the trace has 3".to_string()],
        machines: vec![Machine {
            name: "a\"b".into(),
            first_cpu: 2,
            clock: "b = a".into(),
            within: Some(Time(7)),
            ..Machine::default()
        }],
        boot_id: "00010203-0405-0607-0809-0a0b0c0d0e0f".to_string(),
        monotonic: Some(-5),
        recorder: "perf".to_string(),
    };
    let text = write(&[], &Names::default(), &meta);
    assert_eq!(read(&mut &text[..]).unwrap().meta, meta);
}

#[test]
fn unsorted_text_of_the_original_is_put_in_order() {
    let events = parse("20 0 512 0  7 0  7 0 0 a.7 (200)\n-1 1 34 7 a\n10 0 1516 0  7 0  0 0 0 timer (5ec)\n");
    assert_eq!(events.events.iter().map(|e| e.ts.0).collect::<Vec<_>>(), [-1, 10, 20]);
    assert_eq!(events.meta.quality.len(), 0);
}

#[test]
fn text_of_ours_that_somebody_has_sorted_otherwise_is_put_in_order() {
    let line = |ts: u32| format!("{ts} 0 1516 0  7 0  0 0 0 timer (5ec)\n");
    let text = format!("# ## FORMAT: 5\n{}{}{}", line(10), line(30), line(20));
    let events = parse(&text);
    assert_eq!(events.events.iter().map(|e| e.ts.0).collect::<Vec<_>>(), [10, 20, 30]);
    assert_eq!(events.meta.quality, Vec::<String>::new());
}

#[test]
fn text_of_ours_that_gets_out_of_order_is_held_and_said_to_be() {
    let line = |ts: u32| format!("{ts} 0 1516 0  7 0  0 0 0 timer (5ec)\n");
    let text = (0..10_000).map(line).chain([line(5)]);
    let events = parse(&["# ## FORMAT: 5\n".to_string()].into_iter().chain(text).collect::<String>());
    assert_eq!(events.events.last().unwrap().ts, Time(9_999));
    assert_eq!(events.meta.quality, ["1 event is out of order; its time is clamped"]);
}

#[test]
fn a_format_to_come_is_said_to_be_one() {
    let events = parse("# ## FORMAT: 99999\n10 0 1516 0  7 0  0 0 0 timer (5ec)\n");
    assert_eq!(events.meta.quality, ["the events are of format 99999, newer than this program"]);
}

#[test]
fn lines_that_are_no_events_are_counted() {
    let events =
        parse("# free comment\n\n10 0 1516 0  7 0  0 0 0 timer (5ec)\nsomething else\n10 0 1516 0  7\n1 2 3\n");
    assert_eq!(events.events.len(), 1);
    assert_eq!(events.meta.quality, ["3 lines of the event text could not be read; the first is line 4"]);
}

#[test]
fn a_text_with_lines_missing_or_cut_is_said_to_be() {
    let mut names = Names::default();
    let name = names.id("timer");
    let event =
        |ts| Event { ts: Time(ts), what: What::of(number::IRQ + 0xec), pid: Pid::new(7), name, ..Event::default() };
    let text = String::from_utf8(write(&[event(1), event(2), event(30)], &names, &Meta::default())).unwrap();
    let whole = parse(&text);
    assert_eq!((whole.events.len(), whole.meta.quality.len()), (3, 0));
    let without = |line: &str| text.replacen(line, "", 1);
    for (line, said) in
        [("2 0 1516 0  7 0  0 0 0 timer (5ec)\n", "2 of 3 lines"), ("# ## EVENTS: 3\n", "ends before its end")]
    {
        let found = parse(&without(line)).meta.quality;
        assert!(matches!(&found[..], [one] if one.contains(said)), "{line}: {found:?}");
    }
    let doubled = parse(&text.replacen("1 0 1516", "1 0 1516 0  7 0  0 0 0 timer (5ec)\n1 0 1516", 1));
    assert_eq!(doubled.meta.quality, ["the event text has 4 of 3 lines of events"]);
    // Some lines before the events are needed to know that they are counted.
    let body = text.find("# TS").unwrap();
    for cut in body..text.len() - 1 {
        let events = parse(&text[..cut]);
        let named = events.events.iter().all(|e| events.names.text(e.name) == "timer");
        assert!(named && !events.meta.quality.is_empty(), "{cut}: {:?}", events.events);
    }
}

#[test]
fn the_intervals_of_a_cpu_are_one() {
    let events = parse("# ## CPU: 1 50 70\n# ## CPU: 0 5 6\n# ## CPU: 1 20 60\n# ## CPU: 1 60 70\n");
    let [one, zero] = [(1, 20, 70), (0, 5, 6)].map(|(cpu, from, to)| Interval {
        cpu: CpuId::new(cpu),
        from: Time(from),
        to: Time(to),
    });
    assert_eq!((events.meta.intervals, events.meta.quality.len()), (vec![one, zero], 0));
}

#[test]
fn numbers_that_cannot_be_are_no_others() {
    for line in [
        "10 0 2049 0  4294967297 0  1 0 0 write (801)",
        "10 -1 2049 0  7 0  1 0 0 write (801)",
        "10 0 2049 0  -1 0  1 0 0 write (801)",
        "10 0 2049 0  7 4294967297  1 0 0 write (801)",
        "10 0 2049 0  7 0  4294967296 0 0 write (801)",
        "10 0 2561 0  7 0  0 -2147483649 0 /write (a01)",
        "10 0 2049 4294967296  7 0  1 0 0 write (801)",
        "10 0 2049 0  7 0  1 0 256 write (801)",
        "10 1 34 4294967296 name",
        "10 1 295 7 70000/futex",
        "10 1 296 7 many",
        "10 1 297 7 kernels",
        "10 1 298 7 online",
        "10 1 299 7 -1",
        "10 1 301 7 4294967296",
    ] {
        let events = parse(line);
        assert_eq!((events.events.len(), events.meta.quality.len()), (0, 1), "{line}");
    }
    let marks = parse("10 1 533 0  7 0  -2 0 0 tx (215)\n10 1 533 0  7 0  4294967295 0 0 tx (215)\n");
    assert_eq!(marks.events.iter().map(|e| e.arg as i32).collect::<Vec<_>>(), [-2, -1]);
}

#[test]
fn an_interval_that_cannot_be_is_counted() {
    let events =
        parse("# ## CPU: 1 5000000   0 0  7 0 0 a.7 (200)\n# ## CPU: 1\n# ## CPU: 8192 0 1\n# ## CPU: 1 9 8\n");
    assert_eq!(events.meta.quality, ["4 lines of the event text could not be read; the first is line 1"]);
    assert_eq!(events.meta.intervals, []);
}

fn any_event() -> impl Strategy<Value = Event> {
    let numbers = (0i64..1 << 50, 0i64..1 << 40, number::SWITCH..number::NUMBERS, 0u32..100, 0u32..1 << 31);
    (numbers, (any::<u32>(), any::<u32>(), any::<i32>(), any::<u8>(), 0u32..4)).prop_map(
        |((ts, dur, event, cpu, pid), (rpc, arg, ret, ipc, name))| Event {
            ts: Time(ts),
            dur: Time(dur),
            what: What::of(event),
            cpu: CpuId::new(cpu),
            pid: Pid::new(pid),
            rpc,
            arg,
            ret,
            ipc,
            name: NameId(name),
        },
    )
}

proptest! {
    #[test]
    fn events_survive_the_text(mut events in proptest::collection::vec(any_event(), 0..50)) {
        let mut names = Names::default();
        for name in ["read", "-sched-", "a.b/c:d.7"] {
            names.id(name);
        }
        events.iter_mut().for_each(|e| e.name = e.name.max(NameId(1)));
        events.sort_by_key(|e| e.ts);
        let text = write(&events, &names, &Meta::default());
        let back = read(&mut &text[..]).unwrap();
        let named = |e: &Event, names: &Names| (Event { name: NameId::EMPTY, ..*e }, names.text(e.name).to_string());
        let sent: Vec<_> = events.iter().map(|e| named(e, &names)).collect();
        let got: Vec<_> = back.events.iter().map(|e| named(e, &back.names)).collect();
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn no_text_is_too_strange(text in "[0-9 \n#()a-z.:-]{0,300}") {
        parse(&text);
    }
}

/// Spans with their names, and the facts about the trace.
fn spans(events: Events) -> (Vec<(Span, String)>, postprocess::span::Meta) {
    let (all, _) = build(events);
    let named = |s: &Span| (Span { name: NameId::EMPTY, ..*s }, all.names[s.name].clone());
    (all.spans.iter().map(named).collect(), all.meta)
}

#[test]
fn spans_are_the_same_with_the_text_between_the_stages() {
    let mut trace = busy(3, 20_000, 9);
    trace.cpu(1).lose(5);
    let bytes = trace.bytes();
    let direct = source::decode(&bytes).unwrap();
    let file = raw::parse(&bytes).unwrap();
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    writer.head(5, direct.meta.flags, file.clock.base, &file.block_lines()).unwrap();
    direct.events.iter().for_each(|e| writer.event(e, &direct.names).unwrap());
    writer.finish(&direct.meta).unwrap();
    let through = read(&mut &text[..]).unwrap();
    assert_eq!(through.meta, direct.meta);
    assert!(spans(through) == spans(direct));
}
