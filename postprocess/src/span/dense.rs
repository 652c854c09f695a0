// SPDX-License-Identifier: BSD-3-Clause
//! Spans in half of the memory: a row of 32 bytes for each, because `why` holds tens of millions of them.
//!
//! A row has the start in full and everything else in as many bits as almost every span needs; a span that does not fit
//! is kept whole in a second list, and its row has the index.
//!
//! Invariant: a span comes out as it was put in, except for [`Span::rpc`], which is not kept: the points that begin and
//! end an RPC have its identity as their argument.

use super::limit::Keep;
use super::order::{key, order_by};
use super::what::{Activity, Arc, What};
use super::{Span, Spans, NONE};
use crate::event::names::NameId;
use crate::event::number::NUMBERS;
use crate::id::{CpuId, Pid};
use crate::time::Time;

/// Number of spans taken at a time.
const TAKEN: usize = 1 << 16;

/// Spans, in little memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dense {
    rows: Vec<Row>,
    whole: Vec<Span>,
}

/// A span: its kind in the low bits of `bits`, then its [`Span::ipc`], then its CPU plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    start: Time,
    /// Duration; the index of a span that is kept whole.
    dur: u32,
    bits: u32,
    pid: Option<Pid>,
    name: NameId,
    /// [`UNKNOWN`] for [`NONE`].
    arg: u32,
    /// The minimum for [`NONE`].
    ret: i32,
}

const _: () = assert!(size_of::<Row>() == 32);

const UNKNOWN: u32 = u32::MAX;
const WHAT_BITS: u32 = 13;
const IPC_BITS: u32 = 4;
const CPUS: u32 = 1 << (u32::BITS - WHAT_BITS - IPC_BITS);

/// Kinds of spans without a number of event lines.
const IDLE: u32 = NUMBERS;
const IDLE_EXIT: u32 = NUMBERS + 1;
const LOST: u32 = NUMBERS + 2;
const OFFLINE: u32 = NUMBERS + 3;
const STALLED: u32 = NUMBERS + 4;
const USER: u32 = NUMBERS + 5;
const THREAD: u32 = NUMBERS + 6;
const WAKEUP: u32 = NUMBERS + 7;
const IPI: u32 = NUMBERS + 8;
const WHOLE: u32 = NUMBERS + 9;
const _: () = assert!(WHOLE < 1 << WHAT_BITS);

impl Row {
    /// The row of a span; `None` if it does not fit.
    #[inline]
    fn of(s: &Span) -> Option<Row> {
        let (mut arg, mut ret) = (s.arg, s.ret);
        let user = || s.pid.map(Activity::user);
        let thread = || s.pid.map(Activity::thread);
        let what = match s.what {
            What::Run(Activity::Idle) => IDLE,
            What::Run(Activity::IdleExit) => IDLE_EXIT,
            What::Run(Activity::Lost) => LOST,
            What::Run(Activity::Offline) => OFFLINE,
            What::Run(Activity::Stalled) => STALLED,
            What::Run(activity @ Activity::User(_)) if user() == Some(activity) => USER,
            What::Run(activity @ Activity::Thread(_)) if thread() == Some(activity) => THREAD,
            What::Arc(Arc::Wakeup { to, woken }) if (arg, ret) == (0, 0) => {
                (arg, ret) = (to.into(), woken.into());
                WAKEUP
            }
            What::Arc(Arc::Ipi { to }) if arg == 0 => {
                arg = to.into();
                IPI
            }
            what => u32::try_from(what.number()).ok().filter(|number| *number < NUMBERS)?,
        };
        let cpu = s.cpu.map_or(0, |cpu| cpu.number() + 1);
        if cpu >= CPUS || s.ipc >> IPC_BITS != 0 {
            return None;
        }
        let arg = if arg == NONE { UNKNOWN } else { u32::try_from(arg).ok().filter(|arg| *arg != UNKNOWN)? };
        let ret = if ret == NONE { i32::MIN } else { i32::try_from(ret).ok().filter(|ret| *ret != i32::MIN)? };
        let bits = what | u32::from(s.ipc) << WHAT_BITS | cpu << (WHAT_BITS + IPC_BITS);
        Some(Row { start: s.start, dur: u32::try_from(s.dur.0).ok()?, bits, pid: s.pid, name: s.name, arg, ret })
    }

    #[inline]
    fn kind(&self) -> u32 {
        self.bits & ((1 << WHAT_BITS) - 1)
    }

    #[inline]
    fn cpu(&self) -> Option<CpuId> {
        (self.bits >> (WHAT_BITS + IPC_BITS)).checked_sub(1).map(CpuId::new)
    }

    /// The span of a row that has all of it.
    #[inline]
    fn span(&self) -> Span {
        let mut arg = if self.arg == UNKNOWN { NONE } else { self.arg.into() };
        let mut ret = if self.ret == i32::MIN { NONE } else { self.ret.into() };
        let pid = self.pid.unwrap_or_default();
        let what = match self.kind() {
            number @ ..NUMBERS => What::of(number as i32),
            IDLE => What::Run(Activity::Idle),
            IDLE_EXIT => What::Run(Activity::IdleExit),
            LOST => What::Run(Activity::Lost),
            OFFLINE => What::Run(Activity::Offline),
            STALLED => What::Run(Activity::Stalled),
            USER => What::Run(Activity::user(pid)),
            THREAD => What::Run(Activity::thread(pid)),
            WAKEUP => {
                let (to, woken) = (CpuId::new(self.arg), Pid::new(self.ret as u32));
                (arg, ret) = (0, 0);
                What::Arc(Arc::Wakeup { to, woken })
            }
            _ => {
                arg = 0;
                What::Arc(Arc::Ipi { to: CpuId::new(self.arg) })
            }
        };
        let ipc = (self.bits >> WHAT_BITS) as u8 & ((1 << IPC_BITS) - 1);
        let dur = Time(self.dur.into());
        Span { start: self.start, dur, cpu: self.cpu(), pid: self.pid, rpc: 0, what, arg, ret, ipc, name: self.name }
    }
}

impl Dense {
    /// Number of spans.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there are no spans.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The span at an index.
    #[inline]
    pub fn get(&self, index: usize) -> Span {
        let row = &self.rows[index];
        match row.kind() {
            WHOLE => self.whole[row.dur as usize],
            _ => row.span(),
        }
    }

    /// Start of a span.
    #[inline]
    pub fn start(&self, index: usize) -> Time {
        self.rows[index].start
    }

    /// End of a span.
    #[inline]
    pub fn end(&self, index: usize) -> Time {
        let row = &self.rows[index];
        row.start.saturating_add(self.dur(row))
    }

    #[inline]
    fn dur(&self, row: &Row) -> Time {
        match row.kind() {
            WHOLE => self.whole[row.dur as usize].dur,
            _ => Time(row.dur.into()),
        }
    }

    /// Adds a span.
    #[inline]
    pub fn push(&mut self, span: &Span) {
        let row = Row::of(span).unwrap_or_else(|| self.keep_whole(span));
        self.rows.push(row);
    }

    #[cold]
    fn keep_whole(&mut self, span: &Span) -> Row {
        self.whole.push(Span { rpc: 0, ..*span });
        let cpu = span.cpu.map_or(0, |cpu| (cpu.number() + 1).min(CPUS - 1));
        let (bits, dur) = (WHOLE | cpu << (WHAT_BITS + IPC_BITS), self.whole.len() as u32 - 1);
        Row { start: span.start, dur, bits, pid: span.pid, name: span.name, arg: 0, ret: 0 }
    }

    /// Puts the spans in the order of [`Spans::spans`].
    pub fn order(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        order_by(&mut rows, |row| match row.kind() {
            WHOLE => key(&self.whole[row.dur as usize]),
            _ => (row.start, std::cmp::Reverse(Time(row.dur.into())), row.cpu()),
        });
        self.rows = rows;
    }
}

impl Keep for &mut Dense {
    fn room(&self) -> usize {
        TAKEN
    }

    fn add(&mut self, spans: Vec<Span>) {
        spans.iter().for_each(|span| self.push(span));
    }

    /// Returns `last` without its spans: all spans are in `self` then, in order.
    fn finish(mut self, mut last: Spans) -> Spans {
        self.add(std::mem::take(&mut last.spans));
        self.order();
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::number;
    use proptest::prelude::*;

    /// Numbers at the edges of what columns hold, and any others.
    fn column() -> impl Strategy<Value = i64> {
        let edges = [0, -1, i64::from(i32::MAX), i64::from(i32::MIN), i64::from(u32::MAX), NONE, i64::MAX];
        prop_oneof![proptest::sample::select(edges.to_vec()), -3..70_000_i64, any::<i64>()]
    }

    fn event() -> impl Strategy<Value = i32> {
        let high = [number::USER, number::IDLE_EXIT, number::LOST, number::OFFLINE_SPAN, number::STALLED];
        let high = high.map(|number| number as i32).to_vec();
        prop_oneof![-9..NUMBERS as i32 + 9, proptest::sample::select(high), any::<i32>()]
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_was_put_in(
            spans in proptest::collection::vec(
                (column(), column(), -1..70_000_i64, -1..90_000_i64, event(), column(), column(), any::<u8>(), any::<u32>()),
                1..50,
            ),
            own in any::<bool>(),
        ) {
            let mut dense = Dense::default();
            let made = |(start, dur, cpu, pid, event, arg, ret, ipc, name)| {
                let (cpu, pid) = (CpuId::of_column(cpu).unwrap(), Pid::of_column(pid).unwrap());
                let mut span = Span { start: Time(start), dur: Time(dur), cpu, pid, ipc, name: NameId(name), ..Span::default() };
                span.set_columns(event, arg, ret);
                if let (Some(pid), true) = (pid, own) {
                    span.what = What::Run(Activity::user(pid));
                }
                span
            };
            let spans: Vec<Span> = spans.into_iter().map(made).collect();
            spans.iter().for_each(|span| dense.push(span));
            for (n, span) in spans.iter().enumerate() {
                prop_assert_eq!(dense.get(n), *span);
                prop_assert_eq!((dense.start(n), dense.end(n)), (span.start, span.start.saturating_add(span.dur)));
            }
        }

        #[test]
        fn the_order_is_that_of_spans(
            spans in proptest::collection::vec((0..9_i64, prop_oneof![0..4_i64, Just(1 << 40)], 0..3_u32), 1..200)
        ) {
            let made = |(n, (start, dur, cpu)): (u32, (i64, i64, u32))| {
                let (start, dur, cpu) = (Time(start), Time(dur), Some(CpuId::new(cpu)));
                Span { start, dur, cpu, name: NameId(n), ..Span::default() }
            };
            let mut spans: Vec<Span> = (0..).zip(spans).map(made).collect();
            let mut dense = Dense::default();
            spans.iter().for_each(|span| dense.push(span));
            dense.order();
            spans.sort_by_key(key);
            prop_assert!((0..dense.len()).map(|n| dense.get(n)).eq(spans));
        }
    }
}
