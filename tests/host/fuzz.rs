// SPDX-License-Identifier: BSD-3-Clause
//! The readers take any input: those that once broke them, and a short search, the same in every run.

use std::fs;
use std::path::Path;

use kutrace_tests::fuzz::target;
use kutrace_tests::Random;

use kutrace_tests::cases::cases;

/// Inputs tried by the search, by target; more with `KUTRACE_CASES`.
const ROUNDS: usize = 300;
/// Changes of an input, at most.
const CHANGES: u64 = 6;

/// Runs what once broke a reader, its inputs to begin with, and changes of them.
fn survives(name: &str) {
    let (_, run, seeds) = target(name);
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/found").join(name);
    let found = fs::read_dir(found).into_iter().flatten().map(|file| fs::read(file.unwrap().path()).unwrap());
    let mut inputs: Vec<Vec<u8>> = seeds().into_iter().chain(found).collect();
    inputs.iter().for_each(|input| run(input));
    let mut random = Random(17);
    for _ in 0..cases(ROUNDS) {
        let from = random.below(inputs.len() as u64) as usize;
        let other = random.below(inputs.len() as u64) as usize;
        let mut input = inputs[from].clone();
        for _ in 0..=random.below(CHANGES) {
            change(&mut input, &inputs[other], &mut random);
        }
        run(&input);
        // Some changed inputs are changed further.
        if random.below(8) == 0 && inputs.len() < 64 {
            inputs.push(input);
        }
    }
}

/// Changes a bit, a byte or a number, removes or repeats a stretch, or brings one in from `other`.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const ODD: [&[u8]; 6] = [&[0; 4], &[0xff; 4], &[0xff; 8], &[0, 0, 0, 0x80], b"-1 ", b"999999999999999999 "];
    let at = random.below(input.len() as u64 + 1) as usize;
    let end = (at + random.below(40) as usize).min(input.len());
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.below(256) as u8,
        2 => drop(input.splice(at..end.min(at + 8), ODD[random.below(ODD.len() as u64) as usize].iter().copied())),
        3 => drop(input.drain(at..end)),
        4 => {
            let stretch = input[at..end].to_vec();
            input.splice(at..at, stretch);
        }
        _ => {
            let from = random.below(other.len() as u64 + 1) as usize;
            let to = (from + random.below(200) as usize).min(other.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
    }
}

#[test]
fn any_raw_file_can_be_read() {
    survives("raw");
}

#[test]
fn any_raw_file_of_the_original_can_be_read() {
    survives("original");
}

#[test]
fn any_event_text_can_be_read() {
    survives("text");
}

#[test]
fn any_json_can_be_read() {
    survives("json");
}

#[test]
fn any_frames_can_be_read() {
    survives("frames");
}

#[test]
fn whatever_a_program_records_can_be_read() {
    survives("programs");
}

#[test]
fn any_text_of_tracepoints_can_be_read() {
    survives("tracepoints");
}

#[test]
fn any_trace_of_perfetto_s_can_be_read() {
    survives("perfetto");
}
