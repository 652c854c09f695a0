// SPDX-License-Identifier: BSD-3-Clause
//! A trace for Perfetto, read back: slices by track, the threads of each CPU, and the number of each item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use postprocess::direct::spans_of_raw;
use postprocess::sink::perfetto::{message, Drawing};
use postprocess::sink::track::{LeftOut, AWAKE};
use postprocess::source::events::read;
use postprocess::span::limit::SpanLimit;
use postprocess::span::{build, Spans};
use prost::Message;

/// The samples that are drawn.
pub const SAMPLES: [&str; 4] = ["pipeline", "convoy", "disk", "redis"];

/// The spans of a sample.
///
/// # Panics
/// If there is no such sample.
pub fn sample(name: &str) -> Spans {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name).with_extension("trace");
    spans_of_raw(&std::fs::read(path).expect(name), SpanLimit::new(usize::MAX)).expect(name).0
}

/// The spans of a trace with one of everything that is drawn, or two: `made.txt` has its events.
///
/// # Panics
/// Never.
pub fn made() -> Spans {
    build(read(&include_bytes!("made.txt")[..]).expect("memory can be read")).0
}

/// Spans as a trace for Perfetto.
///
/// # Panics
/// If memory cannot be written to.
pub fn drawn(spans: &Spans) -> (Vec<u8>, LeftOut) {
    let own = spans.spans.iter().filter(|span| span.is_own_code());
    let threads = own.filter_map(|span| Some((span.thread()?, span.name))).collect();
    let mut drawing = Drawing::new(&spans.meta, &spans.names, &threads, Vec::new()).expect("memory");
    spans.spans.iter().for_each(|span| drawing.span(span).expect("memory"));
    drawing.finish().expect("memory")
}

/// A slice; times in ns after the trace's minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its name.
    pub name: String,
    /// Its start.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// Its return value.
    pub ret: Option<i64>,
}

/// Contents of a trace for Perfetto.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// Slices by start, the outer first: of threads (true) and CPUs.
    pub slices: BTreeMap<(bool, u32), Vec<Slice>>,
    /// From when each CPU runs which thread.
    runs: BTreeMap<u32, Vec<(i64, u32)>>,
    /// Number of events of each name outside of threads, by kind.
    pub beside: BTreeMap<String, BTreeMap<String, usize>>,
    /// Tracks of a kind outside of threads.
    pub lanes: BTreeMap<String, usize>,
    /// Instants that are no end of a flow, by name.
    pub instants: BTreeMap<String, usize>,
    /// Flows with both ends.
    pub flows: usize,
    /// Wakeups.
    pub wakings: usize,
    /// Low-power states entered.
    pub idles: usize,
    /// Frequencies.
    pub frequencies: usize,
    /// Programs' counters: process, name, time and value.
    pub values: Vec<(u32, String, i64, i64)>,
    /// Threads that lost their CPU: the thread, the time, and its state.
    pub states: Vec<(u32, i64, i64)>,
}

/// Slices that are open on a track.
#[derive(Default)]
struct Open(Vec<(String, i64)>);

impl Drawn {
    /// The innermost slice of a track at a moment.
    pub fn innermost(&self, track: (bool, u32), at: i64) -> Option<&str> {
        let slices = self.slices.get(&track)?;
        let begun = slices.partition_point(|slice| slice.start <= at);
        slices[..begun].iter().rev().find(|slice| slice.end > at).map(|slice| slice.name.as_str())
    }

    /// The thread that a CPU runs at a moment.
    pub fn runs(&self, cpu: u32, at: i64) -> u32 {
        let runs = self.runs.get(&cpu).map_or(&[][..], Vec::as_slice);
        runs[..runs.partition_point(|(from, _)| *from <= at)].last().map_or(0, |(_, pid)| *pid)
    }

    fn begin(&mut self, opens: &mut BTreeMap<(bool, u32), Open>, track: (bool, u32), name: String, at: i64) {
        let slices = self.slices.entry(track).or_default();
        assert!(slices.last().is_none_or(|slice| slice.start <= at), "{name} begins before the slice before");
        opens.entry(track).or_default().0.push((slices.len().to_string(), at));
        slices.push(Slice { name, start: at, end: i64::MAX, ret: None });
    }

    fn end(&mut self, opens: &mut BTreeMap<(bool, u32), Open>, track: (bool, u32), at: i64, ret: Option<i64>) {
        let (n, start) = opens.entry(track).or_default().0.pop().expect("an end without a start");
        assert!(start <= at, "a slice ends before it begins");
        let slice = &mut self.slices.get_mut(&track).expect("a track")[n.parse::<usize>().expect("a number")];
        (slice.end, slice.ret) = (at, ret);
    }

    fn finish(mut self, opens: BTreeMap<(bool, u32), Open>) -> Drawn {
        assert!(opens.values().all(|open| open.0.is_empty()), "a slice has no end");
        self.runs.values_mut().for_each(|runs| runs.sort_by_key(|(from, _)| *from));
        self
    }

    /// Reads Perfetto's protobuf.
    ///
    /// # Panics
    /// If it is not sound.
    pub fn perfetto(bytes: &[u8]) -> Drawn {
        let trace = message::Trace::decode(bytes).expect("a Perfetto trace");
        let (mut told, mut opens, mut tracks) = (Drawn::default(), BTreeMap::new(), BTreeMap::new());
        let (mut names, mut values): (BTreeMap<u64, String>, BTreeMap<u64, String>) = Default::default();
        let (mut sent, mut arrived, mut base, mut lanes) = (BTreeSet::new(), BTreeSet::new(), 0, BTreeSet::new());
        for packet in trace.packet {
            base = packet.clock_snapshot.map_or(base, |s| s.clocks[0].timestamp.expect("a moment"));
            let ns = |at: Option<u64>| at.expect("a time").wrapping_sub(base) as i64;
            if let Some(interned) = packet.interned_data {
                let pair = |name: message::Interned| (name.iid.expect("a number"), name.name.expect("a name"));
                names.extend(interned.event_names.into_iter().map(pair));
                values.extend(interned.debug_annotation_names.into_iter().map(pair));
            }
            if let Some(track) = packet.track_descriptor {
                tracks.insert(track.uuid.expect("a number"), track);
            }
            for event in packet.ftrace_events.iter().flat_map(|bundle| &bundle.event) {
                let (cpu, at) =
                    (packet.ftrace_events.as_ref().and_then(|b| b.cpu).expect("a CPU"), ns(event.timestamp));
                if let Some(switch) = &event.sched_switch {
                    let from = switch.prev_pid.expect("a thread") as u32;
                    told.states.push((from, at, switch.prev_state.expect("a state")));
                    told.runs.entry(cpu).or_default().push((at, switch.next_pid.expect("a thread") as u32));
                }
                told.wakings += usize::from(event.sched_waking.is_some());
                let asleep = |idle: &postprocess::perfetto::CpuValue| idle.state.map(i64::from) != Some(AWAKE);
                told.idles += usize::from(event.cpu_idle.as_ref().is_some_and(asleep));
                told.frequencies += usize::from(event.cpu_frequency.is_some());
            }
            let Some(event) = packet.track_event else { continue };
            let uuid = event.track_uuid.expect("a track");
            let track: &message::TrackDescriptor = tracks.get(&uuid).expect("a track that was described");
            let place = match (&track.thread, track.parent_uuid) {
                (Some(thread), _) => Some((true, thread.tid.expect("a thread") as u32)),
                (None, None) if uuid >> 32 == 2 => Some((false, uuid as u32)),
                _ => None,
            };
            let name = event.name_iid.map(|iid| names[&iid].clone()).or(event.name);
            let at = ns(packet.timestamp);
            match (event.r#type, place) {
                (Some(1), Some(place)) => told.begin(&mut opens, place, name.expect("a name"), at),
                (Some(2), Some(place)) => {
                    let ret = event.debug_annotations.iter().find(|v| values[&v.name_iid.unwrap_or(0)] == "ret");
                    told.end(&mut opens, place, at, ret.and_then(|value| value.int_value));
                }
                (Some(1), None) => {
                    let kind = track.name.clone().expect("a name");
                    lanes.insert((kind.clone(), uuid));
                    *told.beside.entry(kind).or_default().entry(name.expect("a name")).or_default() += 1;
                }
                (Some(4), _) => {
                    let of = track.parent_uuid.and_then(|parent| tracks.get(&parent)?.process.as_ref()?.pid);
                    let value = of.and_then(|process| Some((process as u32, event.counter_value?)));
                    if let Some((process, value)) = value {
                        assert!(track.counter.is_some(), "a value on a track of no counter");
                        told.values.push((process, track.name.clone().expect("a name"), at, value));
                    }
                }
                (Some(3), _) => {
                    sent.extend(event.flow_ids.iter().copied());
                    arrived.extend(event.terminating_flow_ids.iter().copied());
                    if event.flow_ids.is_empty() && event.terminating_flow_ids.is_empty() {
                        *told.instants.entry(name.expect("a name")).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        assert_eq!(sent, arrived, "a flow has one end");
        told.flows = sent.len();
        lanes.into_iter().for_each(|(kind, _)| *told.lanes.entry(kind).or_default() += 1);
        told.finish(opens)
    }
}
