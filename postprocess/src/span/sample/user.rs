// SPDX-License-Identifier: BSD-3-Clause
//! File of a user address, by the memory maps of threads.

use crate::id::Pid;
use std::collections::HashMap;

/// The executable mappings of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    threads: HashMap<Pid, Vec<Mapping>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    from: u64,
    to: u64,
    offset: u64,
    path: String,
}

impl Maps {
    /// Reads copies of `/proc/PID/maps` or `/proc/PID/task/TID/maps`, each after a line with its path, as in
    /// `==== /proc/66/maps`. Other lines are skipped.
    pub fn parse(text: &str) -> Maps {
        let mut maps = Maps::default();
        let mut thread = None;
        for line in text.lines() {
            if let Some(header) = line.strip_prefix("==== ") {
                thread = header.split('/').rev().find_map(|part| part.parse().ok().map(Pid::new));
            } else if let (Some(thread), Some(mapping)) = (thread, mapping(line)) {
                maps.threads.entry(thread).or_default().push(mapping);
            }
        }
        maps
    }

    /// True if no thread has a mapping.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// The file mapped at an address of a thread, and the place in the file, in bytes.
    pub fn find(&self, thread: Pid, address: u64) -> Option<(&str, u64)> {
        let mapping = self.threads.get(&thread)?.iter().find(|m| (m.from..m.to).contains(&address))?;
        Some((&mapping.path, (address - mapping.from).wrapping_add(mapping.offset)))
    }
}

/// An executable mapping, from a line `from-to r-xp offset device inode path`.
fn mapping(line: &str) -> Option<Mapping> {
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let executable = fields.next()?.contains('x');
    let offset = hex(fields.next()?)?;
    let path = fields.nth(2)?.trim();
    (executable && !path.is_empty()).then_some(())?;
    Some(Mapping { from: hex(from)?, to: hex(to)?, offset, path: path.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "==== /proc/66/maps\n\
        55d0c0000000-55d0c0002000 r--p 00000000 fe:01 42         /usr/bin/bash\n\
        55d0c0002000-55d0c0008000 r-xp 00002000 fe:01 42         /usr/bin/bash\n\
        7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0          [vdso]\n\
        7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n\
        ==== /proc/66/task/70/maps\n\
        1000-2000 r-xp 00000800 fe:01 43         /opt/a program (deleted)\n";

    #[test]
    fn an_address_is_found_in_the_file_mapped_there() {
        let maps = Maps::parse(MAPS);
        assert_eq!(maps.find(Pid::new(66), 0x55d0c0002010), Some(("/usr/bin/bash", 0x2010)));
        assert_eq!(maps.find(Pid::new(66), 0x7ffd00000004), Some(("[vdso]", 4)));
        assert_eq!(maps.find(Pid::new(70), 0x1fff), Some(("/opt/a program (deleted)", 0x17ff)));
        for (thread, address) in [(66, 0x55d0c0000010), (66, 0x7f0000000000), (70, 0x2000), (71, 0x1000)] {
            assert_eq!(maps.find(Pid::new(thread), address), None);
        }
    }

    #[test]
    fn lines_that_are_no_maps_are_skipped() {
        assert!(Maps::parse("").is_empty());
        assert!(Maps::parse("==== /proc/x/maps\n1-2 r-xp 0 0 0 /bin/a\nno map\n\u{fffd}").is_empty());
    }
}
