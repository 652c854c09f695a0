// SPDX-License-Identifier: BSD-3-Clause
//! Options that select requests, and the printed result; shared by all tools that explain requests.

use std::ops::Range;
use std::path::Path;

use clap::{Arg, Args};
use postprocess::id::Pid;
use postprocess::span::Spans;
use postprocess::time::Time;
use postprocess::why::carry;
use postprocess::why::change::Verdict;
use postprocess::why::compare::EXCESS_TIME_MIN;
use postprocess::why::diff::{self, Before};
use postprocess::why::request::{self, Ask, Found, Request};
use postprocess::why::{check, explain, Question, Timeline};

/// Relative change below which a difference does not matter, by default.
const ABOVE: f64 = 0.05;

/// Requested explanation.
#[derive(Args, Clone, Debug)]
pub struct Asked {
    #[command(flatten)]
    requests: Requests,
    /// The time of one thread; --from S --to S
    #[arg(long, value_name = "PID", conflicts_with = "Requests")]
    thread: Option<u32>,
    /// With --thread: start of the range in seconds, as the text and the page show it
    #[arg(long, value_name = "S", requires = "thread", hide = true, value_parser = second)]
    from: Option<f64>,
    /// With --thread: end of the range in seconds
    #[arg(long, value_name = "S", requires = "thread", hide = true, value_parser = second)]
    to: Option<f64>,
    /// Percent of requests that count as slow, 1 by default
    #[arg(long, value_name = "PERCENT", default_value = "1", hide_default_value = true, value_parser = percent)]
    slow: f64,
    /// Requests that count as normal: those between these percentiles of duration
    #[arg(long, value_name = "A..B", default_value = "40..60", hide = true, value_parser = range)]
    normal: Range<f64>,
    /// Minimum difference between slow and normal requests, in microseconds, 200 by default
    #[arg(long, value_name = "US", hide = true, value_parser = microseconds)]
    min_excess: Option<Time>,
    /// Number of causes to show
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print JSON, as described in docs/why.schema.json
    #[arg(long)]
    json: bool,
    /// Fail unless the causes of every request add up to its time
    #[arg(long, hide = true)]
    check: bool,
}

/// Kind of request.
#[derive(Args, Clone, Debug)]
#[group(multiple = false)]
pub struct Requests {
    /// RPCs, from request to response; of METHOD, if given
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    rpc: Option<String>,
    /// From a mark LABEL to a mark /LABEL, or a part LABEL
    #[arg(long, value_name = "LABEL")]
    mark: Option<String>,
    /// Each instance of a system call or fault
    #[arg(long, value_name = "NAME")]
    call: Option<String>,
    /// Processes of this name, from start to end
    #[arg(long, value_name = "PROGRAM")]
    run: Option<String>,
    /// A client: from a send to a receive on its descriptor
    #[arg(long, value_name = "PROGRAM")]
    client: Option<String>,
    /// A server: from the arrival of a request to the send
    #[arg(long, value_name = "PROGRAM")]
    serve: Option<String>,
}

impl Requests {
    /// Finds the requests of the given kind and describes them; of the kind that suits the trace best if none is given.
    ///
    /// # Errors
    /// A sentence, if the trace has none.
    pub fn find(&self, timeline: &Timeline) -> Result<Found, String> {
        request::find(timeline, &self.ask().unwrap_or_default())
    }

    /// Finds the requests that a page carries: those of the given kind, or of the one that suits the trace best, if
    /// any.
    ///
    /// # Errors
    /// A sentence, if the trace has none of the given kind.
    pub fn carried(&self, spans: &Spans) -> Result<Option<carry::Requests>, String> {
        self.ask().map_or_else(|| Ok(carry::carried(spans)), |ask| carry::asked(spans, &ask).map(Some))
    }

    /// True if a kind of request is given.
    pub fn is_given(&self) -> bool {
        self.ask().is_some()
    }

    /// Returns the given kind of request, if any.
    fn ask(&self) -> Option<Ask> {
        let Requests { rpc, mark, call, run, client, serve } = self.clone();
        let rpc = rpc.map(|method| Ask::Rpc(Some(method).filter(|method| !method.is_empty())));
        let named = [mark.map(Ask::Mark), call.map(Ask::Call), run.map(Ask::Run), client.map(Ask::Client)];
        named.into_iter().flatten().next().or(serve.map(Ask::Serve)).or(rpc)
    }
}

/// Hides the options of [`Requests`] in a help that has no room for them; `why` lists them.
pub fn listed_by_why(option: Arg) -> Arg {
    let is_its = ["rpc", "mark", "call", "run", "client", "serve"].contains(&option.get_id().as_str());
    if is_its {
        option.hide(true)
    } else {
        option
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "not a percentage from 0 to 100".to_string())
}

fn range(text: &str) -> Result<Range<f64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected two numbers separated by ..")?;
    let range = percent(from)?..percent(to)?;
    Some(range)
        .filter(|range| range.start < range.end)
        .ok_or_else(|| "the second number is not larger than the first".to_string())
}

/// Parses a relative change, with or without its percent sign.
fn change(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok();
    let part = percent.filter(|percent| (0.0..=1e6).contains(percent)).map(|percent| percent / 100.0);
    part.ok_or_else(|| "not a percentage".to_string())
}

/// Parses a time in microseconds.
fn microseconds(text: &str) -> Result<Time, String> {
    let us = text.parse::<f64>().ok().filter(|us| (0.0..1e12).contains(us));
    us.map(|us| Time::of_seconds(us / 1e6)).ok_or_else(|| "not a time in microseconds".to_string())
}

/// Parses seconds within the range of a trace.
fn second(text: &str) -> Result<f64, String> {
    let second = text.parse::<f64>().ok().filter(|second| second.abs() < 1e9);
    second.ok_or_else(|| "not a time in seconds".to_string())
}

impl Asked {
    /// Returns the explanation as text or JSON; `file` is the input of the trace, if it has a name.
    ///
    /// # Errors
    /// A sentence, if the trace has no such requests, or if a requested check fails.
    pub fn answer(&self, timeline: &Timeline, file: Option<&Path>) -> Result<String, String> {
        let question = self.question(file);
        if self.check {
            if let Some(wrong) = check::check(timeline, &question.ask)?.first() {
                return Err(format!("the causes do not add up: {wrong}"));
            }
        }
        let why = explain(timeline, &question)?;
        match self.json {
            true => Ok(serde_json::to_string_pretty(&why).map_err(|e| e.to_string())? + "\n"),
            false => Ok(why.text()),
        }
    }

    fn question(&self, file: Option<&Path>) -> Question {
        Question {
            ask: self.ask(),
            slow: self.slow / 100.0,
            normal: self.normal.start / 100.0..self.normal.end / 100.0,
            excess_min: self.min_excess.unwrap_or(EXCESS_TIME_MIN),
            top: self.top,
            page: page(file),
        }
    }

    fn ask(&self) -> Ask {
        let range = self.thread.map(|pid| {
            let start = self.from.map_or(Time::MIN, Time::of_seconds);
            let end = self.to.map_or(Time::MAX, Time::of_seconds);
            Ask::Range(Request { pid: Pid::new(pid), start, end })
        });
        range.or_else(|| self.requests.ask()).unwrap_or_default()
    }
}

/// Requested comparison of two traces.
#[derive(Args, Clone, Debug)]
pub struct Between {
    #[command(flatten)]
    requests: Requests,
    /// Exit with 1 only if slower by more than P, such as 5%
    #[arg(long, value_name = "P", value_parser = change)]
    fail_above: Option<f64>,
    /// Number of causes to show
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print JSON, as described in docs/diff.schema.json
    #[arg(long)]
    json: bool,
}

/// Printed difference between two traces.
#[derive(Debug)]
pub struct Answer {
    /// Text or JSON.
    pub text: String,
    /// True if this is a difference that the caller asked for.
    pub differs: bool,
}

impl Between {
    /// Reads the first trace; `after` is the input of the second, if it has a name.
    ///
    /// # Errors
    /// A sentence, if the trace has no such requests, or too few.
    pub fn before(&self, timeline: &Timeline, after: Option<&Path>) -> Result<Before, String> {
        let question = diff::Question {
            ask: self.requests.ask().unwrap_or_default(),
            above: self.fail_above.unwrap_or(ABOVE),
            top: self.top,
            page: page(after),
        };
        Before::new(timeline, question)
    }

    /// Compares the second trace with the first.
    ///
    /// # Errors
    /// A sentence, if the trace has no such requests, or too few.
    pub fn answer(&self, before: Before, timeline: &Timeline) -> Result<Answer, String> {
        let diff = before.diff(timeline)?;
        let differs = match diff.verdict {
            Verdict::Same => false,
            Verdict::Faster => self.fail_above.is_none(),
            Verdict::Slower => true,
        };
        let text = match self.json {
            true => serde_json::to_string_pretty(&diff).map_err(|e| e.to_string())? + "\n",
            false => diff.text(),
        };
        Ok(Answer { text, differs })
    }
}

/// Returns the name of the page for a trace that is read from `file`.
fn page(file: Option<&Path>) -> String {
    let page = file.and_then(|file| Some(file.with_extension("html").file_name()?.to_string_lossy().into_owned()));
    page.unwrap_or_else(|| Question::default().page)
}
