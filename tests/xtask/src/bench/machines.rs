// SPDX-License-Identifier: BSD-3-Clause
//! A page of two machines: redis-benchmark in a guest asks redis-server in another, over a cable.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{ensure, Context, Result};

use super::in_guest;
use super::page::Pages;
use crate::vm::VmArgs;
use crate::{progress, tools};

/// Spans of the page: five million of each machine.
const SPANS: u64 = 10_000_000;

/// Ends when redis-server is stopped.
const SERVER: &str = r#"
echo server >/proc/sys/kernel/hostname
ip addr add 10.0.0.2/24 dev eth0; ip link set eth0 up
insmod "$KUTRACE_MODULE" tracemb=128
kutrace_control go --packets 6399
redis-server --port 6399 --bind 10.0.0.2 --protected-mode no --save '' --appendonly no --dir /tmp >/tmp/redis.log || true
kutrace_control stop --force /mnt/share/server.trace
"#;
const CLIENT: &str = r#"
echo client >/proc/sys/kernel/hostname
ip addr add 10.0.0.1/24 dev eth0; ip link set eth0 up
insmod "$KUTRACE_MODULE" tracemb=128
until redis-cli -h 10.0.0.2 -p 6399 ping >/dev/null 2>&1; do sleep 0.1; done
kutrace_control go --packets 6399
redis-benchmark -h 10.0.0.2 -p 6399 -n 20000 -c 20 -t set,get -q >/tmp/redis-benchmark.log
kutrace_control stop --force /mnt/share/client.trace
redis-cli -h 10.0.0.2 -p 6399 shutdown nosave || true
"#;

/// Records both machines, merges their recordings, and measures the page of the result, repeated; returns the message
/// of `merge`, and that.
pub fn measure(from: Option<&Path>, dir: &Path) -> Result<(String, Pages)> {
    let given = from.map(|from| Ok((String::new(), from.to_path_buf())));
    let (said, merged) = given.unwrap_or_else(|| record(dir))?;
    Ok((said, Pages::measure(&merged, dir, &[SPANS])?))
}

fn record(dir: &Path) -> Result<(String, PathBuf)> {
    let tools = tools::ensure()?;
    let end = |name: &str| dir.join(format!("cable-{name}"));
    let guest = |script: &'static str, own: &str, other: &str| {
        let cable = vec![(end(own), end(other))];
        let how = VmArgs { no_load: true, cpus: 2, cable, ..VmArgs::new(Vec::new()) };
        move || in_guest(script, &[], dir, how)
    };
    thread::scope(|scope| {
        let server = scope.spawn(guest(SERVER, "a", "b"));
        guest(CLIENT, "b", "a")().and_then(|()| server.join().expect("a guest's end is an answer"))
    })?;
    let merged = dir.join("machines.trace");
    let mut merge = Command::new(tools.join("kutrace_control"));
    merge.arg("merge").args(["client", "server"].map(|name| dir.join(format!("{name}.trace")))).arg("-o").arg(&merged);
    progress::run("bench: merging", &mut merge, &dir.join("merge.log"))?;
    let said = std::fs::read_to_string(dir.join("merge.log")).context("bench: merge.log")?;
    ensure!(said.contains("no packet arrives before it was sent"), "bench: merge: {said}");
    Ok((said, merged))
}
