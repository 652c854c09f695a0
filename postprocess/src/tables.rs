// SPDX-License-Identifier: BSD-3-Clause
//! Names that are the same on every x86 Linux: system calls, errors, traps, system vectors, softirqs.
//!
//! Each table is a text file in tables/: a number (decimal, or hexadecimal after `0x`) and a name per line, `#` before
//! a comment that names the source of the facts.

use kutrace_format::file::NameKind;

/// The tables, and the kind of each table's numbers.
pub const TABLES: [(NameKind, &str); 6] = [
    (NameKind::Trap, include_str!("tables/trap.txt")),
    (NameKind::Irq, include_str!("tables/vector.txt")),
    (NameKind::Softirq, include_str!("tables/softirq.txt")),
    (NameKind::Syscall, include_str!("tables/syscall_64.txt")),
    (NameKind::Syscall32, include_str!("tables/syscall_32.txt")),
    (NameKind::Errno, include_str!("tables/errno.txt")),
];

/// The numbers and names of one kind; none, if there is no table of it.
pub fn of(kind: NameKind) -> impl Iterator<Item = (u32, &'static str)> {
    TABLES.iter().filter(move |(of, _)| *of == kind).flat_map(|(_, table)| entries(table))
}

/// The numbers and names of one table; lines without a number and a name are skipped.
pub fn entries(table: &str) -> impl Iterator<Item = (u32, &str)> {
    table.lines().filter_map(entry)
}

fn entry(line: &str) -> Option<(u32, &str)> {
    let (number, name) = line.trim().split_once(' ')?;
    let number = match number.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    Some((number.ok()?, name.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: NameKind, number: u32) -> Option<&'static str> {
        of(kind).find(|(n, _)| *n == number).map(|(_, name)| name)
    }

    #[test]
    fn every_line_is_a_comment_or_an_entry_and_numbers_ascend() {
        for (kind, table) in TABLES {
            let lines = table.lines().filter(|line| !line.starts_with('#')).count();
            let numbers: Vec<u32> = entries(table).map(|(number, _)| number).collect();
            assert_eq!(numbers.len(), lines, "{kind:?}");
            assert!(numbers.is_sorted_by(|a, b| a < b), "{kind:?}");
        }
    }

    #[test]
    fn names_are_those_of_linux_6_12() {
        for (kind, number, expected) in [
            (NameKind::Syscall, 0, "read"),
            (NameKind::Syscall, 39, "getpid"),
            (NameKind::Syscall, 110, "getppid"),
            (NameKind::Syscall, 202, "futex"),
            (NameKind::Syscall, 435, "clone3"),
            (NameKind::Syscall, 462, "mseal"),
            (NameKind::Syscall32, 4, "write"),
            (NameKind::Syscall32, 240, "futex"),
            (NameKind::Errno, 11, "EAGAIN"),
            (NameKind::Errno, 110, "ETIMEDOUT"),
            (NameKind::Trap, 14, "page_fault"),
            (NameKind::Irq, 0xec, "local_timer"),
            (NameKind::Irq, 0xfd, "reschedule_ipi"),
            (NameKind::Softirq, 9, "rcu"),
        ] {
            assert_eq!(name(kind, number), Some(expected));
        }
    }

    #[test]
    fn system_calls_of_the_x32_abi_are_left_out() {
        assert!(of(NameKind::Syscall).all(|(number, _)| number < 512));
    }
}
