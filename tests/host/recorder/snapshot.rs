// SPDX-License-Identifier: BSD-3-Clause
//! A reader that copies blocks while CPUs go on recording and recycling: it waits until no claim is under way and
//! looks at the headers; later it copies the blocks and looks at the headers again.

use super::machine::{Fault, Memory, State};
use super::trace::Reader;

/// A snapshot on its way.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Blocks begun later do not belong to it.
    end: u64,
    /// Events of each CPU that must be in it, unless blocks were recycled.
    over: [u64; 2],
    /// Hooks of tasks that CPU 0 had entered: a grace period waits for them.
    entered: u64,
    progress: Progress,
}

#[derive(Clone, Debug)]
enum Progress {
    Waiting,
    /// The headers are known, and this many of the blocks are copied.
    Looked(Vec<Memory>, Vec<Memory>),
}

impl Snapshot {
    /// A snapshot that ends now.
    pub fn new(state: &State) -> Snapshot {
        let over =
            [0, 1].map(|cpu| state.cpus[cpu].over.saturating_sub(state.cpus[cpu].lost + state.cpus[cpu].outside));
        Snapshot { end: state.clock, over, entered: state.cpus[0].entered, progress: Progress::Waiting }
    }

    /// Returns whether the reader can do a step: it begins when no claim is under way and no hook that a task came to
    /// before.
    pub fn goes_on(&self, state: &State, fault: Fault) -> bool {
        let waits = matches!(self.progress, Progress::Waiting) && fault != Fault::ReaderDoesNotWait;
        let hooks_left =
            state.cpus[0].in_hook.is_none_or(|hook| hook > self.entered) || fault == Fault::CallNotWaitedFor;
        !waits || state.cpus[0].depth == 0 && hooks_left
    }

    /// The reader's next step: the snapshot as it continues, `None` when it is complete, or its fault.
    pub fn step(self, state: &State, copies: usize, fault: Fault) -> Result<Option<Snapshot>, String> {
        let Snapshot { end, over, entered, progress } = self;
        let progress = match progress {
            Progress::Waiting => Progress::Looked(state.blocks.clone(), Vec::new()),
            Progress::Looked(before, mut copied) if copied.len() < before.len() && copies > 0 => {
                let more = before.len().div_ceil(copies);
                copied.extend(state.blocks.iter().skip(copied.len()).take(more).cloned());
                Progress::Looked(before, copied)
            }
            Progress::Looked(before, copied) => {
                let copied = if copies == 0 { state.blocks.clone() } else { copied };
                let after = if fault == Fault::ReaderLooksOnce { &before } else { &state.blocks };
                return check(state, end, over, &before, after, &copied).map(|()| None);
            }
        };
        Ok(Some(Snapshot { end, over, entered, progress }))
    }
}

/// Compares the copied blocks with `over`, the numbers of events that must be in them.
fn check(
    state: &State,
    end: u64,
    over: [u64; 2],
    before: &[Memory],
    after: &[Memory],
    copied: &[Memory],
) -> Result<(), String> {
    for (cpu, over) in over.into_iter().enumerate() {
        let belongs =
            |block: &Memory| block.in_trace && block.cpu == cpu && block.content.is_some() && block.begin <= end;
        let whole = |n: usize| header(&before[n]) == header(&after[n]);
        let mut listed: Vec<usize> = (0..before.len()).filter(|n| belongs(&before[*n])).collect();
        listed.sort_by_key(|n| before[*n].sequence);
        // Events older than a block that was recycled in between go with it.
        let first = listed.iter().rposition(|n| !whole(*n)).map_or(0, |last| last + 1);
        let kept = &listed[first..];
        let mut reader = Reader::new(&state.cpus[cpu]);
        for pair in kept.windows(2) {
            if before[pair[0]].sequence + 1 != before[pair[1]].sequence {
                return Err(format!("snapshot: CPU {cpu}: a block is missing"));
            }
        }
        for n in kept {
            let content = before[*n].content.unwrap_or_default();
            let read = reader.read(&copied[*n], content);
            read.map_err(|fault| format!("snapshot: CPU {cpu}: block {n} {fault}"))?;
        }
        let recycled = state.taken > state.blocks.len();
        if !recycled && reader.entries < over {
            return Err(format!("snapshot: CPU {cpu}: {} of {} events", reader.entries, over));
        }
    }
    Ok(())
}

/// Fields that identify the owner of a block.
fn header(block: &Memory) -> (bool, usize, u64, u64) {
    (block.in_trace, block.cpu, block.sequence, block.begin)
}
