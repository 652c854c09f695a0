// SPDX-License-Identifier: BSD-3-Clause
//! spantochrome: spans to Chrome's JSON.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::draw::{self, Viewer};
use kutrace_tools::{Common, Named};

/// Convert spans to Chrome's JSON (the Trace Event Format)
///
/// For viewers that read nothing else; Perfetto shows more of what spantoperfetto writes. docs/data.md says what
/// becomes of what.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The spans as JSON or frames; standard input, to its end, if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: [&str; 2] =
    ["spantochrome t.json > chrome.json", "rawtoevent t.trace | eventtospan | spantochrome -o chrome.json"];

fn main() -> ExitCode {
    kutrace_tools::run("spantochrome", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    draw::run(Viewer::Chrome, args.named.or(&args.file), &args.common)
}
