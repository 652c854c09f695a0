// SPDX-License-Identifier: BSD-3-Clause
//! Program counter samples, by the names of functions instead of addresses.

pub mod kernel;
pub mod user;

use std::collections::HashMap;

use super::Spans;

/// What became of the samples of one event number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples that have got a name.
    pub named: u64,
    /// Samples that have kept their address.
    pub unknown: u64,
}

/// Calls each sample with this event number, of a thread at an address, what `find` says; nothing if it does not know.
/// A sample named `PC=hex` becomes `PC=function`, and its argument a hash of that, 16 bits, which tells functions apart.
pub fn name(spans: &mut Spans, event: u32, mut find: impl FnMut(i32, u64) -> Option<String>) -> Count {
    let Spans { names, spans, .. } = spans;
    let mut count = Count::default();
    let mut found: HashMap<(i32, u64), Option<(u32, i64)>> = HashMap::new();
    for span in spans.iter_mut().filter(|s| s.event == event as i32) {
        let address = names.get(span.name as usize).and_then(|n| u64::from_str_radix(n.strip_prefix("PC=")?, 16).ok());
        let known = address.and_then(|pc| {
            *found.entry((span.pid, pc)).or_insert_with(|| {
                let text = format!("PC={}", find(span.pid, pc)?);
                let hash = crc32fast::hash(text.as_bytes());
                names.push(text);
                Some((names.len() as u32 - 1, i64::from(hash & 0xffff)))
            })
        });
        match known {
            Some((name, hash)) => {
                (span.name, span.arg) = (name, hash);
                count.named += 1;
            }
            None => count.unknown += 1,
        }
    }
    count
}
