// SPDX-License-Identifier: BSD-3-Clause
//! Damage of a raw file, and its place: facts for people, none of which stops the reader.

use std::fmt;

/// One damaged thing, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Index of the block in the file, from 0; `None` outside the blocks.
    pub block: Option<usize>,
    /// Byte offset in the file.
    pub offset: usize,
    /// The damage, and its consequence.
    pub fact: String,
}

impl Damage {
    /// Damage outside the blocks.
    pub fn at(offset: usize, fact: impl Into<String>) -> Damage {
        Damage { block: None, offset, fact: fact.into() }
    }

    /// Damage of a block.
    pub fn of_block(block: usize, offset: usize, fact: impl Into<String>) -> Damage {
        Damage { block: Some(block), offset, fact: fact.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(block) = self.block {
            write!(f, "block {block}, ")?;
        }
        write!(f, "byte {}: {}", self.offset, self.fact)
    }
}

/// Reason why a file cannot be read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotATrace {
    /// No known magic number.
    Unknown,
    /// The magic number is right, but the file ends before its header does.
    Cut,
    /// The size of the header is not this version's.
    HeaderSize,
    /// A raw trace of the original KUtrace, where one of format 5 is needed.
    Original,
    /// The traces of several machines, where that of one is needed.
    Machines,
    /// The traces of several machines, with a damaged list of the machines.
    NoMachines,
    /// A recording of trace-cmd, with the reason why it cannot be read.
    Ftrace(&'static str),
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotATrace::Ftrace(fact) => {
                return write!(f, "byte 0: a recording of trace-cmd that cannot be read: {fact}")
            }
            NotATrace::Unknown => "byte 0: not a KUtrace trace",
            NotATrace::Cut => "byte 8: the KUtrace trace ends inside its header",
            NotATrace::HeaderSize => "byte 8: not a KUtrace trace of format 5: its header has another size",
            NotATrace::Original => "byte 0: a trace of the original KUtrace (version 3 or 4), not of format 5",
            NotATrace::Machines => "byte 0: the traces of several machines, where the trace of one is needed",
            NotATrace::NoMachines => "byte 8: the list of machines is damaged, so nothing of their traces is used",
        })
    }
}

impl std::error::Error for NotATrace {}
