// SPDX-License-Identifier: BSD-3-Clause
//! The recorder's claims and folding, interrupted at every step, in every order that a bound allows.
//!
//! `claim.rs` and `entry.rs` of the module run here unchanged on a model of a machine. Each method of the
//! model is a step; before each, an interrupt may come that records something itself and may be interrupted
//! in turn. All choices are enumerated by running the scenario again with the next untried one.

mod choices;
mod machine;
mod trace;

use choices::Choices;
use machine::{Bounds, Fault, Machine, Record};

/// Runs `script` on CPU 0 in every way that `bounds` allows.
///
/// Returns the number of runs, or what the first faulty run violated and the choices that led to it.
fn explore(bounds: Bounds, script: &[Record]) -> Result<u64, String> {
    let mut choices = Choices::default();
    let mut runs = 0;
    loop {
        let machine = Machine::new(bounds, choices);
        for record in script {
            machine.record(0, *record);
        }
        if let Some(violation) = machine.finish() {
            return Err(format!("run {runs}, choices {:?}: {violation}", machine.into_choices().path()));
        }
        choices = machine.into_choices();
        runs += 1;
        if !choices.next_run() {
            return Ok(runs);
        }
    }
}

const CALL: Record = Record::Call { nr: 39, arg: 7 };
const RETURN: Record = Record::Return { nr: 39, value: -3 };
const SCRIPT: [Record; 4] = [Record::Value, CALL, RETURN, Record::Event];

const STOP: Bounds = Bounds {
    blocks: 64,
    wrap: false,
    interrupts: 3,
    depth: 3,
    gaps: 0,
    bursts: 0,
    kinds: &[Record::Event],
    fault: Fault::None,
};

fn sound(bounds: Bounds, script: &[Record]) {
    match explore(bounds, script) {
        Ok(runs) => assert!(runs > 1000, "only {runs} runs: the bounds are too narrow to mean anything"),
        Err(violation) => panic!("{violation}"),
    }
}

#[test]
fn three_interrupts_nested_or_not_lose_and_corrupt_nothing() {
    sound(STOP, &SCRIPT);
}

#[test]
fn interrupts_of_both_sizes_lose_and_corrupt_nothing() {
    sound(Bounds { interrupts: 2, kinds: &[Record::Event, Record::Value], ..STOP }, &SCRIPT);
}

#[test]
fn a_gap_anywhere_is_bridged() {
    sound(Bounds { interrupts: 2, gaps: 1, ..STOP }, &SCRIPT);
}

#[test]
fn the_last_block_says_that_events_were_lost_behind_it() {
    for blocks in 1..=5 {
        assert_eq!(explore(Bounds { blocks, interrupts: 0, ..STOP }, &[Record::Storm, CALL, RETURN]), Ok(1));
    }
}

#[test]
fn a_full_pool_counts_what_it_loses() {
    for blocks in 1..=3 {
        sound(Bounds { blocks, interrupts: 2, ..STOP }, &[Record::Value, CALL, RETURN, Record::Value, Record::Event]);
    }
}

#[test]
fn wrapping_never_takes_a_block_in_use() {
    let script = [CALL, RETURN, Record::Value];
    sound(Bounds { blocks: 6, wrap: true, interrupts: 2, bursts: 1, ..STOP }, &script);
    sound(Bounds { blocks: 4, wrap: true, interrupts: 3, kinds: &[Record::Value], ..STOP }, &script);
}

#[test]
fn a_storm_inside_a_return_keeps_the_call_its_block() {
    let bounds = Bounds { blocks: 3, wrap: true, interrupts: 1, bursts: 1, kinds: &[Record::Storm], ..STOP };
    sound(Bounds { interrupts: 2, ..bounds }, &[CALL, RETURN]);
}

/// Every fault planted in the machine under the recorder must be found: else the explorer proves nothing.
#[test]
fn every_planted_fault_is_found() {
    let wrap = Bounds { blocks: 3, wrap: true, interrupts: 2, bursts: 1, kinds: &[Record::Storm], ..STOP };
    let small = Bounds { interrupts: 2, kinds: &[Record::Event, Record::Value], ..STOP };
    let faults = [
        (Fault::ClockBeforePosition, small),
        (Fault::MoveInTwoSteps, small),
        (Fault::EveryClaimOutermost, small),
        (Fault::MarkWithoutSecondLook, small),
        (Fault::LastTimeTooNew, Bounds { interrupts: 1, gaps: 1, ..STOP }),
        (Fault::SpareForgotten, Bounds { kinds: &[Record::Storm], ..small }),
        (Fault::FoldWithoutHolding, wrap),
        (Fault::BlockGivenBackWhenFull, wrap),
        (Fault::LossNotCounted, Bounds { blocks: 1, ..small }),
    ];
    for (fault, bounds) in faults {
        let found = explore(Bounds { fault, ..bounds }, &SCRIPT);
        assert!(found.is_err(), "{fault:?} survived {found:?} runs");
    }
}
