// SPDX-License-Identifier: BSD-3-Clause
//! The module's own bookkeeping of who has which block, in every order that a bound allows: before each step of the one
//! who takes blocks and gives them back, another may do so, be handed a stream's full blocks, or give those back.

use std::cell::RefCell;

use crate::abi::block::BYTES;
use crate::lane::Block;
use crate::owners::{Owner, Owners, Reuse};
use crate::recorder::choices::Choices;

const BLOCKS: usize = 3;

/// An act of one of the two.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take,
    /// Gives back the first block taken; a stream's is full.
    Give,
    /// Gives it back without anything in it.
    Drop,
    /// Is handed the full blocks.
    Read,
    /// Gives back those.
    Return,
}

use Act::{Drop, Give, Read, Return, Take};

struct World {
    owners: Owners,
    _places: Vec<Owner>,
    state: RefCell<State>,
    reuse: Reuse,
}

struct State {
    /// Blocks of each of the two, and of the reader.
    has: [Vec<Block>; 3],
    /// Number of takes.
    taken: usize,
    /// Number of remaining acts of the other, and their kinds.
    rest: u32,
    acts: &'static [Act],
    choices: Choices,
    fault: Option<String>,
}

const READER: usize = 2;

/// The block at a place.
fn block(place: u32) -> Block {
    // SAFETY: no thread writes there.
    unsafe { Block::new((u64::from(place) + 1) * BYTES as u64) }
}

impl World {
    fn new(reuse: Reuse, rest: u32, acts: &'static [Act], choices: Choices) -> World {
        let mut places: Vec<Owner> = (0..BLOCKS).map(|_| Owner::default()).collect();
        let owners = Owners::none();
        // SAFETY: they are as many as the blocks, which have no memory, and stay as long as the world.
        unsafe {
            owners.put(places.as_mut_ptr(), block(0).address(), BLOCKS as u64);
            owners.reset(reuse);
        }
        let state = State { has: Default::default(), taken: 0, rest, acts, choices, fault: None };
        World { owners, _places: places, state: RefCell::new(state), reuse }
    }

    fn acts(&self, who: usize, acts: &[Act]) {
        acts.iter().for_each(|act| self.act(who, *act));
    }

    /// Does `act` as one of the two, the first step by step.
    fn act(&self, who: usize, act: Act) {
        let step = || {
            if who == 0 {
                self.others()
            }
        };
        match act {
            Take => {
                if let Some(block) = self.owners.take(step) {
                    self.gets(who, block);
                    self.state.borrow_mut().taken += 1;
                }
            }
            Give | Drop => {
                let Some(block) = self.loses(who) else { return };
                // SAFETY: it was his.
                unsafe {
                    match (self.reuse, act) {
                        (Reuse::Read, Give) => self.owners.fill(block),
                        _ => self.owners.free(block, step),
                    }
                }
            }
            Read => self.owners.full().for_each(|place| self.gets(READER, block(place))),
            Return => {
                while let Some(given) = self.loses(READER) {
                    let place = (given.address() / BYTES as u64) as u32 - 1;
                    assert_eq!(self.owners.take_back(place), Some(given));
                    assert_eq!(self.owners.take_back(place), None, "it is given back once");
                    // SAFETY: it was the reader's.
                    unsafe { self.owners.free(given, || ()) };
                }
            }
        }
    }

    fn gets(&self, who: usize, block: Block) {
        let mut state = self.state.borrow_mut();
        if state.has.iter().flatten().any(|had| *had == block) {
            let fault = format!("{block:?} goes to {who}, and others have it: {:?}", state.has);
            state.fault.get_or_insert(fault);
        }
        state.has[who].push(block);
    }

    fn loses(&self, who: usize) -> Option<Block> {
        let has = &mut self.state.borrow_mut().has[who];
        (!has.is_empty()).then(|| has.remove(0))
    }

    /// Acts before a step of the first: any number of the other's.
    fn others(&self) {
        loop {
            let act = {
                let mut state = self.state.borrow_mut();
                if state.rest == 0 {
                    return;
                }
                let options = 1 + state.acts.len() as u8;
                match state.choices.choose(options) {
                    0 => return,
                    n => {
                        state.rest -= 1;
                        state.acts[usize::from(n) - 1]
                    }
                }
            };
            self.act(1, act);
        }
    }

    /// Faults at rest: a block without owner can be taken, once; a block with an owner cannot.
    fn finish(&self) -> Option<String> {
        self.state.borrow_mut().rest = 0;
        if self.reuse == Reuse::Read {
            self.acts(1, &[Read, Return]);
        }
        if self.state.borrow().fault.is_some() {
            return self.state.borrow_mut().fault.take();
        }
        let held = self.state.borrow().has.iter().flatten().count();
        let (free, used) = (BLOCKS - held, self.owners.taken() as usize);
        let left = if self.reuse == Reuse::Never { BLOCKS.saturating_sub(used) } else { free };
        for _ in 0..left {
            self.act(0, Take);
        }
        let all = self.state.borrow().has.iter().flatten().count();
        if all != held + left {
            let fault = format!("{all} blocks of {} that were to be had", held + left);
            self.state.borrow_mut().fault.get_or_insert(fault);
        }
        self.act(0, Take);
        let mut state = self.state.borrow_mut();
        if self.reuse == Reuse::Never && state.taken > BLOCKS {
            let fault = format!("{} blocks are taken of {BLOCKS}", state.taken);
            state.fault.get_or_insert(fault);
        }
        state.fault.take()
    }
}

/// Tries every order; how many there are.
fn explore(reuse: Reuse, script: &[Act], rest: u32, acts: &'static [Act]) -> u32 {
    let (mut choices, mut runs) = (Choices::default(), 0);
    loop {
        let world = World::new(reuse, rest, acts, choices);
        world.acts(0, script);
        let fault = world.finish();
        choices = world.state.into_inner().choices;
        assert_eq!(fault, None, "run {runs}, choices {:?}", choices.path());
        runs += 1;
        if !choices.next_run() {
            return runs;
        }
    }
}

#[test]
fn nobody_takes_what_another_has_and_nothing_is_lost() {
    for reuse in [Reuse::AtOnce, Reuse::Never] {
        assert!(explore(reuse, &[Take, Take, Drop, Take], 4, &[Take, Give]) > 1000);
    }
}

/// A free block may be taken, filled, read and given back while another is about to take it.
#[test]
fn a_block_of_a_stream_that_comes_back_is_not_taken_for_the_one_it_was() {
    assert!(explore(Reuse::Read, &[Take, Drop, Take], 5, &[Take, Drop]) > 1000);
    assert!(explore(Reuse::Read, &[Take, Give, Take], 5, &[Take, Give, Read, Return]) > 1000);
}

/// Those with a long-term owner are passed over.
#[test]
fn a_block_that_is_kept_costs_no_other() {
    let world = World::new(Reuse::AtOnce, 0, &[], Choices::default());
    world.acts(0, &[Take, Take]);
    for _ in 0..3 * BLOCKS {
        world.acts(1, &[Take, Give]);
    }
    assert_eq!(world.finish(), None);
}

#[test]
fn a_reader_gives_back_only_what_he_has() {
    let world = World::new(Reuse::Read, 0, &[], Choices::default());
    world.acts(0, &[Take, Take, Give]);
    assert_eq!((0..5).filter_map(|place| world.owners.take_back(place)).count(), 0);
    assert_eq!(world.owners.full().count(), 1);
    assert_eq!(world.owners.full().count(), 0, "it is handed over once");
    assert_eq!((0..5).filter_map(|place| world.owners.take_back(place)).count(), 1);
}

/// A full recorder does not count on for ever.
#[test]
fn what_is_taken_from_an_empty_pool_is_not_counted() {
    let world = World::new(Reuse::Never, 0, &[], Choices::default());
    (0..9).for_each(|_| world.act(0, Take));
    assert_eq!((world.owners.taken(), world.state.borrow().has[0].len()), (3, 3));
}

#[test]
fn a_reset_makes_every_block_free_whatever_was_before() {
    for before in [Reuse::Never, Reuse::AtOnce, Reuse::Read] {
        for after in [Reuse::Never, Reuse::AtOnce, Reuse::Read] {
            let world = World::new(before, 0, &[], Choices::default());
            world.acts(0, &[Take, Give, Read, Take, Give]);
            // SAFETY: no thread uses a block.
            unsafe { world.owners.reset(after) };
            let taken = (0..=BLOCKS).filter_map(|_| world.owners.take(|| ())).count();
            assert_eq!((taken, world.owners.full().count()), (BLOCKS, 0), "{before:?} {after:?}");
        }
    }
}
