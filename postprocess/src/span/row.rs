// SPDX-License-Identifier: BSD-3-Clause
//! A span as a row of batches and frames.

use super::{packed, unpacked, Meta, Span};
use crate::event::batch::{Row, COLUMNS};
use crate::event::names::NameId;
use crate::id::{CpuId, Pid};
use crate::time::Time;

impl Row for Span {
    const MAGIC: [u8; 8] = *b"KUspans2";
    type About = Meta;

    #[inline]
    fn columns(&self) -> [i64; COLUMNS] {
        let s = self;
        let (cpu, pid) = (CpuId::column(s.cpu), Pid::column(s.pid));
        let (arg, ret) = s.values();
        [
            s.start.0,
            s.dur.0,
            cpu,
            pid,
            s.rpc.into(),
            s.event().into(),
            packed(arg),
            packed(ret),
            s.ipc.into(),
            s.name.0.into(),
        ]
    }

    #[inline]
    fn of([start, dur, cpu, pid, rpc, event, arg, ret, ipc, name]: [i64; COLUMNS]) -> Option<Span> {
        let number = |column: i64| i32::try_from(column).ok();
        let mut span = Span {
            start: Time(start),
            dur: Time(dur),
            cpu: CpuId::of_column(cpu)?,
            pid: Pid::of_column(pid)?,
            rpc: number(rpc)?,
            ipc: u8::try_from(ipc).ok()?,
            name: NameId(u32::try_from(name).ok()?),
            ..Span::default()
        };
        span.set_columns(number(event)?, unpacked(arg), unpacked(ret));
        Some(span)
    }

    fn name(&mut self) -> &mut NameId {
        &mut self.name
    }

    fn possible(_: &Meta) -> bool {
        true
    }

    fn quality(about: &mut Meta) -> &mut Vec<String> {
        &mut about.quality
    }
}
