// SPDX-License-Identifier: BSD-3-Clause
//! Batches of events or spans in transit, with the names that are new in each.

use super::fact::Fact;
use super::names::{NameId, Names};
use super::what::What;
use super::{Event, Interval, Meta, CPUS_MAX};
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Number of columns of a row.
pub const COLUMNS: usize = 10;
/// Times of events: the range that the text can hold.
const TIMES: std::ops::Range<i64> = -1_000_000_000_000_000_000 + 1..1_000_000_000_000_000_000;

/// A row of batches and frames: ten numbers, of which the first hardly changes from row to row and the last is a name.
pub trait Row: Copy {
    /// First bytes of its frames; the last is their version.
    const MAGIC: [u8; 8];
    /// Facts about all rows.
    type About: Default + serde::Serialize + serde::de::DeserializeOwned;

    /// The row as numbers.
    fn columns(&self) -> [i64; COLUMNS];

    /// The row with these numbers; `None` if one is out of its range.
    fn of(columns: [i64; COLUMNS]) -> Option<Self>;

    /// Its name.
    fn name(&mut self) -> &mut NameId;

    /// True if these facts are possible for a trace.
    fn possible(about: &Self::About) -> bool;

    /// The list that sentences about damage belong to.
    fn quality(about: &mut Self::About) -> &mut Vec<String>;
}

/// Some rows, and the names that are new in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<T> {
    /// Names; the first is numbered after all those of the batches before.
    pub names: Vec<Box<str>>,
    /// Rows.
    pub rows: Vec<T>,
}

/// Mapping from the sender's name numbers to the receiver's.
#[derive(Clone, Debug, Default)]
pub struct Renumber {
    ids: Vec<NameId>,
}

impl Renumber {
    /// Renumbers the names of a batch's rows to their numbers in `names`.
    pub fn receive<T: Row>(&mut self, batch: &mut Batch<T>, names: &mut Names) {
        self.ids.extend(batch.names.iter().map(|name| names.id(name)));
        for name in batch.rows.iter_mut().map(Row::name) {
            *name = self.ids.get(name.index()).copied().unwrap_or_default();
        }
    }
}

impl Row for Event {
    const MAGIC: [u8; 8] = *b"KUevent3";
    type About = Meta;

    #[inline]
    fn columns(&self) -> [i64; COLUMNS] {
        let e = self;
        let [event, rpc, arg, name] = [e.what.number(), e.rpc, e.arg, e.name.0].map(i64::from);
        // A fact returns nothing: its value is in this column.
        let ret = if let What::Fact(fact) = e.what { fact.value() as i32 } else { e.ret };
        [e.ts.0, e.dur.0, event, e.cpu.into(), e.pid.into(), rpc, arg, ret.into(), e.ipc.into(), name]
    }

    #[inline]
    fn of([ts, dur, event, cpu, pid, rpc, arg, ret, ipc, name]: [i64; COLUMNS]) -> Option<Event> {
        let word = |column: i64| u32::try_from(column).ok();
        if !TIMES.contains(&ts) || !(0..TIMES.end).contains(&dur) {
            return None;
        }
        let (what, ret) = match (What::of(word(event)?), i32::try_from(ret).ok()?) {
            (What::Fact(fact), value) => (What::Fact(Fact::of(fact.number(), value as u32)?), 0),
            others => others,
        };
        Some(Event {
            ts: Time(ts),
            dur: Time(dur),
            what,
            cpu: CpuId::of_column(cpu)??,
            pid: Pid::of_column(pid)??,
            rpc: word(rpc)?,
            arg: word(arg)?,
            ret,
            ipc: u8::try_from(ipc).ok()?,
            name: NameId(word(name)?),
        })
    }

    fn name(&mut self) -> &mut NameId {
        &mut self.name
    }

    fn possible(about: &Meta) -> bool {
        let one = |i: &Interval| {
            i.cpu.number() < CPUS_MAX && i.from <= i.to && TIMES.contains(&i.from.0) && TIMES.contains(&i.to.0)
        };
        about.intervals.iter().all(one) && about.intervals.is_sorted_by(|a, b| a.cpu < b.cpu)
    }

    fn quality(about: &mut Meta) -> &mut Vec<String> {
        &mut about.quality
    }
}
