// SPDX-License-Identifier: BSD-3-Clause
//! Records of programs while a stream is written: copied as they arrive, each entry once.
//!
//! From a grant that is being filled, entries are copied up to the first incomplete one; from a grant that is no longer
//! written, all remaining ones. That grant is then copied completely, and is given back. All grants of an ended program
//! are copied.
//!
//! Invariants: no grant is given back that is not in the file; memory does not grow with the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::Result;
use kutrace_format::abi::programs::{Granted, Taken, KIND_DONE, KIND_NAMES};
use kutrace_format::file::{REFUSED, REFUSED_BYTES, SECTION_BYTES};
use kutrace_format::program::Entries;

use crate::device::{Attached, Recorder};
use crate::programs::{copy, copy_filling, losses, section, with_head, Part};

/// Maximum number of sentences about losses of ended programs; the file has all losses.
const LOSSES: usize = 100;

/// Number of bytes at a time from which on programs count as busy: the grants of some threads.
const BUSY: usize = 128 << 10;

/// Position up to which each program's grants are in the file.
#[derive(Debug, Default)]
pub struct Areas {
    /// By program and grant.
    copied: BTreeMap<u32, Positions>,
    /// Losses of the first ended programs, and the number of further sentences.
    losses: Vec<String>,
    more_losses: u64,
    /// Size of the last sections in bytes.
    came: usize,
}

/// Copied part of each grant.
type Positions = BTreeMap<u64, Position>;

/// Number of bytes copied, the time of the last copied entry, and whether nothing can follow it.
#[derive(Clone, Copy, Debug)]
struct Position {
    bytes: u32,
    tsc: u64,
    is_whole: bool,
}

/// New records since the last call.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Sections for the file.
    pub sections: Vec<u8>,
    /// Grants that may be given back once the sections are in the file.
    pub taken: Vec<Taken>,
}

/// One section for each program that recorded something since the TSC `oldest`, or lost something, in sequence as in a
/// file; and one for refused programs, if there are any.
///
/// # Errors
/// The recorder's error; the same for the functions below.
pub fn sections(recorder: &impl Recorder, oldest: u64) -> Result<Vec<u8>> {
    Areas::default().rest_since(recorder, oldest)
}

impl Areas {
    /// Copies new records.
    pub fn fresh(&mut self, recorder: &impl Recorder) -> Result<Fresh> {
        let mut fresh = Fresh::default();
        self.advance(recorder, |areas, attached, words, _| areas.tell(recorder, attached, words, &mut fresh))?;
        self.came = fresh.sections.len();
        Ok(fresh)
    }

    /// Calls `each` with the number of a program that has new records, and the payload of a section with them; `None`
    /// if some of the records were overwritten before they were copied. Gives nothing back.
    pub fn news(&mut self, recorder: &impl Recorder, mut each: impl FnMut(u32, Option<&[u8]>)) -> Result<()> {
        let gone = self.advance(recorder, |_, attached, words, is_overwritten| {
            let told = &attached.told;
            if is_overwritten {
                each(told.serial, None);
            }
            if !words.is_empty() {
                let section = section(told, &[names(recorder, attached)?, words].concat());
                each(told.serial, section.get(SECTION_BYTES..));
            }
            Ok(())
        })?;
        let was_cut = |(_, positions): &(&u32, &Positions)| positions.values().any(|at| !at.is_whole);
        gone.iter().filter(was_cut).for_each(|(serial, _)| each(*serial, None));
        Ok(())
    }

    /// Calls `each` with every program, its new words, and whether earlier ones were overwritten. Returns the positions
    /// of the programs that no longer exist.
    fn advance(
        &mut self,
        recorder: &impl Recorder,
        mut each: impl FnMut(&mut Areas, &Attached, Vec<Part>, bool) -> Result<()>,
    ) -> Result<BTreeMap<u32, Positions>> {
        let mut before = mem::take(&mut self.copied);
        let mut serial = 0;
        while let Some(attached) = recorder.program_after(serial)?.filter(|attached| attached.told.tgid != 0) {
            serial = attached.told.serial;
            let mut positions = before.remove(&serial).unwrap_or_default();
            let mut words = words(recorder, &attached, &positions, false)?;
            for part in &mut words {
                let sequence = part.grant.sequence;
                let start = Position { bytes: 0, tsc: part.grant.tsc, is_whole: false };
                positions.entry(sequence).or_insert(start).pass(part, &attached);
            }
            words.retain(|part| !part.bytes.is_empty());
            let known: BTreeSet<u64> = attached.grants.iter().map(|grant| grant.sequence).collect();
            let is_overwritten = positions.iter().any(|(sequence, at)| !at.is_whole && !known.contains(sequence));
            positions.retain(|sequence, _| known.contains(sequence));
            self.copied.insert(serial, positions);
            each(self, &attached, words, is_overwritten)?;
        }
        Ok(before)
    }

    /// Returns whether there is so much new data that programs should not have to wait for the next period.
    pub fn are_busy(&self) -> bool {
        self.came >= BUSY
    }

    /// Adds a section of these words, and the grants that may be given back with it.
    fn tell(
        &mut self,
        recorder: &impl Recorder,
        attached: &Attached,
        words: Vec<Part>,
        fresh: &mut Fresh,
    ) -> Result<()> {
        let Attached { told, grants } = attached;
        let serial = told.serial;
        let (has_words, has_ended) = (!words.is_empty(), told.ended != 0);
        if has_words || has_ended {
            let section = section(told, &[names(recorder, attached)?, words].concat());
            let losses = if has_ended { losses(&section) } else { Vec::new() };
            if has_words || !losses.is_empty() {
                fresh.sections.extend(section);
            }
            let told = losses.len().min(LOSSES.saturating_sub(self.losses.len()));
            self.more_losses += (losses.len() - told) as u64;
            self.losses.extend(losses.into_iter().take(told));
        }
        let is_whole = |grant: &&Granted| grant.kind & KIND_DONE != 0;
        let taken = |&Granted { offset, sequence, .. }: &Granted| Taken { serial, offset, sequence };
        match has_ended {
            true => fresh.taken.push(Taken { serial, ..Taken::default() }),
            false => fresh.taken.extend(grants.iter().filter(is_whole).map(taken)),
        }
        Ok(())
    }

    /// Everything that is not in the file yet, as in [`sections`].
    pub fn rest(&self, recorder: &impl Recorder) -> Result<Vec<u8>> {
        self.rest_since(recorder, 0)
    }

    fn rest_since(&self, recorder: &impl Recorder, oldest: u64) -> Result<Vec<u8>> {
        let (mut sections, mut serial, none) = (Vec::new(), 0, Positions::new());
        while let Some(attached) = recorder.program_after(serial)? {
            serial = attached.told.serial;
            let mut words = words(recorder, &attached, self.copied.get(&serial).unwrap_or(&none), true)?;
            if oldest > 0 {
                words.iter_mut().for_each(|part| part.leave_out(oldest));
            }
            words.retain(|part| !part.bytes.is_empty());
            let has_words = !words.is_empty();
            let section = section(&attached.told, &[names(recorder, &attached)?, words].concat());
            if has_words || !losses(&section).is_empty() {
                sections.extend(section);
            }
        }
        let refused = recorder.refused()?;
        if !refused.is_empty() {
            sections.extend(with_head(REFUSED, &refused, refused.len() / REFUSED_BYTES));
        }
        Ok(sections)
    }

    /// Losses of ended programs, one sentence each.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = self.losses.clone();
        losses.extend((self.more_losses > 0).then(|| format!("and {} more such programs", self.more_losses)));
        losses
    }
}

impl Position {
    /// Moves the position past the final entries of a part, and truncates the part to them.
    fn pass(&mut self, part: &mut Part, attached: &Attached) {
        if is_done(attached, &part.grant) {
            self.bytes += part.bytes.len() as u32;
            self.is_whole = true;
            part.trim();
            return;
        }
        let (bytes, tsc) = Entries::settled(&part.bytes, self.tsc);
        part.bytes.truncate(bytes);
        (self.bytes, self.tsc) = (self.bytes + bytes as u32, tsc);
    }
}

/// Returns whether a grant is no longer written.
fn is_done(attached: &Attached, grant: &Granted) -> bool {
    attached.told.ended != 0 || grant.kind & KIND_DONE != 0
}

fn is_of_names(grant: &Granted) -> bool {
    grant.kind == KIND_NAMES
}

/// Words after these positions: all of them, or those that can be final.
fn words(recorder: &impl Recorder, attached: &Attached, positions: &Positions, all: bool) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for grant in attached.grants.iter().filter(|grant| !is_of_names(grant)) {
        let start = Position { bytes: 0, tsc: grant.tsc, is_whole: false };
        let Position { bytes, tsc, .. } = *positions.get(&grant.sequence).unwrap_or(&start);
        let left = grant.bytes.saturating_sub(bytes);
        let rest = Granted { offset: grant.offset + bytes, bytes: left, tsc, ..*grant };
        parts.extend(match is_done(attached, grant) {
            true => copy(recorder, attached.told.serial, rest),
            false => copy_filling(recorder, attached.told.serial, rest, all),
        }?);
    }
    parts.retain(|part| part.bytes.iter().any(|&byte| byte != 0));
    if all {
        parts.iter_mut().for_each(Part::trim);
    }
    Ok(parts)
}

fn names(recorder: &impl Recorder, attached: &Attached) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for grant in attached.grants.iter().filter(|grant| is_of_names(grant)) {
        parts.extend(copy(recorder, attached.told.serial, *grant)?);
    }
    parts.iter_mut().for_each(Part::trim);
    Ok(parts)
}
