// SPDX-License-Identifier: BSD-3-Clause
//! The comparison by which the kernel's recorder moves a CPU's position, at every place of a block: it must fail if any
//! of its conditions does not hold, wherever the position has moved in between.

use std::cell::UnsafeCell;

use crate::abi::block::{BYTES, HEADER_WORDS};
use crate::lane::{Block, Position};

#[allow(dead_code, unexpected_cfgs, unreachable_pub)]
#[path = "../../kernel-module/arch/x86_64.rs"]
mod arch;

/// The state of a CPU, to which a user program's %gs leads as well: its base is 0.
pub mod ffi {
    use super::State;

    #[allow(non_upper_case_globals)]
    #[no_mangle]
    pub static kutrace_cpu: State = State(super::UnsafeCell::new([0; 2]));
}

/// Position, and time of the last full time.
pub struct State(UnsafeCell<[u64; 2]>);

// SAFETY: one test uses it.
unsafe impl Sync for State {}

const LIMIT: u32 = 1000;
/// The last place of a position at which a CPU continues.
const LAST: u64 = BYTES as u64 - 8;

/// Returns whether a claim of `BY` bytes that has seen `old` moves the position if that is `now`, at a time `late`
/// after the last full time.
fn moves<const BY: u16>(old: u64, now: u64, late: u64) -> bool {
    const SINCE: u64 = 1 << 40;
    // SAFETY: no other thread uses it.
    unsafe { ffi::kutrace_cpu.0.get().write([now, SINCE]) };
    // SAFETY: the state has these two numbers.
    let (position, since) = unsafe { (arch::Field::<u64, 0>::new(), arch::Field::<u64, 8>::new()) };
    let new = old + u64::from(BY);
    let moved = position.advance::<BY, LIMIT, _>(new, SINCE.wrapping_add(late), since);
    // SAFETY: as above.
    let [after, _] = unsafe { ffi::kutrace_cpu.0.get().read() };
    assert_eq!(after, if moved { new } else { now });
    moved
}

fn check<const BY: u16>() {
    // SAFETY: nothing is written there.
    let blocks = [5, 6].map(|n| unsafe { Block::new(n * BYTES as u64) });
    let ended = blocks.map(|block| [block.sealed().address() - 4, block.sealed().address()]).concat();
    // SAFETY: as above.
    assert!(unsafe { Position::new(ended[0]) }.is_sealed() && !unsafe { Position::new(ended[0] - 1) }.is_sealed());
    let begin = blocks[0].address();
    let in_block = HEADER_WORDS as u64 * 4..=LAST;
    for old in in_block.clone().step_by(4).map(|place| begin + place).chain(ended[..2].iter().copied()) {
        let fits = old + u64::from(BY) <= begin + LAST;
        let near = (0..=8).map(|by| old - 4 + by).flat_map(|now| [now, now + BYTES as u64]);
        let is_position =
            |now: &u64| ended.contains(now) || now.is_multiple_of(4) && in_block.contains(&(now % BYTES as u64));
        for now in near.filter(is_position).chain(ended.iter().copied()) {
            for late in [0, 1, u64::from(LIMIT) - 1, LIMIT.into(), 1 << 16, 1 << 32, u64::MAX, u64::MAX - 0xffff] {
                let moved = moves::<BY>(old, now, late);
                assert_eq!(moved, now == old && fits && late < LIMIT.into(), "{BY} from {old:#x} at {now:#x}, {late}");
            }
        }
    }
}

#[test]
fn a_position_moves_only_if_it_has_not_moved_and_there_is_room_and_it_is_not_late() {
    check::<4>();
    check::<8>();
    check::<12>();
}
