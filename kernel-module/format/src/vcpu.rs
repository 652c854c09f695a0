// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A virtual CPU of a guest, as the file of its host describes it: its guest, and the relation of the guest's counter
//! to the host's.
//!
//! ```text
//! 4711-12/0:-123456789:4294967296:32     guest / CPU : offset : ratio : bits of its fraction
//! ```
//!
//! The guest's counter is the host's, times the ratio, plus the offset. A guest is named after its folder in KVM's
//! debugfs: the process that made it, and its descriptor.

use core::fmt;

/// A virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu<'a> {
    /// The guest's name.
    pub guest: &'a str,
    /// The CPU's number in it.
    pub number: u32,
    /// From the host's counter to the guest's.
    pub scale: Scale,
}

/// The relation of a guest's counter to its host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The number that is added.
    pub offset: i64,
    /// The factor that the host's counter is multiplied by first.
    pub ratio: u64,
    /// Bits of the ratio's fraction.
    pub bits: u32,
}

impl Scale {
    /// The scale of a guest whose counter runs at the host's rate.
    pub const fn by(offset: i64) -> Scale {
        Scale { offset, ratio: 1, bits: 0 }
    }

    /// The host's counter when the guest's has this value.
    pub fn host(self, guest: i128) -> i128 {
        ((guest - i128::from(self.offset)) << self.bits) / i128::from(self.ratio)
    }
}

impl<'a> Vcpu<'a> {
    /// Reads the text.
    pub fn read(text: &'a str) -> Option<Vcpu<'a>> {
        let (guest, rest) = text.split_once('/')?;
        let mut parts = rest.split(':');
        let number = parts.next()?.parse().ok()?;
        let offset = parts.next()?.parse().ok()?;
        let ratio = parts.next()?.parse().ok().filter(|&ratio: &u64| ratio > 0)?;
        let bits = parts.next()?.parse().ok().filter(|&bits: &u32| bits <= 48)?;
        match parts.next() {
            None => Some(Vcpu { guest, number, scale: Scale { offset, ratio, bits } }),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Vcpu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scale { offset, ratio, bits } = self.scale;
        write!(f, "{}/{}:{offset}:{ratio}:{bits}", self.guest, self.number)
    }
}
