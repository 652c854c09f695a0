// SPDX-License-Identifier: BSD-3-Clause
//! kuod: the words of a raw KUtrace file.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{Common, Named};
use postprocess::inspect::dump;
use postprocess::raw::damage::NotATrace;
use postprocess::source::{self, Stage};

/// Hex-dump a raw KUtrace file word by word; it may be damaged, or the original's
///
/// A line shows 32 bytes and their place in the file. An entry is `time.event`, all in hexadecimal; a word after `_`
/// belongs to the entry before it, and a word after `?` is invalid.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: [&str; 2] = ["kuod t.trace | less", "kutrace_control stop - | kuod | head"];

fn main() -> ExitCode {
    kutrace_tools::run("kuod", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let mut input = kutrace_tools::open(args.named.or(&args.file), Stage::Raw)?;
    let bytes = input.raw()?;
    let (mut out, whole) = (args.common.open()?, source::meta(&bytes).map(|meta| meta.is_whole()));
    let (place, refused) = (out.name(), |e: NotATrace| anyhow!("{}: {e}", input.name));
    let written = dump::write(&bytes, &mut out).map_err(refused)?;
    written.and_then(|()| out.finish()).context(place)?;
    Ok(if whole.map_err(refused)? { Exit::Done } else { Exit::Lost })
}
