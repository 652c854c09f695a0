// SPDX-License-Identifier: BSD-3-Clause
//! The file that holds the traces of several machines as they are.
//!
//! ```text
//! | "KUtraceM" | section MACH | section TRAC | section TRAC ... |
//! ```
//!
//! Sections are those of a trace. The payload of MACH is JSON, a list of [`Machine`]s; each TRAC is the trace of one,
//! in the same order, with checksums of its own.
//!
//! Invariant: no content makes a reader fail except a damaged MACH, without which nothing can be found.

use std::io::{self, Write};

use kutrace_format::file::{Section, MACHINES, MACHINES_MAGIC, SECTION_BYTES, TRACE};
use serde::{Deserialize, Serialize};

use super::inside::Inside;
use super::shift::Shift;
use crate::raw::damage::{Damage, NotATrace};

/// More machines than this are damage.
pub const MACHINES_MAX: usize = 256;

/// Entry of a machine in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the machine.
    pub name: String,
    /// Description of its clock, for people.
    pub clock: String,
    /// Offset from its time to the first machine's: each counts from the minute before its trace began.
    pub shift: Shift,
    /// Its host, if that machine's trace is also here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// Size of its trace in bytes.
    pub bytes: u64,
}

/// A file taken apart.
#[derive(Clone, Debug)]
pub struct Layout<'a> {
    /// The machines, each with its trace.
    pub machines: Vec<(Machine, &'a [u8])>,
    /// Damage found around the traces.
    pub damage: Vec<Damage>,
}

/// True if the traces of several machines have this start.
pub fn is_machines(bytes: &[u8]) -> bool {
    bytes.starts_with(&MACHINES_MAGIC)
}

/// Writes the file.
///
/// # Errors
/// Any error of the output.
pub fn write(machines: &[(Machine, &[u8])], out: &mut dyn Write) -> io::Result<()> {
    let list: Vec<Machine> =
        machines.iter().map(|(machine, trace)| Machine { bytes: trace.len() as u64, ..machine.clone() }).collect();
    let json = serde_json::to_vec(&list)?;
    let crc32 = crc32fast::hash(&json);
    out.write_all(&MACHINES_MAGIC)?;
    let head = Section { tag: MACHINES, crc32, bytes: json.len() as u64, items: list.len() as u64 };
    out.write_all(&head.to_bytes())?;
    out.write_all(&json)?;
    for (_, trace) in machines {
        out.write_all(&Section { tag: TRACE, crc32: 0, bytes: trace.len() as u64, items: 1 }.to_bytes())?;
        out.write_all(trace)?;
    }
    Ok(())
}

/// The list of machines, and its end.
fn list(bytes: &[u8]) -> Option<(Vec<Machine>, usize)> {
    let start = MACHINES_MAGIC.len() + SECTION_BYTES;
    let section = Section::from_bytes(bytes.get(MACHINES_MAGIC.len()..)?.first_chunk()?);
    let end = start.checked_add(usize::try_from(section.bytes).ok()?)?;
    let json = bytes.get(start..end).filter(|json| crc32fast::hash(json) == section.crc32)?;
    let machines: Vec<Machine> = serde_json::from_slice(json).ok()?;
    (section.tag == MACHINES && (1..=MACHINES_MAX).contains(&machines.len())).then_some((machines, end))
}

/// Size of a file that begins with these bytes, if its list is sound.
pub fn size(bytes: &[u8]) -> Option<usize> {
    let (machines, end) = list(bytes).filter(|_| is_machines(bytes))?;
    machines.iter().try_fold(end, |at, m| at.checked_add(SECTION_BYTES)?.checked_add(usize::try_from(m.bytes).ok()?))
}

/// Takes a file apart.
///
/// # Errors
/// If the list of machines is damaged.
pub fn split(bytes: &[u8]) -> Result<Layout<'_>, NotATrace> {
    let (list, mut at) = list(bytes).filter(|_| is_machines(bytes)).ok_or(NotATrace::NoMachines)?;
    let mut layout = Layout { machines: Vec::new(), damage: Vec::new() };
    for machine in list {
        let start = at.saturating_add(SECTION_BYTES).min(bytes.len());
        let head = bytes.get(at..).and_then(|rest| rest.first_chunk()).map(Section::from_bytes);
        if head.is_none_or(|head| head.tag != TRACE || head.bytes != machine.bytes) {
            layout.damage.push(Damage::at(at, format!("the section of machine {} is damaged", machine.name)));
        }
        let end = start.saturating_add(usize::try_from(machine.bytes).unwrap_or(usize::MAX));
        if end > bytes.len() {
            let fact = format!("the file ends here, within the trace of machine {}", machine.name);
            layout.damage.push(Damage::at(bytes.len(), fact));
        }
        at = end.min(bytes.len());
        layout.machines.push((machine, &bytes[start..at]));
    }
    if at < bytes.len() {
        layout.damage.push(Damage::at(at, "something follows the last trace; skipped"));
    }
    Ok(layout)
}
