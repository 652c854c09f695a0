// SPDX-License-Identifier: BSD-3-Clause
//! Control groups of threads for which the trace has no path, because they began and ended while it was recorded.
//!
//! The recorder reports the group id of each new thread and of each thread that loads a program; the file has the paths
//! of the groups that existed at its start and end, by their ids. Where these do not suffice:
//!
//! A thread begins in the group of the thread that makes it. If the group numbers show that it later was in another
//! group, it is where all others of that number are. A number is less precise than a path, because groups without a
//! `cpu` controller share that of the group above; if the threads of one number are in several groups, nothing follows.

use std::collections::BTreeMap;

use super::thread::{Life, Thread, Threads};
use super::Meta;
use crate::id::Pid;

/// Adds inferred groups to the reported ones, using the paths of groups.
pub fn infer(threads: &Threads, paths: &BTreeMap<u32, String>, meta: &mut Meta) {
    let by_id: Vec<_> = threads.list.iter().filter_map(|thread| by_id(thread, paths, meta)).collect();
    meta.cgroups.extend(by_id);
    if meta.cgroups.is_empty() {
        return;
    }
    // `None` for a number whose threads are in several groups.
    let mut paths: BTreeMap<u32, Option<&str>> = BTreeMap::new();
    for thread in &threads.list {
        if let Some(path) = meta.cgroup_of(thread.pid).filter(|_| thread.group != 0) {
            paths
                .entry(thread.group)
                .and_modify(|known| *known = known.filter(|known| *known == path))
                .or_insert(Some(path));
        }
    }
    let mut inferred: BTreeMap<Pid, &str> = BTreeMap::new();
    // A thread is met before those that it makes.
    for thread in threads.list.iter().filter(|thread| thread.pid != Pid::IDLE) {
        if meta.cgroup_of(thread.pid).is_some() {
            continue;
        }
        let parent = thread.parent.and_then(|parent| Some((parent, threads.known(parent)?)));
        let of_parent = parent.filter(|&(_, index)| threads.list[index].group == thread.group);
        let of_parent = of_parent.and_then(|(pid, _)| meta.cgroup_of(pid).or_else(|| inferred.get(&pid).copied()));
        let path = of_parent.or_else(|| paths.get(&thread.group).copied().flatten());
        inferred.extend(path.map(|path| (thread.pid, path)));
    }
    let inferred: Vec<_> = inferred.into_iter().map(|(pid, path)| (pid.number(), path.to_string())).collect();
    meta.cgroups.extend(inferred);
}

/// Path of the group whose id was reported for a thread. The machine's own list is newer for a thread that has not
/// ended.
fn by_id(thread: &Thread, paths: &BTreeMap<u32, String>, meta: &Meta) -> Option<(u32, String)> {
    let is_newest = thread.life == Life::Ended || meta.cgroup_of(thread.pid).is_none();
    // Without any path, none were read.
    if thread.cgroup == 0 || paths.is_empty() || !is_newest {
        return None;
    }
    let gone = || format!("removed.{}", thread.cgroup);
    Some((thread.pid.number(), paths.get(&thread.cgroup).cloned().unwrap_or_else(gone)))
}
