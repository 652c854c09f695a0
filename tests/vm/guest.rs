// SPDX-License-Identifier: BSD-3-Clause
//! Running a script in the virtual machine, through `cargo xtask vm` as a user does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::LazyLock;
use std::thread;

use tempfile::TempDir;

use crate::turns::{self, Turn};

/// A guest whose CPU 1 a test may keep busy with stick.ko, since nothing else needs it: no device, no worker of the kernel. An
/// interrupt whose affinity is written while the kernel runs moves only when it comes the next time. Its instructions
/// take eight times as long as others' do, since it executes them for half a minute of its time.
pub const STUCK: [&str; 6] = [
    "--paced=6",
    "--cpus",
    "3",
    "--beside",
    "--append",
    "rcupdate.rcu_cpu_stall_suppress=1 irqaffinity=0 isolcpus=domain,managed_irq,1 nowatchdog",
];

/// Among a guest's options: its CPUs run at the same time, as fast as the host lets them, so that their actions can
/// meet in any way. Those of any other guest take turns, and its time is counted by instructions: other work of the
/// host has no effect there.
pub const AT_ONCE: &str = "--at-once";

/// Returns whether tests take their longest form: `cargo xtask soak`.
pub const SOAK: bool = cfg!(feature = "soak");

/// Amount of something in a test: in the gate (`cargo xtask test`), in `cargo xtask night`, in `cargo xtask soak`.
pub const fn by_form<T: Copy>(gate: T, night: T, soak: T) -> T {
    match (SOAK, cfg!(feature = "night")) {
        (true, _) => soak,
        (_, true) => night,
        _ => gate,
    }
}

/// The seed of a test's random choices: one of the gate's, or of this night's.
pub fn seed() -> u32 {
    let seed = env::var("KUTRACE_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(1);
    println!("seed {seed}");
    (seed % 32_768) as u32
}

/// A script ends at the first command that fails, and names it. `await COMMAND` waits until a command succeeds, and
/// ends the script if it does not in more time than any load of the host takes. A file that one process writes while
/// another looks goes to `$OUT`, whose content is in the share at the end: see [`looked_at_in_share`].
const STRICT: &str = r#"set -e
trap 'echo "job.sh: line $LINENO: $BASH_COMMAND" >&2' ERR
await() {
    for _ in $(seq 1200); do if "$@"; then return; fi; sleep 0.1; done
    echo "never: $*" >&2
    exit 97
}
OUT=/tmp/watched
mkdir $OUT
trap 'cp -r $OUT/. $SHARE' EXIT
"#;

/// Returns a wait of the script for the content of a file in the share, if it has one. The first process that looks at
/// such a file gives it the size that the host knows (9p, cache=mmap), and data that another process has just written
/// is lost.
fn looked_at_in_share(script: &str) -> Option<&str> {
    let waits = |part: &&str| ["until ", "while ", "await "].iter().any(|word| part.contains(word));
    script.split([';', '\n']).filter(waits).find(|part| part.contains("$SHARE/") && !part.contains("-e $SHARE/"))
}

/// Results of a script.
pub struct Run {
    /// The folder that was /mnt/share.
    pub share: Share,
    /// Its exit status.
    pub status: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error, and the messages of xtask.
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

/// The folder of a guest's results, which is removed with its test. When that fails it stays, together with the
/// kernel's messages, in the folder that `KUTRACE_FAILED` names.
pub struct Share {
    above: TempDir,
}

impl Share {
    fn new() -> Share {
        let share = Share { above: tempfile::tempdir().unwrap() };
        fs::create_dir(share.path()).unwrap();
        share
    }

    /// Its place on the host.
    pub fn path(&self) -> PathBuf {
        self.above.path().join("share")
    }

    fn console(&self) -> PathBuf {
        self.above.path().join("console")
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(failed) = env::var_os("KUTRACE_FAILED").filter(|_| thread::panicking()) else { return };
        // A test may have several guests.
        let free = (1..).map(|n| Path::new(&failed).join(format!("guest-{n}"))).find(|path| !path.exists());
        let kept = free.expect("numbers do not end");
        fs::create_dir_all(&failed).expect("KUTRACE_FAILED");
        let copied = Command::new("cp").arg("-a").arg(self.above.path()).arg(&kept).status();
        eprintln!("kept: {} ({})", kept.display(), copied.map_or_else(|error| error.to_string(), |s| s.to_string()));
    }
}

/// The folder of this tier: scripts and small programs for the guest.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vm")
}

/// The kernel of the tests that name none, if not the usual one.
pub const KERNEL: &str = "KUTRACE_VM_KERNEL";

/// Waits until no other test has guests; none has until this is dropped.
pub fn turn() -> Turn {
    turns::alone()
}

/// Waits for the turn of a guest with these options.
fn turn_for(options: &[&str]) -> Turn {
    let is_stock = match options.iter().position(|option| *option == "--kernel") {
        Some(at) => options[at + 1].starts_with("stock"),
        None => env::var(KERNEL).is_ok_and(|kernel| kernel.starts_with("stock")),
    };
    // One thread executes all CPUs of a guest that is paced, and those of a stock kernel.
    match options.contains(&AT_ONCE) && !is_stock {
        true => turns::alone(),
        false => turns::shared(),
    }
}

/// Runs `script` with bash in the guest; `options` go to `xtask vm`. $VM is this folder, $BIN has its programs, $SHARE is
/// the share.
pub fn run(options: &[&str], script: &str) -> Run {
    run_beside(options, script, |_, _| ())
}

/// Like [`run`], while `beside` runs on the host; it gets the share, and is notified of the end of the guest's time.
pub fn run_beside(options: &[&str], script: &str, beside: impl FnOnce(&Path, &AtomicBool) + Send) -> Run {
    let _turn = turn_for(options);
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
    assert_eq!(looked_at_in_share(script), None, "what is written and looked at is in $OUT");
    let share = Share::new();
    let head = format!("{STRICT}VM='{}'\nBIN='{}'\nSHARE=/mnt/share\n", folder().display(), PROGRAMS.display());
    fs::write(share.path().join("job.sh"), head + script).unwrap();
    // The guest ends with its test, however that ends.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(xtask);
    command.envs(variables.iter().copied()).arg("vm").args(options.iter().filter(|option| **option != AT_ONCE));
    if !options.iter().any(|option| *option == AT_ONCE || option.starts_with("--paced")) {
        command.arg("--paced");
    }
    if let Some(kernel) = env::var_os(KERNEL).filter(|_| !options.contains(&"--kernel")) {
        command.arg("--kernel").arg(kernel);
    }
    command.arg("--console").arg(share.console());
    command.arg("--share").arg(share.path()).args(["--", "bash", "/mnt/share/job.sh"]);
    let over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| beside(&share.path(), &over));
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

/// The folder of the programs that guests run, compiled on the host from those of this one.
static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let programs = target.join("vm-programs");
    // Several processes of tests may want them at once.
    let mut make = Command::new("flock");
    make.arg(target).args(["make", "--silent", "--directory"]).arg(folder());
    make.arg(format!("O={}", programs.display()));
    make.arg(format!("TOOLS={}", target.with_file_name("tools").join("release").display()));
    let made = make.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    programs
});

/// As [`run`], and the script must succeed.
pub fn succeed(options: &[&str], script: &str) -> Run {
    run(options, script).succeeded()
}
