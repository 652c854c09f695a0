// SPDX-License-Identifier: BSD-3-Clause
//! The tasks alive now, as /proc lists them.
//!
//! Nothing here fails: a task that ends while it is read is left out.

use std::fs;
use std::path::Path;

/// A thread and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread id.
    pub pid: u32,
    /// Thread group id.
    pub tgid: u32,
    /// The name, as the kernel keeps it: any bytes.
    pub comm: Vec<u8>,
}

/// Every thread under `proc`, which is `/proc` but in tests.
pub fn alive(proc: &Path) -> Vec<Task> {
    let mut tasks = Vec::new();
    for tgid in numbers(proc) {
        let threads = proc.join(tgid.to_string()).join("task");
        for pid in numbers(&threads) {
            if let Ok(comm) = fs::read(threads.join(pid.to_string()).join("comm")) {
                tasks.push(Task { pid, tgid, comm: name(&comm).to_vec() });
            }
        }
    }
    tasks
}

/// The entries of a directory whose name is a number, in no order.
fn numbers(directory: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name in a comm file. For a worker thread the kernel appends what it last worked on, after `-` or `+`:
/// that is not its name, and long out of date when the trace is read. `kworker/R-...` is all name.
fn name(comm: &[u8]) -> &[u8] {
    let comm = comm.strip_suffix(b"\n").unwrap_or(comm);
    match comm.strip_prefix(b"kworker/") {
        Some(worker) if worker.first().is_some_and(|c| *c != b'R') => {
            let work = comm.iter().position(|c| matches!(c, b'-' | b'+'));
            &comm[..work.unwrap_or(comm.len())]
        }
        _ => comm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_is_listed_with_its_group_and_its_bytes() {
        let proc = tempfile::tempdir().unwrap();
        for (path, comm) in [("7/task/7", &b"web server\n"[..]), ("7/task/9", b"\xff\n\n")] {
            fs::create_dir_all(proc.path().join(path)).unwrap();
            fs::write(proc.path().join(path).join("comm"), comm).unwrap();
        }
        fs::create_dir_all(proc.path().join("8/task/8")).unwrap();
        fs::create_dir_all(proc.path().join("sys/task/3")).unwrap();
        let mut tasks = alive(proc.path());
        tasks.sort_by_key(|task| task.pid);
        assert_eq!(
            tasks,
            [
                Task { pid: 7, tgid: 7, comm: b"web server".to_vec() },
                Task { pid: 9, tgid: 7, comm: b"\xff\n".to_vec() },
            ]
        );
    }

    #[test]
    fn a_worker_loses_what_it_worked_on() {
        assert_eq!(name(b"kworker/0:1-events\n"), b"kworker/0:1");
        assert_eq!(name(b"kworker/u8:3+flush-254:0\n"), b"kworker/u8:3");
        assert_eq!(name(b"kworker/R-slub_flushwq\n"), b"kworker/R-slub_flushwq");
        assert_eq!(name(b"a-b\n"), b"a-b");
    }

    #[test]
    fn this_test_is_alive() {
        let pid = std::process::id();
        assert!(alive(Path::new("/proc")).iter().any(|task| task.pid == pid && task.tgid == pid));
    }
}
