// SPDX-License-Identifier: BSD-3-Clause
//! samptoname_k: names for samples of kernel program counters.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{outcome, spans, Named};
use postprocess::event::point::Point;
use postprocess::readable;
use postprocess::span::sample::{self, kernel::Symbols};

/// Replace sampled kernel addresses by the names of their functions
#[derive(Parser)]
#[command(version)]
struct Args {
    /// A copy of the traced kernel's /proc/kallsyms, made as root
    kallsyms: PathBuf,
    /// The spans as JSON; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] = [
    "sudo cat /proc/kallsyms > kallsyms; samptoname_k kallsyms t.json > named.json",
    "rawtoevent t.trace | eventtospan | samptoname_k kallsyms | spantohtml > t.html",
];

fn main() -> ExitCode {
    kutrace_tools::run("samptoname_k", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let place = args.kallsyms.display().to_string();
    let text = std::fs::read(&args.kallsyms).with_context(|| place.clone())?;
    let symbols = Symbols::parse(&String::from_utf8_lossy(&text)).context(place)?;
    let (mut spans, place) = spans::read(args.named.or(&args.file))?;
    let count = sample::name(&mut spans, Point::PcKernel, |_, pc| symbols.find(pc).map(str::to_string));
    spans::write(&spans, &args.form)?;
    let named = readable::count(count.named, "sample", "samples");
    args.form.common.tell(format_args!("{named} named, {} not known", count.unknown));
    Ok(outcome(&place, &spans.meta))
}
