// SPDX-License-Identifier: BSD-3-Clause
//! Kernel file: the text of one of the kernel's files of counts, as [`super::audit`] needs it.

/// A file with a line for each counted thing and a column for each CPU, like /proc/interrupts.
#[derive(Debug)]
pub struct Table<'a> {
    cpus: Vec<u32>,
    /// Key, counts by column, and the rest of the line.
    lines: Vec<(&'a str, Vec<u64>, &'a str)>,
}

impl<'a> Table<'a> {
    /// Reads a file; `None` if it does not begin with the numbers of CPUs.
    pub fn read(text: &'a [u8]) -> Option<Table<'a>> {
        let text = std::str::from_utf8(text).ok()?;
        let (head, lines) = text.split_once('\n')?;
        let cpus: Option<Vec<u32>> =
            head.split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
        let columns = cpus.len();
        let line = |line: &'a str| {
            let (key, mut rest) = line.split_once(':')?;
            let mut counts = Vec::with_capacity(columns);
            while counts.len() < columns {
                rest = rest.trim_start();
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                counts.push(rest[..end].parse().ok()?);
                rest = &rest[end..];
            }
            Some((key.trim(), counts, rest.trim_start()))
        };
        Some(Table { lines: lines.lines().filter_map(line).collect(), cpus })
    }

    /// Key of each line, and the rest of the line after its counts.
    pub fn lines(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.lines.iter().map(|(key, _, rest)| (*key, *rest))
    }

    /// Growth of the counts of a line since an earlier reading, by CPU; a line that the earlier reading lacks counts
    /// from zero. The kernel's numbers have 32 bits. CPUs that are in only one of the two are skipped.
    pub fn growth(&self, before: &Table, key: &str) -> Vec<(u32, u64)> {
        let find = |table: &Table, key| table.lines.iter().position(|line| line.0 == key);
        let Some(now) = find(self, key) else { return Vec::new() };
        let old = find(before, key);
        let of = |(column, cpu): (usize, &u32)| {
            let then = before.cpus.iter().position(|other| other == cpu)?;
            let old = old.map_or(0, |line| before.lines[line].1[then]);
            Some((*cpu, u64::from((self.lines[now].1[column] as u32).wrapping_sub(old as u32))))
        };
        self.cpus.iter().enumerate().filter_map(of).collect()
    }
}

/// The number after the first word `key` of a line.
pub fn line_number(text: &[u8], key: &str) -> Option<u64> {
    let lines = std::str::from_utf8(text).ok()?.lines();
    lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).find_map(|rest| rest.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str =
        "      CPU0 CPU2\n 9: 4294967295 0 IO-APIC 9-fasteoi acpi\nLOC: 10 20 Local timer interrupts\nERR: 0\n";
    const AFTER: &str =
        "      CPU0 CPU1 CPU2\n 9: 3 1 0 IO-APIC 9-fasteoi acpi\n24: 1 2 3 PCI-MSI-0000 net\nLOC: 15 7 20\n";

    #[test]
    fn growth_is_by_cpu_and_of_32_bits() {
        let (before, after) = (Table::read(BEFORE.as_bytes()).unwrap(), Table::read(AFTER.as_bytes()).unwrap());
        assert_eq!(after.growth(&before, "9"), [(0, 4), (2, 0)]);
        assert_eq!(after.growth(&before, "24"), [(0, 1), (2, 3)]);
        assert_eq!(after.growth(&before, "LOC"), [(0, 5), (2, 0)]);
        assert_eq!(after.growth(&before, "ERR"), []);
        assert_eq!(after.lines().nth(1), Some(("24", "PCI-MSI-0000 net")));
    }

    #[test]
    fn what_is_no_table_is_none() {
        assert!(["", "\n", "abc\n1: 2\n", "CPU0 CPUx\n"].iter().all(|text| Table::read(text.as_bytes()).is_none()));
    }

    #[test]
    fn a_number_is_that_of_its_line() {
        assert_eq!(line_number(b"cpu 1 2\nctxt 77\nctxts 8\n", "ctxt"), Some(77));
        assert_eq!(line_number(b"ctxt x\n", "ctxt"), None);
    }
}
