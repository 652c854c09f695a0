// SPDX-License-Identifier: BSD-3-Clause
//! Program counter samples named by function instead of address.

pub mod kernel;
pub mod user;

use std::collections::HashMap;

use super::what::What;
use super::Spans;
use crate::event::names::in_function;
use crate::event::names::NameId;
use crate::event::point::Point;
use crate::id::Pid;

/// Result of naming the samples of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of samples that got a name.
    pub named: u64,
    /// Number of samples that kept their address.
    pub unknown: u64,
}

/// The address in a sample's name, after `PC=`: 12 digits or more, which no function has as its name.
pub fn address(name: &str) -> Option<u64> {
    let digits = Some(name).filter(|digits| digits.len() >= 12)?;
    u64::from_str_radix(digits, 16).ok()
}

/// Gives each sample of this kind the name that `find` returns for its thread and address, if it knows one. A sample
/// that already has a function's name keeps it.
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
