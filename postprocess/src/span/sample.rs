// SPDX-License-Identifier: BSD-3-Clause
//! Program counter samples, by the names of functions instead of addresses.

pub mod kernel;
pub mod user;

use std::collections::HashMap;

use super::what::What;
use super::Spans;
use crate::event::names::in_function;
use crate::event::names::NameId;
use crate::event::point::Point;
use crate::id::Pid;

/// What became of the samples of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples that have got a name.
    pub named: u64,
    /// Samples that have kept their address.
    pub unknown: u64,
}

/// The address that a sample is named by, after `PC=`: 12 digits or more, which no function is called.
pub fn address(name: &str) -> Option<u64> {
    let digits = Some(name).filter(|digits| digits.len() >= 12)?;
    u64::from_str_radix(digits, 16).ok()
}

/// Calls each sample of this kind, of a thread at an address, what `find` says; nothing if it does not know.
/// What is named by a function already keeps its name.
pub fn name(spans: &mut Spans, kind: Point, mut find: impl FnMut(Pid, u64) -> Option<String>) -> Count {
    let Spans { names, spans, .. } = spans;
    let mut count = Count::default();
    let mut found: HashMap<(Pid, u64), Option<(NameId, i64)>> = HashMap::new();
    for span in spans.iter_mut().filter(|s| s.what == What::Point(kind)) {
        let pc = names.get(span.name.index()).and_then(|name| address(name.strip_prefix("PC=")?));
        let (Some(pid), Some(pc)) = (span.pid, pc) else { continue };
        let known = found.entry((pid, pc)).or_insert_with(|| {
            let (text, hash) = in_function(&find(pid, pc)?);
            names.push(text);
            Some((NameId(names.len() as u32 - 1), i64::from(hash)))
        });
        match *known {
            Some((name, hash)) => {
                (span.name, span.arg) = (name, hash);
                count.named += 1;
            }
            None => count.unknown += 1,
        }
    }
    count
}
