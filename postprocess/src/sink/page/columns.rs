// SPDX-License-Identifier: BSD-3-Clause
//! Spans as columns of small numbers, in groups of rows that are compressed and read one by one.
//!
//! Every column carries any `i64` exactly: its values are stored as `width` bytes each and, where one does not fit,
//! as an escape there and eight bytes after the column. CPUs, threads and event numbers are stored as indexes into
//! sorted lists of their distinct values; starts as differences to the start before.

use serde::{Deserialize, Serialize};

pub use super::pack::Form;
use super::pack::{self, Effort};
use crate::event::names::NameId;
use crate::id::{CpuId, Pid};
use crate::span::what::What;
use crate::span::{packed, unpacked, Span};
use crate::time::Time;

/// Spans in a group; a reader holds one group's compressed bytes at a time.
pub const GROUP_ROWS: usize = 1 << 18;

/// The bits of [`Span::ipc`].
const IPC: u8 = 15;

/// One field of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// [`Span::start`], as the difference from the row before, or from 0 in the first row of a group.
    Start,
    /// [`Span::dur`].
    Dur,
    /// Index into [`Layout::cpus`].
    Cpu,
    /// Index into [`Layout::pids`].
    Pid,
    /// [`Span::rpc`].
    Rpc,
    /// Index into [`Layout::events`].
    Event,
    /// [`Span::arg`], [`packed`].
    Arg,
    /// [`Span::ret`], [`packed`].
    Ret,
    /// [`Span::ipc`] in the lowest four bits, and above them the span's link as [`super::links`] defines it.
    Ipc,
    /// [`Span::name`].
    Name,
}

impl Field {
    /// All fields, in storage order.
    pub const ALL: [Self; 10] = [
        Self::Start,
        Self::Dur,
        Self::Cpu,
        Self::Pid,
        Self::Rpc,
        Self::Event,
        Self::Arg,
        Self::Ret,
        Self::Ipc,
        Self::Name,
    ];
}

/// Location of one column of one group in the data, and the encoding of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The column.
    pub field: Field,
    /// Bytes of a value: 1, 2 or 4. All ones stand for a value among the wide ones.
    pub width: usize,
    /// Number of values that did not fit.
    pub wide: usize,
    /// First byte in the data.
    pub offset: usize,
    /// Compressed bytes.
    pub bytes: usize,
}

/// A run of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Rows in this group.
    pub rows: usize,
    /// Its columns.
    pub parts: Vec<Part>,
}

/// Layout of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Total number of spans.
    pub rows: usize,
    /// Distinct CPUs, ascending.
    pub cpus: Vec<i64>,
    /// Distinct threads, ascending.
    pub pids: Vec<i64>,
    /// Distinct event numbers, ascending.
    pub events: Vec<i64>,
    /// Runs of rows, in order.
    pub groups: Vec<Group>,
}

/// A place in the data that does not match the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The group.
    pub group: usize,
    /// The column.
    pub field: Field,
}

/// Stores `spans` as compressed columns, with the link of each.
#[must_use]
pub fn encode(spans: &[Span], links: &[i64]) -> (Layout, Vec<u8>) {
    let cpus = Dictionary::new(spans, |s| CpuId::column(s.cpu));
    let pids = Dictionary::new(spans, |s| Pid::column(s.pid));
    let events = Dictionary::new(spans, |s| s.event().into());
    let values = |field: Field, spans: &[Span], links: &[i64]| -> Vec<i64> {
        let mut prior = 0;
        let since_prior = |s: &Span| s.start.0.wrapping_sub(std::mem::replace(&mut prior, s.start.0));
        match field {
            Field::Start => spans.iter().map(since_prior).collect(),
            Field::Dur => spans.iter().map(|s| s.dur.0).collect(),
            Field::Cpu => spans.iter().map(|s| cpus.index(CpuId::column(s.cpu))).collect(),
            Field::Pid => spans.iter().map(|s| pids.index(Pid::column(s.pid))).collect(),
            Field::Rpc => spans.iter().map(|s| s.rpc.into()).collect(),
            Field::Event => spans.iter().map(|s| events.index(s.event().into())).collect(),
            Field::Arg => spans.iter().map(|s| packed(s.values().0)).collect(),
            Field::Ret => spans.iter().map(|s| packed(s.values().1)).collect(),
            Field::Ipc => {
                spans.iter().zip(links).map(|(s, link)| i64::from(s.ipc & IPC) | link << IPC.count_ones()).collect()
            }
            Field::Name => spans.iter().map(|s| s.name.0.into()).collect(),
        }
    };
    let groups: Vec<(&[Span], &[i64])> = spans.chunks(GROUP_ROWS).zip(links.chunks(GROUP_ROWS)).collect();
    let jobs: Vec<(usize, Field)> = (0..groups.len()).flat_map(|g| Field::ALL.map(|f| (g, f))).collect();
    let packed = pack::on_all_cpus(&jobs, |&(group, field)| {
        let effort = if field == Field::Start { Effort::Quick } else { Effort::Usual };
        let (spans, links) = groups[group];
        pack::pack(&values(field, spans, links), effort)
    });

    let mut layout = Layout { rows: spans.len(), ..Layout::default() };
    layout.groups = groups.iter().map(|(g, _)| Group { rows: g.len(), parts: Vec::new() }).collect();
    let mut data = Vec::with_capacity(packed.iter().map(|p| p.bytes.len()).sum());
    for (&(group, field), p) in jobs.iter().zip(&packed) {
        let part = Part { field, width: p.width, wide: p.wide, offset: data.len(), bytes: p.bytes.len() };
        layout.groups[group].parts.push(part);
        data.extend_from_slice(&p.bytes);
    }
    (layout.cpus, layout.pids, layout.events) = (cpus.values, pids.values, events.values);
    (layout, data)
}

/// Decodes the result of [`encode`], or of an earlier form of pages.
///
/// # Errors
/// The first column that is damaged.
pub fn decode(layout: &Layout, data: &[u8], form: Form) -> Result<Vec<Span>, Damage> {
    let mut spans = Vec::new();
    for (number, group) in layout.groups.iter().enumerate() {
        let first = spans.len();
        for part in &group.parts {
            let damage = Damage { group: number, field: part.field };
            let bytes = data.get(part.offset..part.offset.saturating_add(part.bytes)).ok_or(damage.clone())?;
            let values = pack::unpack(bytes, form, group.rows, part.width, part.wide).ok_or(damage.clone())?;
            // Only now are the rows known to exist.
            spans.resize(first + group.rows, Span::default());
            fill(&mut spans[first..], part.field, &values, layout, form).ok_or(damage)?;
        }
        // Several columns together determine what a span is.
        for span in spans.iter_mut().skip(first) {
            span.set_columns(span.event(), span.arg, span.ret);
        }
    }
    Ok(spans)
}

/// Writes one column into `spans`; `None` if a value does not fit there.
fn fill(spans: &mut [Span], field: Field, values: &[i64], layout: &Layout, form: Form) -> Option<()> {
    let value = |v: i64| if form == Form::Bare { v } else { unpacked(v) };
    let of = |list: &[i64], v: i64| -> Option<i64> { list.get(usize::try_from(v).ok()?).copied() };
    let mut start = 0i64;
    for (s, &v) in spans.iter_mut().zip(values) {
        match field {
            Field::Start => {
                start = start.wrapping_add(v);
                s.start = Time(start);
            }
            Field::Dur => s.dur = Time(v),
            Field::Cpu => s.cpu = CpuId::of_column(of(&layout.cpus, v)?)?,
            Field::Pid => s.pid = Pid::of_column(of(&layout.pids, v)?)?,
            Field::Rpc => s.rpc = i32::try_from(v).ok()?,
            Field::Event => s.what = What::of(i32::try_from(of(&layout.events, v)?).ok()?),
            Field::Arg => s.arg = value(v),
            Field::Ret => s.ret = value(v),
            // The spans determine their links again.
            Field::Ipc => s.ipc = v as u8 & IPC,
            Field::Name => s.name = NameId(u32::try_from(v).ok()?),
        }
    }
    Some(())
}

/// Distinct values of a field, ascending, and the place of each among them.
struct Dictionary {
    values: Vec<i64>,
    /// Places by value, from the least value on; empty if the values are too far apart for that.
    places: Vec<u32>,
}

/// Values further apart than this are searched among the distinct ones: thread ids end at 2^22.
const NEAR: i64 = 1 << 23;

impl Dictionary {
    fn new(spans: &[Span], field: impl Fn(&Span) -> i64) -> Self {
        let (min, max) = spans.iter().map(&field).fold((i64::MAX, i64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        if spans.is_empty() || max.saturating_sub(min) > NEAR {
            let mut values: Vec<i64> = spans.iter().map(&field).collect();
            values.sort_unstable();
            values.dedup();
            return Self { values, places: Vec::new() };
        }
        let mut places = vec![0; (max - min) as usize + 1];
        spans.iter().for_each(|s| places[(field(s) - min) as usize] = 1);
        let mut values = Vec::new();
        for (value, place) in (min..).zip(&mut places).filter(|(_, place)| **place > 0) {
            *place = values.len() as u32;
            values.push(value);
        }
        Self { values, places }
    }

    #[inline]
    fn index(&self, value: i64) -> i64 {
        match self.places.get((value - self.values[0]) as usize) {
            Some(&place) => place.into(),
            None => self.values.partition_point(|&v| v < value) as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_span() -> impl Strategy<Value = Span> {
        let small = prop_oneof![4 => 0..300i64, 1 => any::<i64>(), 1 => 0xFFFF_FFF0..0x1_0000_0010i64];
        let ids = (-1..4096i32, -1..4_194_305i32, any::<i32>(), prop_oneof![-7..0x1000i32, any::<i32>()]);
        (any::<i64>(), small.clone(), ids, small.clone(), small, 0..=IPC, any::<u32>()).prop_map(
            |(start, dur, (cpu, pid, rpc, event), arg, ret, ipc, name)| {
                let mut span = Span {
                    start: Time(start),
                    dur: Time(dur),
                    cpu: CpuId::of_column(cpu.into()).unwrap(),
                    pid: Pid::of_column(pid.into()).unwrap(),
                    rpc,
                    ipc,
                    name: NameId(name),
                    ..Span::default()
                };
                span.set_columns(event, arg, ret);
                span
            },
        )
    }

    proptest! {
        #[test]
        fn any_spans_come_back_the_same(spans in proptest::collection::vec(any_span(), 0..100), link in 0..5000i64) {
            let (layout, data) = encode(&spans, &vec![link; spans.len()]);
            let text = serde_json::to_string(&layout).unwrap();
            prop_assert_eq!(decode(&serde_json::from_str(&text).unwrap(), &data, Form::Checked).unwrap(), spans);
        }

        #[test]
        fn damage_is_reported_or_changes_nothing(at in 0usize..4096, bit in 0u8..8) {
            let spans: Vec<Span> = (0..500).map(|i| Span { start: Time(i * i), dur: Time(i % 7), ..Span::default() }).collect();
            let (layout, mut data) = encode(&spans, &vec![0; spans.len()]);
            let at = at % data.len();
            data[at] ^= 1 << bit;
            prop_assert!(decode(&layout, &data, Form::Checked).map_or(true, |read| read == spans));
        }
    }

    #[test]
    fn rows_beyond_a_group_start_another() {
        let spans: Vec<Span> = (0..GROUP_ROWS as i64 + 3).map(|i| Span { start: Time(i), ..Span::default() }).collect();
        let (layout, data) = encode(&spans, &vec![0; spans.len()]);
        assert_eq!(layout.groups.iter().map(|g| g.rows).collect::<Vec<_>>(), [GROUP_ROWS, 3]);
        assert!(decode(&layout, &data, Form::Checked).unwrap() == spans);
    }
}
