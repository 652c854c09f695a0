// SPDX-License-Identifier: BSD-3-Clause
//! Running a script in the virtual machine, through `cargo xtask vm` as a user does.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A guest whose CPU 1 a test may keep busy with stick.ko, since nothing else needs it: no device, no worker of the kernel. An
/// interrupt whose affinity is written while the kernel runs moves only when it comes the next time.
pub const STUCK: [&str; 5] = [
    "--cpus",
    "3",
    "--beside",
    "--append",
    "rcupdate.rcu_cpu_stall_suppress=1 irqaffinity=0 isolcpus=domain,managed_irq,1 nowatchdog",
];

/// Whether tests take their long form: `cargo xtask soak`.
pub const SOAK: bool = cfg!(feature = "soak");

/// A script ends at the first command that fails, and says which.
const STRICT: &str = r#"set -e
trap 'echo "job.sh: line $LINENO: $BASH_COMMAND" >&2' ERR
"#;

/// What a script left.
pub struct Run {
    /// The folder that was /mnt/share.
    pub share: TempDir,
    /// Its exit status.
    pub status: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error, and what xtask said.
    pub err: String,
}

impl Run {
    /// A file of the share.
    pub fn file(&self, name: &str) -> PathBuf {
        self.share.path().join(name)
    }

    /// The run, whose script must have succeeded.
    pub fn succeeded(self) -> Run {
        assert_eq!(self.status, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// A number that the script printed as `NAME=NUMBER` on a line of its own.
    pub fn number(&self, name: &str) -> u64 {
        let line = self.out.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.and_then(|n| n.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in:\n{}\n{}", self.out, self.err))
    }
}

/// The folder of this tier: scripts and small programs for the guest.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vm")
}

/// The kernel of the tests that name none, if not the usual one.
pub const KERNEL: &str = "KUTRACE_VM_KERNEL";

/// Held while guests run: those of one test at a time, since a guest has as many CPUs as it asks for, and times mean
/// something. What a test does with what its guest has left goes on beside the next one's.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test has guests; none has until this is dropped.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `script` with bash in the guest; `options` go to `xtask vm`. $VM is this folder, $SHARE the share.
pub fn run(options: &[&str], script: &str) -> Run {
    run_beside(options, script, |_, _| ())
}

/// As [`run`], while `beside` runs on the host; it is given the share, and told when the guest's time is over.
pub fn run_beside(options: &[&str], script: &str, beside: impl FnOnce(&Path, &AtomicBool) + Send) -> Run {
    let _turn = turn();
    run_at_once(options, script, beside)
}

/// As [`run_beside`], at once: for a test that has several guests, and its [`turn`].
pub fn run_at_once(options: &[&str], script: &str, beside: impl FnOnce(&Path, &AtomicBool) + Send) -> Run {
    run_with(&[], options, script, beside)
}

/// As [`run_at_once`], with variables for the machine's own process.
pub fn run_with(
    variables: &[(&str, &Path)],
    options: &[&str],
    script: &str,
    beside: impl FnOnce(&Path, &AtomicBool) + Send,
) -> Run {
    let xtask = env::var_os("KUTRACE_XTASK").expect("KUTRACE_XTASK: run this tier by `cargo xtask test`");
    let share = tempfile::tempdir().unwrap();
    let head = format!("{STRICT}VM='{}'\nSHARE=/mnt/share\n", folder().display());
    fs::write(share.path().join("job.sh"), head + script).unwrap();
    let mut command = Command::new(xtask);
    command.envs(variables.iter().copied()).arg("vm").args(options);
    if let Some(kernel) = env::var_os(KERNEL).filter(|_| !options.contains(&"--kernel")) {
        command.arg("--kernel").arg(kernel);
    }
    command.arg("--share").arg(share.path()).args(["--", "bash", "/mnt/share/job.sh"]);
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let output = thread::scope(|scope| {
        scope.spawn(|| beside(share.path(), &over));
        let output = command.output();
        over.store(true, Relaxed);
        output.unwrap()
    });
    note_time(began.elapsed());
    Run {
        share,
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Notes how long a guest of this test was there, in the file that `KUTRACE_TIMES` names: `cargo xtask test` lists them.
fn note_time(took: Duration) {
    let Some(path) = env::var_os("KUTRACE_TIMES") else { return };
    let line = format!("{:.1} {}\n", took.as_secs_f64(), thread::current().name().unwrap_or_default());
    let file = File::options().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("KUTRACE_TIMES");
}

/// As [`run`], and the script must succeed.
pub fn succeed(options: &[&str], script: &str) -> Run {
    run(options, script).succeeded()
}
