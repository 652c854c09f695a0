// SPDX-License-Identifier: BSD-3-Clause
//! The blocks of a raw file, each by itself: its header, and the number of calls of hooks in its entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::offset_of;
use std::path::Path;

use kutrace_format::abi::event::{NAME_VECTOR, SYSCALLS};
use kutrace_format::event::Event;
use kutrace_format::file::{Header, NameKind};
use postprocess::raw::block::{self, Block, Expected};
use postprocess::raw::counter::Counting;
use postprocess::raw::file;
use postprocess::raw::stream::{Item, Opening, Stream};

/// Byte offset in a block of the count that a counting module keeps.
const EVENTS_AT: usize = offset_of!(kutrace_format::abi::block::Header, events);

/// A raw file without damage, and without a missing block of a CPU between its first and its last.
pub struct Blocks {
    /// The file's header.
    pub header: Header,
    /// CPUs that were offline at the start, as the file names them.
    pub offline: BTreeSet<u32>,
    /// Blocks of each CPU, in the order of their sequence numbers.
    pub cpus: BTreeMap<u32, Vec<Content>>,
    /// The kernel's reports on vectors while it ran: the time, the CPU, the vector, and its user from then on.
    pub vectors: BTreeSet<(u64, u32, u32, String)>,
}

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Its number among its CPU's.
    pub sequence: u64,
    /// Counters at its start and end.
    pub span: (u64, u64),
    /// True if its CPU went offline right after it.
    pub offline_after: bool,
    /// The numbers of its first entry and its last.
    pub ends: Option<(u16, u16)>,
    /// Calls of hooks in its entries.
    pub decoded: u64,
    /// Calls of hooks in it, by the module's count.
    pub counted: u64,
}

impl Blocks {
    /// Reads a raw file and every entry in it.
    pub fn read(path: &Path) -> Blocks {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let layout = file::split(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(layout.damage, [], "{}", path.display());
        let expected =
            Expected { uuid: Some(layout.header.uuid), cpus: layout.header.cpus, counting: Counting::Nothing };
        let mut cpus = BTreeMap::<u32, Vec<Content>>::new();
        let mut vectors = BTreeSet::new();
        for (index, &(offset, bytes)) in layout.blocks.iter().enumerate() {
            let block = block::parse(index, offset, bytes, expected).unwrap_or_else(|r| panic!("{index}: {}", r.fact));
            let counted = u32::from_le_bytes(bytes[EVENTS_AT..EVENTS_AT + 4].try_into().unwrap()).into();
            vectors.extend(vectors_of(block));
            let (decoded, ends) = calls(block);
            let Block { sequence, offline: offline_after, .. } = block;
            let content = Content { sequence, span: (block.begin, block.end), offline_after, ends, decoded, counted };
            cpus.entry(block.cpu.number()).or_default().push(content);
        }
        cpus.values_mut().for_each(|blocks| blocks.sort_by_key(|b| b.sequence));
        for pair in cpus.values().flat_map(|blocks| blocks.windows(2)) {
            assert_eq!(pair[0].sequence + 1, pair[1].sequence, "a block is missing: {pair:?}");
            assert!(pair[0].span.1 <= pair[1].span.0, "two blocks overlap: {pair:?}");
        }
        let cpu_names = layout.names.iter().filter(|name| name.kind == NameKind::Cpu as u16);
        let offline = cpu_names.filter(|name| name.second == 1).map(|name| name.number).collect();
        Blocks { header: layout.header, offline, cpus, vectors }
    }

    /// All blocks, CPU by CPU.
    pub fn all(&self) -> impl Iterator<Item = &Content> {
        self.cpus.values().flatten()
    }
}

/// The calls of hooks that led to the entries of a block, and the first and the last of these: a folded system call is
/// two, and a task that is named right before the switch to it is one with the switch.
fn calls(block: Block) -> (u64, Option<(u16, u16)>) {
    let mut stream = Stream::new(block.cpu, vec![block], block.begin, Opening::Wrapped);
    let (mut calls, mut named, mut ends) = (0, None, None);
    for timed in &mut stream {
        let Item::Entry(number, words, _) = timed.item else { continue };
        ends = Some((ends.map_or(number, |(first, _)| first), number));
        let event = Event::read(number, words);
        calls += match event {
            Some(Event::Switch(pid)) if named == Some((timed.at, pid)) => 0,
            Some(Event::Call { nr: ..SYSCALLS, call }) if call.folded.is_some() => 2,
            _ => 1,
        };
        named = match event {
            Some(Event::Task { pid, .. }) => Some((timed.at, pid)),
            _ => None,
        };
    }
    assert_eq!(stream.damage, [], "block {}", block.index);
    (calls, ends)
}

fn vectors_of(block: Block) -> Vec<(u64, u32, u32, String)> {
    let mut vectors = Vec::new();
    for timed in &mut Stream::new(block.cpu, vec![block], block.begin, Opening::Wrapped) {
        let Item::Entry(number, words, _) = timed.item else { continue };
        if let Some(Event::Name { kind: NAME_VECTOR, number, text }) = Event::read(number, words) {
            let text = text.iter().take_while(|byte| **byte != 0).map(|&byte| byte as char).collect();
            vectors.push((timed.at, (number >> 16) - 1, number & 0xffff, text));
        }
    }
    vectors
}
