// SPDX-License-Identifier: BSD-3-Clause
//! Results from recorded traces: the rate of a CPU that only enters the kernel, and bytes per transition.

use std::fmt;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use super::content::Content;
use super::in_guest;
use super::section::{Budget, Limit, Section};
use crate::place;
use crate::vm::VmArgs;

/// Bytes of the whole file of redis-benchmark for a transition, at most.
const REDIS: f64 = 4.4;

/// Fills 16 MiB with calls of getppid; then records two workloads into memory enough for each.
const SCRIPT: &str = r#"
insmod "$KUTRACE_MODULE" tracemb=16
kutrace_control go
"$1" 3000000
kutrace_control stop --force /mnt/share/rate.trace || [ $? = 3 ]
rmmod kutrace
insmod "$KUTRACE_MODULE" tracemb=128
redis-server --port 6399 --save '' --appendonly no --dir /tmp >/tmp/redis.log &
until redis-cli -p 6399 ping >/dev/null 2>&1; do sleep 0.1; done
kutrace_control go
redis-benchmark -p 6399 -t set,get -q >/tmp/redis-benchmark.log
kutrace_control stop --force /mnt/share/redis.trace
redis-cli -p 6399 shutdown nosave
kutrace_control go
for n in $(seq 3); do gcc -O2 -I "$3" -c -o /tmp/costs.o "$2"; done
kutrace_control stop --force /mnt/share/gcc.trace
"#;

/// Results for each trace.
pub struct Traces {
    rate: Content,
    redis: Content,
    gcc: Content,
}

/// Records the traces, in one guest.
pub fn record(program: &Path, dir: &Path) -> Result<Traces> {
    let source = place::checkout().join("tests/vm/costs.c");
    let include = place::checkout().join("kutrace-control/kutrace/include");
    let script = format!("set -- \"$1\" '{}' '{}'\n{SCRIPT}", source.display(), include.display());
    in_guest(&script, &[program], dir, VmArgs { no_load: true, ..VmArgs::new(Vec::new()) })?;
    let read = |name: &str| {
        let bytes = std::fs::read(dir.join(name)).with_context(|| format!("bench: {name}"))?;
        Content::of(&bytes).with_context(|| format!("bench: {name}: not a raw trace"))
    };
    let traces = Traces { rate: read("rate.trace")?, redis: read("redis.trace")?, gcc: read("gcc.trace")? };
    ensure!(traces.rate.lost() > 0, "bench: rate.trace: the memory did not end");
    Ok(traces)
}

impl Traces {
    /// Their section, with the budget of bytes.
    pub fn section(&self) -> Section {
        let what = "bytes per transition, redis-benchmark, whole file".to_owned();
        let over = Budget { what, limit: Limit::AtMost(REDIS), measured: self.redis_bytes(), unit: "" }.over();
        Section { name: "bytes", tables: self.to_string(), over: over.into_iter().collect() }
    }

    /// Bytes of the redis file per transition.
    pub fn redis_bytes(&self) -> f64 {
        self.redis.per_transition(self.redis.file)
    }
}

impl fmt::Display for Traces {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (rate, lost) = self.rate.busiest();
        writeln!(f, "| one CPU in a loop of `getppid`, until 16 MiB are full | |\n|---|---|")?;
        writeln!(f, "| transitions/s | {rate:.0} |\n| lost before the end | {lost} |\n")?;
        writeln!(f, "| bytes per transition | redis-benchmark | gcc |\n|---|---|---|")?;
        let per = |content: &Content, bytes| content.per_transition(bytes);
        let [redis, gcc] = [&self.redis, &self.gcc];
        writeln!(f, "| whole file | {:.2} | {:.2} |", per(redis, redis.file), per(gcc, gcc.file))?;
        let [redis, gcc] = [redis, gcc].map(|content| per(content, content.entries()));
        writeln!(f, "| entries alone | {redis:.2} | {gcc:.2} |\n")?;
        writeln!(f, "Budget: the whole file of redis-benchmark has at most {REDIS}.\n")?;
        write!(f, "redis-benchmark, by kind of entry:\n\n{}\ngcc:\n\n{}", self.redis, self.gcc)
    }
}
