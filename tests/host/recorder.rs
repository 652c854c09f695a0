// SPDX-License-Identifier: BSD-3-Clause
//! The recorder's claims and folding, interrupted at every step, in every order that a bound allows.
//!
//! `claim.rs` and `entry.rs` of the module run here unchanged on a model of a machine. Each method of the
//! model is a step; before each, an interrupt may come that records something itself and may be interrupted
//! in turn. All choices are enumerated by running the scenario again with the next untried one.

mod choices;
mod machine;
mod snapshot;
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
    gates: 0,
    snapshots: 0,
    kinds: &[Record::Event],
    fault: Fault::None,
};

fn sound(bounds: Bounds, script: &[Record]) {
    match explore(bounds, script) {
        Ok(runs) => {
            eprintln!("RUNS {runs}");
            assert!(runs > 1000, "only {runs} runs: the bounds are too narrow to mean anything")
        }
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
    let bounds = Bounds { blocks: 4, wrap: true, interrupts: 1, bursts: 1, kinds: &[Record::Storm], ..STOP };
    sound(bounds, &[CALL, RETURN]);
    sound(Bounds { interrupts: 2, bursts: 0, ..bounds }, &[CALL, RETURN]);
}

#[test]
fn a_return_is_never_folded_into_what_came_to_stand_where_its_call_was() {
    for values in 0..12 {
        let mut script = vec![CALL];
        script.extend(std::iter::repeat_n(Record::Value, values));
        script.push(RETURN);
        explore(Bounds { blocks: 2, wrap: true, interrupts: 1, ..STOP }, &script).unwrap();
    }
}

#[test]
fn what_comes_before_the_gate_opens_and_after_it_closes_is_counted_apart() {
    sound(Bounds { interrupts: 1, gates: 2, ..STOP }, &[CALL, RETURN, Record::Event]);
    sound(Bounds { blocks: 2, interrupts: 2, gates: 2, ..STOP }, &[Record::Value]);
}

#[test]
fn a_snapshot_has_all_that_was_recorded_and_nothing_torn() {
    let bounds = Bounds { blocks: 12, wrap: true, snapshots: 1, interrupts: 0, ..STOP };
    sound(bounds, &[CALL, RETURN, Record::Value]);
    sound(Bounds { interrupts: 1, ..bounds }, &[CALL, RETURN]);
    sound(Bounds { blocks: 5, bursts: 1, ..bounds }, &[CALL, RETURN]);
}

/// Every fault planted in the machine under the recorder must be found: else the explorer proves nothing.
#[test]
fn every_planted_fault_is_found() {
    let wrap = Bounds { blocks: 3, wrap: true, interrupts: 2, bursts: 1, kinds: &[Record::Storm], ..STOP };
    let small = Bounds { interrupts: 2, kinds: &[Record::Event, Record::Value], ..STOP };
    let snapshot = Bounds { blocks: 6, wrap: true, interrupts: 0, snapshots: 1, ..STOP };
    let faults = [
        (Fault::ClockBeforePosition, small),
        (Fault::MoveInTwoSteps, small),
        (Fault::EveryClaimOutermost, wrap),
        (Fault::DeadlineTooLate, Bounds { interrupts: 1, gaps: 1, ..STOP }),
        (Fault::SpareForgotten, Bounds { kinds: &[Record::Storm], ..small }),
        (Fault::BlockGivenBackWhenFull, wrap),
        (Fault::CounterByteBeside, small),
        (Fault::LossNotCounted, Bounds { blocks: 1, ..small }),
        (Fault::OutsideNotCounted, Bounds { gates: 1, ..small }),
        (Fault::ReaderDoesNotWait, snapshot),
        (Fault::ReaderLooksOnce, Bounds { bursts: 1, ..snapshot }),
    ];
    for (fault, bounds) in faults {
        let found = explore(Bounds { fault, ..bounds }, &SCRIPT);
        assert!(found.is_err(), "{fault:?} survived {found:?} runs");
    }
    // The position has to come round to the very word: one of these does it.
    let bounds = Bounds { blocks: 2, wrap: true, interrupts: 1, fault: Fault::CallNotForgotten, ..STOP };
    let folded_wrongly = |values| {
        let mut script = vec![CALL];
        script.extend(std::iter::repeat_n(Record::Value, values));
        script.push(RETURN);
        explore(bounds, &script).is_err()
    };
    assert!((0..12).any(folded_wrongly), "CallNotForgotten survived");
}
