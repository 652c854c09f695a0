// SPDX-License-Identifier: BSD-3-Clause
//! A mark put into the running trace, by the system call that programs use.

use anyhow::Result;
use kutrace_format::abi::user::CALL;
use rustix::io::Errno;

use crate::report::Failure;
use crate::sys;

/// What is inserted: the event word of `kutrace_format::abi::user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// Event numbers of the original.
const MARK_A: u64 = 0x20a;
const MARK_D: u64 = 0x20d;
/// What a text can consist of. Its place in the list is the value of a character; 0 is none.
const ALPHABET: &[u8; 39] = b"abcdefghijklmnopqrstuvwxyz0123456789-./";
/// Characters that fit into 32 bits.
const LENGTH: usize = 6;

impl Mark {
    /// Mark a for a text, mark d for a number.
    ///
    /// # Errors
    /// A sentence, if it is neither a number below 2^32 nor up to six of the characters that a mark can have.
    pub fn parse(text: &str) -> Result<Mark, String> {
        if let Ok(number) = text.parse::<u32>() {
            return Ok(Mark(MARK_D << 32 | u64::from(number)));
        }
        let value = |c: u8| ALPHABET.iter().position(|known| *known == c.to_ascii_lowercase());
        let digits: Option<Vec<usize>> = text.bytes().map(value).collect();
        match digits {
            Some(digits) if (1..=LENGTH).contains(&digits.len()) => {
                let value = digits.iter().rev().fold(0, |sum, digit| sum * 40 + *digit as u64 + 1);
                Ok(Mark(MARK_A << 32 | value))
            }
            _ => Err(format!("'{text}' is no mark: up to {LENGTH} of a-z 0-9 - . /, or a number below 2^32")),
        }
    }

    /// Puts it into the trace.
    ///
    /// # Errors
    /// If nothing traces.
    pub fn insert(self) -> Result<()> {
        let place = format_args!("system call {CALL}").to_string();
        match sys::insert(self.0) {
            Ok(0) => Err(Failure::new("no trace is running: the mark is lost", "start one: kutrace_control go").into()),
            Ok(_) => Ok(()),
            Err(Errno::NOSYS) => {
                let fact = format!("{place}: not there: is the module loaded?");
                Err(Failure::new(fact, "as root: insmod kutrace.ko").into())
            }
            Err(other) => Err(anyhow::Error::from(other).context(place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_values_of_the_original() {
        for (text, value) in [("hello", 39_187_408), ("/hello", 1_567_496_359), ("AbC", 4_881), ("initr", 47_374_969)] {
            assert_eq!(Mark::parse(text), Ok(Mark(MARK_A << 32 | value)), "{text}");
        }
        assert_eq!(Mark::parse("4294967295"), Ok(Mark(MARK_D << 32 | 0xffff_ffff)));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in ["", "sevenis", "a b", "ü", "a_b", "-4294967296"] {
            assert!(Mark::parse(text).is_err(), "{text}");
        }
    }
}
