// SPDX-License-Identifier: BSD-3-Clause
//! spantootlp: requests as traces of OpenTelemetry.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Context, Result};
use clap::Parser;
use kutrace_cli::{Exit, Failure};
use kutrace_tools::ask::Requests;
use kutrace_tools::{outcome, spans, Common};
use postprocess::readable::count;
use postprocess::sink::otlp;
use postprocess::why::request::Found;
use postprocess::why::Timeline;

/// Write requests, with their system calls and waits, as OTLP in JSON, one per line
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The spans, as JSON or frames; standard input to its end if absent
    file: Option<PathBuf>,
    #[command(flatten)]
    requests: Requests,
    #[command(flatten)]
    common: Common,
}

const EXAMPLES: [&str; 2] = [
    "rawtoevent t.trace | eventtospan | spantootlp > t.otlp.json",
    "spantootlp --serve redis-server t.json -o t.otlp.json",
];

fn main() -> ExitCode {
    kutrace_tools::run("spantootlp", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let (spans, place) = spans::in_order(args.file.as_ref())?;
    let Some(spans) = spans.whole() else {
        let fact = format_args!("{place}: too many spans to look for requests");
        return Err(Failure::new(fact, "spantotrim START STOP keeps a part of them").into());
    };
    let timeline = Timeline::new(spans);
    let Found { asked, requests, .. } = args.requests.find(&timeline).map_err(|fact| anyhow!("{place}: {fact}"))?;
    let mut out = args.common.open()?;
    let name = out.name();
    let written = otlp::write(&timeline, &asked, &requests, &mut out).context(name.clone())?;
    out.finish().context(name)?;
    let (found, all) = (count(written.requests as u64, "request", "requests"), written.spans);
    args.common.tell(format_args!("{found} ({asked}), {all} spans; the trace of {} is named by a mark", written.told));
    args.common.tell("not in it: the work of CPUs, interrupts, faults, and threads that have no request");
    Ok(outcome(&place, &spans.meta))
}
