// SPDX-License-Identifier: BSD-3-Clause
//! The page at the sizes of its budget, in a headless Chromium.
//!
//! `pages FROM DIR SPANS...` makes a page of SPANS spans in DIR from the recorded trace FROM, for each SPANS, opens and
//! uses it, and prints a line `SPANS WHAT VALUE` for each thing measured. A round of the trace is later than the one
//! before, and its threads are others, with numbers and names of their own, as far as there are numbers for that.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{bail, Context, Result};
use kutrace_tests::chromium;
use postprocess::event::names::NameId;
use postprocess::event::number;
use postprocess::id::{Pid, PID_BITS};
use postprocess::sink::page;
use postprocess::span::order::order;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{Span, Spans};
use postprocess::time::Time;
use postprocess::why::carry::carried;
use postprocess::{source, span};

/// Thread numbers of one round; those of a recorded guest lie below.
const PIDS: i32 = 100_000;
/// Rounds until threads have the same numbers again: the higher bits are the number of the machine.
const ROUNDS: i32 = (1 << PID_BITS) / PIDS - 1;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, dir, sizes @ ..] = args.as_slice() else { bail!("pages FROM DIR SPANS...") };
    let bytes = fs::read(from).with_context(|| from.clone())?;
    let (recorded, _) = span::build(source::decode(&bytes).with_context(|| from.clone())?);
    let empty = Path::new(dir).join("empty.html");
    page::render(&Spans::default(), &mut File::create(&empty).with_context(|| empty.display().to_string())?)?;
    let bare = &chromium::run("bare", &empty, &serde_json::json!({}))["bytes"];
    let bare = bare.as_f64().context("the bytes of a page without spans")?;
    let mut out = io::stdout().lock();
    for size in sizes {
        let spans = repeat(&recorded, size.parse().with_context(|| size.clone())?)?;
        let count = spans.spans.len();
        let page = Path::new(dir).join(format!("{size}.html"));
        let mut file = BufWriter::new(File::create(&page).with_context(|| page.display().to_string())?);
        page::render_with(&spans, carried(&spans).as_ref(), &mut file)
            .and_then(|()| file.flush().map_err(page::Error::Write))?;
        drop((spans, file));
        let file_bytes = fs::metadata(&page)?.len();
        writeln!(out, "{size} spans {count}\n{size} bytes {:.2}", file_bytes as f64 / count as f64)?;
        let answer = chromium::run("budget", &page, &serde_json::json!({ "spans": count }));
        for (what, value) in answer.as_object().context("the scenario returns an object")? {
            writeln!(out, "{size} {what} {value}")?;
        }
        let memory = answer["memory"].as_f64().context("the bytes of the page")? - bare;
        writeln!(out, "{size} bytesPerSpan {:.1}", memory / count as f64)?;
    }
    Ok(())
}

/// The recorded spans again and again, until there are `most` of them.
fn repeat(recorded: &Spans, max: usize) -> Result<Spans> {
    let begin = recorded
        .spans
        .iter()
        .filter(|s| s.event() >= number::TRAP as i32)
        .map(|s| s.start)
        .min()
        .context("no spans")?;
    let end = recorded
        .spans
        .iter()
        .filter(|s| s.event() >= number::TRAP as i32)
        .map(|s| s.start + s.dur)
        .max()
        .context("no spans")?;
    let mut all = Spans { meta: recorded.meta.clone(), names: Vec::new(), spans: Vec::with_capacity(max) };
    for round in 0.. {
        let names = all.names.len() as u32;
        all.names.extend(recorded.names.iter().map(|name| renamed(name, round)));
        let later = (end - begin) * i64::from(round);
        let room = max - all.spans.len();
        all.spans.extend(
            recorded
                .spans
                .iter()
                .take(room)
                .map(|s| Span { name: NameId(s.name.0 + names), ..moved(*s, round, later) }),
        );
        if all.spans.len() == max {
            break;
        }
    }
    order(&mut all.spans);
    Ok(all)
}

/// A span in another round.
fn moved(s: Span, round: i32, later: Time) -> Span {
    let later_by = (round % ROUNDS * PIDS) as u32;
    let other = |pid: Pid| if pid == Pid::IDLE { pid } else { Pid::new(pid.number() + later_by) };
    let what = match s.what {
        What::Run(Activity::User(low)) => What::Run(Activity::User(low + later_by)),
        What::Run(Activity::Thread(low)) => What::Run(Activity::Thread(low + later_by)),
        What::Arc(Arc::Wakeup { to, woken }) => What::Arc(Arc::Wakeup { to, woken: other(woken) }),
        what => what,
    };
    Span { start: s.start + later, pid: s.pid.map(other), what, ..s }
}

/// `name.pid` with the number that the thread has in another round; other names get the round.
fn renamed(name: &str, round: i32) -> String {
    let thread = name.rsplit_once('.').and_then(|(comm, pid)| Some((comm, pid.parse::<i32>().ok()?)));
    match thread {
        Some((comm, pid)) if pid > 0 => format!("{comm}.{}", pid + round % ROUNDS * PIDS),
        _ if round == 0 || name.starts_with('-') => name.to_string(),
        _ => format!("{name}~{round}"),
    }
}
