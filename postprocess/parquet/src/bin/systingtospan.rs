// SPDX-License-Identifier: BSD-3-Clause
//! systingtospan: systing's recording of the kernel to spans.

#![forbid(unsafe_code)]

use std::mem;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use kutrace_parquet::systing::Recording;
use kutrace_tools::build::{spans_of, How};
use kutrace_tools::Input;

/// Convert the kernel's events in a folder of systing's Parquet tables to spans on standard output; they list
/// everything that such a recording cannot show
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The folder of the tables
    dir: PathBuf,
    #[command(flatten)]
    how: How,
}

const EXAMPLES: [&str; 2] =
    ["systingtospan traces | spantohtml > t.html", "systingtospan --title 'a slow start' traces > t.json"];

fn main() -> ExitCode {
    kutrace_tools::run("systingtospan", EXAMPLES, |args: Args| {
        let mut recording = Recording::read(&args.dir)?;
        let damage = mem::take(&mut recording.damage);
        let input = Input::of(args.dir.display().to_string(), 0, Box::new(recording.into_text()))?;
        spans_of(input, args.how, damage)
    })
}
