// SPDX-License-Identifier: BSD-3-Clause
//! The functions of program files: by debug information, or else by the symbols, or else the file's own name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::{demangle_auto, Loader};
use anyhow::Context;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// Program files, each read when it is first asked for.
pub struct Programs {
    /// Root of the traced machine's files.
    root: PathBuf,
    files: HashMap<String, Option<Program>>,
    /// What could not be read, a line each.
    pub unread: Vec<String>,
}

/// A program or library.
struct Program {
    /// Of each part that is loaded: first byte in the file, bytes, address.
    segments: Vec<(u64, u64, u64)>,
    /// Of each function: start, end, name; by start.
    symbols: Vec<(u64, u64, String)>,
    debug: Option<Loader>,
}

impl Programs {
    /// The files below `root`.
    pub fn new(root: PathBuf) -> Programs {
        Programs { root, files: HashMap::new(), unread: Vec::new() }
    }

    /// The function at this byte of a file, with those it was put into; the file's name if that is not known.
    pub fn function(&mut self, path: &str, offset: u64) -> String {
        if !self.files.contains_key(path) {
            let program = self.read(path);
            self.files.insert(path.to_string(), program);
        }
        let known = self.files.get(path).and_then(Option::as_ref).and_then(|program| program.function(offset));
        known.unwrap_or_else(|| path.rsplit('/').next().unwrap_or(path).to_string())
    }

    /// Reads a file; what the kernel maps without one, such as `[vdso]`, is not looked for.
    fn read(&mut self, path: &str) -> Option<Program> {
        let place = self.root.join(path.strip_prefix('/')?);
        match Program::read(&place) {
            Ok(program) => Some(program),
            Err(e) => {
                self.unread.push(format!("{e:#}"));
                None
            }
        }
    }
}

impl Program {
    fn read(path: &Path) -> anyhow::Result<Program> {
        let place = || path.display().to_string();
        let bytes = std::fs::read(path).with_context(place)?;
        let file = object::File::parse(&*bytes).with_context(place)?;
        let segments = file.segments().map(|s| (s.file_range().0, s.file_range().1, s.address())).collect();
        let functions = file.symbols().chain(file.dynamic_symbols()).filter(|s| s.kind() == SymbolKind::Text);
        let named = functions.filter_map(|s| {
            let name = demangle_auto(s.name().ok()?.into(), None).into_owned();
            Some((s.address(), s.address().saturating_add(s.size()), name))
        });
        let mut symbols: Vec<_> = named.filter(|(start, end, _)| start < end).collect();
        symbols.sort();
        // Without debug information the symbols have to do.
        Ok(Program { segments, symbols, debug: Loader::new(path).ok() })
    }

    fn function(&self, offset: u64) -> Option<String> {
        let within = |&&(first, bytes, _): &&(u64, u64, u64)| offset.checked_sub(first).is_some_and(|at| at < bytes);
        let (first, _, address) = self.segments.iter().find(within)?;
        let address = offset - first + address;
        self.frames(address).or_else(|| self.symbol(address))
    }

    /// Innermost first, as `inner in outer`.
    fn frames(&self, address: u64) -> Option<String> {
        let mut frames = self.debug.as_ref()?.find_frames(address).ok()?;
        let mut names = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            names.push(frame.function?.demangle().ok()?.into_owned());
        }
        (!names.is_empty()).then(|| names.join(" in "))
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.symbols.get(after.checked_sub(1)?)?;
        (address < *end).then(|| name.clone())
    }
}
