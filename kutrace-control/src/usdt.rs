// SPDX-License-Identifier: BSD-3-Clause
//! Probes compiled into programs and libraries (USDT, from sys/sdt.h), as selected by `--usdt`: each becomes a uprobe
//! event of the kernel, which is then recorded like any tracepoint.
//!
//! The kernel replaces the probe's NOP by a breakpoint in every process that runs the file, now or later, and
//! increments the probe's semaphore, if it has one. While nothing is traced the file is unchanged.

mod argument;
mod elf;
mod place;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kutrace_cli::{say, Failure};

use argument::Argument;

/// The subsystem of the uprobe events.
pub const GROUP: &str = "kutrace";

/// The selected probes of a program: `postgres`, `postgres:postgresql:transaction__start`, or with types of its
/// arguments, `python3.11:python:function__entry(string,string)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    /// Provider and name; `None` for all probes.
    which: Option<(String, String)>,
    /// For each argument in order: true if it is the address of a text to record.
    texts: Vec<bool>,
}

/// Parses a selection of probes.
///
/// # Errors
/// A sentence.
pub fn parse(text: &str) -> Result<Program, String> {
    let expected = |what: &str| format!("invalid probe '{text}': {what}");
    let (place, types) = match text.strip_suffix(')').map(|text| text.split_once('(')) {
        Some(Some((place, types))) => (place, types.split(',').collect()),
        Some(None) => return Err(expected("expected PROGRAM:PROVIDER:NAME(TYPES)")),
        None => (text, Vec::new()),
    };
    let texts: Result<Vec<bool>, String> = types
        .into_iter()
        .map(|kind| match kind {
            "string" => Ok(true),
            "" | "number" => Ok(false),
            _ => Err(expected("invalid type: expected string, or number or nothing")),
        })
        .collect();
    let mut parts = place.rsplitn(3, ':').collect::<Vec<_>>();
    parts.reverse();
    let (path, which) = match parts[..] {
        [path] => (path, None),
        [path, provider, name] if !provider.is_empty() && !name.is_empty() => {
            (path, Some((provider.to_string(), name.to_string())))
        }
        _ => return Err(expected("expected PROGRAM or PROGRAM:PROVIDER:NAME")),
    };
    if path.is_empty() || place.contains(['(', ')']) {
        return Err(expected("expected a program, or a library, by its path or its name on PATH"));
    }
    Ok(Program { path: path.into(), which, texts: texts? })
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((provider, name)) = &self.which {
            write!(f, ":{provider}:{name}")?;
        }
        let types: Vec<&str> = self.texts.iter().map(|&is_text| if is_text { "string" } else { "" }).collect();
        if types.is_empty() {
            return Ok(());
        }
        write!(f, "({})", types.join(","))
    }
}

/// A probe of a program, with all its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    path: PathBuf,
    provider: String,
    name: String,
    places: Vec<elf::Place>,
    /// Its arguments at each place, limited to those that can be recorded at all places.
    arguments: Vec<Vec<Argument>>,
}

/// Names of probes, for a message.
pub fn list(probes: &[Probe]) -> String {
    probes.iter().map(Probe::shown).collect::<Vec<_>>().join(" ")
}

impl Program {
    /// The selected probes of the file.
    ///
    /// # Errors
    /// If there are none, or the file cannot be read.
    pub fn find(&self) -> Result<Vec<Probe>> {
        let path = self.path.components().nth(1).map_or_else(|| on_path(&self.path), |_| self.path.clone());
        let path = place::resolve(&path).with_context(|| path.display().to_string())?;
        let shown = path.display().to_string();
        let is_plain = path.to_str().is_some_and(|path| !path.contains(char::is_whitespace));
        if !is_plain {
            return Err(
                Failure::new(format!("{shown}: the kernel accepts no path with spaces"), "link to the file").into()
            );
        }
        let bytes = fs::read(&path).with_context(|| shown.clone())?;
        let all = elf::notes(&bytes).with_context(|| shown.clone())?;
        let wanted = |provider: &str, name: &str| self.which.as_ref().is_none_or(|(p, n)| p == provider && n == name);
        let mut found: BTreeMap<(String, String), Vec<elf::Note>> = BTreeMap::new();
        for note in &all {
            if wanted(&note.provider, &note.name) {
                found.entry((note.provider.clone(), note.name.clone())).or_default().push(note.clone());
            }
        }
        if found.is_empty() {
            let mut names: Vec<String> = all.iter().map(|note| format!("{}:{}", note.provider, note.name)).collect();
            names.dedup();
            let hint = match names.len() {
                0 => "its libraries may have some: name one of those".to_string(),
                _ => format!("it has: {}", names.join(" ")),
            };
            return Err(Failure::new(format!("{shown}: has no such probe"), hint).into());
        }
        Ok(found.into_iter().map(|((provider, name), notes)| self.probe(&path, provider, name, &notes)).collect())
    }

    fn probe(&self, path: &Path, provider: String, name: String, notes: &[elf::Note]) -> Probe {
        let places = notes.iter().map(|note| note.place).collect();
        let told = |note: &elf::Note| argument::read(&note.arguments, &self.texts);
        let told: Vec<Vec<Result<Argument, String>>> = notes.iter().map(told).collect();
        let count = told.iter().map(Vec::len).min().unwrap_or_default();
        let mut arguments = vec![Vec::new(); notes.len()];
        for n in 0..count {
            let at_all: Result<Vec<&Argument>, &String> = told.iter().map(|place| place[n].as_ref()).collect();
            match at_all {
                Ok(at_all) if at_all.iter().all(|one| one.kind == at_all[0].kind) => {
                    at_all.into_iter().zip(&mut arguments).for_each(|(one, all)| all.push(one.clone()));
                }
                Ok(_) => {
                    say(format_args!("{provider}:{name}: argument {} has several types, and is not recorded", n + 1))
                }
                Err(what) => say(format_args!("{provider}:{name}: argument {} is not recorded: {what}", n + 1)),
            }
        }
        Probe { path: path.to_owned(), provider, name, places, arguments }
    }
}

impl Probe {
    /// Name of the probe in a trace.
    pub fn shown(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }

    /// Makes the kernel create an event for the probe. Returns the event's name in [`GROUP`].
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn place(&self, tracefs: &Path) -> Result<String> {
        let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        // Two files with probes of the same name get separate events.
        let file = crc32fast::hash(self.path.as_os_str().as_encoded_bytes());
        let head = format!("{}__{}", plain(&self.provider), plain(&self.name));
        let name = format!("{}__{file:08x}", &head[..head.len().min(48)]);
        let events = tracefs.join("uprobe_events");
        for line in self.lines(&name) {
            let placed =
                OpenOptions::new().append(true).open(&events).and_then(|mut file| file.write_all(line.as_bytes()));
            let hint = format!("the kernel's reason: tail -3 {}/error_log; the request: {line}", tracefs.display());
            placed
                .map_err(|error| Failure::new(format!("{error}: {}", self.shown()), hint))
                .with_context(|| events.display().to_string())?;
        }
        Ok(name)
    }

    /// The kernel's input, a line for each place: `p:kutrace/NAME PATH:OFFSET(SEMAPHORE) arg1=%di:s32`.
    fn lines(&self, name: &str) -> Vec<String> {
        let one = |(place, arguments): (&elf::Place, &Vec<Argument>)| {
            let semaphore = place.semaphore.map(|at| format!("(0x{at:x})")).unwrap_or_default();
            let path = self.path.display();
            let arguments: String =
                arguments.iter().map(|one| format!(" {}={}:{}", one.name, one.fetch, one.kind)).collect();
            format!("p:{GROUP}/{name} {path}:0x{:x}{semaphore}{arguments}\n", place.offset)
        };
        self.places.iter().zip(&self.arguments).map(one).collect()
    }
}

/// Removes all of our events; those in use stay.
pub fn clear(tracefs: &Path) {
    let Ok(placed) = fs::read_dir(tracefs.join("events").join(GROUP)) else { return };
    let names = placed.flatten().filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name());
    for name in names {
        let line = format!("-:{GROUP}/{}\n", name.to_string_lossy());
        let events = OpenOptions::new().append(true).open(tracefs.join("uprobe_events"));
        // If an event stays, the kernel reports it when the event is created again.
        let _ = events.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// The file of a program on PATH, or the name itself.
fn on_path(name: &Path) -> PathBuf {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_named_by_its_program_provider_and_name() {
        let some = |path: &str, which: Option<(&str, &str)>, texts: &[bool]| {
            let which = which.map(|(provider, name)| (provider.into(), name.into()));
            Ok(Program { path: path.into(), which, texts: texts.to_vec() })
        };
        assert_eq!(parse("postgres"), some("postgres", None, &[]));
        assert_eq!(parse("/a/b:c:d"), some("/a/b", Some(("c", "d")), &[]));
        assert_eq!(parse("a:c:d(string,,number,string)"), some("a", Some(("c", "d")), &[true, false, false, true]));
        for text in ["postgres", "/a/b:c:d", "a:c:d(string,,,string)"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", ":b:c", "a:b", "a::c", "a:b:", "a:b:c(", "a:b:c)", "a:b:c(text)"] {
            assert!(parse(wrong).unwrap_err().starts_with("invalid probe '"), "{wrong}");
        }
    }

    #[test]
    fn the_kernel_is_asked_for_each_place() {
        let places =
            vec![elf::Place { offset: 0x10, semaphore: Some(0x90) }, elf::Place { offset: 0x20, semaphore: None }];
        let arguments = ["4@%edi -8@$-3", "4@8(%rsp) -8@%rax"]
            .map(|text| argument::read(text, &[]).into_iter().map(Result::unwrap).collect());
        let probe = Probe {
            path: "/bin/x".into(),
            provider: "p".into(),
            name: "n".into(),
            places,
            arguments: arguments.to_vec(),
        };
        assert_eq!(
            probe.lines("e"),
            [
                "p:kutrace/e /bin/x:0x10(0x90) arg1=%di:u32 arg2=\\-3:s64\n",
                "p:kutrace/e /bin/x:0x20 arg1=+8(%sp):u32 arg2=%ax:s64\n"
            ]
        );
    }

    #[test]
    fn a_file_without_probes_says_so() {
        let own = env::current_exe().unwrap();
        let error = parse(&format!("{}:a:b", own.display())).unwrap().find().unwrap_err();
        assert!(format!("{error:#}").ends_with("has no such probe"), "{error:#}");
        assert!(parse("/no/such/file").unwrap().find().is_err());
        assert!(format!("{:#}", parse("/etc/passwd").unwrap().find().unwrap_err()).contains("not an ELF file"));
    }
}
