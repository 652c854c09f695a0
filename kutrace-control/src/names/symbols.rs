// SPDX-License-Identifier: BSD-3-Clause
//! Locations of samples of the program counter: functions of the kernel, and mappings of programs' files.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use kutrace_format::abi::block::{HEADER_WORDS, WORDS};
use kutrace_format::abi::{event, word};
use kutrace_format::file::NameKind;
use postprocess::span::sample::kernel::Symbols;

use super::Names;
use crate::selection::{SelectedBlock, Selection};

/// The program counters in the blocks of a selection, those of the kernel and, below these, those of programs. From a
/// block that is recycled during the read, they may be any numbers.
pub fn sampled(pool: &[AtomicU32], selection: &Selection) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for SelectedBlock { index, content, .. } in &selection.blocks {
        let block = &pool[index * WORDS..][..WORDS];
        let at = |word: usize| block.get(word).filter(|_| word < content / 4).map(|word| word.load(Ordering::Relaxed));
        let mut next = HEADER_WORDS;
        while let Some(number) = at(next).map(word::event) {
            if let (event::PC_KERNEL | event::PC_USER, Some(low), Some(high)) = (number, at(next + 1), at(next + 2)) {
                found.insert(u64::from(low) | u64::from(high) << 32);
            }
            let Some(arguments) = event::argument_words(number) else { break };
            next += 1 + arguments;
        }
    }
    found
}

/// The first address of the kernel's half.
const KERNEL: u64 = 1 << 63;

/// Adds names for the kernel functions and the mappings of programs' files that contain these program counters, as far
/// as this process may read them.
pub fn gather(names: &mut Names, sampled: &BTreeSet<u64>) {
    if sampled.range(KERNEL..).next().is_some() {
        name(names, sampled, &fs::read_to_string("/proc/kallsyms").unwrap_or_default());
    }
    std::mem::take(&mut names.maps).gather(names, sampled);
}

/// Adds names for the functions that contain these program counters, as listed by `kallsyms`; none if that hides the
/// addresses.
fn name(names: &mut Names, sampled: &BTreeSet<u64>, kallsyms: &str) {
    let Ok(symbols) = Symbols::parse(kallsyms) else { return };
    for (start, function) in sampled.range(KERNEL..).filter_map(|&pc| symbols.function(pc)) {
        names.add(NameKind::Symbol, start as u32, (start >> 32) as u32, function.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::selection::tests::block;
    use crate::selection::Recycling;
    use kutrace_format::file::Name;

    const KALLSYMS: &str = "ffffffff81000000 T first\nffffffff81000100 t second\nffffffff81000200 T third\n";

    #[test]
    fn functions_that_were_sampled_are_named_once() {
        let words = [
            word::entry(event::SCHED, 1),
            word::entry(event::PC_KERNEL, 2),
            0x8100_0123,
            0xffff_ffff,
            word::entry(event::PC_USER, 3),
            0x8100_0223,
            0x5500,
            word::entry(event::PC_KERNEL, 4),
            0x8100_0100,
            0xffff_ffff,
            // After the content.
            word::entry(event::PC_KERNEL, 5),
            0x8100_0000,
            0xffff_ffff,
        ];
        let pool = block(0, 0, 10, 4 * (HEADER_WORDS + 10));
        words.iter().zip(&pool[HEADER_WORDS..]).for_each(|(&word, at)| at.store(word, Ordering::Relaxed));
        let selection = Selection::of(&pool, Recycling::Never, u64::MAX);
        let sampled = sampled(&pool, &selection);
        assert_eq!(Vec::from_iter(&sampled), [&0x5500_8100_0223, &0xffff_ffff_8100_0100, &0xffff_ffff_8100_0123]);

        let mut names = Names::default();
        name(&mut names, &sampled, KALLSYMS);
        let payload = names.payload();
        let (record, rest) = Name::split(&payload).unwrap();
        assert_eq!((record.kind, record.number, record.second), (NameKind::Symbol as u16, 0x8100_0100, 0xffff_ffff));
        assert_eq!((record.text, rest.len()), (&b"second"[..], 0));

        let mut none = Names::default();
        name(&mut none, &sampled, "0000000000000000 T first\n");
        assert!(none.is_empty());
    }
}
