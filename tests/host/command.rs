// SPDX-License-Identifier: BSD-3-Clause
//! The ioctls of /dev/kutrace, where a program that is not compiled against the format crate writes them down.

use std::collections::BTreeMap;

use kutrace_format::abi::command::{Setup, IOCTL_RESET, IOCTL_START, IOCTL_STOP};

#[test]
fn the_script_that_reloads_the_module_knows_the_numbers() {
    let script = include_str!("../vm/reload.pl");
    let line = script.lines().find_map(|line| line.strip_prefix("use constant { RESET")).unwrap();
    let constants = ["RESET", line.trim_end_matches(" };")].concat();
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap();
    let pairs = constants.split(", ").map(|pair| pair.split_once(" => ").unwrap());
    let numbers: BTreeMap<&str, u32> = pairs.map(|(name, text)| (name, number(text))).collect();
    assert_eq!(numbers, BTreeMap::from([("RESET", IOCTL_RESET), ("START", IOCTL_START), ("STOP", IOCTL_STOP)]));
    let setup = "L".repeat(size_of::<Setup>() / 4);
    assert!(script.contains(&format!("ioctl $device, RESET, my $setup = pack '{setup}',")));
}
