// SPDX-License-Identifier: BSD-3-Clause
//! Programs that were refused, because they inserted faster than the recorder accepts.

use std::fmt::{self, Display};

use kutrace_format::file::REFUSED_BYTES;

use super::program::{int, long, text};
use crate::readable::count;

/// A program, and the number of times it was refused a mark, a name, or memory for marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The process; 0 for all those not known individually.
    pub tgid: u32,
    /// Number of refusals.
    pub times: u64,
    /// Process name.
    pub comm: &'a [u8],
}

/// Parses the payload of a section whose checksum is right.
///
/// # Errors
/// The fault of the payload.
pub fn parse(payload: &[u8]) -> Result<Vec<Refused<'_>>, &'static str> {
    let records = payload.chunks_exact(REFUSED_BYTES);
    if !records.remainder().is_empty() {
        return Err("the section of refused programs is cut short");
    }
    Ok(records
        .map(|record| Refused { tgid: int(record, 0), times: long(record, 8), comm: text(&record[16..]) })
        .collect())
}

impl Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tgid {
            0 => write!(f, "other programs were refused ")?,
            tgid => write!(f, "program {tgid} ({}) was refused ", self.comm.escape_ascii())?,
        }
        write!(f, "{}: more was inserted than the recorder takes in a second", count(self.times, "time", "times"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_refused_is_told_by_number_and_name() {
        let record = |tgid: u32, times: u64, comm: &[u8; 16]| {
            [&tgid.to_le_bytes()[..], &[0; 4], &times.to_le_bytes(), comm].concat()
        };
        let payload = [record(7, 90, b"we\nb\0\0\0\0\0\0\0\0\0\0\0\0"), record(0, 1, &[0; 16])].concat();
        let told: Vec<String> = parse(&payload).unwrap().iter().map(Refused::to_string).collect();
        assert_eq!(
            told,
            [
                "program 7 (we\\nb) was refused 90 times: more was inserted than the recorder takes in a second",
                "other programs were refused 1 time: more was inserted than the recorder takes in a second",
            ]
        );
        assert!(parse(&payload[1..]).is_err());
    }
}
