// SPDX-License-Identifier: BSD-3-Clause
//! `spantohtml`: spans as JSON to one self-contained page that draws them.

#![forbid(unsafe_code)]

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Result};
use clap::Parser;
use kutrace_cli::{hint, say, Exit};
use kutrace_tools::ask::{listed_by_why, Requests};
use kutrace_tools::{outcome, spans, Common, Named};
use postprocess::sink::page::{self, Error};
use postprocess::span::limit::SpanLimit;

/// Make a timeline page from spans.
///
/// Reads the output of eventtospan and writes one HTML file that needs no other file and no network:
/// spantohtml t.json > t.html
#[derive(Parser)]
#[command(version, mut_args(listed_by_why))]
struct Options {
    /// Spans as JSON or frames; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// Title of the page, instead of the trace's own
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    requests: Requests,
    #[command(flatten)]
    common: Common,
}

/// Largest number of bytes of memory for spans.
const MEMORY: usize = 2 << 30;

const EXAMPLES: [&str; 2] =
    ["spantohtml t.json > t.html", "rawtoevent t.trace | eventtospan | spantohtml --title 'before' > before.html"];

fn main() -> ExitCode {
    kutrace_tools::run("spantohtml", EXAMPLES, run)
}

fn run(options: Options) -> Result<Exit> {
    if options.common.output.is_none() && io::stdout().is_terminal() {
        say("stdout: a terminal cannot show a page");
        hint("spantohtml t.json > t.html");
        return Ok(Exit::Usage);
    }
    let (mut spans, place) = spans::read_into(options.named.or(&options.file), SpanLimit::within(MEMORY))?;
    if let Some(title) = options.title {
        spans.meta.title = title;
    }
    let mut out = options.common.open()?;
    let to = out.name();
    let requests = options.requests.carried(&spans).map_err(|fact| anyhow!("{place}: {fact}"))?;
    page::render_with(&spans, requests.as_ref(), &mut out)
        .and_then(|()| out.finish().map(drop).map_err(Error::Write))
        .map_err(|e| match e {
            Error::Write(e) => anyhow::Error::from(e).context(to),
            Error::TooMany(_) => anyhow::Error::from(e).context(place.clone()),
        })?;
    Ok(outcome(&place, &spans.meta))
}
