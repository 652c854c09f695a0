// SPDX-License-Identifier: BSD-3-Clause
//! The current tasks, as listed by /proc.
//!
//! Nothing here fails: a task that ends while it is read is skipped.

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
    /// Path of its control group; empty if it is that of the first thread of its group, or unknown.
    pub cgroup: Vec<u8>,
}

/// Every thread under `proc`, which is `/proc` except in tests.
pub fn alive(proc: &Path) -> Vec<Task> {
    let mut tasks = Vec::new();
    for tgid in numbers(proc) {
        let process = proc.join(tgid.to_string());
        let threads = process.join("task");
        let whole = fs::read(process.join("cgroup")).unwrap_or_default();
        for pid in numbers(&threads) {
            let thread = threads.join(pid.to_string());
            let Ok(comm) = fs::read(thread.join("comm")) else { continue };
            let own = fs::read(thread.join("cgroup")).unwrap_or_default();
            let cgroup = if pid == tgid || own != whole { cgroup(&own).to_vec() } else { Vec::new() };
            tasks.push(Task { pid, tgid, comm: name(&comm).to_vec(), cgroup });
        }
    }
    tasks
}

/// The path in a cgroup file, whose lines are `number:controllers:path`: in the hierarchy of version 2, or, if the
/// thread is in the root of that, in the older ones of processors and of systemd.
fn cgroup(file: &[u8]) -> &[u8] {
    let lines = file.split(|&c| c == b'\n').filter_map(|line| {
        let mut fields = line.splitn(3, |&c| c == b':').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let path = |wanted: &[u8]| {
        let mut found = lines.clone().filter(|(names, _)| names.split(|&c| c == b',').any(|name| name == wanted));
        found.next().map(|(_, path)| path)
    };
    let paths = [&b""[..], b"cpu", b"name=systemd"].map(path);
    let mut known = paths.into_iter().flatten();
    let first = known.clone().next().unwrap_or_default();
    known.find(|path| *path != b"/").unwrap_or(first)
}

/// The entries of a directory whose name is a number, in no order.
pub fn numbers(directory: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name in a comm file. For a worker thread the kernel appends its last work after `-` or `+`, which is not part of
/// its name, and outdated when the trace is read. `kworker/R-...` is entirely a name.
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
        let threads = [
            ("7/task/7", &b"web server\n"[..], "0::/a/b\n"),
            ("7/task/8", b"like 7\n", "0::/a/b\n"),
            ("7/task/9", b"\xff\n\n", "0::/a/b/c\n"),
        ];
        for (path, comm, cgroup) in threads {
            fs::create_dir_all(proc.path().join(path)).unwrap();
            fs::write(proc.path().join(path).join("comm"), comm).unwrap();
            fs::write(proc.path().join(path).join("cgroup"), cgroup).unwrap();
        }
        fs::write(proc.path().join("7/cgroup"), "0::/a/b\n").unwrap();
        fs::create_dir_all(proc.path().join("8/task/8")).unwrap();
        fs::create_dir_all(proc.path().join("sys/task/3")).unwrap();
        let mut tasks = alive(proc.path());
        tasks.sort_by_key(|task| task.pid);
        let task = |pid, comm: &[u8], cgroup: &[u8]| Task { pid, tgid: 7, comm: comm.into(), cgroup: cgroup.into() };
        assert_eq!(tasks, [task(7, b"web server", b"/a/b"), task(8, b"like 7", b""), task(9, b"\xff\n", b"/a/b/c")]);
    }

    #[test]
    fn a_worker_loses_what_it_worked_on() {
        assert_eq!(name(b"kworker/0:1-events\n"), b"kworker/0:1");
        assert_eq!(name(b"kworker/u8:3+flush-254:0\n"), b"kworker/u8:3");
        assert_eq!(name(b"kworker/R-slub_flushwq\n"), b"kworker/R-slub_flushwq");
        assert_eq!(name(b"a-b\n"), b"a-b");
    }

    #[test]
    fn the_path_is_that_of_version_2_unless_only_older_hierarchies_have_one() {
        assert_eq!(cgroup(b"0::/system.slice/a:b.service\n"), b"/system.slice/a:b.service");
        assert_eq!(cgroup(b"0::/\n"), b"/");
        assert_eq!(cgroup(b"4:cpu,cpuacct:/docker/7\n1:name=systemd:/else\n0::/\n"), b"/docker/7");
        assert_eq!(cgroup(b"4:cpuset:/else\n1:name=systemd:/x.slice\n"), b"/x.slice");
        assert_eq!(cgroup(b""), b"");
    }

    #[test]
    fn this_test_is_alive() {
        let pid = std::process::id();
        assert!(alive(Path::new("/proc")).iter().any(|task| task.pid == pid && task.tgid == pid));
    }
}
