// SPDX-License-Identifier: BSD-3-Clause
//! The recorder's claims and folding, interrupted at every step, in every order that a bound allows.
//!
//! The recorder of the module runs here unchanged on a model of a machine. Each method of the
//! model is a step; before each, an interrupt may come that records something itself and may be interrupted
//! in turn. All choices are enumerated by running the scenario again with the next untried one; without `KUTRACE_CASES`
//! only that many.

pub mod choices;
mod machine;
mod snapshot;
mod trace;

use kutrace_tests::cases::cases;

use crate::abi::word::Call;
use choices::Choices;
use machine::{Bounds, Fault, Machine, Record, Task};

/// Runs of one script where `KUTRACE_CASES` asks for no more.
const FEW: u64 = 20_000;

/// Runs `script` on CPU 0 in every way that `bounds` allows.
///
/// Returns the number of runs, or the fault of the first faulty run and the choices that led to it.
fn explore(bounds: Bounds, script: &[Record]) -> Result<u64, String> {
    explore_and(bounds, script, |_| ())
}

/// As [`explore`], and calls `look` on the result of each run.
fn explore_and(bounds: Bounds, script: &[Record], mut look: impl FnMut(&Machine)) -> Result<u64, String> {
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
        look(&machine);
        choices = machine.into_choices();
        runs += 1;
        // A planted fault is looked for until it is found.
        let few = cases(1) == 1 && matches!(bounds.fault, Fault::None);
        if !choices.next_run() || few && runs == FEW {
            return Ok(runs);
        }
    }
}

const CALL: Record = Record::Call { nr: 39, arg: 7 };
const RETURN: Record = Record::Return { nr: 39, value: -3 };
const LONG_RETURN: Record = Record::Return { nr: 39, value: 4096 };
const SCRIPT: [Record; 4] = [Record::Value, CALL, RETURN, Record::Event];

const STOP: Bounds = Bounds {
    blocks: 24,
    naming: false,
    wrap: false,
    interrupts: 3,
    depth: 3,
    gaps: 0,
    steps_back: 0,
    slips: 0,
    bursts: 0,
    gates: 0,
    snapshots: 0,
    copies: 0,
    reads: 0,
    take_in_steps: false,
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
fn a_clock_that_steps_back_anywhere_begins_a_block_that_says_so() {
    sound(Bounds { interrupts: 2, steps_back: 1, ..STOP }, &SCRIPT);
    sound(Bounds { interrupts: 1, gaps: 1, steps_back: 1, ..STOP }, &SCRIPT);
    sound(Bounds { blocks: 5, wrap: true, interrupts: 2, steps_back: 2, ..STOP }, &[CALL, RETURN]);
    // To before the last full time, but not before its block began.
    explore(Bounds { naming: true, interrupts: 0, gaps: 4, steps_back: 1, ..STOP }, &[Record::Event; 6]).unwrap();
}

/// It is reported if it is before the last full time or the block's begin. Otherwise the entries after it are read a
/// period too late, up to the next full time, and nothing else is wrong: no word, no order, no value, no count.
#[test]
fn a_clock_that_slips_back_by_a_few_counts_costs_a_period_until_time_is_said_in_full() {
    sound(Bounds { interrupts: 2, slips: 1, ..STOP }, &SCRIPT);
    sound(Bounds { interrupts: 1, slips: 2, ..STOP }, &SCRIPT);
    sound(Bounds { interrupts: 1, gaps: 1, slips: 1, ..STOP }, &SCRIPT);
    sound(Bounds { interrupts: 1, steps_back: 1, slips: 1, ..STOP }, &SCRIPT);
    sound(Bounds { blocks: 5, wrap: true, interrupts: 2, slips: 2, ..STOP }, &[CALL, RETURN]);
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

/// Blocks that are given back are used again: if no interrupt holds blocks up, two are enough forever, or three with a
/// call whose block is kept.
#[test]
fn wrapping_loses_nothing_however_long_it_goes_on() {
    let rounds = |records: &[Record]| records.repeat(9);
    let lost = |blocks, naming, script: &[Record]| {
        let mut lost = 0;
        let look = |machine: &Machine| lost += machine.state.borrow().cpus[0].lost;
        explore_and(Bounds { blocks, naming, wrap: true, interrupts: 0, ..STOP }, script, look).unwrap();
        lost
    };
    assert_eq!(lost(2, false, &rounds(&[Record::Value])), 0);
    assert_eq!(lost(2, true, &rounds(&[CALL, FIRST, Record::Storm])), 0);
    assert_eq!(lost(3, false, &rounds(&[CALL, Record::Storm, RETURN])), 0);
}

/// Interrupts that find a gap begin blocks of their own, and give back none.
#[test]
fn blocks_that_interrupts_hold_up_are_given_back_before_an_event_is_lost() {
    let bounds = Bounds { blocks: 2, wrap: true, interrupts: 1, depth: 1, gaps: 1, ..STOP };
    sound(bounds, &[Record::Event, Record::Storm]);
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

/// Number of words that a run has filled in each block.
fn words(machine: &Machine) -> Vec<usize> {
    let blocks = &machine.state.borrow().blocks;
    blocks.iter().filter(|block| block.in_trace).filter_map(|block| block.content).collect()
}

/// In a block that was there, and in one that the call had to begin: two words each, and the time between the two looks
/// at the clock.
#[test]
fn a_return_right_after_its_call_is_folded_into_it() {
    let script = [CALL, RETURN, CALL, RETURN, CALL, RETURN];
    let look = |machine: &Machine| {
        assert_eq!(words(machine), [4, 2]);
        let blocks = &machine.state.borrow().blocks;
        let arguments =
            [(0, 1), (0, 3), (1, 1)].map(|(block, word): (usize, usize)| blocks[block].words[word].unwrap());
        assert_eq!(arguments.map(|word| Call::decode(word).folded), [Some((1, -3)); 3]);
    };
    explore_and(Bounds { interrupts: 0, ..STOP }, &script, look).unwrap();
}

#[test]
fn a_gap_is_bridged_once() {
    let mut seen = Vec::new();
    let bounds = Bounds { naming: true, interrupts: 0, gaps: 1, ..STOP };
    explore_and(bounds, &[Record::Event; 3], |machine| seen.extend(words(machine))).unwrap();
    assert!(seen.contains(&6) && seen.iter().all(|&words| words == 3 || words == 6), "{seen:?}");
}

#[test]
fn a_return_without_a_call_is_folded_into_none() {
    sound(Bounds { interrupts: 2, ..STOP }, &[CALL, RETURN, RETURN]);
    sound(Bounds { interrupts: 2, ..STOP }, &[CALL, LONG_RETURN, RETURN]);
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

#[test]
fn a_reader_that_copies_while_calls_and_others_go_on_gets_nothing_torn() {
    let bounds = Bounds { blocks: 4, wrap: true, snapshots: 1, interrupts: 0, copies: 1, ..STOP };
    sound(Bounds { bursts: 1, ..bounds }, &[CALL]);
    sound(Bounds { copies: 2, ..bounds }, &[CALL, RETURN]);
}

/// Blocks are read and given back as they were recorded, and with the remaining ones the trace is complete, except for
/// the events counted as lost.
const STREAM: Bounds = Bounds { blocks: 6, interrupts: 1, reads: 2, kinds: &[Record::Storm], ..STOP };

#[test]
fn a_stream_is_read_whole_while_calls_and_others_go_on() {
    sound(STREAM, &[CALL, RETURN]);
}

#[test]
fn a_stream_is_read_whole_while_interrupts_nest() {
    sound(Bounds { interrupts: 2, kinds: &[Record::Value], ..STREAM }, &[CALL, RETURN]);
}

#[test]
fn a_stream_is_read_whole_while_another_cpu_records() {
    sound(Bounds { blocks: 4, interrupts: 0, bursts: 1, ..STREAM }, &[Record::Storm, CALL, RETURN]);
}

#[test]
fn a_stream_is_read_whole_while_tasks_are_named() {
    sound(Bounds { naming: true, kinds: &[Record::Value], ..STREAM }, &[FIRST, CALL, OTHER, RETURN]);
}

/// With a reader that keeps up, a few blocks are enough forever; without one further events are lost, and recording
/// continues when there is a block again.
#[test]
fn a_stream_loses_only_what_its_reader_is_too_slow_for() {
    let run = |read: bool| {
        let machine = Machine::new(Bounds { blocks: 4, interrupts: 0, reads: 1, ..STOP }, Choices::default());
        for _ in 0..20 {
            machine.record(0, Record::Storm);
            if read {
                (0..2).for_each(|_| machine.read_stream());
            }
        }
        let lost = machine.state.borrow().cpus[0].lost;
        (0..2).for_each(|_| machine.read_stream());
        machine.record(0, Record::Event);
        assert_eq!(machine.state.borrow().cpus[0].lost, lost, "a block was free again");
        (0..2).for_each(|_| machine.read_stream());
        assert_eq!(machine.finish(), None);
        let state = machine.state.borrow();
        let sealed = state.read.iter().filter(|block| block.lost_after).map(|block| block.lost).max();
        assert_eq!(sealed.unwrap_or_default(), lost, "the block before the gap has the number of losses");
        drop(state);
        lost
    };
    assert_eq!(run(true), 0);
    assert!(run(false) > 0);
}

const FIRST: Record = Record::Switch(Task { pid: 5, born: 1 });
const OTHER: Record = Record::Switch(Task { pid: 6, born: 2 });
const SECOND: Record = Record::Switch(Task { pid: 5, born: 3 });

#[test]
fn every_block_names_the_tasks_it_switches_to_and_a_pid_that_is_used_again_anew() {
    let bounds = Bounds { naming: true, interrupts: 2, kinds: &[Record::Event, Record::Storm], ..STOP };
    sound(bounds, &[FIRST, SECOND, FIRST]);
    sound(Bounds { interrupts: 2, kinds: &[Record::Value], ..bounds }, &[FIRST, SECOND, SECOND]);
    // A switch to a thread already named goes into a block other than the one examined.
    sound(bounds, &[FIRST, FIRST]);
    sound(Bounds { wrap: true, blocks: 5, interrupts: 1, bursts: 1, ..bounds }, &[FIRST, CALL, OTHER, RETURN]);
}

#[test]
fn cpus_that_take_blocks_at_the_same_time_take_different_ones() {
    let bounds = Bounds { blocks: 7, take_in_steps: true, interrupts: 1, bursts: 1, kinds: &[Record::Value], ..STOP };
    sound(bounds, &[CALL, RETURN, Record::Value]);
    sound(Bounds { wrap: true, ..bounds }, &[CALL, RETURN, Record::Value]);
}

#[test]
fn a_call_keeps_its_block_however_its_interrupts_lie() {
    let bounds = Bounds { blocks: 3, wrap: true, interrupts: 2, depth: 1, kinds: &[Record::Storm], ..STOP };
    sound(bounds, &[CALL, RETURN]);
    sound(bounds, &[CALL, CALL]);
    // An interrupt gives the block back that the call has seen, and another comes into it once more.
    sound(Bounds { kinds: &[Record::Storm, Record::Value], ..bounds }, &[CALL, RETURN, CALL]);
    sound(Bounds { blocks: 4, interrupts: 1, bursts: 1, ..bounds }, &[CALL, RETURN]);
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
        (Fault::SinceTooLate, Bounds { interrupts: 1, gaps: 1, ..STOP }),
        (Fault::StepNotSaid, Bounds { interrupts: 1, steps_back: 1, ..STOP }),
        (Fault::SpareForgotten, Bounds { kinds: &[Record::Storm], ..small }),
        (Fault::BlockGivenBackWhenFull, wrap),
        (Fault::CounterByteBeside, small),
        (Fault::LossNotCounted, Bounds { blocks: 1, ..small }),
        (Fault::OutsideNotCounted, Bounds { gates: 1, ..small }),
        (Fault::ReaderDoesNotWait, snapshot),
        (Fault::ReaderLooksOnce, Bounds { bursts: 1, ..snapshot }),
        (Fault::CallNotWaitedFor, snapshot),
    ];
    let stream = Bounds { blocks: 4, interrupts: 1, reads: 3, kinds: &[Record::Storm], ..STOP };
    let in_a_call = [
        (Fault::HandedOverWhileFilled, Bounds { depth: 1, ..stream }),
        (Fault::FreedBeforeCleared, Bounds { interrupts: 2, ..stream }),
        (Fault::CallNotSaid, Bounds { depth: 1, bursts: 0, ..wrap }),
    ];
    let scripts = faults.into_iter().map(|(fault, bounds)| (fault, bounds, &SCRIPT[..]));
    let scripts = scripts.chain(in_a_call.into_iter().map(|(fault, bounds)| (fault, bounds, &[CALL, RETURN][..])));
    for (fault, bounds, script) in scripts {
        let found = explore(Bounds { fault, ..bounds }, script);
        assert!(found.is_err(), "{fault:?} survived {found:?} runs");
    }
    let naming = Bounds { naming: true, interrupts: 0, fault: Fault::NamedByPid, ..STOP };
    assert!(explore(naming, &[OTHER, FIRST, SECOND]).is_err(), "NamedByPid survived");
}
