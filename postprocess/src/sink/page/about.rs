// SPDX-License-Identifier: BSD-3-Clause
//! Data of the page in addition to its columns: the JSON of its element `ku-meta`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kutrace_format::capability::Capability;
use kutrace_format::flag;
use serde::{Deserialize, Serialize};

use super::columns::Layout;
use super::requests::Carried;
use crate::cgroup::short;
use crate::event::number;
use crate::event::Machine;
use crate::span::{Meta, SavedView, Span, Spans};

/// Version of the page's data; a reader takes pages of its own version and below.
pub const VERSION: u32 = 2;

/// Bytes of data in one script element: as base64 4 MiB, well below what a browser holds in one string.
pub const CHUNK_BYTES: usize = 3 << 20;

/// Nanoseconds to record an entry: measured for our format (docs/overhead.md), claimed for the original's.
const ENTRY_NS: u32 = 16;
const ORIGINAL_ENTRY_NS: u32 = 20;
/// Nanoseconds to read the counters after an entry, from the same sources.
const COUNTERS_NS: u32 = 30;

/// The JSON; `viewer/data/decode.js` names the same fields.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About<'a> {
    pub version: u32,
    chunk_bytes: usize,
    title: Cow<'a, str>,
    tracebase: Cow<'a, str>,
    cpu_model: Cow<'a, str>,
    host: Cow<'a, str>,
    kernel: Cow<'a, str>,
    flags: u32,
    mbit_sec: u32,
    randomid: u32,
    lost: u64,
    quality: Cow<'a, [String]>,
    #[serde(default)]
    unseen: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    counted: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    machines: Cow<'a, [Machine]>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    boot_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    monotonic: Option<i64>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    recorder: Cow<'a, str>,
    #[serde(default)]
    value_bits: u8,
    #[serde(default)]
    errors: Cow<'a, BTreeMap<u32, String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    processes: Cow<'a, BTreeMap<u32, u32>>,
    #[serde(default)]
    counts: Cow<'a, BTreeMap<String, u64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cgroups: Vec<Cgroup>,
    #[serde(default)]
    entries: u64,
    #[serde(default)]
    entry_ns: u32,
    #[serde(default)]
    saved_views: Cow<'a, [SavedView]>,
    pub names: Cow<'a, [String]>,
    pub layout: Cow<'a, Layout>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests: Option<Carried>,
}

/// A control group: its path, its display name, and its threads from [`Meta::cgroups`].
#[derive(Clone, Serialize, Deserialize)]
struct Cgroup {
    path: String,
    short: String,
    pids: Vec<u32>,
}

impl Cgroup {
    fn all(meta: &Meta) -> Vec<Cgroup> {
        let mut pids: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (pid, path) in &meta.cgroups {
            pids.entry(path).or_default().push(*pid);
        }
        pids.into_iter().map(|(path, pids)| Cgroup { path: path.to_string(), short: short(path), pids }).collect()
    }

    fn threads(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        self.pids.iter().map(|pid| (*pid, self.path.clone()))
    }
}

impl<'a> About<'a> {
    /// Describes `spans`, whose columns have this layout, and the requests that the page carries.
    pub fn new(spans: &'a Spans, title: &'a str, layout: &'a Layout, requests: Option<Carried>) -> Self {
        let meta = &spans.meta;
        Self {
            version: VERSION,
            chunk_bytes: CHUNK_BYTES,
            title: title.into(),
            tracebase: meta.tracebase.as_str().into(),
            cpu_model: meta.cpu_model.as_str().into(),
            host: meta.host.as_str().into(),
            kernel: meta.kernel.as_str().into(),
            flags: meta.flags,
            mbit_sec: meta.mbit_sec,
            randomid: meta.randomid,
            lost: meta.lost,
            quality: meta.quality.as_slice().into(),
            unseen: meta.unseen.as_slice().into(),
            counted: meta.counted.as_slice().into(),
            machines: meta.machines.as_slice().into(),
            boot_id: meta.boot_id.as_str().into(),
            monotonic: meta.monotonic,
            recorder: meta.recorder.as_str().into(),
            value_bits: meta.value_bits,
            errors: Cow::Borrowed(&meta.errors),
            processes: Cow::Borrowed(&meta.processes),
            counts: Cow::Borrowed(&meta.counts),
            cgroups: Cgroup::all(meta),
            entries: spans.spans.iter().filter(|s| begins_with_entry(s)).count() as u64,
            entry_ns: if meta.sees(Capability::EntryCode) { entry_ns(meta.flags) } else { 0 },
            saved_views: meta.saved_views.as_slice().into(),
            names: spans.names.as_slice().into(),
            layout: Cow::Borrowed(layout),
            requests,
        }
    }

    /// Returns its description of the whole trace.
    pub fn meta(&self) -> Meta {
        Meta {
            title: self.title.to_string(),
            tracebase: self.tracebase.to_string(),
            cpu_model: self.cpu_model.to_string(),
            host: self.host.to_string(),
            kernel: self.kernel.to_string(),
            flags: self.flags,
            mbit_sec: self.mbit_sec,
            randomid: self.randomid,
            lost: self.lost,
            quality: self.quality.to_vec(),
            unseen: self.unseen.to_vec(),
            counted: self.counted.to_vec(),
            machines: self.machines.to_vec(),
            boot_id: self.boot_id.to_string(),
            monotonic: self.monotonic,
            recorder: self.recorder.to_string(),
            value_bits: self.value_bits,
            errors: self.errors.clone().into_owned(),
            processes: self.processes.clone().into_owned(),
            counts: self.counts.clone().into_owned(),
            cgroups: self.cgroups.iter().flat_map(Cgroup::threads).collect(),
            saved_views: self.saved_views.to_vec(),
            ..Meta::default()
        }
    }
}

/// True if a span begins with an entry of the recorder: execution does, and so do points in time on a CPU.
fn begins_with_entry(span: &Span) -> bool {
    let is_point = || (number::SWITCH as i32..=number::SPECIAL_LAST as i32).contains(&span.event());
    span.cpu.is_some() && (span.is_execution() || is_point())
}

/// Returns the cost of an entry of a trace with these flags, if a hook wrote it; that of tracepoints is unknown.
fn entry_ns(flags: u32) -> u32 {
    let entry = if flags & flag::VERSION == 3 { ORIGINAL_ENTRY_NS } else { ENTRY_NS };
    entry + if flags & flag::COUNTERS == 0 { 0 } else { COUNTERS_NS }
}
