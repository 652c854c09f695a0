// SPDX-License-Identifier: BSD-3-Clause
//! Identity of this machine: kernel, CPU model, host name, boot.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

/// The kernel's release and version, separated by a blank.
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.release().to_string_lossy(), uname.version().to_string_lossy())
}

/// The kernel's release.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The host's name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The model in the text of /proc/cpuinfo, if it names one.
pub fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// The CPUs in a list like `1,4-7`; anything else is an empty list.
pub fn cpus(list: &str) -> BTreeSet<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// The id of this boot.
pub fn boot_id() -> Result<[u8; 16]> {
    read_uuid("/proc/sys/kernel/random/boot_id")
}

/// A new random id.
pub fn random_uuid() -> Result<[u8; 16]> {
    read_uuid("/proc/sys/kernel/random/uuid")
}

fn read_uuid(path: &str) -> Result<[u8; 16]> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    parse_uuid(&text).with_context(|| format!("{path}: not a uuid"))
}

/// The bytes of a uuid in the order its digits are written.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits = text.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_keeps_the_order_of_its_digits() {
        let uuid = parse_uuid("00010203-0405-0607-0809-0a0b0c0d0eff\n");
        assert_eq!(uuid, Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]));
        assert_eq!(parse_uuid("0001"), None);
    }

    #[test]
    fn a_list_of_cpus_names_each_of_them() {
        assert_eq!(cpus("1,4-6\n"), BTreeSet::from([1, 4, 5, 6]));
        assert_eq!(cpus("(null)\n"), BTreeSet::new());
        assert_eq!(cpus(""), BTreeSet::new());
    }

    #[test]
    fn two_random_ids_differ() {
        assert_ne!(random_uuid().unwrap(), random_uuid().unwrap());
    }

    #[test]
    fn the_model_is_the_text_behind_the_first_model_name() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2.60GHz\nmodel name\t: other\n"),
            Some("Some CPU @ 2.60GHz")
        );
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}
