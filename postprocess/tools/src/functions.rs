// SPDX-License-Identifier: BSD-3-Clause
//! Functions of program files: from debug information, or else from the symbols.
//!
//! Invariant: a file is used for a trace only if its build id shows that it is the one that was traced.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use addr2line::{demangle_auto, Loader};
use anyhow::{anyhow, ensure, Context, Result};
use kutrace_cli::say;
use object::{Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use postprocess::readable::count;
use postprocess::source::{self, Trace};

/// Opens the bytes of a raw trace from `name`, and names its samples of user code by the programs on this machine. One
/// line lists the programs that are missing or have changed.
///
/// # Errors
/// If this is not a raw trace.
pub fn trace<'a>(bytes: &'a [u8], name: &str) -> Result<Box<dyn Trace + 'a>> {
    let mut trace = opened(bytes, name)?;
    let mut programs = Programs::new("/".into());
    let mut functions = BTreeMap::new();
    for place in trace.places() {
        let frames = programs.frames(&place.path, Some(&place.identity), place.offset);
        if !frames.is_empty() {
            functions.insert(place, frames.join("@"));
        }
    }
    trace.tell(&functions);
    if let Some((first, others)) = programs.unread.split_first() {
        let more = count(others.len() as u64, "other file", "other files");
        let more = if others.is_empty() { String::new() } else { format!(", nor in {more}") };
        say(format_args!("{name}: samples are not named by function in {first}{more}"));
    }
    Ok(trace)
}

/// Opens the bytes of a raw trace from `name`, with samples named by their addresses even if functions are known.
///
/// # Errors
/// If this is not a raw trace.
pub fn forgotten<'a>(bytes: &'a [u8], name: &str) -> Result<Box<dyn Trace + 'a>> {
    let mut trace = opened(bytes, name)?;
    trace.forget_functions();
    Ok(trace)
}

fn opened<'a>(bytes: &'a [u8], name: &str) -> Result<Box<dyn Trace + 'a>> {
    source::trace(bytes).map_err(|error| anyhow!("{name}: {error}"))
}

/// Program files, each read on first use.
pub struct Programs {
    /// Root of the traced machine's files.
    root: PathBuf,
    files: HashMap<(String, Option<String>), Option<Program>>,
    /// A sentence for each file that could not be read.
    pub unread: Vec<String>,
}

/// A program or library.
struct Program {
    /// Each loaded part: first byte in the file, number of bytes, address.
    segments: Vec<(u64, u64, u64)>,
    /// Each function: start, end, name; ordered by start.
    symbols: Vec<(u64, u64, String)>,
    debug: Option<Loader>,
}

impl Programs {
    /// Prepares to read the files below `root`.
    pub fn new(root: PathBuf) -> Programs {
        Programs { root, files: HashMap::new(), unread: Vec::new() }
    }

    /// Returns the function at this byte of a file, after the functions that were inlined into it, innermost first;
    /// empty if unknown, or if the file does not have this identity.
    pub fn frames(&mut self, path: &str, identity: Option<&str>, offset: u64) -> Vec<String> {
        let key = (path.to_string(), identity.map(str::to_string));
        if !self.files.contains_key(&key) {
            let program = self.read(path, identity);
            self.files.insert(key.clone(), program);
        }
        self.files.get(&key).and_then(Option::as_ref).and_then(|program| program.frames(offset)).unwrap_or_default()
    }

    /// Reads a file. Mappings without a file, such as `[vdso]`, are not looked for.
    fn read(&mut self, path: &str, identity: Option<&str>) -> Option<Program> {
        let place = self.root.join(path.strip_prefix('/')?);
        match Program::read(&place, identity) {
            Ok(program) => Some(program),
            Err(e) => {
                self.unread.push(format!("{e:#}"));
                None
            }
        }
    }
}

/// Returns what identifies a program's file among others with its path: its build id, or without one, its size and the
/// time of its last change. `-` if the file cannot be read.
pub fn identity(path: &Path) -> String {
    identity_of(path).unwrap_or_else(|_| "-".to_string())
}

fn identity_of(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    let cache = ReadCache::new(&file);
    let id = object::File::parse(&cache).ok().and_then(|object| object.build_id().ok()?.map(<[u8]>::to_vec));
    Ok(match id {
        Some(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => format!("{}@{}", about.size(), about.mtime() * 1_000_000_000 + about.mtime_nsec()),
    })
}

impl Program {
    fn read(path: &Path, identity: Option<&str>) -> Result<Program> {
        let place = || path.display().to_string();
        if let Some(identity) = identity {
            let is_known = identity_of(path).with_context(place)?;
            ensure!(identity != "-", "{}: it could not be read when the trace was written", place());
            ensure!(identity == is_known, "{}: it differs from the file that was traced", place());
        }
        let bytes = fs::read(path).with_context(place)?;
        let file = object::File::parse(&*bytes).with_context(place)?;
        let segments = file.segments().map(|s| (s.file_range().0, s.file_range().1, s.address())).collect();
        let functions = file.symbols().chain(file.dynamic_symbols()).filter(|s| s.kind() == SymbolKind::Text);
        let named = functions.filter_map(|s| {
            let name = demangle_auto(s.name().ok()?.into(), None).into_owned();
            Some((s.address(), s.address().saturating_add(s.size()), name))
        });
        let mut symbols: Vec<_> = named.filter(|(start, end, _)| start < end).collect();
        symbols.sort();
        // Without debug information the symbols must suffice.
        Ok(Program { segments, symbols, debug: Loader::new(path).ok() })
    }

    fn frames(&self, offset: u64) -> Option<Vec<String>> {
        let within = |&&(first, bytes, _): &&(u64, u64, u64)| offset.checked_sub(first).is_some_and(|at| at < bytes);
        let (first, _, address) = self.segments.iter().find(within)?;
        let address = offset - first + address;
        self.told(address).or_else(|| self.symbol(address).map(|symbol| vec![symbol]))
    }

    /// Looks up the debug information.
    fn told(&self, address: u64) -> Option<Vec<String>> {
        let mut frames = self.debug.as_ref()?.find_frames(address).ok()?;
        let mut names = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            names.push(frame.function?.demangle().ok()?.into_owned());
        }
        (!names.is_empty()).then_some(names)
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.symbols.get(after.checked_sub(1)?)?;
        (address < *end).then(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_build_id_or_else_by_its_size_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "no program").unwrap();
        let known = identity(&text);
        assert!(known.starts_with("10@"), "{known}");
        let own = identity(&std::env::current_exe().unwrap());
        assert!(own.contains('@') || own.bytes().all(|c| c.is_ascii_hexdigit()), "{own}");
        assert_eq!(identity(&folder.path().join("none")), "-");
    }

    #[test]
    fn another_file_than_was_traced_names_nothing_and_is_told() {
        let mut programs = Programs::new("/".into());
        let own = std::env::current_exe().unwrap();
        let path = own.to_str().unwrap();
        let here = a_file_is_known_by_its_build_id_or_else_by_its_size_and_time as *const () as u64;
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let spot = maps.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (from, to) = fields.next()?.split_once('-')?;
            let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
            let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
            (from..to).contains(&here).then_some(here - from + offset)
        });
        let spot = spot.unwrap();
        assert!(programs.frames(path, Some("1@2"), spot).is_empty());
        assert_eq!(programs.unread, [format!("{path}: it differs from the file that was traced")]);
        let named = programs.frames(path, Some(&identity(&own)), spot);
        assert!(named[0].contains("a_file_is_known_by"), "{named:?}");
        assert!(programs.frames("[vdso]", Some("-"), 0).is_empty());
        assert_eq!(programs.unread.len(), 1);
    }
}
