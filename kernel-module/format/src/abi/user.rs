// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! System call 1023, by which programs built against the original KUtrace's library speak to a recorder.
//!
//! Its arguments are a command and a 64-bit word; for [`INSERT_MANY`] the word is the address of [`WORDS`] of them.
//! Events and names to insert have the original's layout:
//!
//! ```text
//!  63       44 43      32 31         0
//! |  zero 20  | event 12 |  value 32  |   first word; the middle digit of a name's event is its length in words
//! |            text, NUL-padded       |   one to seven words more, for a name
//! ```

use super::event::{may_insert, may_name, NAME_BYTES, NAME_LENGTH, NAME_WORDS};

/// The system call's number.
pub const CALL: u32 = 1023;

/// Inserts one event; `!INSERT` means the same.
pub const INSERT: u64 = 7;
/// Inserts a name; `!INSERT_MANY` means the same.
pub const INSERT_MANY: u64 = 8;
/// Asks whether tracing is on: 1 or 0.
pub const TEST: u64 = 10;
/// Asks for [`VERSION_ANSWER`].
pub const VERSION: u64 = 11;
/// Last of the original's commands. Those not named here control the tracing and read the trace.
pub const COMMAND_LAST: u64 = 14;

/// The version of the original's module whose system call this is.
pub const VERSION_ANSWER: i64 = 4;
/// Words that [`INSERT_MANY`] points to.
pub const WORDS: usize = 8;

/// A valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// [`TEST`].
    Test,
    /// [`VERSION`].
    Version,
    /// Record an event with one argument word. The answer is 1.
    Event {
        /// Its number.
        event: u16,
        /// Its argument.
        value: u32,
    },
    /// Record a name.
    Name {
        /// The answer: its length in the original's words.
        len: i64,
        /// The argument words of [`super::event::NAME`].
        words: [u32; NAME_WORDS],
    },
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Only /dev/kutrace controls the tracing.
    Control,
    /// No such command, or not what a program may insert.
    Invalid,
}

/// Reads a request. `words` beyond the first are those of [`INSERT_MANY`].
///
/// # Errors
/// [`Refused`] for everything but [`TEST`], [`VERSION`], an event that only programs know of, and a name for one.
pub const fn request(command: u64, words: &[u64; WORDS]) -> Result<Request, Refused> {
    match command {
        INSERT | FORCED_INSERT => event(words[0]),
        INSERT_MANY | FORCED_INSERT_MANY => name(words),
        TEST => Ok(Request::Test),
        VERSION => Ok(Request::Version),
        0..=COMMAND_LAST => Err(Refused::Control),
        _ => Err(Refused::Invalid),
    }
}

/// In the original these work while tracing is off as well.
const FORCED_INSERT: u64 = !INSERT;
const FORCED_INSERT_MANY: u64 = !INSERT_MANY;

/// RPCs, marks, locks, messages, resources and queues: everything that the kernel cannot know.
const fn event(word: u64) -> Result<Request, Refused> {
    match word >> 32 {
        event if may_insert(event) => Ok(Request::Event { event: event as u16, value: word as u32 }),
        _ => Err(Refused::Invalid),
    }
}

/// Names of RPC methods, locks, queues and resources.
const fn name(words: &[u64; WORDS]) -> Result<Request, Refused> {
    let event = words[0] >> 32;
    let len = (event as u32 & NAME_LENGTH) as usize >> NAME_LENGTH.trailing_zeros();
    let kind = event & !(NAME_LENGTH as u64);
    if !may_name(kind) || len < 2 || len > WORDS {
        return Err(Refused::Invalid);
    }
    let mut argument = [0; NAME_WORDS];
    argument[0] = kind as u32;
    argument[1] = words[0] as u32;
    let mut n = 1;
    while n < len {
        argument[2 * n] = words[n] as u32;
        argument[2 * n + 1] = (words[n] >> 32) as u32;
        n += 1;
    }
    Ok(Request::Name { len: len as i64, words: argument })
}

const _: () = assert!(NAME_BYTES == 8 * (WORDS - 1));
