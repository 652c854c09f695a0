// SPDX-License-Identifier: BSD-3-Clause
//! Report of `top` for a recorded trace: all its blocks at once, as one window.

use std::mem;

use kutrace_format::abi::command::Vector as Device;
use kutrace_format::abi::event::{Vector, NAME_BYTES};
use kutrace_format::capability::Unseen;
use kutrace_format::file::{Name, NameKind};
use postprocess::raw::clock::Clock;
use postprocess::raw::Raw;
use postprocess::sink::summary::Summary;
use postprocess::span::Meta;

use super::ledger::Ledger;
use super::window::{about, Known};
use crate::follow::{Begin, Piece};
use crate::skim::Skim;

/// The blocks of a trace, in the order in which each CPU filled them.
#[derive(Debug)]
pub struct Replay {
    blocks: Vec<(u32, Begin, Vec<u32>, bool)>,
    devices: Vec<Device>,
    unseen: Unseen,
    meta: Meta,
    /// Start and end of the trace.
    range: (u64, u64),
    clock: Clock,
}

impl Replay {
    /// Takes the blocks out of a trace.
    pub fn new(raw: &Raw) -> Replay {
        let mut blocks = Vec::new();
        for (cpu, of_cpu) in raw.cpus() {
            let mut next = of_cpu.first().map_or(0, |block| block.sequence);
            for block in of_cpu {
                let bytes = block.entries.chunks_exact(4);
                let words = bytes.map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();
                let mut comm = [0; 16];
                comm.copy_from_slice(block.comm);
                let (counter, gap) = (block.begin, block.sequence != next);
                let begin = Begin { counter, pid: block.pid, comm, state: block.state, gap };
                blocks.push((cpu.number(), begin, words, block.lost_after));
                next = block.sequence + 1;
            }
        }
        let [from, to] = [raw.header.start.tsc, raw.header.stop.tsc].map(|tsc| tsc >> raw.header.shift);
        // CPUs are stopped one after the other.
        let last = raw.cpus().flat_map(|(_, blocks)| blocks).map(|block| block.end).max().unwrap_or_default();
        let named = raw.names().iter().filter(|name| name.kind == NameKind::Irq as u16 && name.second > 0);
        let devices = named.map(device).collect();
        let (unseen, clock) = (raw.header.unseen, raw.clock);
        Replay { blocks, devices, unseen, meta: about(unseen.texts()), range: (from, to.max(last)), clock }
    }

    /// Number of entries in the blocks, as far as they are read.
    pub fn entries(&self) -> u64 {
        self.read().0.entries
    }

    /// The summary of the blocks.
    pub fn summary(&self) -> Summary {
        let (mut skim, mut ledger) = self.read();
        ledger.names(mem::take(&mut skim.names));
        ledger.take(&skim.take(self.range.1), &skim);
        let mut window = ledger.cut(self.range.1);
        window.from = self.range.0;
        window.summary(&Known { clock: self.clock, meta: &self.meta, names: &ledger.names, threads: &skim })
    }

    /// The blocks, as pieces of a followed recorder.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.blocks.iter().map(|(cpu, begin, words, lost)| Piece {
            cpu: *cpu,
            begin: Some(*begin),
            words,
            open: false,
            lost: *lost,
        })
    }

    fn read(&self) -> (Skim, Ledger) {
        let mut skim = Skim::new([0..=u16::MAX >> 4]);
        for piece in self.pieces() {
            skim.read(piece);
        }
        (skim, Ledger::new(self.unseen, &self.devices))
    }
}

/// A vector that a file names.
fn device(name: &Name) -> Device {
    let mut text = [0; NAME_BYTES];
    text.iter_mut().zip(name.text).for_each(|(to, from)| *to = *from);
    Device { which: Vector::of(name.second - 1, name.number).0, reserved: 0, name: text }
}
