// SPDX-License-Identifier: BSD-3-Clause
//! The result of `why` and of `diff` for people. A line with a cause begins with its rank and is never wrapped.

use std::collections::BTreeSet;
use std::fmt::{Result, Write};

use crate::readable::{count, percent, seconds, time, whole_time};
use crate::time::Time;
use crate::why::change::{Change, Verdict};
use crate::why::compare::{are_few, excess_min, Apart, Compared, Excess};
use crate::why::diff::{Diff, More, Through};
use crate::why::event::Event;
use crate::why::example::Example;
use crate::why::rules::BEYOND;
use crate::why::{Durations, Why};

/// Width of the widest bar of the histogram.
const BAR: usize = 50;
/// Number of events shown.
const EVENTS: usize = 5;
/// Number of columns before a cause.
const BEFORE: usize = 49;

impl Why {
    /// Returns the result as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // A string accepts everything.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> Result {
        writeln!(out, "{}", self.asked)?;
        writeln!(out, "{}", self.verdict)?;
        let Durations { median, p90, p99, p999, longest } = self.durations;
        let of = |(part, name, percentile): (usize, &str, Time)| {
            (self.count / part >= BEYOND).then(|| format!("{name} {}, ", time(percentile)))
        };
        let percentiles = [(10, "90 %", p90), (100, "99 %", p99), (1000, "99.9 %", p999)].into_iter().filter_map(of);
        let between: String = percentiles.collect();
        let (requests, longest) = (count(self.count as u64, "request", "requests"), time(longest));
        match self.count {
            1 => writeln!(out, "{requests}: {longest}")?,
            _ => writeln!(out, "{requests}: median {}, {between}longest {longest}", time(median))?,
        }
        if let Some((compared, first)) = self.compared.as_ref().and_then(|c| Some((c, c.events.first()?))) {
            let events = count(compared.event_count as u64, "event", "events");
            let (dur, at) = (time(first.dur), seconds(first.start));
            writeln!(out, "{events}; the longest: {dur} at {at} s, {}", of_event(first))?;
        }
        match self.unfinished {
            0 => {}
            open => writeln!(out, "{open} had begun and not ended")?,
        }
        writeln!(out)?;
        let most = self.histogram.iter().map(|step| step.count).max().unwrap_or(1);
        for step in &self.histogram {
            let bar = "#".repeat((step.count * BAR).div_ceil(most));
            writeln!(out, "{}", format!("{:>10} {:>8}  {bar}", whole_time(step.least), step.count).trim_end())?;
        }
        writeln!(out)?;
        match &self.compared {
            Some(compared) => {
                self.against(out, compared)?;
                // A few requests are also examined as a whole.
                if are_few(self.count) && !compared.causes.is_empty() {
                    writeln!(out)?;
                    self.all(out)?;
                }
            }
            None => self.all(out)?,
        }
        match self.remainder {
            Time::ZERO => Ok(()),
            left => writeln!(out, "{} of {} is in no cause: a defect of this program", time(left), time(self.total)),
        }
    }

    fn against(&self, out: &mut String, compared: &Compared) -> Result {
        let Compared { slow, slow_asked, normal, excess, causes, left_out, unexplained, apart, .. } = compared;
        let means = [slow.mean, normal.mean, *excess].map(|mean| time(Time(mean as i64)));
        let ([slow_mean, normal_mean, more], usual) = (means, normal.mean);
        let (slow, normal) = (slow.count, normal.count);
        if let Some(Apart { slow, excess, cause }) = compared.mostly() {
            let more = time(Time(*excess as i64));
            writeln!(
                out,
                "The {} {more} more than normal ones, most of all since CPUs stood still:\n",
                slowest(*slow, " take")
            )?;
            heading(out)?;
            self.excess(out, "", cause, *slow, normal)?;
            writeln!(out)?;
        }
        let without = if apart.is_some() { " without the time in which CPUs stood still" } else { "" };
        let average = if slow == 1 { "" } else { " on average" };
        let normal_ones = count(normal as u64, "normal one", "normal ones");
        let slow_ones = slowest(slow, "");
        writeln!(
            out,
            "The {slow_ones}{without}, {slow_mean}{average}, against {normal_ones}, {normal_mean}: {more} more"
        )?;
        if slow < *slow_asked {
            writeln!(out, "({slow_asked} were requested; those that are not slower than the normal ones are omitted)")?;
        }
        writeln!(out)?;
        if causes.is_empty() {
            let little = match *excess < excess_min(self.count) * usual {
                true => "",
                false => ": a difference this small is usual; --min-excess 0 explains it",
            };
            writeln!(out, "nothing stands out{little}\n")?;
            return self.all(out);
        }
        heading(out)?;
        for cause in causes {
            self.excess(out, &format!("{}.", cause.rank), cause, slow, normal)?;
        }
        if *left_out > 0 {
            writeln!(out, "... {} more, see --top", count(*left_out as u64, "cause", "causes"))?;
        }
        writeln!(out, "{:>14}{:>9}{:26}all else, together", "", whole(*unexplained), "")?;
        if let Some(Apart { slow, excess, cause }) = apart.as_ref().filter(|_| compared.mostly().is_none()) {
            let more = time(Time(*excess as i64));
            let takes = slowest(*slow, " take");
            writeln!(out, "\nWith that time the {takes} {more} more than normal ones:\n")?;
            self.excess(out, "", cause, *slow, normal)?;
        }
        // If each event is one request, the causes have shown them.
        let are_shown = compared.event_count < 2 || compared.event_count == slow;
        let events = if are_shown { &[][..] } else { &compared.events[..compared.events.len().min(EVENTS)] };
        if !are_shown {
            longest_of(out, events, compared.event_count)?;
        }
        let apart = apart.iter().flat_map(|apart| &apart.cause.examples);
        let examples = causes.iter().flat_map(|cause| &cause.examples).chain(apart);
        let examples = examples.map(|its| (its.start, &*its.address));
        addresses(out, examples.chain(events.iter().map(|its| (its.start, &*its.address))))
    }

    /// Writes a line, or several, about a cause.
    fn excess(&self, out: &mut String, rank: &str, cause: &Excess, slow: usize, normal: usize) -> Result {
        let Excess { time: more, share, in_slow, in_normal, detail, examples, cause, .. } = cause;
        let (in_slow, in_normal) = (format!("{in_slow}/{slow}"), format!("{in_normal}/{normal}"));
        let (share, more) = (format!("{:.0} %", share * 100.0), time(Time(*more as i64)));
        writeln!(out, "{rank:<3}{more:>11}{share:>9}{in_slow:>12}{in_normal:>12}  {cause}")?;
        if !detail.is_empty() {
            writeln!(out, "{:BEFORE$}{}", "", detail.join("; "))?;
        }
        shown(out, examples)
    }

    /// Writes the causes of all requests' time.
    fn all(&self, out: &mut String) -> Result {
        writeln!(out, "{:>14}{:>9}{:>12}  CAUSE, of all requests", "time each", "share", "in")?;
        for cause in &self.causes {
            let share = percent(Time((cause.share * 1e6) as i64), Time(1_000_000));
            let many = format!("{}/{}", cause.requests, self.count);
            writeln!(out, "{:>14}{share:>9}{many:>12}  {}", time(Time(cause.time as i64)), cause.cause)?;
        }
        match self.left_out {
            0 => Ok(()),
            left => writeln!(out, "... {} more, see --top", count(left as u64, "cause", "causes")),
        }
    }
}

impl Diff {
    /// Returns the result as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // A string accepts everything.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> Result {
        writeln!(out, "{}", self.asked)?;
        let before = count(self.before as u64, "request", "requests");
        writeln!(out, "{before} before, {} after\n", self.after)?;
        writeln!(out, "{:>20}{:>12}{:>12}{:>12}{:>12}", "before", "after", "change", "at least", "at most")?;
        for Change { percentile, before, after, change, at_least, at_most, verdict } in &self.percentiles {
            let [least, most] = [at_least, at_most].map(|end| end.map_or_else(|| "?".to_string(), signed));
            let (name, before, after, change) =
                (named(*percentile), time(Time(*before)), time(Time(*after)), signed(*change));
            let verdict = verdict.text();
            let line = format!("{name:<8}{before:>12}{after:>12}{change:>12}{least:>12}{most:>12}  {verdict}");
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out)?;
        if let Some(through) = &self.through {
            self.around(out, through)?;
        }
        let above = format!("{} %", (self.above * 1e6).round() / 1e4);
        match self.verdict {
            Verdict::Same => writeln!(out, "no difference: nothing is certain to have changed by more than {above}"),
            verdict => {
                let changed = self.percentiles.iter().filter(|change| change.verdict == verdict);
                let changed = changed.map(|change| format!("{} {}", named(change.percentile), signed(change.change)));
                writeln!(out, "{}: {}", verdict.text(), changed.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn around(&self, out: &mut String, through: &Through) -> Result {
        let Through { percentile, before, after, excess, causes, left_out, unexplained } = through;
        let (what, by) = if *excess < 0.0 { ("less", -1.0) } else { ("more", 1.0) };
        let [mean, was, differ] = [after.mean, before.mean, excess * by].map(|mean| time(Time(mean as i64)));
        let (name, before, after) = (named(*percentile), before.count, after.count);
        let the = if *percentile == 0.5 { "the " } else { "" };
        writeln!(
            out,
            "Around {the}{name} {after} after, {mean} on average, against {before} before, {was}: {differ} {what}\n"
        )?;
        let heading = format!("{what} time");
        writeln!(out, "{heading:>14}{:>9}{:>12}{:>12}  CAUSE", "share", "in after", "in before")?;
        for cause in causes {
            let More { rank, time: more, share, in_before, in_after, detail, examples, .. } = cause;
            let (in_after, in_before) = (format!("{in_after}/{after}"), format!("{in_before}/{before}"));
            let (rank, share) = (format!("{rank}."), format!("{:.0} %", share * 100.0));
            let more = time(Time((more * by) as i64));
            writeln!(out, "{rank:<3}{more:>11}{share:>9}{in_after:>12}{in_before:>12}  {}", cause.cause)?;
            if !detail.is_empty() {
                writeln!(out, "{:BEFORE$}{}", "", detail.join("; "))?;
            }
            shown(out, examples)?;
        }
        if *left_out > 0 {
            writeln!(out, "... {} more, see --top", count(*left_out as u64, "cause", "causes"))?;
        }
        writeln!(out, "{:>14}{:>9}{:26}all else, together", "", whole(*unexplained), "")?;
        let examples = causes.iter().flat_map(|cause| &cause.examples);
        addresses(out, examples.map(|its| (its.start, &*its.address)))?;
        writeln!(out)
    }
}

/// Names the slow requests, with a verb if one is given.
fn slowest(requests: usize, verb: &str) -> String {
    match (requests, verb) {
        (1, "") => "slowest one".to_owned(),
        (1, verb) => format!("slowest one{verb}s"),
        (many, verb) => format!("slowest {many}{verb}"),
    }
}

/// Writes the heading of causes that are larger in slow requests.
fn heading(out: &mut String) -> Result {
    writeln!(out, "{:>14}{:>9}{:>12}{:>12}  CAUSE", "more time", "share", "in slow", "in normal")
}

/// Writes the requests to look at.
fn shown(out: &mut String, examples: &[Example]) -> Result {
    examples.iter().try_for_each(|its| request(out, its.start, its.dur, &its.thread))
}

/// Writes a request to look at: its start, its duration and its thread.
fn request(out: &mut String, start: Time, dur: Time, thread: &str) -> Result {
    writeln!(out, "{:>14} {:>10}  {thread}", format!("{} s", seconds(start)), time(dur))
}

/// Writes the longest requests, one for each of the first of all `events`.
fn longest_of(out: &mut String, longest: &[Event], events: usize) -> Result {
    writeln!(out, "\nThe longest request of each of {events} events:\n")?;
    for event in longest {
        request(out, event.start, event.dur, &event.thread)?;
        writeln!(out, "{:BEFORE$}{}", "", of_event(event))?;
    }
    match events - longest.len() {
        0 => Ok(()),
        more => writeln!(out, "... {} more", count(more as u64, "event", "events")),
    }
}

/// Writes the addresses in the page of the requests that begin at these times, each once.
fn addresses<'a>(out: &mut String, those: impl Iterator<Item = (Time, &'a str)>) -> Result {
    let those: BTreeSet<(Time, &str)> = those.collect();
    if !those.is_empty() {
        writeln!(out, "\nIn the page:\n")?;
    }
    those.iter().try_for_each(|(start, address)| writeln!(out, "{:>14}  {address}", format!("{} s", seconds(*start))))
}

/// Describes the number of requests of an event, and the longest part of the longest of them.
fn of_event(event: &Event) -> String {
    format!("{}: {} {}", count(event.requests as u64, "request", "requests"), time(event.time), event.cause)
}

/// Formats a share in whole percent, with 0 unsigned.
fn whole(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).round() + 0.0)
}

/// Returns the name of a percentile.
fn named(percentile: f64) -> String {
    match percentile {
        0.5 => "median".to_string(),
        part => format!("{} %", (part * 1e4).round() / 1e2),
    }
}

/// Formats a change in percent.
fn signed(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}
