// SPDX-License-Identifier: BSD-3-Clause
//! The tables of requests and of their causes, as `why` divides their time.

use anyhow::Result;
use parquet::data_type::ByteArray;
use postprocess::span::Spans;
use postprocess::time::Time;
use postprocess::why::cause::{Causes, Kind};
use postprocess::why::request::Found;
use postprocess::why::sweep::sweep;
use postprocess::why::Timeline;

use crate::file::{Place, TableFile, Values, GROUP, UNIT};
use crate::schema::{CAUSE, CAUSES, REQUEST, REQUESTS};

/// Causes of the parts of requests' time.
#[derive(Default)]
struct Parts {
    request: Vec<i64>,
    kind: Vec<ByteArray>,
    cause: Vec<ByteArray>,
    dur: Vec<i64>,
    parts: Vec<i64>,
    whole: Vec<i64>,
}

impl Parts {
    fn columns(self, trace: &ByteArray) -> Vec<Values> {
        vec![
            Values::text(vec![trace.clone(); self.request.len()]),
            Values::long(self.request),
            Values::text(self.kind),
            Values::text(self.cause),
            Values::long(self.dur),
            Values::long(self.parts),
            Values::long(self.whole),
        ]
    }
}

/// Writes both tables; times count from `base`, in ns. Returns the kind of the requests, and their number.
///
/// # Errors
/// If a file cannot be written.
pub fn write(spans: &Spans, place: &Place, base: i64, found: Found) -> Result<(String, u64)> {
    let timeline = Timeline::new(spans);
    let Found { asked: what, mut requests, .. } = found;
    let trace = ByteArray::from(place.trace);
    requests.sort_unstable_by_key(|r| (r.pid, r.start, r.end));

    let mut file = TableFile::new(place, REQUESTS, REQUEST)?;
    for (group, some) in requests.chunks(GROUP).enumerate() {
        let number = |n: usize| (group * GROUP + n) as i64;
        file.group(vec![
            Values::text(vec![trace.clone(); some.len()]),
            Values::long((0..some.len()).map(number).collect()),
            Values::text(vec![ByteArray::from(what.as_str()); some.len()]),
            Values::long(some.iter().map(|r| i64::from(r.pid)).collect()),
            Values::long(some.iter().map(|r| base.saturating_add(r.start.0.saturating_mul(UNIT))).collect()),
            Values::long(some.iter().map(|r| r.dur().0.saturating_mul(UNIT)).collect()),
        ])?;
    }
    file.finish()?;

    let mut file = TableFile::new(place, CAUSES, CAUSE)?;
    let (mut causes, mut parts, mut texts) = (Causes::default(), Parts::default(), Vec::new());
    let mut failed = None;
    sweep(&timeline, &mut causes, &requests, |causes, n, sums| {
        let known = texts.len();
        texts.extend((known..causes.count()).map(|id| {
            let text = causes.text(id as u32, &timeline, None);
            (ByteArray::from(kind(causes.cause(id as u32).kind)), ByteArray::from(text.as_str()))
        }));
        let mut sums: Vec<_> = sums.iter().filter(|(_, sum)| sum.time > Time::ZERO).collect();
        sums.sort_unstable_by_key(|(id, sum)| (-sum.time.0, *id));
        for (id, sum) in sums {
            let (kind, cause) = texts[*id as usize].clone();
            parts.request.push(n as i64);
            parts.kind.push(kind);
            parts.cause.push(cause);
            parts.dur.push(sum.time.0.saturating_mul(UNIT));
            parts.parts.push(sum.parts);
            parts.whole.push(requests[n].dur().0.saturating_mul(UNIT));
        }
        if parts.request.len() >= GROUP && failed.is_none() {
            failed = file.group(std::mem::take(&mut parts).columns(&trace)).err();
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    file.group(parts.columns(&trace))?;
    file.finish()?;
    Ok((what, requests.len() as u64))
}

/// Returns the kind's name in the JSON of `why`.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "user",
        Kind::Kernel => "kernel",
        Kind::Interrupt => "interrupt",
        Kind::Queue => "queue",
        Kind::Idle => "idle",
        Kind::Quota => "quota",
        Kind::Wait => "wait",
        Kind::Network => "network",
        Kind::Resent => "resent",
        Kind::Stalled => "stalled",
        Kind::Offline => "offline",
        Kind::Lost => "lost",
        Kind::Unknown => "unknown",
    }
}
