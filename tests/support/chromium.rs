// SPDX-License-Identifier: BSD-3-Clause
//! A page in a headless Chromium, one scenario of `browser/drive.mjs`; or in Firefox, with `browser/firefox.mjs`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::{json, Value};

const BROWSER: &str = "/usr/bin/chromium-headless-shell";
const FIREFOX: &str = "/usr/bin/firefox-esr";

/// Runs `scenario` on the page, with its expected values; returns the scenario's result.
///
/// # Panics
/// With the first fault, or if the browser or its driver are missing.
pub fn run(scenario: &str, page: &Path, expected: &Value) -> Value {
    // One browser for all that a program runs: to start one takes as long as most scenarios.
    static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    let request = json!({ "scenario": scenario, "file": page, "expected": expected });
    // One that does not answer is not asked again.
    let mut asked = driver.take().unwrap_or_else(Driver::start);
    let mut said = asked.ask(&request);
    *driver = Some(asked);
    drop(driver);
    assert!(said["error"].is_null(), "{scenario} on {}:\n{}", page.display(), said["error"].as_str().unwrap_or(""));
    let answer = said["answer"].take();
    eprintln!("{scenario}: {answer}");
    answer
}

/// `drive.mjs`, which ends its browser and itself when its input ends, as it does with this process.
struct Driver {
    _node: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Driver {
    fn start() -> Driver {
        assert!(Path::new(BROWSER).exists(), "{BROWSER} is missing: apt-get install chromium-headless-shell");
        let mut node = node(&source().join("drive.mjs"));
        let child = node.env("CHROMIUM", BROWSER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("node runs: apt-get install nodejs npm");
        let (requests, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Driver { _node: child, requests, answers: BufReader::new(answers) }
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.requests, "{request}").expect("the driver reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the driver answers");
        serde_json::from_str(&line).expect("the driver prints JSON")
    }
}

/// Node with one of our programs.
fn node(program: &Path) -> Command {
    let mut node = Command::new("node");
    node.arg(program).env("PLAYWRIGHT", packages().join("playwright-core/index.mjs"));
    node
}

/// Returns whether the browser is the one with which the gate last passed: another may draw some pixels in another way.
///
/// # Panics
/// If the browser is missing, or `versions.txt` does not name it.
pub fn is_known() -> bool {
    let listed = include_str!("../versions.txt").lines().find_map(|line| line.strip_prefix("chromium-headless-shell "));
    let known = listed.and_then(|version| version.split('-').next()).expect("versions.txt names it");
    let said = Command::new(BROWSER).arg("--version").output().expect("the browser");
    String::from_utf8_lossy(&said.stdout).split_whitespace().any(|word| word == known)
}

/// Opens and uses the page in Debian's Firefox by `browser/firefox.mjs`; `expected` has the number of spans, a search
/// with its count, and spans to be hit.
///
/// # Panics
/// As [`run`].
pub fn in_firefox(page: &Path, expected: &Value) -> Value {
    assert!(Path::new(FIREFOX).exists(), "{FIREFOX} is missing: apt-get install firefox-esr");
    let mut node = node(&source().join("firefox.mjs"));
    let out = node.args([page.to_str().unwrap(), &expected.to_string()]).env("FIREFOX", FIREFOX).output();
    let out = out.expect("node runs: apt-get install nodejs npm");
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "firefox on {}:\n{stdout}{stderr}", page.display());
    eprintln!("firefox: {}", stdout.trim());
    serde_json::from_str(&stdout).expect("the driver prints JSON")
}

/// The folder of the browser's tests.
pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("browser")
}

/// The folder of the packages of the lock file, filled the first time and whenever that file changes.
pub fn packages() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
        let folder = cache.expect("HOME is set").join("kutrace/browser");
        let wanted = fs::read(source().join("package-lock.json")).unwrap();
        let installed = folder.join("installed-lock.json");
        if fs::read(&installed).is_ok_and(|lock| lock == wanted) {
            return folder.join("node_modules");
        }
        fs::create_dir_all(&folder).unwrap();
        for file in ["package.json", "package-lock.json"] {
            fs::copy(source().join(file), folder.join(file)).unwrap();
        }
        let done = Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder).status();
        assert!(done.is_ok_and(|status| status.success()), "npm ci failed in {}", folder.display());
        fs::write(installed, wanted).unwrap();
        folder.join("node_modules")
    })
}
