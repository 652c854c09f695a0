// SPDX-License-Identifier: BSD-3-Clause
//! A mark that is put into the running trace in the same way as by programs.

use anyhow::Result;
use kutrace_cli::Failure;
use kutrace_format::abi::event::{MARK_A, MARK_D};
use kutrace_format::abi::user::CALL;
use kutrace_format::base40::{self, LENGTH};
use rustix::io::Errno;

use crate::sys;

/// The event word of `kutrace_format::abi::user` to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// Parses a mark: mark a for a text, mark d for a number.
    ///
    /// # Errors
    /// A sentence, if it is neither a number below 2^32 nor up to six of the characters that a mark can have.
    pub fn parse(text: &str) -> Result<Mark, String> {
        if let Ok(number) = text.parse::<u32>() {
            return Ok(Mark::of(MARK_D, number));
        }
        let digits: Option<Vec<u32>> = text.bytes().map(base40::digit).collect();
        match digits {
            Some(digits) if (1..=LENGTH).contains(&digits.len()) => {
                Ok(Mark::of(MARK_A, base40::value(digits.into_iter())))
            }
            _ => {
                Err(format!("invalid mark '{text}': expected up to {LENGTH} of a-z 0-9 - . /, or a number below 2^32"))
            }
        }
    }

    fn of(event: u16, value: u32) -> Mark {
        Mark(u64::from(event) << 32 | u64::from(value))
    }

    /// Puts the mark into the trace.
    ///
    /// # Errors
    /// If nothing traces.
    pub fn insert(self) -> Result<()> {
        let place = format_args!("system call {CALL}").to_string();
        match sys::insert(self.0) {
            Ok(0) => Err(Failure::new("no trace is running: the mark is lost", "start one: kutrace_control go").into()),
            Ok(_) => Ok(()),
            Err(Errno::NOSYS) => {
                let fact = format!("{place}: no such device; is the module loaded?");
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
            assert_eq!(Mark::parse(text), Ok(Mark::of(MARK_A, value)), "{text}");
        }
        assert_eq!(Mark::parse("4294967295"), Ok(Mark::of(MARK_D, u32::MAX)));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in ["", "sevenis", "a b", "ü", "a_b", "-4294967296"] {
            assert!(Mark::parse(text).is_err(), "{text}");
        }
    }
}
