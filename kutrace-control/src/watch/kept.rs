// SPDX-License-Identifier: BSD-3-Clause
//! The folder of kept moments: the worst ones, limited by number and by size, each as a few files of one name.
//!
//! ```text
//! NAME.trace  the recording    NAME.html  its page    NAME.txt  why    NAME.json  what happened
//! ```
//!
//! Invariants: files with other names are never touched; moments of earlier runs count, including those that a run had
//! not reported when it was killed; no moment is removed for a less bad one, and room is made before a recording
//! is written, so that a reported recording is removed only for a worse one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{ensure, Context, Result};
use kutrace_cli::say;
use serde_json::Value;

/// Extensions of a moment's files.
const ENDINGS: [&str; 4] = ["trace", "html", "txt", "json"];

/// Ratio of a duration to its limit; a requested snapshot ranks above all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rank(pub f64);

/// Rank below everything that passed its limit.
const LEAST: Rank = Rank(0.0);

/// A moment that is kept.
#[derive(Clone, Debug)]
struct Moment {
    name: String,
    rank: Rank,
}

/// The folder; a clone refers to the same one.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
    keep: usize,
    budget: u64,
    moments: Arc<Mutex<Vec<Moment>>>,
}

impl Kept {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub fn open(folder: &Path, keep: usize, budget: u64) -> Result<Kept> {
        let place = || folder.display().to_string();
        fs::create_dir_all(folder).with_context(place)?;
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).with_context(place)? {
            let path = entry.with_context(place)?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match path.extension().unwrap_or_default().to_str() {
                Some("json") if name.starts_with("ku_") => {
                    if let Some(rank) = rank(&path) {
                        found.insert(name, rank);
                    }
                }
                // A run that was killed before it wrote the report: the rank is unknown.
                Some("trace") if is_name(&name) => drop(found.entry(name).or_insert(LEAST)),
                _ => {}
            }
        }
        let moments: Vec<_> = found.into_iter().map(|(name, rank)| Moment { name, rank }).collect();
        // Names begin with their times, and are found in this order.
        let moments = Arc::new(Mutex::new(moments));
        let kept = Kept { folder: folder.to_owned(), keep, budget, moments };
        kept.make_room(0, kept.keep);
        Ok(kept)
    }

    fn moments(&self) -> MutexGuard<'_, Vec<Moment>> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a moment of this rank would be kept.
    pub fn wants(&self, rank: Rank) -> bool {
        let moments = self.moments();
        moments.len() < self.keep || least(&moments).is_some_and(|least| moments[least].rank.0 <= rank.0)
    }

    /// Makes room for another moment of at most `bytes`.
    ///
    /// # Errors
    /// If worse moments leave no room; then nothing is removed.
    pub fn make_room_for_one(&self, bytes: u64, rank: Rank) -> Result<()> {
        ensure!(bytes <= self.budget, "its files may take {} MB, more than --budget", bytes.div_ceil(1 << 20));
        let worse: u64 = self.moments().iter().filter(|one| one.rank.0 > rank.0).map(|one| self.size(&one.name)).sum();
        ensure!(
            worse.saturating_add(bytes) <= self.budget,
            "not kept, other moments were worse and leave no room in --budget"
        );
        self.make_room(bytes, self.keep.saturating_sub(1));
        Ok(())
    }

    /// Name of a new moment, from its time and its condition, and the path of its recording.
    pub fn name(&self, time: &str, what: &str) -> (String, PathBuf) {
        let words = what.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let plain: String = words.collect::<Vec<_>>().join("_").chars().take(40).collect();
        let name = format!("ku_{time}_{plain}");
        let file = self.file(&name, "trace");
        (name, file)
    }

    /// Path of a moment's file with this extension.
    pub fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    /// Adds a moment whose recording is written, and writes its report.
    ///
    /// # Errors
    /// If the report cannot be written.
    pub fn add(&self, name: &str, rank: Rank, told: &str) -> Result<()> {
        let place = self.file(name, "json");
        fs::write(&place, told).with_context(|| place.display().to_string())?;
        self.make_room(self.size(name), self.keep.saturating_sub(1));
        self.moments().push(Moment { name: name.to_string(), rank });
        Ok(())
    }

    /// Returns whether the moment is still kept.
    pub fn has(&self, name: &str) -> bool {
        self.moments().iter().any(|moment| moment.name == name)
    }

    /// Total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.moments().iter().map(|moment| self.size(&moment.name)).sum()
    }

    /// Size of a moment's files in bytes.
    fn size(&self, name: &str) -> u64 {
        let files = ENDINGS.map(|ending| self.file(name, ending));
        files.iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum()
    }

    /// Removes the least bad moments until at most `most` are left and `bytes` more fit into the budget.
    fn make_room(&self, bytes: u64, most: usize) {
        loop {
            let count = self.moments().len();
            if count <= most && self.bytes().saturating_add(bytes) <= self.budget {
                break;
            }
            let Some(name) = self.take_least() else { break };
            for file in ENDINGS.map(|ending| self.file(&name, ending)) {
                match fs::remove_file(&file) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        say(format_args!("{}: {error}", file.display()));
                    }
                    _ => {}
                }
            }
        }
    }

    fn take_least(&self) -> Option<String> {
        let mut moments = self.moments();
        let least = least(&moments)?;
        Some(moments.remove(least).name)
    }
}

/// Index of the moment to remove first: the least bad, and the oldest of equal ones.
fn least(moments: &[Moment]) -> Option<usize> {
    (0..moments.len()).min_by(|&a, &b| moments[a].rank.0.total_cmp(&moments[b].rank.0))
}

/// Rank of a moment, from its report.
fn rank(told: &Path) -> Option<Rank> {
    let told: Value = serde_json::from_slice(&fs::read(told).ok()?).ok()?;
    Some(Rank(told.get("worse").and_then(Value::as_f64).unwrap_or(f64::INFINITY)))
}

/// Returns whether this is the name of a moment, `ku_DATE_TIME_MS_WORDS`, and not of a recording that was made
/// otherwise.
fn is_name(name: &str) -> bool {
    let mut parts = name.splitn(5, '_');
    let is_prefixed = parts.next() == Some("ku");
    let mut is_number = |digits: usize| {
        parts.next().is_some_and(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_dated = is_prefixed && is_number(8) && is_number(6) && is_number(3);
    // Conditions begin with a word.
    is_dated && parts.next().is_some_and(|words| words.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(kept: &Kept, time: &str, rank: f64, bytes: usize) {
        let (name, file) = kept.name(time, "call:fsync > 50ms");
        kept.make_room_for_one(bytes as u64, Rank(rank)).unwrap();
        fs::write(file, vec![0; bytes]).unwrap();
        let worse = if rank.is_finite() { rank.to_string() } else { "null".to_string() };
        kept.add(&name, Rank(rank), &format!(r#"{{"worse": {worse}}}"#)).unwrap();
    }

    fn traces(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter_map(|name| Some(name.strip_suffix(".trace")?[3..4].to_string())).collect();
        names.sort();
        names
    }

    #[test]
    fn the_worst_are_kept_and_of_equal_ones_the_newest_also_by_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("other.trace"), "").unwrap();
        let kept = Kept::open(folder.path(), 3, u64::MAX).unwrap();
        for (time, rank) in [("1", 2.0), ("2", 5.0), ("3", f64::INFINITY)] {
            assert!(kept.wants(Rank(rank)));
            add(&kept, time, rank, 10);
        }
        assert!(!kept.wants(Rank(1.5)) && kept.wants(Rank(2.0)));
        add(&kept, "4", 3.0, 10);
        assert_eq!(traces(folder.path()), ["2", "3", "4", "e"]);
        let kept = Kept::open(folder.path(), 2, u64::MAX).unwrap();
        assert_eq!(traces(folder.path()), ["2", "3", "e"]);
        add(&kept, "5", f64::INFINITY, 10);
        add(&kept, "6", f64::INFINITY, 10);
        assert_eq!(traces(folder.path()), ["5", "6", "e"]);
    }

    #[test]
    fn what_was_written_when_the_watching_was_killed_goes_first_and_other_recordings_stay() {
        let folder = tempfile::tempdir().unwrap();
        let killed = "ku_20260102_030405_678_call_fsync_50ms";
        let others = ["ku_20260102_030405_host_77.trace", "ku_20260102_030405_123_77.trace", "mine.trace"];
        let put = |name: &str| fs::write(folder.path().join(name), [0; 10]).unwrap();
        others.iter().for_each(|name| put(name));
        // Without a report, and with half of one.
        put(&format!("{killed}.trace"));
        put("ku_20260102_030406_678_signal.trace");
        fs::write(folder.path().join("ku_20260102_030406_678_signal.json"), "{").unwrap();
        let kept = Kept::open(folder.path(), 3, u64::MAX).unwrap();
        assert_eq!(kept.bytes(), 21);
        add(&kept, "7", 1.0, 10);
        add(&kept, "8", 1.0, 10);
        assert!(!kept.has(killed) && !folder.path().join(format!("{killed}.trace")).exists());
        Kept::open(folder.path(), 2, u64::MAX).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.retain(|name| name.to_string_lossy().ends_with(".trace"));
        left.sort();
        let mut expected = [&others[..], &["ku_7_call_fsync_50ms.trace", "ku_8_call_fsync_50ms.trace"]].concat();
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn the_budget_holds_whatever_comes() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::open(folder.path(), 100, 1000).unwrap();
        for n in 0..9 {
            add(&kept, &n.to_string(), f64::from(n), 300);
            assert!(kept.bytes() <= 1000, "{}", kept.bytes());
        }
        assert_eq!(traces(folder.path()), ["6", "7", "8"]);
        // A less bad moment finds no room, nor does one larger than the budget, and nothing is removed.
        for (rank, bytes) in [(6.5, 400), (f64::INFINITY, 1001)] {
            assert!(kept.make_room_for_one(bytes, Rank(rank)).is_err());
        }
        assert_eq!(traces(folder.path()), ["6", "7", "8"]);
        kept.make_room_for_one(300, Rank(8.5)).unwrap();
        assert_eq!(traces(folder.path()), ["7", "8"]);
    }
}
