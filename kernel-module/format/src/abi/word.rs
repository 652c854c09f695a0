// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The four-byte word: the entry, and the argument word of a system call.
//!
//! An entry is one word; its event number determines how many argument words follow it.
//!
//! ```text
//!  31                  12 11          0
//! |       time 20        |  event 12   |   entry
//! ```
//!
//! `time` is the low 20 bits of the counter, `TSC >> shift`. Within a block time never goes backwards
//! and consecutive entries are less than 2^20 counts apart (a longer gap is bridged by
//! [`crate::abi::event::FULL_TIME`]), so a reader adds `(time - previous) mod 2^20` and is exact.

/// Bits of an entry that hold the event number.
pub const EVENT_BITS: u32 = 12;
/// Bits of an entry that hold the low end of the counter.
pub const TIME_BITS: u32 = 20;
/// Counts after which two neighbouring entries can no longer be distinguished from a shorter gap.
pub const TIME_PERIOD: u64 = 1 << TIME_BITS;

/// Packs an event number below 2^12 and a counter value (only its low 20 bits are kept) into an entry.
#[inline(always)]
pub const fn entry(event: u16, counter: u64) -> u32 {
    entry_of(event as u32, counter)
}

/// [`entry`] of a number that was computed.
#[inline(always)]
pub const fn entry_of(event: u32, counter: u64) -> u32 {
    ((counter as u32) << EVENT_BITS).wrapping_add(event)
}

/// The event number of an entry.
#[inline(always)]
pub const fn event(entry: u32) -> u16 {
    (entry & ((1 << EVENT_BITS) - 1)) as u16
}

/// The 20-bit time of an entry.
#[inline(always)]
pub const fn time(entry: u32) -> u32 {
    entry >> EVENT_BITS
}

/// The argument word of a system call: open, or with its return folded in.
///
/// ```text
///  31          16 15      8 7       1  0
/// |    arg 16    |  ret 8  |  dur 7  | 0 |   short form; ret and dur 0: the call is open
///  31     24 23   16 15              1  0
/// |  arg 8  | ret 8 |    dur 15      | 1 |   long form; arg sign-extends to 16 bits
/// ```
///
/// `arg` is the low half of the first argument, `ret` the return value, -127..=127, plus 128, `dur` the counts
/// from call to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Low 16 bits of the first argument.
    pub arg: u16,
    /// Counts from call to return, and the return value; `None` while the call is open.
    pub folded: Option<(u16, i8)>,
}

/// Longest duration the short form holds, in counts.
const SHORT_MAX: u64 = (1 << 7) - 1;
/// Return values from here to [`SHORT_MAX`] further on are checked first: errors and small numbers.
const FIRST_RETURN: i64 = -16;
/// Longest duration the long form holds, in counts.
pub const FOLD_MAX: u64 = (1 << 15) - 1;
/// Added to a return value, so that the byte of a folded return is never 0.
const RETURN_BIAS: i64 = 128;

impl Call {
    /// The word of a call that has not returned.
    #[inline(always)]
    pub const fn open(arg: u64) -> u32 {
        (arg as u32) << 16
    }

    /// Returns the value to add to an open word to fold a return after `dur` counts into it, if value and duration are
    /// in the usual range, which takes one comparison. For others, use [`Call::fold`].
    #[inline(always)]
    pub const fn short_return(dur: u64, ret: i64) -> Option<u32> {
        if ret.wrapping_sub(FIRST_RETURN) as u64 | dur > SHORT_MAX {
            return None;
        }
        Some(Call::short(dur, ret))
    }

    /// Returns the word of `open` with a return after `dur` counts folded in, if they fit either form.
    pub const fn fold(open: u32, dur: u64, ret: i64) -> Option<u32> {
        if dur <= SHORT_MAX && Call::fits(ret) {
            return Some(open + Call::short(dur, ret));
        }
        let arg = open as i32 >> 16;
        if dur > FOLD_MAX || !Call::fits(ret) || arg as i8 as i32 != arg {
            return None;
        }
        Some((arg as u32) << 24 | ((ret + RETURN_BIAS) as u32) << 16 | (dur as u32) << 1 | 1)
    }

    #[inline(always)]
    const fn short(dur: u64, ret: i64) -> u32 {
        (ret.wrapping_add(RETURN_BIAS) as u32) << 8 | (dur as u32) << 1
    }

    /// Returns whether a return of this value can be folded into its call.
    #[inline(always)]
    pub const fn fits(ret: i64) -> bool {
        ret > -RETURN_BIAS && ret < RETURN_BIAS
    }

    /// Reads any form. Every word is valid.
    pub const fn decode(word: u32) -> Call {
        if word & 1 != 0 {
            let arg = (word as i32 >> 24) as u16;
            return Call { arg, folded: Some((word as u16 >> 1, Call::unbias((word >> 16) as u8))) };
        }
        let arg = (word >> 16) as u16;
        match (word >> 8) as u8 {
            0 => Call { arg, folded: None },
            ret => Call { arg, folded: Some((word as u8 as u16 >> 1, Call::unbias(ret))) },
        }
    }

    const fn unbias(ret: u8) -> i8 {
        (ret as i16 - RETURN_BIAS as i16) as i8
    }
}
