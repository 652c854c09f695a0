// SPDX-License-Identifier: BSD-3-Clause
//! rawtoctf: a raw KUtrace file to a trace of the Common Trace Format, for babeltrace2 and Trace Compass.

#![forbid(unsafe_code)]

mod cli;

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, ensure, Context};
use clap::Parser;
use kutrace_format::abi::block::BYTES;
use postprocess::{ctf, raw};

use cli::Outcome;

/// Makes a raw KUtrace file a folder that babeltrace2 and Trace Compass open: the blocks, one file per CPU, and metadata
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The raw file; `-` is standard input
    file: PathBuf,
    /// The folder, which is made
    dir: PathBuf,
}

const EXAMPLES: [&str; 2] = ["rawtoctf t.trace t.ctf; babeltrace2 t.ctf", "kutrace_control stop - | rawtoctf - t.ctf"];

fn main() -> ExitCode {
    cli::end("rawtoctf", run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(Some(&args.file))?;
    let mut bytes = Vec::new();
    input.read.read_to_end(&mut bytes).with_context(|| input.name.clone())?;
    let raw = raw::parse(&bytes).map_err(|e| anyhow!("{}: {e}", input.name))?;
    let place = args.dir.display();
    ensure!(raw.cpus().next().is_some(), "{}: no block can be used", input.name);
    fs::create_dir(&args.dir).with_context(|| format!("{place}"))?;
    let mut open = 0;
    for (cpu, blocks) in raw.cpus() {
        let ended = blocks.iter().filter(|block| block.end != 0);
        open += blocks.len() - ended.clone().count();
        write(&args.dir.join(format!("cpu_{cpu}")), ended.map(|block| &bytes[block.offset..][..BYTES]))?;
    }
    write(&args.dir.join("metadata"), [ctf::metadata(&raw).as_bytes()].into_iter())?;
    for damage in &raw.damage {
        cli::say(format_args!("rawtoctf: {}: {damage}", input.name));
    }
    if open > 0 {
        cli::say(format_args!("rawtoctf: {}: {open} blocks without an end left out", input.name));
    }
    let whole = raw.damage.is_empty() && open == 0 && raw.header.lost == 0;
    Ok(if whole { Outcome::Whole } else { Outcome::Damaged })
}

fn write<'a>(path: &Path, parts: impl Iterator<Item = &'a [u8]>) -> anyhow::Result<()> {
    let context = || path.display().to_string();
    let mut out = BufWriter::new(File::create(path).with_context(context)?);
    for part in parts {
        out.write_all(part).with_context(context)?;
    }
    out.flush().with_context(context)
}
