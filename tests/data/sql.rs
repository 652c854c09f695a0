// SPDX-License-Identifier: BSD-3-Clause
//! What `kutrace_sql` answers. Its engine takes minutes to build, so nothing here builds it: docs/developing.md says how.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use kutrace_tests::skip::skip;
use kutrace_tests::tree;

use crate::{add, alike, examples, tables, ALIKE};

/// The program, if it is built and not older than what it is built of; `KUTRACE_SQL` names another.
fn engine() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("KUTRACE_SQL") {
        return Some(named.into());
    }
    let engine = tree::root().join("target/sql/release/kutrace_sql");
    let sources = tree::root().join("postprocess/sql/src");
    let written = |file: &Path| fs::metadata(file).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let newest = tree::files(&sources, &[]).iter().map(|file| written(file)).max();
    let why = match newest {
        _ if !engine.exists() => "target/sql/release/kutrace_sql is not built",
        Some(newest) if newest > written(&engine) => "target/sql/release/kutrace_sql is older than its sources",
        _ => return Some(engine),
    };
    skip("kutrace_sql", why);
    None
}

fn run(engine: &Path, words: &[&str], folders: &[&Path], query: &str) -> Output {
    Command::new(engine).args(words).args(folders).arg(query).output().expect("kutrace_sql")
}

/// What it prints, if it succeeds without a word on standard error.
fn answer(engine: &Path, words: &[&str], folders: &[&Path], query: &str) -> String {
    let output = run(engine, words, folders, query);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{query}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// What it says of what it does not do.
fn refusal(engine: &Path, folders: &[&Path], query: &str) -> String {
    let output = run(engine, &[], folders, query);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{query}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn the_examples_of_the_docs_have_the_answers_of_the_docs() {
    let Some(engine) = engine() else { return };
    let folder = tables("redis");
    for (sql, expected) in examples() {
        assert_eq!(answer(&engine, &[], &[folder.path()], &sql), expected, "{sql}");
    }
}

#[test]
fn several_folders_and_files_are_one_data_set_in_which_nothing_counts_twice() {
    let Some(engine) = engine() else { return };
    let (redis, hello, both) = (tables("redis"), tables("hello"), tables("redis"));
    add("hello", both.path());
    let query = "select t.host, t.date, t.rows, count(*) as spans from traces t join spans s using (trace, host, date)
        group by t.trace, t.host, t.date, t.rows order by t.trace";
    let asked = |files: &[&Path]| answer(&engine, &["--csv"], files, query);
    let all = asked(&[both.path()]);
    let [head, first, second] = all.lines().collect::<Vec<_>>()[..] else { panic!("{all}") };
    assert!([first, second].iter().all(|line| line.starts_with("kutrace-vm,2026-11-")), "{all}");
    assert_eq!(asked(&[redis.path(), hello.path()]), all);
    assert_eq!(asked(&[hello.path(), redis.path(), redis.path()]), all);
    // Files: those of one trace, and one beside the folder that it is in.
    let of_hello = |table: &str| {
        let name = tree::files(&hello.path().join(table), &[]).remove(0).file_name().expect("a name").to_owned();
        tree::files(&both.path().join(table), &[]).into_iter().find(|file| file.ends_with(&name)).expect("a file")
    };
    let (spans, trace) = (of_hello("spans"), of_hello("traces"));
    assert_eq!(asked(&[&spans, &trace]), asked(&[hello.path()]));
    assert!([first, second].iter().any(|line| asked(&[&spans, &trace]) == format!("{head}\n{line}\n")));
    assert_eq!(asked(&[&spans, both.path()]), all);
    // The same trace in several folders.
    let name = trace.file_stem().expect("a name").to_string_lossy();
    for folders in [&[both.path(), hello.path()][..], &[spans.as_path(), trace.as_path(), hello.path(), redis.path()]] {
        let output = run(&engine, &["--csv"], folders, query);
        let said = format!("kutrace_sql: given more than once, and read once: trace {name}\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), said);
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout)), (Some(0), all.as_str().into()));
    }
    let output = run(&engine, &["--csv"], &[hello.path(), both.path(), redis.path()], query);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with(", and 1 more\n"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), all);
}

#[test]
fn hosts_have_the_names_that_their_folders_stand_for() {
    let Some(engine) = engine() else { return };
    let folder = alike();
    let hosts = answer(&engine, &["--csv"], &[folder.path()], "select distinct host from spans order by host");
    assert_eq!(hosts.lines().skip(1).collect::<Vec<_>>(), ALIKE);
}

#[test]
fn values_are_written_as_text_json_and_csv_have_them() {
    let Some(engine) = engine() else { return };
    let folder = tables("redis");
    let query = "select 1 as n, 2.5 as x, 'a \"b\", c' as t, '' as e, null as z, true as b, chr(27) || '[2J' as c, 1e0 / 0 as i";
    let written = |words: &[&str]| answer(&engine, words, &[folder.path()], query);
    let text = "n    x  t         e  z        b  c            i\n1  2.5  a \"b\", c     null  true  \\u{1b}[2J  inf\n";
    assert_eq!(written(&[]), text);
    assert_eq!(
        written(&["--json"]),
        "{\"n\":1,\"x\":2.5,\"t\":\"a \\\"b\\\", c\",\"e\":\"\",\"z\":null,\"b\":true,\"c\":\"\\u001b[2J\",\"i\":null}\n"
    );
    assert_eq!(written(&["--csv"]), "n,x,t,e,z,b,c,i\n1,2.5,\"a \"\"b\"\", c\",\"\",,true,\u{1b}[2J,inf\n");
}

#[test]
fn what_cannot_be_answered_is_one_line_and_nothing_is_written() {
    let Some(engine) = engine() else { return };
    let (folder, empty) = (tables("redis"), tempfile::tempdir().expect("a folder"));
    let said = |query: &str| refusal(&engine, &[folder.path()], query);
    let absent = said("select * from lanes");
    let hint = "hint: there are spans, waits, arcs, points, cpus, threads, durations, requests, causes, traces\n";
    assert_eq!(absent, format!("kutrace_sql: query: no table lanes\n{hint}"));
    let target = empty.path().join("t.csv");
    let copy = format!("copy spans to '{}'", target.display());
    for query in [
        "select nothing from spans",
        "spans",
        "select 1; select 2",
        "",
        "create table t as select 1",
        "create external table t stored as parquet location '/tmp'",
        "insert into spans select * from spans",
        "set datafusion.execution.batch_size = 1",
        &copy,
    ] {
        let said = said(query);
        assert!(said.starts_with("kutrace_sql: query: ") && said.lines().count() == 1, "{query}: {said}");
    }
    assert!(!target.exists());
    let said = refusal(&engine, &[empty.path()], "select 1");
    assert_eq!(said, format!("kutrace_sql: {}: has no tables\n", empty.path().display()));
    let file = tree::root().join("samples/redis.trace");
    let said = refusal(&engine, &[&file], "select 1");
    assert!(said.starts_with(&format!("kutrace_sql: {}: not a file of a table", file.display())), "{said}");
    let damaged = tree::files(&folder.path().join("spans"), &[]).remove(0);
    fs::write(&damaged, "PAR1").expect("a file");
    let said = refusal(&engine, &[folder.path()], "select 1");
    assert!(said.starts_with("kutrace_sql: table spans: ") && said.lines().count() == 1, "{said}");
}

#[test]
fn its_help_fits_a_screen_and_ends_with_two_examples() {
    let Some(engine) = engine() else { return };
    let output = Command::new(&engine).arg("--help").env("COLUMNS", "80").output().expect("kutrace_sql");
    let help = String::from_utf8(output.stdout).expect("text");
    assert!(help.lines().count() <= 24 && help.lines().all(|line| line.len() <= 80), "{help}");
    let [.., heading, first, last] = help.lines().collect::<Vec<_>>()[..] else { panic!("{help}") };
    assert!(heading == "Examples:" && first.contains("kutrace_sql") && last.contains("kutrace_sql"), "{help}");
}
