// SPDX-License-Identifier: BSD-3-Clause
//! A guest's counter that is known at every moment: the host's times a factor, plus an offset (truth.c).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::guest;

/// Fractional bits of the factor.
const POINT: u32 = 63;
/// QEMU's mapping of the file.
const PAGE: usize = 4096;

/// A counter, in a folder that has the library and the program made of truth.c.
pub struct Counter {
    folder: PathBuf,
    factor: u64,
    offset: u64,
}

impl Counter {
    /// One that is fast by some parts of a million, and ahead of the host's by `offset`.
    pub fn new(folder: &Path, ppm: i64, offset: u64) -> Counter {
        let source = guest::folder().join("truth.c");
        for (name, how) in [("truth.so", &["-shared", "-fPIC"][..]), ("truth", &[])] {
            let mut gcc = Command::new("gcc");
            gcc.args(["-O2", "-Wall", "-Werror", "-o"]).arg(folder.join(name)).args(how).arg(&source);
            assert!(gcc.status().unwrap().success(), "{name}");
        }
        let one = 1i128 << POINT;
        let factor = (one + one / 1_000_000 * i128::from(ppm)) as u64;
        let mut page = [factor, offset].map(u64::to_le_bytes).concat();
        page.resize(PAGE, 0);
        fs::write(folder.join("numbers"), page).unwrap();
        Counter { folder: folder.to_path_buf(), factor, offset }
    }

    /// Environment that makes QEMU count in this way.
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.folder.join("truth.so")), ("KUTRACE_COUNTER", self.folder.join("numbers"))]
    }

    /// Sets the counter forward: its parameters from then on, and the readings of the host's before that and after.
    pub fn step(&self, by: u64) -> (Counter, (i128, i128)) {
        let offset = self.offset + by;
        let mut truth = Command::new(self.folder.join("truth"));
        let said = truth.arg(self.folder.join("numbers")).arg(offset.to_string()).output().unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        let [before, after] = text.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{text:?}") };
        let stepped = Counter { folder: self.folder.clone(), factor: self.factor, offset };
        (stepped, [before, after].map(|number| number.parse().unwrap()).into())
    }

    /// The counter's reading for one of the host's.
    pub fn at(&self, host: i128) -> i128 {
        ((host * i128::from(self.factor)) >> POINT) + i128::from(self.offset)
    }

    /// The host's reading for one of this counter.
    pub fn host(&self, counter: i128) -> i128 {
        ((counter - i128::from(self.offset)) << POINT) / i128::from(self.factor)
    }

    /// Counts of this one for each of the host's, less 1.
    pub fn rate(&self) -> f64 {
        (i128::from(self.factor) - (1 << POINT)) as f64 / (1i128 << POINT) as f64
    }
}
