// SPDX-License-Identifier: BSD-3-Clause
//! Command line of `top`.

use std::io::{self, IsTerminal};

use clap::Args;

use super::Plan;

/// Text after the help.
pub const AFTER_TOP: &str = "\
Keys at a terminal: q quit, m minute, t c l n order, 1-7 a list, 0 all
Exit status: 3 if some events were not read in time
Examples:
  kutrace_control gowrap; kutrace_control top
  kutrace_control top --json --count 60 | jq .second.events";

/// Options of `top`.
#[derive(Args, Clone, Debug)]
pub struct Top {
    /// End after N seconds; print text instead of a screen
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print JSON: the last second and minute, each in the form of `summary --json`
    #[arg(long)]
    json: bool,
    /// Lines per list in text and JSON
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    top: usize,
}

impl Top {
    /// The plan that these options describe: text if there is no terminal, or if a count is given.
    pub fn plan(&self) -> Plan {
        let screen = !self.json && self.count.is_none() && io::stdout().is_terminal() && io::stdin().is_terminal();
        Plan { count: self.count.unwrap_or(u64::MAX), json: self.json, lines: self.top, screen }
    }
}
