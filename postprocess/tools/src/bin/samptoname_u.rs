// SPDX-License-Identifier: BSD-3-Clause
//! samptoname_u: names for samples of user program counters.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use clap::Parser;
use kutrace_cli::{say, Exit};
use kutrace_tools::functions::Programs;
use kutrace_tools::{outcome, spans, Named};
use postprocess::event::point::Point;
use postprocess::readable;
use postprocess::span::sample::{self, user::Maps};

/// Replace sampled user addresses by the names of their functions
///
/// Inlined functions are named as `inner in outer`. Copy all maps, as root, while the programs run:
/// for m in /proc/[0-9]*/task/[0-9]*/maps; do echo "==== $m"; cat $m; done > maps
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Maps of the traced threads, each after `==== /proc/PID/maps`
    maps: PathBuf,
    /// Root of the traced machine's files
    #[arg(long, default_value = "/")]
    root: PathBuf,
    /// The spans as JSON; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] =
    ["samptoname_u maps t.json > named.json", "samptoname_u --root /mnt/box maps t.json | spantohtml > t.html"];

fn main() -> ExitCode {
    kutrace_tools::run("samptoname_u", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let place = args.maps.display().to_string();
    let text = std::fs::read(&args.maps).with_context(|| place.clone())?;
    let maps = Maps::parse(&String::from_utf8_lossy(&text));
    if maps.is_empty() {
        bail!("{place}: no maps; expected a line `==== /proc/PID/maps` before each");
    }
    let (mut spans, place) = spans::read(args.named.or(&args.file))?;
    let mut programs = Programs::new(args.root.clone());
    let count = sample::name(&mut spans, Point::PcUser, |thread, pc| {
        let (path, offset) = maps.find(thread, pc)?;
        let frames = programs.frames(path, None, offset);
        // If the function is unknown, the name is that of the file.
        Some(if frames.is_empty() { path.rsplit('/').next().unwrap_or(path).to_string() } else { frames.join(" in ") })
    });
    spans::write(&spans, &args.form)?;
    for unread in &programs.unread {
        say(unread);
    }
    let named = readable::count(count.named, "sample", "samples");
    args.form.common.tell(format_args!("{named} named, {} not known", count.unknown));
    Ok(outcome(&place, &spans.meta))
}
