// SPDX-License-Identifier: BSD-3-Clause
//! What programs record while a stream is written: copied as it comes, each entry once.
//!
//! Of a grant that is being filled, the entries are copied up to the first that is not complete; of one into which nobody
//! writes any more, all the rest. It has been copied whole then, and is given back. Of an ended program, everything is.
//!
//! Invariants: nothing is given back that is not in the file; memory does not grow with the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::Result;
use kutrace_format::abi::programs::{Granted, Taken, KIND_DONE, KIND_NAMES};
use kutrace_format::file::{REFUSED, REFUSED_BYTES, SECTION_BYTES};
use kutrace_format::program::Entries;

use crate::device::{Attached, Recorder};
use crate::programs::{copy, copy_filling, losses, section, with_head, Part};

/// Sentences about losses of ended programs, at most; the file has all.
const LOSSES: usize = 100;

/// Bytes at a time from which on programs are busy: some threads' worth of grants.
const BUSY: usize = 128 << 10;

/// Up to where each program's grants are in the file.
#[derive(Debug, Default)]
pub struct Areas {
    /// By program and grant.
    copied: BTreeMap<u32, Positions>,
    /// What the first ended programs could not record, and how many more there are of these sentences.
    losses: Vec<String>,
    more_losses: u64,
    /// Bytes of the last sections.
    came: usize,
}

/// How much of each grant was copied.
type Positions = BTreeMap<u64, Position>;

/// How much was copied, the time of the last entry in that, and whether nothing can come after it.
#[derive(Clone, Copy, Debug)]
struct Position {
    bytes: u32,
    tsc: u64,
    is_whole: bool,
}

/// What has come since the last time.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Sections for the file.
    pub sections: Vec<u8>,
    /// What may be given back once they are there.
    pub taken: Vec<Taken>,
}

/// A section for each program that recorded something since the TSC `oldest`, or lost something, one after the other, in a
/// file as they are; and one of those that were refused something, if there are any.
///
/// # Errors
/// As the recorder answers; the same below.
pub fn sections(recorder: &impl Recorder, oldest: u64) -> Result<Vec<u8>> {
    Areas::default().rest_since(recorder, oldest)
}

impl Areas {
    /// Copies what has come.
    pub fn fresh(&mut self, recorder: &impl Recorder) -> Result<Fresh> {
        let mut fresh = Fresh::default();
        self.advance(recorder, |areas, attached, words, _| areas.tell(recorder, attached, words, &mut fresh))?;
        self.came = fresh.sections.len();
        Ok(fresh)
    }

    /// Gives `each` the number of a program of which something has come, and the payload of a section with that; none where
    /// something of it was overwritten before it was copied. Nothing is given back.
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

    /// Gives `each` every program with the words that have come, and whether some were overwritten before. Where the others
    /// stood that there were before.
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

    /// Whether so much has come that programs should not have to wait for the next time.
    pub fn are_busy(&self) -> bool {
        self.came >= BUSY
    }

    /// Tells of these words, and what may be given back with them.
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

    /// All that is not in the file yet, as [`sections`] has it.
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

    /// What programs that have ended could not record, a sentence each.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = self.losses.clone();
        losses.extend((self.more_losses > 0).then(|| format!("and {} more such programs", self.more_losses)));
        losses
    }
}

impl Position {
    /// Passes what is final in a part, which keeps that alone.
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

/// Whether nobody writes into a grant any more.
fn is_done(attached: &Attached, grant: &Granted) -> bool {
    attached.told.ended != 0 || grant.kind & KIND_DONE != 0
}

fn is_of_names(grant: &Granted) -> bool {
    grant.kind == KIND_NAMES
}

/// What comes after these positions: all of it, or what can be final.
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
