// SPDX-License-Identifier: BSD-3-Clause
//! `top`: the last second and the last minute of a running recorder, updated once a second.
//!
//! [`crate::follow`] delivers the new words, [`crate::skim`] turns them into points, the [`ledger`] adds them up, with
//! the waits of threads ([`sleep`]), to [`window`]s, which are shown as text, as JSON or on the [`screen`]; records in
//! programs' own memory come from [`crate::spans`]; [`replay`] does the same with a recorded trace.
//!
//! Invariants: the recorder is not disturbed; memory is bounded; events that were not read in time are counted and
//! reported.

pub mod ledger;
pub mod options;
pub mod replay;
pub mod screen;
pub mod sleep;
pub mod window;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use kutrace_cli::signal::SignalGuard;
use kutrace_cli::{standard, Exit, Failure};
use kutrace_format::abi::command::{Info, Moment, STATE_TRACING};
use kutrace_format::capability::Unseen;
use postprocess::raw::clock::Clock;
use postprocess::sink::summary::{By, Summary};
use postprocess::span::Meta;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde_json::json;

use crate::device::Recorder;
use crate::dump;
use crate::follow::Follow;
use crate::selection::Selection;
use crate::session::Session;
use crate::skim::Skim;
use crate::spans::{Spans, What as Happening};
use crate::sys;
use ledger::Ledger;
use screen::Screen;
use window::{about, Known, Waited, Window};

/// Interval between reads of new events.
const PERIOD: Duration = Duration::from_millis(100);
/// Number of readings of the clocks, the best of which is taken: others may have been interrupted.
const READINGS: usize = 8;
/// Number of seconds in a minute.
const MINUTE: usize = 60;

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of pictures.
    pub count: u64,
    /// True for JSON.
    pub json: bool,
    /// Maximum number of lines in each list of text and JSON.
    pub lines: usize,
    /// True for a screen with keys.
    pub screen: bool,
}

/// One update of the output.
#[derive(Debug)]
pub struct Picture {
    /// The last second.
    pub second: Summary,
    /// The last minute.
    pub minute: Summary,
    /// Share of interrupts in the kernel's time, of all CPUs and of each CPU: in the second, in the minute.
    pub interrupts: [Vec<f64>; 2],
    /// Number of blocks that were overwritten before they were read, since the beginning.
    pub missed: u64,
}

/// Executes a plan.
///
/// # Errors
/// If nothing is recorded, or the recording ends; or standard output cannot be written.
pub fn top<R: Recorder>(session: &mut Session<R>, plan: Plan) -> Result<Exit> {
    let guard = SignalGuard::new()?;
    let mut live = Live::new(session)?;
    let mut screen = if plan.screen { Some(Screen::open()?) } else { None };
    let mut shown = 0;
    while shown < plan.count {
        let ended = match &mut screen {
            Some(screen) => screen.wait(PERIOD)?,
            None => sleep(&guard)?,
        };
        if guard.take() || guard.is_requested() {
            return Ok(Exit::Interrupted);
        }
        if ended {
            break;
        }
        live.turn(session)?;
        if !live.is_due() {
            continue;
        }
        shown += 1;
        let picture = live.picture(session)?;
        match &mut screen {
            Some(screen) => screen.show(picture)?,
            None => print(&picture, plan).context(standard::OUTPUT)?,
        }
    }
    Ok(if live.missed > 0 || live.spans.missed > 0 { Exit::Lost } else { Exit::Done })
}

/// Waits for a period, or a signal.
fn sleep(guard: &SignalGuard) -> Result<bool> {
    match poll(&mut [PollFd::new(guard, PollFlags::IN)], Some(&Timespec::try_from(PERIOD)?)) {
        Ok(_) | Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The current time, from clocks that were read together.
fn now() -> Moment {
    let reading = || {
        let moment = sys::moment();
        (sys::tsc() - moment.tsc, moment)
    };
    (0..READINGS).map(|_| reading()).min_by_key(|(took, _)| *took).map_or_else(sys::moment, |(_, moment)| moment)
}

/// Prints a picture. A reader that closes the pipe is not an error.
fn print(picture: &Picture, plan: Plan) -> io::Result<()> {
    let text = match plan.json {
        false => picture.second.text(plan.lines, By::Program) + "\n",
        true => {
            let (second, minute) = (picture.second.told(plan.lines), picture.minute.told(plan.lines));
            format!("{}\n", json!({ "second": second, "minute": minute, "missed_blocks": picture.missed }))
        }
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A recorder that is followed.
struct Live<R: Recorder> {
    info: Info,
    pool: R::Pool,
    follow: Follow,
    skim: Skim,
    ledger: Ledger,
    /// Records in programs' own memory, and their part that no second has yet.
    spans: Spans,
    ended: Window,
    /// Windows of the last two looks, newer first: two looks later all their events are read, and so are the names of
    /// their threads.
    early: [Window; 2],
    meta: Meta,
    /// `read`: the counter up to which all was read at the last look. `settled`: the counter of the look before it,
    /// which is the end of the reported time: a call that was the last event of its CPU at `read` may have returned
    /// already.
    read: u64,
    settled: u64,
    /// The counter from which on the next picture is due.
    due: u64,
    minute: VecDeque<Window>,
    /// Number of blocks overwritten before they were read, since the start; and at the last picture.
    missed: u64,
    told_missed: u64,
    told_lost: u64,
}

impl<R: Recorder> Live<R> {
    fn new(session: &mut Session<R>) -> Result<Live<R>> {
        let recorder = session.recorder()?;
        let info = recorder.info()?;
        if info.state != STATE_TRACING {
            bail!(Failure::new("no trace is running", "start one: kutrace_control gowrap"));
        }
        let unseen = Unseen(info.unseen);
        let mut live = Live {
            info,
            pool: recorder.pool(info.blocks)?,
            follow: Follow::default(),
            skim: Skim::new([0..=u16::MAX >> 4]),
            ledger: Ledger::new(unseen, &recorder.vectors()?),
            spans: Spans::default(),
            ended: Window::default(),
            early: <[Window; 2]>::default(),
            meta: about(unseen.texts()),
            read: 0,
            settled: 0,
            due: 0,
            minute: VecDeque::new(),
            missed: 0,
            told_missed: 0,
            told_lost: info.lost,
        };
        // Earlier events set the current state of threads; they are not counted.
        live.turn(session)?;
        live.turn(session)?;
        ensure!(live.settled > 0, "a CPU takes no interrupts: it is stuck");
        live.ledger.cut(live.settled);
        live.ended = Window::default();
        live.early = <[Window; 2]>::default();
        live.due = live.settled + live.second();
        Ok(live)
    }

    /// Reads new events.
    fn turn(&mut self, session: &mut Session<R>) -> Result<()> {
        let recorder = session.recorder()?;
        let info = recorder.info()?;
        if info.start != self.info.start || info.state != STATE_TRACING {
            bail!("the recording has ended");
        }
        let skim = &mut self.skim;
        let Some(read) = self.follow.turn(recorder, &self.pool, |piece| skim.read(piece))? else { return Ok(()) };
        self.settled = mem::replace(&mut self.read, read);
        self.missed = self.follow.missed;
        let (mut ended, shift) = (Window::default(), self.info.shift);
        self.spans.turn(recorder, |happened| match happened.what {
            Happening::Span(name, since) => {
                let dur = happened.at.saturating_sub(since) >> shift;
                ended.span(name, Waited { dur, at: since >> shift, pid: happened.thread.1, cpu: 0 });
            }
            Happening::Missed => ended.missed_marks += 1,
            Happening::Mark(_) => {}
        })?;
        let [newer, older] = mem::take(&mut self.early);
        self.ended.join(&older);
        self.early = [ended, newer];
        self.points();
        Ok(())
    }

    /// A second in counts.
    fn second(&self) -> u64 {
        (u64::from(self.info.tsc_khz) * 1000) >> self.info.shift
    }

    /// Returns whether another second has passed, and all of it was read.
    fn is_due(&mut self) -> bool {
        let is_due = self.settled >= self.due;
        while self.due <= self.settled {
            self.due += self.second();
        }
        is_due
    }

    fn points(&mut self) {
        self.ledger.names(mem::take(&mut self.skim.names));
        let points = self.skim.take(self.settled);
        self.ledger.take(&points, &self.skim);
    }

    /// The current picture.
    fn picture(&mut self, session: &mut Session<R>) -> Result<Picture> {
        let mut second = self.ledger.cut(self.settled);
        let mut ended = mem::take(&mut self.ended);
        ended.to = second.to;
        second.join(&ended);
        let lost = session.recorder()?.info()?.lost;
        second.lost = lost - mem::replace(&mut self.told_lost, lost).min(lost);
        second.missed = self.missed - mem::replace(&mut self.told_missed, self.missed);
        if self.minute.len() == MINUTE {
            self.minute.pop_front();
        }
        let mut minute = Window::default();
        self.minute.push_back(second);
        self.minute.iter().for_each(|second| minute.join(second));
        let until_now = Info { stop: now(), ..self.info };
        let (clock, _) = Clock::new(&dump::header(&until_now, &Selection::default(), [0; 16], [0; 16]));
        let known = Known { clock, meta: &self.meta, names: &self.ledger.names, threads: &self.skim };
        let second = &self.minute[self.minute.len() - 1];
        Ok(Picture {
            second: second.summary(&known),
            minute: minute.summary(&known),
            interrupts: [second.interrupts(), minute.interrupts()],
            missed: self.missed,
        })
    }
}
