// SPDX-License-Identifier: BSD-3-Clause
//! Mutants that every run must notice: a probe that is taken away, a line of the recorder that is another. If the tests
//! that claim them pass all the same, the run has not shown anything.

use std::path::Path;

use crate::mutants::{self, Kind};

/// All of them.
pub const ALL: [Canary; 2] = [
    Canary { table: Kind::Probe, expression: r#"{ "sys_exit", kutrace_sys_exit }"# },
    Canary { table: Kind::Module, expression: "field!(lost: u64).increment()" },
];

/// A mutant.
pub struct Canary {
    table: Kind,
    /// The expression that is another one, by which the table names it.
    expression: &'static str,
}

impl Canary {
    /// Its name in the output.
    pub fn name(&self) -> String {
        format!("canary {} {}", self.table.file(), self.expression)
    }

    /// Runs the tests that claim it by `program`, that of the VM's tests; fails unless one of them fails.
    pub fn sing(&self, program: &Path) -> Result<(), String> {
        match mutants::canary(program, self.table, self.expression) {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("{error:#}")),
        }
    }
}
