// SPDX-License-Identifier: BSD-3-Clause
//! Command line of `watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::condition::Condition;
use super::Plan;
use crate::quantity::{bytes, duration};

/// Text after the help.
pub const AFTER_WATCH: &str = "\
Conditions:
  span:NAME > TIME    mark:A..B > TIME   rpc:METHOD > TIME  call:NAME > TIME
  wait_cpu > TIME     run:PROGRAM > TIME irq:NAME > TIME    softirq > TIME
  psi:cpu some 10%    signal (SIGUSR1)   keep (requested by a program)
Examples:
  kutrace_control watch --when \"call:fsync > 50ms\" --keep 20 -o slow
  kutrace_control watch --when \"wait_cpu > 5ms\" --when signal -o slow";

/// Options of `watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Keep a moment when this holds; may be repeated
    #[arg(short, long = "when", value_name = "COND", required = true)]
    conditions: Vec<Condition>,
    /// Number of worst moments to keep
    #[arg(short, long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Maximum disk space for all of them
    #[arg(short, long, value_name = "SIZE", default_value = "2G", value_parser = bytes)]
    budget: u64,
    /// Folder for them, created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// End after this time: 2, 500ms, 1m
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Write recordings only, without page and explanation
    #[arg(long)]
    bare: bool,
    /// Omit the names of functions
    #[arg(long)]
    pub no_symbols: bool,
}

impl Watch {
    /// The plan that these options describe.
    pub fn plan(self) -> Plan {
        Plan {
            conditions: self.conditions,
            keep: self.keep as usize,
            budget: self.budget,
            folder: self.output,
            duration: self.duration,
            explain: !self.bare,
        }
    }
}
