// SPDX-License-Identifier: BSD-3-Clause
//! The file states the limits of its source, and so does every stage and tool after it. For their effect on rules see
//! `tests/golden/rules/unseen_*.txt`.

use kutrace_format::abi::event::{TRAP, TRAP_RETURN};
use kutrace_format::capability::{Capability, Unseen};
use kutrace_tests::original::rich;
use kutrace_tests::{busy, TraceBuilder};
use postprocess::direct::{spans_of_raw, summary_of_raw};
use postprocess::event::write::Writer;
use postprocess::event::Events;
use postprocess::frame;
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::sink::summary::{By, Summary};
use postprocess::sink::{self, page};
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::limit::SpanLimit;
use postprocess::span::{build, Spans};

use crate::schema::wrong;

/// A trace whose source lacks these.
fn lacking(unseen: Unseen) -> Vec<u8> {
    let mut trace = busy(2, 500, 4);
    trace.header.unseen = unseen;
    trace.bytes()
}

fn only(capability: Capability) -> Unseen {
    Unseen::of(&[capability])
}

/// The trace's event lines.
fn text(bytes: &[u8]) -> Vec<u8> {
    let (head, Events { meta, names, events }) = (source::trace(bytes).unwrap().head(), source::decode(bytes).unwrap());
    let mut text = Vec::new();
    let mut out = Writer::new(&mut text);
    out.head(head.format, head.flags, head.base, &head.blocks).unwrap();
    out.unseen(head.unseen).unwrap();
    events.iter().for_each(|event| out.event(event, &names).unwrap());
    out.finish(&meta).unwrap();
    text
}

/// The trace's events as frames.
fn frames(bytes: &[u8]) -> Vec<u8> {
    let Events { meta, names, events } = source::decode(bytes).unwrap();
    let mut frames = Vec::new();
    let mut out = frame::Writer::new(&mut frames).unwrap();
    out.about(&meta).unwrap();
    events.iter().for_each(|event| out.row(event, names.since(0)).unwrap());
    out.finish(&meta, names.since(0)).unwrap();
    frames
}

fn as_json(spans: &Spans) -> Vec<u8> {
    let mut text = Vec::new();
    let mut out = sink::json::Writer::new(&spans.meta, &spans.names, &mut text).unwrap();
    spans.spans.iter().for_each(|span| out.span(span).unwrap());
    out.finish().unwrap();
    text
}

fn summary(bytes: &[u8]) -> Summary {
    summary_of_raw(bytes, 0).unwrap()
}

#[test]
fn what_a_source_lacks_is_said_by_every_reader() {
    for &capability in Capability::ALL {
        let bytes = lacking(only(capability));
        let said = capability.unseen();
        let (spans, tally) = spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap();
        assert_eq!(spans.meta.unseen, [said]);
        for carried in [text(&bytes), frames(&bytes)] {
            let events = read(&carried[..]).unwrap();
            assert_eq!((events.meta.unseen(), &events.meta.quality[..]), (only(capability), &[][..]));
            let (again, of_them) = build(events);
            assert_eq!((&again.meta, of_them), (&spans.meta, tally), "{capability:?}");
            assert_eq!(again.spans.len(), spans.spans.len());
        }
        assert_eq!(source::json::read(&mut &as_json(&spans)[..]).unwrap().meta.unseen, spans.meta.unseen);
        let mut page = Vec::new();
        page::render(&spans, &mut page).unwrap();
        assert_eq!(page::lift(std::str::from_utf8(&page).unwrap()).unwrap().meta.unseen, [said]);
        let found = judge(&bytes).unwrap();
        let cannot = |line: &str| line == format!("info  cannot show {said}");
        assert_eq!(found.iter().filter(|finding| cannot(&finding.to_string())).count(), 1, "{found:?}");
        assert!(summary(&bytes).text(3, By::Program).lines().any(|line| line == format!("cannot show {said}")));
        assert!(summary(&bytes).json(3).unwrap().contains(&format!("\"unseen\": [\n    \"{said}\"\n  ]")));
    }
}

#[test]
fn what_sees_everything_says_nothing() {
    let bytes = lacking(Unseen::default());
    assert!(!String::from_utf8(text(&bytes)).unwrap().contains("UNSEEN"));
    let spans = spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap().0;
    assert!(spans.meta.unseen.is_empty() && !String::from_utf8(as_json(&spans)).unwrap().contains("unseen"));
    assert!(!judge(&bytes).unwrap().iter().any(|finding| finding.text.contains("cannot show")));
    assert!(!summary(&bytes).text(3, By::Program).contains("cannot show"));
}

#[test]
fn the_original_lacks_what_its_format_never_has() {
    let bytes = rich(300).bytes();
    let events = source::decode(&bytes).unwrap();
    assert_eq!((events.meta.unseen, events.meta.unseen()), (0, Unseen::ORIGINAL));
    let (spans, _) = build(events);
    assert!(Unseen::ORIGINAL.texts().eq(spans.meta.unseen.iter().map(String::as_str)));
    assert!(!Unseen::ORIGINAL.has(Capability::Wakeups) && Unseen::ORIGINAL.has(Capability::Returns));
    assert_eq!(source::json::read(&mut &as_json(&spans)[..]).unwrap().meta.unseen, spans.meta.unseen);
}

#[test]
fn values_are_as_wide_as_the_source_has_them() {
    for (unseen, bits) in [(Unseen::default(), 32), (only(Capability::Values), 16)] {
        assert_eq!(spans_of_raw(&lacking(unseen), SpanLimit::new(usize::MAX)).unwrap().0.meta.value_bits, bits);
    }
}

#[test]
fn repairs_are_no_loss_where_ends_are_not_seen() {
    for (unseen, expected) in [(Unseen::default(), Verdict::Incomplete), (only(Capability::Returns), Verdict::Pass)] {
        let mut trace = TraceBuilder::new(1, 1_000);
        trace.header.unseen = unseen;
        let cpu = trace.cpu(0).running(7, "prog", None).folded(20, 39, 0, 5, 7);
        cpu.entry(80, kutrace_format::abi::event::IRQ_RETURN + 0xec, &[]);
        assert_eq!(verdict(&judge(&trace.bytes()).unwrap()), expected);
    }
}

#[test]
fn what_is_not_known_to_be_missing_is_said_too() {
    let young = Unseen(1 << 40 | only(Capability::Wakeups).0);
    let found = judge(&lacking(young)).unwrap();
    assert_eq!(verdict(&found), Verdict::Incomplete);
    let said = "the recorder could not see kinds of facts that this program does not know (0x10000000000)";
    assert!(found.iter().any(|finding| finding.text == said), "{found:?}");
    let line = "# ## VERSION: 3\n# ## FORMAT: 5\n# ## UNSEEN: dreams\n";
    let events = read(line.as_bytes()).unwrap();
    assert_eq!(events.meta.quality, ["the trace cannot show dreams, which this program does not know"]);
}

#[test]
fn the_document_lists_every_capability() {
    let document = include_str!("../../docs/format.md");
    for &capability in Capability::ALL {
        let row = format!("| {} | {capability:?} | {} |", capability as u8, capability.unseen());
        assert!(document.lines().any(|line| line == row), "docs/format.md lacks: {row}");
    }
}

#[test]
fn the_document_says_what_each_source_sees() {
    let document = include_str!("../../docs/hooks.md");
    for &capability in Capability::ALL {
        let tracepoints = match capability {
            _ if Unseen::TRACEPOINTS.has(capability) => "no",
            _ if Unseen::SOME_TRACEPOINTS.has(capability) => "on some",
            _ => "yes",
        };
        let original = if Unseen::ORIGINAL.has(capability) { "no" } else { "yes" };
        let hooks = match capability {
            Capability::Packets | Capability::Steal => "on some",
            _ => "yes",
        };
        let row = format!("| {} | {capability:?} | {hooks} | {tracepoints} | {original} |", capability.unseen());
        assert!(document.lines().any(|line| line == row), "docs/hooks.md lacks: {row}");
    }
}

#[test]
fn what_reads_0_since_the_source_cannot_see_it_is_left_out() {
    let whole = summary(&lacking(Unseen::default()));
    let idle = only(Capability::Idle).and(only(Capability::Losses)).and(only(Capability::Wakeups));
    let part = summary(&lacking(idle));
    let titles =
        |summary: &Summary| summary.text(3, By::Program).lines().find(|l| l.starts_with("CPU ")).unwrap().to_string();
    assert_eq!(
        titles(&whole).split_whitespace().collect::<Vec<_>>(),
        ["CPU", "user", "kernel", "idle", "stalled", "lost"]
    );
    // Idle time exists for any source; but for all it can know, the CPU never stood still and lost nothing.
    assert_eq!(titles(&part).split_whitespace().collect::<Vec<_>>(), ["CPU", "user", "kernel", "idle"]);
    assert!(
        whole.text(3, By::Program).contains(" events, none lost\n") && !part.text(3, By::Program).contains("none lost")
    );
    let keys = |summary: &Summary| -> Vec<String> {
        let value: serde_json::Value = serde_json::from_str(&summary.json(3).unwrap()).unwrap();
        let of = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        [of(&value), of(&value["cpus"][0])].concat()
    };
    let left: Vec<String> = keys(&whole).into_iter().filter(|key| !keys(&part).contains(key)).collect();
    assert_eq!(left, ["lost", "preempted", "running", "woken", "lost", "stalled", "stalls"]);
    let said = |unseen| judge(&lacking(unseen)).unwrap().iter().map(|f| f.text.clone()).collect::<Vec<_>>().join("\n");
    assert!(said(Unseen::default()).contains("% lost; ") && !said(idle).contains("% lost"));
}

#[test]
fn points_have_no_times() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.header.unseen = Unseen::TRACEPOINTS;
    let cpu = trace.cpu(0).running(7, "a", None).folded(10, 39, 0, 5, 7).call(50, 0, 3);
    cpu.entry(60, TRAP + 14, &[]).entry(60, TRAP_RETURN + 14, &[]).small_return(80, 1);
    let only_points = summary(&trace.bytes());
    assert!(only_points
        .text(3, By::Program)
        .contains("         -         -         1         -         -         -  page_fault\n"));
    trace.cpu(0).entry(100, TRAP + 14, &[]).entry(130, TRAP_RETURN + 14, &[]);
    let both = summary(&trace.bytes());
    assert!(both
        .text(3, By::Program)
        .contains("    300 ns     3.0 %         2    300 ns    300 ns    300 ns  page_fault\n"));
    let schema: serde_json::Value = serde_json::from_str(include_str!("../../docs/summary.schema.json")).unwrap();
    for (summary, times) in [(only_points, false), (both, true)] {
        let value: serde_json::Value = serde_json::from_str(&summary.json(3).unwrap()).unwrap();
        assert_eq!(wrong(&schema, &value), [""; 0]);
        let fault = &value["faults"]["first"][0];
        assert_eq!((fault["points"].as_u64(), fault.get("total").is_some()), (Some(1), times), "{fault}");
    }
}
