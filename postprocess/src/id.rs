// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of CPUs and threads as types, so that neither is taken for another number. Their `Option`s are as small as
//! they are.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Larger numbers, from damaged files, are replaced by this one: the columns of spans are signed.
const MAX: u32 = i32::MAX as u32;
/// Bits of a thread's number on Linux; the machine's number is above them.
pub const PID_BITS: u32 = 22;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "u32", into = "u32")]
        pub struct $name(
            /// The number plus one.
            NonZeroU32,
        );

        impl $name {
            /// The one with this number.
            #[inline]
            pub const fn new(number: u32) -> $name {
                let number = if number > MAX { MAX } else { number };
                $name(NonZeroU32::MIN.saturating_add(number))
            }

            /// Its number.
            #[inline]
            pub const fn number(self) -> u32 {
                self.0.get() - 1
            }

            /// Its index in a list of all.
            #[inline]
            pub const fn index(self) -> usize {
                self.number() as usize
            }

            /// Value in a column of spans: -1 for none.
            #[inline]
            pub fn column(id: Option<$name>) -> i64 {
                id.map_or(-1, |id| id.number().into())
            }

            /// Reads a column of spans: a negative number is none. `None` if the number is too large.
            #[inline]
            pub fn of_column(column: i64) -> Option<Option<$name>> {
                let number = i32::try_from(column).ok()?;
                Some(u32::try_from(number).ok().map($name::new))
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::new(0)
            }
        }

        impl From<u32> for $name {
            fn from(number: u32) -> $name {
                $name::new(number)
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> u32 {
                id.number()
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> i64 {
                id.number().into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                self.number().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                self.number().fmt(f)
            }
        }
    };
}

id! {
    /// A CPU.
    CpuId
}

id! {
    /// A thread, by the kernel's number over all processes.
    Pid
}

impl Pid {
    /// The idle thread of every CPU.
    pub const IDLE: Pid = Pid::new(0);

    /// The thread with this number on a machine: the bits above those that Linux uses are the machine's index among
    /// all.
    pub const fn on(self, machine: u32) -> Pid {
        match self.number() {
            0 => self,
            number => Pid::new(machine << PID_BITS | number & ((1 << PID_BITS) - 1)),
        }
    }

    /// Index of its machine among all, 0 for the only one.
    pub const fn machine(self) -> u32 {
        self.number() >> PID_BITS
    }

    /// Its number on its machine.
    pub const fn local(self) -> u32 {
        self.number() & ((1 << PID_BITS) - 1)
    }
}
