// SPDX-License-Identifier: BSD-3-Clause
//! Instructions that other tracers add, by the same program in the same guest as ours: a stock kernel of Debian's.
//!
//! ftrace and LTTng record what KUtrace records by tracepoints, as far as each has it; of BPF there are two programs of
//! the least that keeps its data, for system calls only (tests/vm/pair.c).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{compile, in_guest, number};
use crate::kernel::stock::{self, Stock};
use crate::kernel::{fetched, files_in, Which};
use crate::progress::{self, tied};
use crate::vm::VmArgs;
use crate::{packages, place};

/// Name of each way into the kernel in tests/vm/costs.c, and in the table.
const WAYS: [(&str, &str); 5] = [
    ("syscall", "`getppid`"),
    ("wide", "`getuid`, more than a byte"),
    ("fault", "page fault"),
    ("switch", "`sched_yield` and its switch"),
    ("interrupt", "timer interrupt"),
];
/// Each tracer, as its file is called, and as the table does.
const TRACERS: [(&str, &str); 4] =
    [("kutrace", "KUtrace"), ("bpf", "BPF ring buffer"), ("lttng", "LTTng"), ("ftrace", "ftrace")];
/// Debian's package of LTTng's modules.
const LTTNG: &str = "lttng-modules-dkms";
/// Its probes that are built: those of the script, and those that the tracer needs to load. Some of the others do not
/// compile for the newest 6.12.
const PROBES: [&str; 7] = [
    "lttng-probe-sched",
    "lttng-probe-irq",
    "lttng-probe-x86-irq-vectors",
    "lttng-probe-x86-exceptions",
    "lttng-kprobes",
    "lttng-uprobes",
    "lttng-kretprobes",
];

/// `$1` is the program, `$2` the folder with `pair`, `$3` the one with LTTng's modules, `$4` the one with the kernel's.
const SCRIPT: &str = r#"
"$1" >/mnt/share/none

kutrace_control go
"$1" >/mnt/share/kutrace
kutrace_control stop /tmp/t.trace
rmmod kutrace

"$2"/pair "$1" >/mnt/share/bpf

events=/sys/kernel/tracing/events
[ -d $events ] || mount -t tracefs tracefs /sys/kernel/tracing
all="raw_syscalls exceptions sched/sched_switch sched/sched_waking irq irq_vectors"
for event in $all; do echo 1 >$events/$event/enable; done
"$1" >/mnt/share/ftrace
for event in $all; do echo 0 >$events/$event/enable; done

# Its daemon looks for modules nowhere but there.
modprobe -d "$4" overlay
mkdir /tmp/upper /tmp/work
mount -t overlay overlay -o lowerdir=/usr/lib,upperdir=/tmp/upper,workdir=/tmp/work /usr/lib
mkdir -p /lib/modules
ln -s "$3/lib/modules/$(uname -r)" /lib/modules/
export LTTNG_HOME=/tmp
lttng-sessiond --daemonize
lttng --quiet create costs --output=/tmp/lttng
lttng --quiet enable-channel --kernel --subbuf-size=4M --num-subbuf=16 costs
lttng --quiet enable-event --kernel --channel=costs --syscall --all
lttng --quiet enable-event --kernel --channel=costs \
    'sched_switch,sched_waking,irq_handler_entry,irq_handler_exit,irq_softirq_entry,irq_softirq_exit,x86_exceptions_page_fault_user,x86_irq_vectors_local_timer_entry,x86_irq_vectors_local_timer_exit'
lttng --quiet start
"$1" >/mnt/share/lttng
lttng --quiet stop
lttng --quiet destroy
"#;

/// Instructions, by way: without a tracer, then those that each adds.
pub struct Others {
    none: [i64; WAYS.len()],
    added: [[i64; WAYS.len()]; TRACERS.len()],
}

/// Boots one guest, in which all are measured after one another.
pub fn measure(program: &Path, dir: &Path) -> Result<Others> {
    packages::ensure_rivals()?;
    let kernel = Stock::ensure(stock::VERSION, false)?;
    let modules = lttng(&kernel, dir)?;
    compile(&place::checkout().join("tests/vm/pair.c"), dir)?;
    let how = VmArgs { icount: true, kernel: Which::Stock(stock::VERSION.into()), ..VmArgs::new(Vec::new()) };
    in_guest(SCRIPT, &[program, dir, &modules, kernel.root()], dir, VmArgs { timeout: 1800, ..how })?;
    let of = |tracer: &str| -> Result<[i64; WAYS.len()]> {
        let text = fs::read_to_string(dir.join(tracer)).with_context(|| format!("bench: {tracer}"))?;
        let mut counts = [0; WAYS.len()];
        for (count, (way, _)) in counts.iter_mut().zip(WAYS) {
            *count = number(&text, way)?;
        }
        Ok(counts)
    };
    let none = of("none")?;
    let mut added = [[0; WAYS.len()]; TRACERS.len()];
    for (added, (tracer, _)) in added.iter_mut().zip(TRACERS) {
        *added = of(tracer)?;
        added.iter_mut().zip(none).for_each(|(count, none)| *count -= none);
    }
    Ok(Others { none, added })
}

/// The folder with LTTng's modules for `kernel`, built from Debian's package of their source.
fn lttng(kernel: &Stock, dir: &Path) -> Result<PathBuf> {
    let source = fetched::ensure(LTTNG)?.root.join("usr/src");
    let source = fs::read_dir(&source).context("bench: lttng")?.flatten().next().context("bench: lttng: no source")?;
    let build = dir.join("lttng-modules");
    if build.exists() {
        fs::remove_dir_all(&build).context("bench: lttng-modules")?;
    }
    progress::output(Command::new("cp").arg("-a").arg(source.path()).arg(&build))?;
    let kbuild = build.join("src/probes/Kbuild");
    let text = fs::read_to_string(&kbuild).context("bench: lttng: Kbuild")?;
    let mut text = text.split("obj-").next().unwrap_or_default().to_owned();
    PROBES.iter().for_each(|probe| text += &format!("obj-$(CONFIG_LTTNG) += {probe}.o\n"));
    fs::write(&kbuild, text).context("bench: lttng: Kbuild")?;
    let here = format!("PWD={}", build.display());
    kernel.make(&build, &["KERNELDIR=$(KDIR)", &here, "-j2"], &dir.join("lttng.log"))?;
    let root = dir.join("lttng-root");
    let modules = place::made(root.join("lib/modules").join(&kernel.release))?;
    for folder in ["src", "src/lib", "src/probes"] {
        for module in files_in(&build.join(folder), ".ko")? {
            let name = module.file_name().context("bench: lttng")?;
            fs::copy(&module, modules.join(name)).with_context(|| module.display().to_string())?;
        }
    }
    // The folder is refused by modules built into the kernel, or by libkmod, with which LTTng loads them.
    let own = kernel.root().join("lib/modules").join(&kernel.release);
    for list in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
        fs::copy(own.join(list), modules.join(list)).with_context(|| format!("bench: {list}"))?;
    }
    progress::output(tied("depmod").arg("--basedir").arg(&root).arg(&kernel.release))?;
    Ok(root)
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "| instructions, stock {} | no tracer ", stock::VERSION)?;
        for (_, tracer) in TRACERS {
            write!(f, "| {tracer} ")?;
        }
        writeln!(f, "|\n|---|---|{}", "---|".repeat(TRACERS.len()))?;
        for ((_, what), way) in WAYS.iter().zip(0..) {
            write!(f, "| {what} | {} ", self.none[way])?;
            for added in self.added {
                write!(f, "| {:+} ", added[way])?;
            }
            writeln!(f, "|")?;
        }
        Ok(())
    }
}
