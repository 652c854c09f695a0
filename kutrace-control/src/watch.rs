// SPDX-License-Identifier: BSD-3-Clause
//! `watch`: runs next to a flight recorder and keeps the moments at which something took too long, each as a recording
//! with its page and its explanation.
//!
//! [`condition`] has the conditions, [`crate::follow`] delivers new words, from which [`crate::skim`] extracts the
//! points that conditions need, [`crate::spans`] reads what programs record into their own memory, [`judge`] decides
//! which conditions hold, and [`kept`] is the folder of the worst moments.
//!
//! Invariants: the recorder is not disturbed; memory does not grow with the duration of the watch; a moment's recording
//! reaches from as long before it as the recorder's memory to [`AFTER`] after it; watching does not wait for a disk.

pub mod condition;
pub mod judge;
pub mod kept;
pub mod options;
mod explain;
mod pressure;
mod readings;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use jiff::Timestamp;
use kutrace_cli::signal::{self, SignalGuard};
use kutrace_cli::{say, standard, Exit, Failure, Status};
use kutrace_format::abi::block;
use kutrace_format::abi::command::{Info, STATE_TRACING, WRAP};
use kutrace_format::capability::{Capability, Unseen};
use postprocess::readable::count;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde_json::{json, Value};

use crate::device::Recorder;
use crate::follow::Follow;
use crate::reading;
use crate::session::Session;
use crate::skim::Skim;
use crate::spans::Spans;
use crate::sys;
use condition::{Condition, Thing, What};
use explain::Explain;
use judge::{Judge, Trigger};
use kept::{Kept, Rank};
use pressure::Pressure;
use readings::Readings;
use writer::Writer;

/// Interval between looks at new events.
const PERIOD: Duration = Duration::from_millis(100);
/// Duration of a recording after the moment that triggered it.
const AFTER: Duration = Duration::from_millis(100);
/// Maximum number of moments that wait for a recording; moments beyond it are reported as not kept.
const WAITING: usize = 1000;
/// Maximum size of a moment's files relative to its recording, if it has a page.
const WITH_PAGE: u64 = 3;
/// Maximum size of a moment's report, in bytes.
const TOLD: u64 = 4096;

/// Conditions to watch for, and limits of what is kept.
#[derive(Debug)]
pub struct Plan {
    /// The conditions; any of them triggers.
    pub conditions: Vec<Condition>,
    /// Maximum number of moments.
    pub keep: usize,
    /// Maximum number of bytes.
    pub budget: u64,
    /// Folder of the recordings.
    pub folder: PathBuf,
    /// Maximum duration; if `None`, until a signal.
    pub duration: Option<Duration>,
    /// True to make pages and explanations.
    pub explain: bool,
}

/// Executes a plan.
///
/// # Errors
/// If nothing is recorded in wrap mode, or the recording ends; or the folder cannot be written.
pub fn watch<R: Recorder + 'static>(session: &mut Session<R>, plan: &Plan) -> Result<Status> {
    let guard = SignalGuard::new()?;
    let asked = signal::user()?;
    let kept = Kept::open(&plan.folder, plan.keep, plan.budget)?;
    let mut explain = Explain::default();
    let until = plan.duration.map(|duration| Instant::now() + duration);
    say(format_args!("watching for {}; Ctrl-C ends it", texts(&plan.conditions)));
    loop {
        let info = ready(session, plan)?;
        let mut watch = Watch::new(session, plan, info)?;
        let ended = loop {
            if is_signalled(&guard)? {
                break Some(Exit::Interrupted);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break Some(Exit::Done);
            }
            if session.recorder()?.info()?.start != info.start {
                break None;
            }
            watch.turn(session, asked.swap(false, Ordering::Relaxed), &kept, &mut explain)?;
            explain.turn(&kept);
        };
        if ended.is_some() {
            watch.last(session, &kept, &mut explain)?;
        }
        watch.finish(&kept, &mut explain)?;
        if let Some(exit) = ended {
            explain.finish(&guard, &kept);
            return Ok(exit.into());
        }
        say("the recorder was started again");
    }
}

/// Waits for a period. Returns true if a signal requests the end.
fn is_signalled(guard: &SignalGuard) -> Result<bool> {
    let period = Timespec::try_from(PERIOD)?;
    match poll(&mut [PollFd::new(guard, PollFlags::IN)], Some(&period)) {
        // A signal that ended the writing of a recording was taken there.
        Ok(_) | Err(Errno::INTR) => Ok(guard.take() || guard.is_requested()),
        Err(error) => Err(error.into()),
    }
}

/// State of a recorder that can be watched.
fn ready<R: Recorder>(session: &mut Session<R>, plan: &Plan) -> Result<Info> {
    let info = session.recorder()?.info()?;
    if info.state != STATE_TRACING || info.flags & WRAP == 0 {
        bail!(Failure::new("no trace is running in wrap mode", "start one: kutrace_control gowrap"));
    }
    let waits = |condition: &Condition| matches!(condition.what, What::Longer(Thing::WaitCpu, _));
    if Unseen(info.unseen).has(Capability::Wakeups) && plan.conditions.iter().any(waits) {
        bail!(Failure::new("wait_cpu: this recorder does not see wakeups", "watch for something else"));
    }
    let least = bytes_at_most(&info, plan);
    if least > plan.budget {
        let megabytes = least.div_ceil(1 << 20);
        let hint = format!("--budget {megabytes}M, or a smaller buffer: insmod kutrace.ko tracemb=...");
        bail!(Failure::new("--budget: not enough for one moment of the recorder's memory", hint));
    }
    Ok(info)
}

/// Usual maximum size of a moment's files, in bytes.
fn bytes_at_most(info: &Info, plan: &Plan) -> u64 {
    // In addition to the blocks: names of threads and functions, and records of programs.
    let recording = u64::from(info.blocks) * block::BYTES as u64 + (4 << 20);
    recording * times(plan)
}

/// Size of a moment's files relative to its recording.
fn times(plan: &Plan) -> u64 {
    if plan.explain {
        WITH_PAGE
    } else {
        1
    }
}

fn texts(conditions: &[Condition]) -> String {
    conditions.iter().map(|condition| condition.text.as_str()).collect::<Vec<_>>().join(", ")
}

/// A watched recorder.
struct Watch<'a, R: Recorder> {
    plan: &'a Plan,
    info: Info,
    pool: R::Pool,
    follow: Follow,
    skim: Skim,
    judge: Judge,
    /// Records of programs in their own memory, if a condition needs them.
    spans: Option<Spans>,
    pressure: Pressure,
    /// The counter from which on events count.
    since: u64,
    /// Triggers that are not written yet: the file also has some time after them.
    due: Vec<Trigger>,
    readings: Readings,
    writer: Writer<Moment>,
    told_missed: (u64, u64),
}

/// One recording to write.
#[derive(Debug)]
struct Moment {
    due: Vec<Trigger>,
    /// Report of each trigger.
    told: Vec<Value>,
    worst: usize,
    rank: Rank,
    /// Name of the moment's files, and path of its recording.
    name: String,
    file: PathBuf,
}

impl<'a, R: Recorder + 'static> Watch<'a, R> {
    fn new(session: &mut Session<R>, plan: &'a Plan, info: Info) -> Result<Watch<'a, R>> {
        let recorder = session.recorder()?;
        let vectors = recorder.vectors()?;
        let counts_per_ms = f64::from(info.tsc_khz) / f64::from(1 << info.shift);
        Ok(Watch {
            plan,
            info,
            pool: recorder.pool(info.blocks)?,
            follow: Follow::default(),
            skim: Skim::new(plan.conditions.iter().flat_map(Condition::events)),
            judge: Judge::new(&plan.conditions, counts_per_ms, &vectors),
            spans: plan.conditions.iter().any(Condition::is_of_programs).then(Spans::default),
            pressure: Pressure::new(&plan.conditions)?,
            since: sys::tsc() >> info.shift,
            due: Vec::new(),
            readings: Readings::default(),
            writer: Writer::default(),
            told_missed: (0, 0),
        })
    }

    /// Processes new events, and writes the recordings that are due.
    fn turn(&mut self, session: &mut Session<R>, asked: bool, kept: &Kept, explain: &mut Explain) -> Result<()> {
        let skim = &mut self.skim;
        let end = match self.follow.turn(session.recorder()?, &self.pool, |piece| skim.read(piece)) {
            // Restarted or stopped in between; the next look at the recorder's state shows which.
            Err(_) if session.recorder()?.info()?.start != self.info.start => return Ok(()),
            Err(error) => return Err(error.context("the recording has ended")),
            Ok(None) => {
                say("a CPU takes no interrupts, or runs no other thread: its events are judged later");
                return Ok(());
            }
            Ok(Some(end)) => end,
        };
        let (judge, shift) = (&mut self.judge, self.info.shift);
        let read = self
            .spans
            .as_mut()
            .map(|spans| spans.turn(session.recorder()?, |happened| judge.happened(&happened, shift)));
        match read.transpose() {
            Err(_) if session.recorder()?.info()?.start != self.info.start => return Ok(()),
            read => read?,
        };
        self.judge.names(std::mem::take(&mut self.skim.names));
        let points = self.skim.take(end);
        let mut triggers = self.judge.judge(&points, end, |pid| self.skim.thread(pid));
        triggers.retain(|trigger| trigger.at >= self.since);
        let plain = |condition| Trigger { condition, took: 0, at: end, cpu: None, pid: None, reason: None };
        if asked {
            triggers.extend(self.places(|what| *what == What::Signal).map(plain));
        }
        for (condition, percent) in self.pressure.turn(&self.plan.conditions) {
            triggers.push(Trigger { reason: Some(format!("{percent:.1}%")), ..plain(condition) });
        }
        self.tell_missed();
        self.readings.turn(Instant::now(), self.follow.filled(), self.info.blocks, reading::now);
        self.due.append(&mut triggers);
        if let Some((moment, written)) = self.writer.done() {
            self.end(moment, written, kept, explain)?;
        }
        if self.writer.is_busy() {
            let many = self.due.split_off(self.due.len().min(WAITING));
            return self.tell(&many, &self.told_of(&many), "not written, too many moments wait for the disk");
        }
        let after = AFTER.as_millis() as u64 * u64::from(self.info.tsc_khz);
        let whole_before = sys::tsc().saturating_sub(after) >> self.info.shift;
        let (now, later): (Vec<_>, Vec<_>) = self.due.drain(..).partition(|trigger| trigger.at <= whole_before);
        self.due = later;
        if now.is_empty() {
            return Ok(());
        }
        self.write(session, now, kept)
    }

    /// Also writes the events up to now.
    fn last(&mut self, session: &mut Session<R>, kept: &Kept, explain: &mut Explain) -> Result<()> {
        if let Some((moment, written)) = self.writer.wait() {
            self.end(moment, written, kept, explain)?;
        }
        thread::sleep(AFTER);
        self.turn(session, false, kept, explain)
    }

    /// Finishes the recording that is being written.
    fn finish(&mut self, kept: &Kept, explain: &mut Explain) -> Result<()> {
        self.tell_missed();
        if let Some((moment, written)) = self.writer.wait() {
            self.end(moment, written, kept, explain)?;
        }
        self.tell(&self.due, &self.told_of(&self.due), "not written, watch has ended")
    }

    fn places(&self, is_it: impl Fn(&What) -> bool + 'a) -> impl Iterator<Item = usize> + 'a {
        let conditions = &self.plan.conditions;
        (0..conditions.len()).filter(move |&place| is_it(&conditions[place].what))
    }

    /// Begins to write the recording of these triggers, unless worse ones are kept.
    fn write(&mut self, session: &mut Session<R>, due: Vec<Trigger>, kept: &Kept) -> Result<()> {
        let worst = worst(&due, &self.plan.conditions, &self.info);
        let rank = rank(&due[worst], &self.plan.conditions, &self.info);
        let told = self.told_of(&due);
        let condition = &self.plan.conditions[due[worst].condition];
        let time = self.time(due[worst].at).strftime("%Y%m%d_%H%M%S_%3f").to_string();
        let (name, file) = kept.name(&time, &condition.text);
        if !kept.wants(rank) {
            return self.tell(&due, &told, "not kept, other moments were worse");
        }
        let moment = Moment { due, told, worst, rank, name, file: file.clone() };
        let (kept, times) = (kept.clone(), times(self.plan));
        let room = move |bytes: u64| kept.make_room_for_one(bytes.saturating_mul(times).saturating_add(TOLD), rank);
        self.writer.begin(session, moment, file, self.readings.all(), room);
        Ok(())
    }

    /// Handles a recording that was written, and reports each of its triggers.
    fn end(&mut self, mut moment: Moment, written: Result<u64>, kept: &Kept, explain: &mut Explain) -> Result<()> {
        let Moment { due, told, worst, rank, name, file } = &mut moment;
        let mut fate = "";
        match written {
            Ok(from) => {
                told.iter_mut().for_each(|told| told["file"] = json!(file));
                kept.add(name, *rank, &format!("{}\n", told[*worst]))?;
                if self.plan.explain {
                    explain.add(name.clone(), &self.plan.conditions[due[*worst].condition]);
                }
                let late = due.iter().filter(|trigger| trigger.at < from).count();
                if late > 0 {
                    let moments = count(late as u64, "moment", "moments");
                    say(format_args!(
                        "{moments} waited for the disk until some of their events were overwritten: {}",
                        file.display()
                    ));
                }
            }
            // The next one may succeed: the disk was full, or a CPU found no block.
            Err(error) => {
                say(format_args!("{}: {error:#}", file.display()));
                fate = "not written";
            }
        }
        self.tell(due, told, fate)
    }

    /// Reports each trigger; `fate` is the reason why the recording is not in a file, if it is not.
    fn tell(&self, due: &[Trigger], told: &[Value], fate: &str) -> Result<()> {
        for (trigger, told) in due.iter().zip(told) {
            say(line(&self.plan.conditions[trigger.condition], told, fate));
            standard::print(&format!("{told}\n"))?;
        }
        Ok(())
    }

    /// Time of a counter, by the current clock.
    fn time(&self, at: u64) -> Timestamp {
        let now = sys::moment();
        let ago = now.tsc.saturating_sub(at << self.info.shift) as f64 / f64::from(self.info.tsc_khz) * 1e6;
        let ns = i128::from(now.realtime_ns) - ago as i128;
        Timestamp::from_nanosecond(ns).unwrap_or_default()
    }

    fn told_of(&self, due: &[Trigger]) -> Vec<Value> {
        due.iter().map(|trigger| self.told(trigger)).collect()
    }

    /// A trigger as JSON.
    fn told(&self, trigger: &Trigger) -> Value {
        let condition = &self.plan.conditions[trigger.condition];
        let known = |pid| self.skim.thread(pid).or_else(|| self.judge.program(pid));
        let name = trigger.pid.and_then(known).map(|comm| {
            let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(comm).into_owned()
        });
        let took = matches!(condition.what, What::Longer(..)).then(|| ns(trigger.took, &self.info));
        let rank = rank(trigger, &self.plan.conditions, &self.info).0;
        json!({
            "time": self.time(trigger.at).to_string(),
            "when": condition.text,
            "took_ns": took,
            "worse": rank.is_finite().then_some((rank * 1000.0).round() / 1000.0),
            "cpu": trigger.cpu,
            "pid": trigger.pid,
            "program": name,
            "reason": trigger.reason,
            "file": Value::Null,
        })
    }

    fn tell_missed(&mut self) {
        let missed = (self.follow.missed, self.spans.as_ref().map_or(0, |spans| spans.missed));
        let (blocks, programs) = (missed.0 - self.told_missed.0, missed.1 - self.told_missed.1);
        self.told_missed = missed;
        if blocks > 0 {
            say(format_args!("{blocks} blocks were overwritten before they were read: use a larger buffer"));
        }
        if programs > 0 {
            let times = count(programs, "time", "times");
            say(format_args!(
                "marks of a program were overwritten before they were read, {times}: use a larger --marks-memory"
            ));
        }
    }
}

fn ns(counts: u64, info: &Info) -> u64 {
    ((counts << info.shift) as f64 * 1e6 / f64::from(info.tsc_khz.max(1))) as u64
}

/// Ratio of the measured value to its limit.
fn rank(trigger: &Trigger, conditions: &[Condition], info: &Info) -> Rank {
    Rank(match &conditions[trigger.condition].what {
        What::Longer(_, limit) => ns(trigger.took, info) as f64 / (*limit).max(1) as f64,
        What::Pressure { percent, .. } => {
            let found = trigger.reason.as_ref().and_then(|text| text.strip_suffix('%')?.parse::<f64>().ok());
            found.unwrap_or(*percent) / percent.max(0.1)
        }
        What::Signal | What::Keep => f64::INFINITY,
    })
}

fn worst(triggers: &[Trigger], conditions: &[Condition], info: &Info) -> usize {
    let rank = |place: usize| rank(&triggers[place], conditions, info).0;
    (0..triggers.len()).max_by(|&a, &b| rank(a).total_cmp(&rank(b))).unwrap_or_default()
}

/// A trigger as text; `fate` is the reason why its recording is not in a file, if it is not.
fn line(condition: &Condition, told: &Value, fate: &str) -> String {
    let mut line = condition.text.clone();
    if let Some(ns) = told["took_ns"].as_u64() {
        line += &format!(": {:.3} ms", ns as f64 / 1e6);
    }
    if let Some(reason) = told["reason"].as_str() {
        line += &format!(": {reason}");
    }
    if let (Some(program), Some(pid)) = (told["program"].as_str(), told["pid"].as_u64()) {
        line += &format!(", {program}.{pid}");
    }
    if let Some(cpu) = told["cpu"].as_u64() {
        line += &format!(", CPU {cpu}");
    }
    match told["file"].as_str() {
        Some(file) => line + ": " + file,
        None => line + ": " + fate,
    }
}
