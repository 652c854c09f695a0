// SPDX-License-Identifier: BSD-3-Clause
//! Running a script in the virtual machine, through `cargo xtask vm` as a user does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use tempfile::TempDir;

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

/// Runs `script` with bash in the guest; `options` go to `xtask vm`. $VM is this folder, $SHARE the share.
pub fn run(options: &[&str], script: &str) -> Run {
    run_beside(options, script, |_, _| ())
}

/// As [`run`], while `beside` runs on the host; it is given the share, and told when the guest's time is over.
pub fn run_beside(options: &[&str], script: &str, beside: impl FnOnce(&Path, &AtomicBool) + Send) -> Run {
    let xtask = env::var_os("KUTRACE_XTASK").expect("KUTRACE_XTASK: run this tier by `cargo xtask test`");
    let share = tempfile::tempdir().unwrap();
    let head = format!("{STRICT}VM='{}'\nSHARE=/mnt/share\n", folder().display());
    fs::write(share.path().join("job.sh"), head + script).unwrap();
    let mut command = Command::new(xtask);
    command.arg("vm").args(options);
    if let Some(kernel) = env::var_os(KERNEL).filter(|_| !options.contains(&"--kernel")) {
        command.arg("--kernel").arg(kernel);
    }
    command.arg("--share").arg(share.path()).args(["--", "bash", "/mnt/share/job.sh"]);
    let over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| beside(share.path(), &over));
        let output = command.output();
        over.store(true, Relaxed);
        output.unwrap()
    });
    Run {
        share,
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// As [`run`], and the script must succeed.
pub fn succeed(options: &[&str], script: &str) -> Run {
    run(options, script).succeeded()
}
