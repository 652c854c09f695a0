// SPDX-License-Identifier: BSD-3-Clause
//! Recordings in trace-cmd's format: one by `kutrace_control record --source tracefs` in a guest, and what
//! `trace-cmd convert` made of it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use kutrace_tests::Random;
use postprocess::direct;
use postprocess::event::number::{SYSCALL, SYSCALL_LAST};
use postprocess::source;
use postprocess::span::check::Check;
use postprocess::span::limit::SpanLimit;

const EXECVE: u32 = 59;

/// A file of `tests/golden/others`, unpacked.
fn recording(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/others/{name}.dat.gz"));
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).expect(name)).read_to_end(&mut bytes).expect(name);
    bytes
}

#[test]
fn both_versions_of_the_format_and_a_compressed_one_have_the_same_events() {
    let own = source::decode(&recording("v7")).unwrap();
    assert_eq!((own.meta.lost, own.meta.intervals.len(), own.meta.quality.len()), (0, 2, 0));
    let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
    for e in own.events.iter().filter(|e| (SYSCALL..=SYSCALL_LAST).contains(&e.event())) {
        *calls.entry(e.event() - SYSCALL).or_default() += 1;
    }
    // Those of the recorder's search for the command, and one each of sh, ls and cat.
    assert_eq!(calls[&EXECVE], 7);
    for other in ["v6", "zstd"] {
        let other = source::decode(&recording(other)).unwrap();
        let differ = own.events.iter().zip(&other.events).position(|(own, other)| own != other);
        assert!(differ.is_none() && own.events.len() == other.events.len(), "{differ:?}");
    }
}

#[test]
fn the_spans_cover_the_time_of_each_cpu() {
    let bytes = recording("v7");
    let (spans, tally) = direct::spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).unwrap();
    let mut check = Check::default();
    spans.spans.iter().for_each(|span| check.span(span));
    let intervals = source::decode(&bytes).unwrap().meta.intervals;
    assert_eq!(check.finish(&intervals, &tally), [""; 0]);
    assert!(tally.user.0 > 0 && tally.system.0 > 0 && tally.idle.0 > 0);
}

#[test]
fn a_damaged_recording_is_refused_or_read_as_far_as_it_goes() {
    let below = |random: &mut Random, limit: usize| random.below(limit as u64) as usize;
    let (wholes, mut random) = (["v6", "v7", "zstd"].map(recording), Random(7));
    let (mut refused, mut read) = (0, 0);
    for n in 0..300 {
        let mut bytes = wholes[n % 3].clone();
        for _ in 0..=below(&mut random, 8) {
            let part = if n % 2 == 0 { 1 << 10 } else { bytes.len() };
            let at = below(&mut random, part);
            bytes[at] = below(&mut random, 256) as u8;
        }
        if n % 5 == 0 {
            let end = below(&mut random, bytes.len());
            bytes.truncate(end);
        }
        match source::decode(&bytes) {
            Ok(events) => read += usize::from(!events.events.is_empty()),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20 && read > 100, "{refused} {read}");
}
