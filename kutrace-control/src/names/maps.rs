// SPDX-License-Identifier: BSD-3-Clause
//! The executable mappings of files in processes, for the samples of user code in them.
//!
//! /proc has those of the processes that exist at the start and at the end; the kernel reports those in between, if it
//! was [asked](super::mapped). Mappings that are not reported get no names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kutrace_format::file::NameKind;
use kutrace_tools::functions::identity;

use super::tasks::numbers;
use super::Names;

/// Start of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Before the start of the trace.
    Start,
    /// At this moment, in ns of the monotonic clock.
    At(u64),
    /// At an unknown moment before this one, at which the mapping was seen.
    Seen(u64),
}

impl Since {
    /// Time at which the mapping became known, in ns of the monotonic clock.
    pub fn ns(self) -> u64 {
        match self {
            Since::Start => 0,
            Since::At(ns) | Since::Seen(ns) => ns,
        }
    }
}

/// An executable mapping of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Address of its first byte.
    pub from: u64,
    /// Address after its last byte.
    pub to: u64,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Build id of the file, as far as the kernel reported it.
    pub build_id: Vec<u8>,
    /// Path of the file, as the process sees it.
    pub path: Vec<u8>,
}

impl Map {
    /// Returns whether both have the same part at the same addresses, regardless of the build id.
    pub fn is_at(&self, other: &Map) -> bool {
        (self.from, self.to, self.offset, &self.path) == (other.from, other.to, other.offset, &other.path)
    }

    /// Returns whether any of these addresses is in the mapping.
    pub fn has_any(&self, sampled: &BTreeSet<u64>) -> bool {
        self.from < self.to && sampled.range(self.from..self.to).next().is_some()
    }
}

/// A report of the kernel about processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A process has mapped a part of a file.
    Mapped(u32, Map),
    /// The first process was forked with all mappings of the second.
    Forked(u32, u32),
    /// A process has another thread.
    Threaded(u32),
    /// A process has loaded another program, and lost all mappings of the old one.
    Loaded(u32),
    /// The first thread of a process has ended.
    Ended(u32),
    /// Number of reports that were lost for lack of room.
    Lost(u64),
}

/// State of a process in /proc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// Its executable mappings.
    Maps(Vec<Map>),
    /// This process may not read them.
    Hidden,
}

/// The mappings of processes, each with its start.
#[derive(Clone, Debug, Default)]
pub struct Maps(Vec<(u32, Since, Arc<Map>)>);

/// Current executable mappings of every process under `proc`, as far as this process may read them.
pub fn alive(proc: &Path) -> Vec<(u32, Process)> {
    let process = |tgid: u32| match fs::read(proc.join(tgid.to_string()).join("maps")) {
        Ok(text) => Process::Maps(text.split(|&c| c == b'\n').filter_map(map).collect()),
        Err(_) => Process::Hidden,
    };
    numbers(proc).map(|tgid| (tgid, process(tgid))).collect()
}

/// An executable mapping from a line `from-to r-xp offset device inode path`.
fn map(line: &[u8]) -> Option<Map> {
    let hex = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    let mut fields = line.splitn(6, |&c| c == b' ');
    let mut range = fields.next()?.split(|&c| c == b'-');
    let (from, to) = (hex(range.next()?)?, hex(range.next()?)?);
    let is_run = fields.next()?.contains(&b'x');
    let offset = hex(fields.next()?)?;
    let path = fields.nth(2)?.trim_ascii();
    (is_run && !path.is_empty()).then(|| Map { from, to, offset, build_id: Vec::new(), path: path.to_vec() })
}

impl Maps {
    /// A list of mappings.
    pub fn new(all: Vec<(u32, Since, Arc<Map>)>) -> Maps {
        Maps(all)
    }

    /// Iterates over all mappings.
    pub fn iter(&self) -> impl Iterator<Item = &(u32, Since, Arc<Map>)> {
        self.0.iter()
    }

    /// Adds the mappings that contain any of these addresses to the names.
    pub fn gather(&self, names: &mut Names, sampled: &BTreeSet<u64>) {
        let mut identities = BTreeMap::new();
        for (number, (tgid, since, map)) in self.0.iter().filter(|(.., map)| map.has_any(sampled)).enumerate() {
            let since = match since {
                Since::Start => "0".to_string(),
                Since::At(ns) => format!("{ns:x}"),
                Since::Seen(_) => "-".to_string(),
            };
            let identity = match map.build_id.is_empty() {
                true => {
                    let of = identities.entry((namespace(*tgid), &map.path));
                    of.or_insert_with(|| identity(&seen_by(*tgid, &map.path))).clone()
                }
                false => map.build_id.iter().fold(String::new(), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                }),
            };
            let Map { from, to, offset, path, .. } = &**map;
            let text = [format!("{from:x}-{to:x} {offset:x} {since} {identity} ").as_bytes(), path].concat();
            names.add(NameKind::Map, *tgid, number as u32, &text);
        }
    }
}

/// Mount namespace of a process: processes in the same one see the same files.
fn namespace(tgid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{tgid}/ns/mnt")).ok()
}

/// Path of a file that a process sees under `path`: in a container it may be another file than in other processes. For
/// a process that has ended, `path` itself.
fn seen_by(tgid: u32, path: &[u8]) -> PathBuf {
    let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
    let root = PathBuf::from(format!("/proc/{tgid}/root"));
    let below = path.strip_prefix("/").map(|path| root.join(path)).ok();
    below.filter(|below| below.exists()).unwrap_or(path)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kutrace_format::file::Name;

    pub(crate) fn part(from: u64, path: &str) -> Map {
        Map { from, to: from + 0x1000, offset: 0, build_id: vec![0xab, 1], path: path.into() }
    }

    pub(crate) fn texts(maps: &Maps, sampled: &[u64]) -> Vec<(u32, String)> {
        let mut names = Names::default();
        maps.gather(&mut names, &BTreeSet::from_iter(sampled.iter().copied()));
        let payload = names.payload();
        let (mut rest, mut texts) = (&payload[..], Vec::new());
        while let Some((name, after)) = Name::split(rest) {
            assert_eq!(name.kind, NameKind::Map as u16);
            texts.push((name.number, String::from_utf8_lossy(name.text).into_owned()));
            rest = after;
        }
        texts
    }

    #[test]
    fn a_process_runs_what_proc_says_and_its_file_is_told_by_what_it_is() {
        let own = alive(Path::new("/proc")).into_iter().find(|(tgid, _)| *tgid == std::process::id());
        let Some((tgid, Process::Maps(maps))) = own else { panic!("{own:?}") };
        let here = part as *const () as u64;
        let of_code: Vec<_> = maps.iter().filter(|map| (map.from..map.to).contains(&here)).collect();
        let program = std::env::current_exe().unwrap();
        assert_eq!(of_code.len(), 1);
        assert_eq!(of_code[0].path, program.as_os_str().as_encoded_bytes());
        let maps = maps.into_iter().map(|map| (tgid, Since::Seen(7), Arc::new(map))).collect();
        let named = texts(&Maps::new(maps), &[here]);
        assert_eq!(named.len(), 1);
        let words: Vec<&str> = named[0].1.splitn(5, ' ').collect();
        assert_eq!((words[2], words[3], words[4]), ("-", identity(&program).as_str(), program.to_str().unwrap()));
    }

    #[test]
    fn lines_of_what_cannot_be_run_or_has_no_file_are_skipped() {
        assert!(map(b"55d0c0000000-55d0c0002000 r--p 00000000 fe:01 42         /usr/bin/bash").is_none());
        assert!(map(b"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ").is_none());
        let deleted = map(b"1000-2000 r-xp 00003000 fe:01 43         /opt/a program (deleted)").unwrap();
        assert_eq!((deleted.offset, &deleted.path[..]), (0x3000, &b"/opt/a program (deleted)"[..]));
        assert!(map(b"").is_none());
    }
}
