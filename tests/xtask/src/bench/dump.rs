// SPDX-License-Identifier: BSD-3-Clause
//! Speed of writing a trace to its file, compared with a plain copy of that file.

use std::fmt;
use std::path::Path;

use anyhow::Result;

use super::number;
use super::section::Section;
use crate::place;
use crate::progress::{output, tied};

/// Bytes written, and the speed.
pub struct Dump {
    megabytes: f64,
    dump: Rates,
    copy: Rates,
    /// Seconds of the dump to those of the copy.
    ratio: f64,
}

/// MB/s until all is on the disk, and MB for a second of CPU time.
struct Rates {
    disk: f64,
    cpu: f64,
}

/// Writes to `dir`.
pub fn measure(dir: &Path) -> Result<Dump> {
    let mut cargo = tied("cargo");
    cargo.args(["run", "--release", "--locked", "--quiet", "--package", "kutrace-control", "--example", "dump", "--"]);
    let text = output(cargo.arg(dir).current_dir(place::checkout()))?;
    let rates = |name| {
        Ok::<_, anyhow::Error>(Rates { disk: number(&text, name)?, cpu: number(&text, &format!("{name}_cpu"))? })
    };
    let [megabytes, ratio] = [number(&text, "megabytes")?, number(&text, "ratio")?];
    Ok(Dump { megabytes, dump: rates("dump")?, copy: rates("copy")?, ratio })
}

impl Dump {
    /// Its section.
    pub fn section(&self) -> Section {
        Section { name: "dump", tables: self.to_string(), over: Vec::new() }
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Dump { megabytes, dump, copy, ratio } = self;
        writeln!(f, "| {megabytes:.0} MB to the disk | MB/s | MB for a second of CPU | time |\n|---|---|---|---|")?;
        writeln!(f, "| a trace, by `stop` | {:.0} | {:.0} | {ratio:.2} |", dump.disk, dump.cpu)?;
        writeln!(f, "| a copy of its file | {:.0} | {:.0} | 1.00 |", copy.disk, copy.cpu)
    }
}
