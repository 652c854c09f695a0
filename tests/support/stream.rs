// SPDX-License-Identifier: BSD-3-Clause
//! A made trace with the kernel's counters over its time, and as the stream that a recorder would have written.

use kutrace_format::abi::command::Moment;
use kutrace_format::file::{self, Header, Section};
use kutrace_format::reading::{CounterFile, Reading};

use crate::{Closed, TraceBuilder, SHIFT, START};

impl TraceBuilder {
    /// Adds the contents of one of the kernel's files between two counters after the start.
    pub fn read(&mut self, file: CounterFile, (before, after): (u64, u64), text: &str) -> &mut TraceBuilder {
        let [before, after] = [before, after].map(|counter| (START + counter) << SHIFT);
        self.readings.push((file as u16, before, after, text.to_string()));
        self
    }

    /// The file as a stream: a section for each block, in the order in which they end, a moment after each, and the end.
    pub fn stream(&self) -> Vec<u8> {
        let stop = self.header.stop.tsc >> self.header.shift;
        let mut blocks: Vec<Closed> = self.cpus.values().flat_map(|r| r.clone().close(stop)).collect();
        let number = |block: &Closed, at: usize| u64::from_le_bytes(block.bytes[at..at + 8].try_into().unwrap());
        let (begin, end) = (|block: &Closed| number(block, 24), |block: &Closed| number(block, 32));
        blocks.sort_by_key(end);
        let lost = self.cpus.values().map(|r| r.lost).sum();
        let flags = self.header.flags | file::FLAG_STREAM;
        let signed = |header: Header| {
            let mut head = header.to_bytes().to_vec();
            let crc = crc32fast::hash(&head);
            head[file::CRC_AT..file::CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
            head
        };
        let section = |tag: [u8; 4], payload: &[u8], items: usize| {
            let crc32 = if tag == file::BLOCKS { 0 } else { crc32fast::hash(payload) };
            [&Section { tag, crc32, bytes: payload.len() as u64, items: items as u64 }.to_bytes(), payload].concat()
        };
        let moment = file::moment_to_bytes(&self.header.stop);
        let mut out = signed(Header { flags, stop: Moment::default(), blocks: 0, lost: 0, ..self.header });
        for (n, block) in blocks.iter().enumerate() {
            out.extend(section(file::BLOCKS, &block.bytes, 1));
            // What began before any block that is still to come.
            let whole = blocks[n + 1..].iter().map(begin).min().unwrap_or(stop);
            out.extend(section(file::MOMENT, &[&moment[..], &whole.to_le_bytes()].concat(), 1));
        }
        out.extend(section(file::NAMES, &self.names_payload(), self.names.len()));
        if !self.readings.is_empty() {
            out.extend(section(file::COUNTERS, &self.readings_payload(), self.readings.len()));
        }
        let end = signed(Header { flags, blocks: blocks.len() as u64, lost, ..self.header });
        out.extend(section(file::STOP, &end, 1));
        out
    }

    pub(crate) fn readings_payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for (file, before, after, text) in &self.readings {
            let reading = Reading { file: *file, before: *before, after: *after, text: text.as_bytes() };
            payload.extend(reading.head());
            payload.extend(text.as_bytes());
        }
        payload
    }
}
