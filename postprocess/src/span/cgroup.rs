// SPDX-License-Identifier: BSD-3-Clause
//! Control groups of threads that nobody told: what began and ended while the trace was recorded has no path in it.
//!
//! A thread begins in the group of the thread that makes it. If by the numbers it then was in another one, it is where
//! all others of that number are. A number says less than a path, since groups without a `cpu` controller have that of
//! the group above; where those of one number are in several groups, nothing follows.

use std::collections::BTreeMap;

use super::thread::Threads;
use super::Meta;
use crate::id::Pid;

/// Adds what follows to what was told.
pub fn infer(threads: &Threads, meta: &mut Meta) {
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
    // Who makes a thread was met before it.
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
