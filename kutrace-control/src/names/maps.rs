// SPDX-License-Identifier: BSD-3-Clause
//! The parts of programs' files that processes run, for the samples of user code that lie in them.
//!
//! Known are those of the processes that there were at the start and at the end, by /proc, and what the kernel told in
//! between, if it was [asked](super::mapped). What nobody told of is not named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use kutrace_format::file::NameKind;
use kutrace_tools::functions::identity;

use super::tasks::numbers;
use super::Names;

/// Since when a process has had a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Since {
    /// From before the start.
    Start,
    /// From this moment, in ns of the monotonic clock.
    At(u64),
    /// It had it at the end.
    End,
}

/// A part of a file that a process can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Address of its first byte.
    pub from: u64,
    /// Address after its last.
    pub to: u64,
    /// The place of its first byte in the file.
    pub offset: u64,
    /// The file's build id, as far as the kernel said it.
    pub build_id: Vec<u8>,
    /// The path of the file, as the process sees it.
    pub path: Vec<u8>,
}

/// What the kernel told of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A process has a part of a file now.
    Mapped(u32, Map),
    /// A process, the first number, began with all that the other had.
    Forked(u32, u32),
    /// A process has loaded another program, and has nothing of the old one.
    Loaded(u32),
    /// This many times it had no room to tell.
    Lost(u64),
}

/// The parts that processes have had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps(Vec<(u32, Since, Map)>);

/// What every process under `proc` runs now, as far as this process may see it.
pub fn alive(proc: &Path) -> Vec<(u32, Map)> {
    let mut maps = Vec::new();
    for tgid in numbers(proc) {
        let text = fs::read(proc.join(tgid.to_string()).join("maps")).unwrap_or_default();
        maps.extend(text.split(|&c| c == b'\n').filter_map(map).map(|map| (tgid, map)));
    }
    maps
}

/// A part that can be run, from a line `from-to r-xp offset device inode path`.
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
    /// Of what there was at the start, what was told since with its time, and what there is at the end.
    pub fn new(start: &[(u32, Map)], told: &[(u64, Told)], end: Vec<(u32, Map)>) -> Maps {
        let mut all: Vec<_> = start.iter().map(|(tgid, map)| (*tgid, Since::Start, map.clone())).collect();
        // What each process has at present, by its place among all.
        let mut held: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        all.iter().enumerate().for_each(|(place, (tgid, ..))| held.entry(*tgid).or_default().push(place));
        for (at, told) in told {
            match told {
                Told::Mapped(tgid, map) => {
                    held.entry(*tgid).or_default().push(all.len());
                    all.push((*tgid, Since::At(*at), map.clone()));
                }
                Told::Forked(child, parent) => {
                    let places = held.get(parent).cloned().unwrap_or_default();
                    let first = all.len();
                    for place in places {
                        let map = all[place].2.clone();
                        all.push((*child, Since::At(*at), map));
                    }
                    held.insert(*child, (first..all.len()).collect());
                }
                Told::Loaded(tgid) => drop(held.remove(tgid)),
                Told::Lost(_) => {}
            }
        }
        let same = |a: &Map, b: &Map| (a.from, a.to, a.offset, &a.path) == (b.from, b.to, b.offset, &b.path);
        for (tgid, map) in end {
            let is_known = held.get(&tgid).is_some_and(|places| places.iter().any(|place| same(&all[*place].2, &map)));
            if !is_known {
                all.push((tgid, Since::End, map));
            }
        }
        Maps(all)
    }

    /// Names those parts that any of these addresses lies in.
    pub fn gather(&self, names: &mut Names, sampled: &BTreeSet<u64>) {
        let mut identities = BTreeMap::new();
        let was_sampled = |map: &Map| map.from < map.to && sampled.range(map.from..map.to).next().is_some();
        for (number, (tgid, since, map)) in self.0.iter().filter(|(.., map)| was_sampled(map)).enumerate() {
            let since = match since {
                Since::Start => "0".to_string(),
                Since::At(ns) => format!("{ns:x}"),
                Since::End => "-".to_string(),
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
            let Map { from, to, offset, path, .. } = map;
            let text = [format!("{from:x}-{to:x} {offset:x} {since} {identity} ").as_bytes(), path].concat();
            names.add(NameKind::Map, *tgid, number as u32, &text);
        }
    }
}

/// What tells which processes see the same files.
fn namespace(tgid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{tgid}/ns/mnt")).ok()
}

/// Where a file is that a process sees under a path: in a container it is not the one that others see there. Of a process
/// that has ended the path has to do.
fn seen_by(tgid: u32, path: &[u8]) -> PathBuf {
    let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
    let root = PathBuf::from(format!("/proc/{tgid}/root"));
    let below = path.strip_prefix("/").map(|path| root.join(path)).ok();
    below.filter(|below| below.exists()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::file::Name;

    fn part(from: u64, path: &str) -> Map {
        Map { from, to: from + 0x1000, offset: 0, build_id: vec![0xab, 1], path: path.into() }
    }

    fn texts(maps: &Maps, sampled: &[u64]) -> Vec<(u32, String)> {
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
    fn what_was_sampled_is_named_with_since_when_it_was_there() {
        let start = [(7, part(0x1000, "/bin/sh")), (7, part(0x5000, "/lib/quiet"))];
        let told = [
            (10, Told::Forked(8, 7)),
            (11, Told::Loaded(8)),
            (12, Told::Mapped(8, part(0x3000, "/bin/program"))),
            (13, Told::Forked(9, 8)),
            (14, Told::Lost(1)),
        ];
        let end = vec![(7, part(0x1000, "/bin/sh")), (5, part(0x3000, "/bin/program"))];
        let maps = Maps::new(&start, &told, end);
        let named = texts(&maps, &[0x1234, 0x3000, 0x4000]);
        let expected = [
            (5, "3000-4000 0 - ab01 /bin/program"),
            (7, "1000-2000 0 0 ab01 /bin/sh"),
            (8, "1000-2000 0 a ab01 /bin/sh"),
            (8, "3000-4000 0 c ab01 /bin/program"),
            (9, "3000-4000 0 d ab01 /bin/program"),
        ];
        assert_eq!(named, expected.map(|(tgid, text)| (tgid, text.to_string())));
        assert_eq!(texts(&maps, &[]), []);
    }

    #[test]
    fn a_process_runs_what_proc_says_and_its_file_is_told_by_what_it_is() {
        let maps: Vec<_> =
            alive(Path::new("/proc")).into_iter().filter(|(tgid, _)| *tgid == std::process::id()).collect();
        let here = part as *const () as u64;
        let own: Vec<_> = maps.iter().filter(|(_, map)| (map.from..map.to).contains(&here)).collect();
        let program = std::env::current_exe().unwrap();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].1.path, program.as_os_str().as_encoded_bytes());
        let named = texts(&Maps::new(&[], &[], maps.clone()), &[here]);
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
