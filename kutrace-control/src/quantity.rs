// SPDX-License-Identifier: BSD-3-Clause
//! Sizes and durations in the notation of the command line: `64M`, `500ms`.

use std::time::Duration;

use jiff::SignedDuration;
use kutrace_format::abi::block;
use kutrace_format::abi::command::BLOCKS_MAX;
use kutrace_format::abi::programs::{Quota, QUOTA_MAX};

/// Parses bytes: a number followed by `K`, `M`, `G` or nothing, each 1024 times the one before; or `64MB`, `64MiB`.
///
/// # Errors
/// A sentence.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let shift = match unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit) {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(format!("invalid size '{text}': expected something like 64M or 2G")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("invalid size '{text}': expected something like 64M or 2G"))?;
    Ok((number * (1u64 << shift) as f64) as u64)
}

/// Parses a size as a number of blocks of the pool, rounded up.
///
/// # Errors
/// A sentence; also for less than 1 MB or more than the maximum of a pool.
pub fn blocks(text: &str) -> Result<u32, String> {
    let bytes = bytes(text)?;
    let max = u64::from(BLOCKS_MAX) * block::BYTES as u64;
    if !(1 << 20..=max).contains(&bytes) {
        return Err(format!("'{text}': buffer size must be 1M to {}G", max >> 30));
    }
    Ok(bytes.div_ceil(block::BYTES as u64) as u32)
}

/// Parses the size of a trace file in bytes.
///
/// # Errors
/// A sentence; also for less than 1 MB.
pub fn file_size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    match bytes {
        0..=0xf_ffff => Err(format!("'{text}': files must be 1M or larger")),
        _ => Ok(bytes),
    }
}

/// Parses the memory for programs' own records: of each program, and after a comma of all, which has a default.
///
/// # Errors
/// A sentence; also for more than the maximum of each.
pub fn quota(text: &str) -> Result<Quota, String> {
    let (each, all) = text.split_once(',').map_or((text, None), |(each, all)| (each, Some(all)));
    let process = bytes(each)?;
    if !(QUOTA_MIN..=QUOTA_MAX).contains(&process) {
        return Err(format!("'{each}': memory for each program must be {}K to {}M", QUOTA_MIN >> 10, QUOTA_MAX >> 20));
    }
    let all = all.map_or(Ok(process.max(64 << 20)), bytes)?;
    if all < process {
        return Err(format!("'{text}': memory for all programs must be at least that of each: EACH,ALL"));
    }
    Ok(Quota { process, all })
}

/// A page for names, and one for the marks of a thread.
const QUOTA_MIN: u64 = 8 << 10;

/// Parses a duration: seconds, or a number with a unit: `2`, `0.5`, `2s`, `500ms`, `1m`.
///
/// # Errors
/// A sentence.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let friendly = || text.parse::<SignedDuration>().ok()?.try_into().ok();
    seconds
        .or_else(friendly)
        .ok_or_else(|| format!("invalid duration '{text}': expected something like 2, 500ms or 1m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units_of_either_case() {
        for (text, expected) in [
            ("65536", 1 << 16),
            ("64K", 1 << 16),
            ("64m", 64 << 20),
            ("64MB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("1.5G", 3 << 29),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "64X", "-1M", "1.2.3M", "64MM", "inf"] {
            assert!(bytes(text).unwrap_err().starts_with(&format!("invalid size '{text}'")), "{text}");
        }
    }

    #[test]
    fn what_programs_may_have_is_for_each_and_for_all() {
        let both = |process, all| Ok(Quota { process, all });
        assert_eq!(quota("1M"), both(1 << 20, 64 << 20));
        assert_eq!(quota("16M,1G"), both(16 << 20, 1 << 30));
        assert_eq!(quota("17M").unwrap_err(), "'17M': memory for each program must be 8K to 16M");
        assert_eq!(
            quota("4M,1M").unwrap_err(),
            "'4M,1M': memory for all programs must be at least that of each: EACH,ALL"
        );
        assert!(quota("4M,").is_err());
    }

    #[test]
    fn a_buffer_is_whole_blocks_within_what_a_pool_can_have() {
        assert_eq!(blocks("1M"), Ok(16));
        assert_eq!(blocks("1048577"), Ok(17));
        assert_eq!(blocks("64G"), Ok(BLOCKS_MAX));
        assert_eq!(blocks("1023K").unwrap_err(), "'1023K': buffer size must be 1M to 64G");
        assert!(blocks("65G").is_err());
    }

    #[test]
    fn durations_are_seconds_unless_they_have_a_unit() {
        for (text, milliseconds) in [
            ("2", 2_000),
            ("0.25", 250),
            ("2s", 2_000),
            ("500ms", 500),
            ("1m", 60_000),
            ("1h", 3_600_000),
            ("1.5s", 1_500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "-1", "-2s", "soon", "5x", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
