// SPDX-License-Identifier: BSD-3-Clause
//! Causes of a slow request: they add up to its time for any trace, and the planted one comes first.

mod planted;
mod found;
mod cpus;
mod waits;
mod messages;
mod across;
mod usual;
mod paces;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kutrace_tests::busy;
use postprocess::direct::spans_of_raw;
use postprocess::event::number::{level, Level};
use postprocess::id::Pid;
use postprocess::sink;
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::dense::Dense;
use postprocess::span::limit::SpanLimit;
use postprocess::span::{build, Spans};
use postprocess::time::Time;
use postprocess::why::cause::{Causes, Kind};
use postprocess::why::check::check_requests;
use postprocess::why::request::{find, Ask, Request};
use postprocess::why::sweep::{sweep, sweep_together, Sum};
use postprocess::why::{explain, Question, Timeline};
use serde_json::Value;

use crate::golden::assert_golden;
use crate::schema::wrong;
use crate::upstream::reference;

pub use paces::{at_frequency, counted};
use planted::question;
pub use planted::{holder_in_fsync, made, taking_turns};

pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    assert!(files.len() > 5);
    files
}

pub fn spans(bytes: &[u8]) -> Spans {
    spans_of_raw(bytes, SpanLimit::new(usize::MAX)).unwrap().0
}

pub fn sample(name: &str) -> Spans {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../samples/{name}.trace"));
    spans(&fs::read(path).unwrap())
}

/// The spans of the events in a file that shows a rule.
fn rule(path: &Path) -> Spans {
    let case = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> =
        case.lines().take_while(|line| *line != "pending").filter(|line| !line.starts_with(' ')).collect();
    build(read(&mut lines.join("\n").as_bytes()).unwrap()).0
}

/// Checks all requests that can be asked for of a trace, and the whole time of each of its threads; returns how many.
fn checked(spans: &Spans) -> usize {
    let timeline = Timeline::new(spans);
    let name = |s: &postprocess::span::Span| spans.names[s.name].clone();
    let executed = || spans.spans.iter().filter(|s| s.is_execution());
    let called = executed().filter(|s| matches!(level(s.event() as u32), Level::Syscall | Level::Trap)).map(name);
    let programs = executed().filter(|s| s.is_own_code()).filter_map(|s| Some(name(s).rsplit_once('.')?.0.to_string()));
    let of_programs = programs
        .collect::<BTreeSet<_>>()
        .into_iter()
        .flat_map(|p| [Ask::Run(p.clone()), Ask::Client(p.clone()), Ask::Serve(p)]);
    let asks = called.collect::<BTreeSet<_>>().into_iter().map(Ask::Call).chain(of_programs);
    let found = asks.chain([Ask::Best, Ask::Rpc(None)]).filter_map(|ask| find(&timeline, &ask).ok());
    let (start, end) = timeline.extent;
    let all = timeline.threads().map(|(pid, _)| vec![Request { pid, start, end }]);
    let mut requests = 0;
    for mut some in found.flat_map(|found| [found.requests, found.unfinished]).chain(all) {
        some.sort_unstable_by_key(|r| (r.pid.number(), r.start, r.end));
        assert_eq!(check_requests(&timeline, &some), [""; 0]);
        requests += some.len();
    }
    requests
}

#[test]
fn the_causes_of_every_request_add_up_to_its_time() {
    let shown: usize = files("golden/rules", "txt").iter().map(|path| checked(&rule(path))).sum();
    assert!(shown > 200, "{shown}");
    let recorded = files("../samples", "trace").into_iter().map(|path| fs::read(path).unwrap());
    let theirs = ["hw2019.trace", "pipes.trace"].into_iter().filter_map(reference);
    let raw = recorded.chain(theirs).chain([busy(4, 30_000, 7).bytes()]);
    let requests: usize = raw.map(|bytes| checked(&spans(&bytes))).sum();
    assert!(requests > 5_000, "{requests}");
}

#[test]
fn the_check_finds_a_request_that_is_not_divided_as_it_is_alone() {
    let spans = sample("redis");
    let timeline = Timeline::new(&spans);
    let mut requests = find(&timeline, &Ask::Best).unwrap().requests;
    requests.sort_unstable_by_key(|r| (r.pid.number(), r.start, r.end));
    assert_eq!(check_requests(&timeline, &requests), [""; 0]);
    // One that ends before it starts cannot be divided.
    let Request { start, end, .. } = requests[0];
    requests[0] = Request { start: end, end: start, ..requests[0] };
    assert_eq!(check_requests(&timeline, &requests).len(), 1);
}

#[test]
fn each_sample_is_explained_by_the_best_that_it_offers() {
    for path in files("../samples", "trace") {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let why = explain(&Timeline::new(&sample(stem)), &question(Ask::Best)).unwrap();
        assert_eq!(why.remainder, Time::ZERO);
        assert_golden(&format!("why/{stem}.txt"), &why.text());
    }
}

#[test]
fn spans_that_were_written_and_read_have_the_same_causes() {
    for name in ["redis", "convoy"] {
        let spans = sample(name);
        let mut text = Vec::new();
        sink::json::write(&spans, &mut text).unwrap();
        let read = source::open(&text[..]).expect("memory can be read").spans(SpanLimit::new(usize::MAX)).unwrap();
        let [direct, read] = [&spans, &read].map(|s| explain(&Timeline::new(s), &question(Ask::Best)).unwrap());
        assert_eq!(direct, read, "{name}");
    }
}

#[test]
fn spans_in_little_memory_have_the_same_causes() {
    for path in files("../samples", "trace") {
        let (bytes, mut dense) = (fs::read(&path).unwrap(), Dense::default());
        let (whole, (about, _)) = (spans(&bytes), spans_of_raw(&bytes, &mut dense).unwrap());
        assert_eq!((dense.len(), about.spans.len()), (whole.spans.len(), 0));
        let [of_whole, of_dense] = [Timeline::new(&whole), Timeline::dense(&about, &dense)]
            .map(|timeline| explain(&timeline, &question(Ask::Best)).unwrap());
        assert_eq!(of_whole, of_dense, "{}", path.display());
    }
}

#[test]
fn several_threads_add_up_what_one_does() {
    let spans = sample("redis");
    let timeline = Timeline::new(&spans);
    let (begin, end) = timeline.extent;
    let of_thread = |pid: Pid| {
        let step = (end - begin) / 2_000;
        (0..2_000).map(move |n| begin + step * n).map(move |start| Request {
            pid,
            start,
            end: (start + step * 9).min(end),
        })
    };
    let mut requests: Vec<Request> = timeline.threads().flat_map(|(pid, _)| of_thread(pid)).collect();
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));
    assert!(requests.len() > 20_000, "{}", requests.len());
    let (mut alone, mut causes_alone) = (Vec::new(), Causes::default());
    sweep(&timeline, &mut causes_alone, &requests, |_, n, sums| alone.push((n, sums.to_vec())));
    let (mut together, mut causes) = (Vec::new(), Causes::default());
    let each = |own: &mut Vec<_>, _: &Causes, n: usize, sums: &[(u32, Sum)]| own.push((n, sums.to_vec()));
    sweep_together(&timeline, &mut causes, &requests, Vec::new, each, |own, numbers| {
        let known = |(cause, sum): (u32, Sum)| (numbers[cause as usize], sum);
        together.extend(own.into_iter().map(|(n, sums)| (n, sums.into_iter().map(known).collect::<Vec<_>>())));
    });
    assert_eq!(causes.count(), causes_alone.count());
    for cause in 0..causes.count() as u32 {
        assert_eq!(causes.text(cause, &timeline, None), causes_alone.text(cause, &timeline, None));
    }
    for list in [&mut alone, &mut together] {
        list.iter_mut().for_each(|(_, sums)| {
            sums.retain(|(_, sum)| sum.time > Time::ZERO);
            sums.sort_unstable_by_key(|(cause, _)| *cause);
        });
    }
    assert!(alone == together);
}

/// All kinds of causes, in their order.
fn kinds() -> impl Iterator<Item = Kind> {
    std::iter::successors(Some(Kind::User), |kind| match kind {
        Kind::User => Some(Kind::Kernel),
        Kind::Kernel => Some(Kind::Interrupt),
        Kind::Interrupt => Some(Kind::Queue),
        Kind::Queue => Some(Kind::Idle),
        Kind::Idle => Some(Kind::Quota),
        Kind::Quota => Some(Kind::Wait),
        Kind::Wait => Some(Kind::Network),
        Kind::Network => Some(Kind::Resent),
        Kind::Resent => Some(Kind::Stalled),
        Kind::Stalled => Some(Kind::Offline),
        Kind::Offline => Some(Kind::Lost),
        Kind::Lost => Some(Kind::Unknown),
        Kind::Unknown => None,
    })
}

/// The lists of values of all fields `kind` of a schema.
fn kinds_of(schema: &Value) -> Vec<&Value> {
    let its = schema.get("kind").and_then(|kind| kind.get("enum"));
    let inside: Vec<&Value> = match schema {
        Value::Object(map) => map.values().collect(),
        Value::Array(list) => list.iter().collect(),
        _ => Vec::new(),
    };
    its.into_iter().chain(inside.into_iter().flat_map(kinds_of)).collect()
}

#[test]
fn the_schemas_have_the_kinds_of_causes_that_there_are() {
    let all = serde_json::to_value(kinds().collect::<Vec<_>>()).unwrap();
    for (schema, count) in
        [(include_str!("../../docs/why.schema.json"), 2), (include_str!("../../docs/diff.schema.json"), 1)]
    {
        let schema: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(kinds_of(&schema), vec![&all; count]);
    }
}

#[test]
fn the_json_is_as_its_schema_says() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/why.schema.json")).unwrap();
    let mut kinds = BTreeSet::new();
    for path in files("../samples", "trace") {
        let spans = spans(&fs::read(path).unwrap());
        for slow in [0.01, 1.0] {
            let why = explain(&Timeline::new(&spans), &Question { slow, ..question(Ask::Best) }).unwrap();
            let value = serde_json::to_value(&why).unwrap();
            assert_eq!(wrong(&schema, &value), [""; 0]);
            kinds.extend(why.causes.iter().map(|cause| format!("{:?}", cause.kind)));
        }
    }
    assert!(kinds.len() > 5, "{kinds:?}");
    let bad = serde_json::json!({ "count": "many", "more": 1 });
    assert!(wrong(&schema, &bad).len() > 5);
}
