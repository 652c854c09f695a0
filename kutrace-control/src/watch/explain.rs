// SPDX-License-Identifier: BSD-3-Clause
//! The page and the explanation of a moment: made one after the other, each by a separate process with the lowest
//! priority.

use std::collections::VecDeque;
use std::env;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use kutrace_cli::say;
use kutrace_cli::signal::SignalGuard;
use postprocess::readable::count;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{setpriority_process, Pid};

use super::condition::{Condition, Thing, What};
use super::kept::Kept;

/// Maximum number of waiting moments; beyond it, the oldest get no page.
const WAITING: usize = 16;
/// The nice value of these processes.
const NICE: i32 = 19;

/// A file to make.
#[derive(Debug)]
struct Task {
    name: String,
    /// Arguments before the recording's name.
    arguments: Vec<String>,
    /// Extension of the file.
    ending: &'static str,
}

/// The running task, and the waiting ones.
#[derive(Debug, Default)]
pub struct Explain {
    waiting: VecDeque<Task>,
    running: Option<(Task, Child)>,
}

impl Explain {
    /// Queues the explanation of a moment in which a condition held.
    pub fn add(&mut self, name: String, condition: &Condition) {
        let why = why(condition);
        let html = ["html", "--force", "-o"].map(String::from).to_vec();
        self.waiting.push_back(Task { name: name.clone(), arguments: why, ending: "txt" });
        self.waiting.push_back(Task { name, arguments: html, ending: "html" });
        while self.waiting.len() > 2 * WAITING {
            self.waiting.pop_front();
        }
    }

    /// Starts the next task if the running one has ended.
    pub fn turn(&mut self, kept: &Kept) {
        if let Some((task, mut child)) = self.running.take() {
            match child.try_wait() {
                Ok(None) => {
                    self.running = Some((task, child));
                    return;
                }
                Ok(Some(_)) if !kept.has(&task.name) => {
                    // The moment was removed in between, and its other files with it.
                    let _ = std::fs::remove_file(kept.file(&task.name, task.ending));
                }
                Ok(Some(_)) => {}
                Err(error) => say(format_args!("{}: {error}", task.name)),
            }
        }
        while let Some(task) = self.waiting.pop_front() {
            if !kept.has(&task.name) {
                continue;
            }
            match begin(&task, kept) {
                Ok(child) => self.running = Some((task, child)),
                Err(error) => say(format_args!("{}: {error:#}", task.name)),
            }
            break;
        }
    }

    /// Waits for all tasks, unless a second signal arrives.
    pub fn finish(&mut self, guard: &SignalGuard, kept: &Kept) {
        let moment = Timespec::try_from(Duration::from_millis(50)).unwrap_or_default();
        // The first signal may be noted a moment after it was seen.
        guard.take();
        self.turn(kept);
        while let Some((_, child)) = &mut self.running {
            if poll(&mut [PollFd::new(guard, PollFlags::IN)], Some(&moment)).is_ok_and(|ready| ready > 0) {
                let _ = child.kill();
                let _ = child.wait();
                let left = count(1 + self.waiting.len() as u64, "page or explanation is", "pages and explanations are");
                say(format_args!("a second signal arrived: {left} not written"));
                return;
            }
            self.turn(kept);
        }
    }
}

fn begin(task: &Task, kept: &Kept) -> Result<Child> {
    let (recording, made) = (kept.file(&task.name, "trace"), kept.file(&task.name, task.ending));
    let mut command = Command::new(env::current_exe().context("kutrace_control")?);
    command.args(&task.arguments).stdin(Stdio::null()).stderr(Stdio::null());
    if task.ending == "html" {
        command.arg(&made).stdout(Stdio::null());
    } else {
        command.stdout(File::create(&made).with_context(|| made.display().to_string())?);
    }
    let child = command.arg(&recording).spawn().context("kutrace_control")?;
    // If this is refused, the process competes like others.
    let _ = setpriority_process(Some(Pid::from_child(&child)), NICE);
    Ok(child)
}

/// The command that explains a moment: the reasons why such requests took their time, if there are any, otherwise where
/// the time went.
fn why(condition: &Condition) -> Vec<String> {
    let name =
        || condition.text.split_once(':').and_then(|(_, rest)| rest.split('>').next()).unwrap_or_default().trim();
    let asked = match &condition.what {
        What::Longer(Thing::Rpc(method), _) => Some(format!("--rpc={method}")),
        What::Longer(Thing::Call(_), _) => Some(format!("--call={}", name())),
        What::Longer(Thing::Span(name), _) => Some(format!("--mark={name}")),
        What::Longer(Thing::Mark(..), _) => match name().split_once("..") {
            Some((label, end)) if end.strip_prefix('/') == Some(label) => Some(format!("--mark={label}")),
            _ => None,
        },
        _ => None,
    };
    asked.map_or_else(|| vec!["summary".to_string()], |asked| vec!["why".to_string(), asked])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_explained_is_and_the_rest_is_summed_up() {
        for (text, expected) in [
            ("call:fsync > 50ms", vec!["why", "--call=fsync"]),
            ("rpc:get > 1ms", vec!["why", "--rpc=get"]),
            ("mark:q../q > 1ms", vec!["why", "--mark=q"]),
            ("mark:a..b > 1ms", vec!["summary"]),
            ("span:find it > 1ms", vec!["why", "--mark=find it"]),
            ("wait_cpu > 1ms", vec!["summary"]),
            ("signal", vec!["summary"]),
        ] {
            assert_eq!(why(&text.parse().unwrap()), expected, "{text}");
        }
    }
}
