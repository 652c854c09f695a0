// SPDX-License-Identifier: BSD-3-Clause
//! rawtoctf: a raw KUtrace file to a trace of the Common Trace Format, for babeltrace2 and Trace Compass.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, ensure, Context, Result};
use clap::Parser;
use kutrace_cli::{say, Exit};
use kutrace_format::abi::block::BYTES;
use kutrace_tools::folder::{self, Paths};
use kutrace_tools::{say_damage, say_lost};
use postprocess::inspect::ctf;
use postprocess::raw::block::Block;
use postprocess::raw::{self, Raw};
use postprocess::readable::count;
use postprocess::source::Stage;

/// Convert a raw KUtrace file to a folder that babeltrace2 and Trace Compass open: the blocks, one file per CPU, and
/// metadata
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    paths: Paths,
    /// Replace a folder that this tool created
    #[arg(short, long)]
    force: bool,
}

const EXAMPLES: [&str; 2] = ["rawtoctf t.trace t.ctf; babeltrace2 t.ctf", "kutrace_control stop - | rawtoctf t.ctf"];

fn main() -> ExitCode {
    kutrace_tools::run("rawtoctf", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let (file, dir) = args.paths.split::<Args>()?;
    let mut input = kutrace_tools::open(file, Stage::Raw)?;
    let bytes = input.raw()?;
    let raw = raw::parse(&bytes).map_err(|e| anyhow!("{}: {e}", input.name))?;
    ensure!(raw.cpus().next().is_some(), "{}: no block can be used", input.name);
    let open = folder::fill(dir, args.force, || blocks(&raw, &bytes, dir))?;
    say_damage(&input.name, &raw.damage);
    if open > 0 {
        let blocks = count(open, "block without an end", "blocks without an end");
        say(format_args!("{}: {blocks} skipped", input.name));
    }
    say_lost(&input.name, raw.lost());
    let whole = raw.damage.is_empty() && open == 0 && raw.lost() == 0;
    Ok(if whole { Exit::Done } else { Exit::Lost })
}

/// Writes all files of the folder; returns the number of blocks without an end, which are skipped.
fn blocks(raw: &Raw, bytes: &[u8], dir: &Path) -> Result<u64> {
    let mut open = 0;
    // A stream's packets are ordered by time: if the counter stepped back, another stream begins.
    for (cpu, blocks) in raw.cpus() {
        let ended = blocks.iter().filter(|block| block.end != 0);
        open += blocks.len() - ended.clone().count();
        let ended: Vec<Block> = ended.copied().collect();
        for (n, run) in ended.chunk_by(|_, next| !next.back).enumerate() {
            let name = if n == 0 { folder::of_cpu(cpu) } else { folder::of_cpu(format_args!("{cpu}_{n}")) };
            write(&dir.join(name), run.iter().map(|block| &bytes[block.offset..][..BYTES]))?;
        }
    }
    write(&dir.join(folder::METADATA), [ctf::metadata(raw).as_bytes()].into_iter())?;
    Ok(open as u64)
}

fn write<'a>(path: &Path, parts: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    let context = || path.display().to_string();
    let mut out = BufWriter::new(File::create(path).with_context(context)?);
    for part in parts {
        out.write_all(part).with_context(context)?;
    }
    out.flush().with_context(context)
}
