// SPDX-License-Identifier: BSD-3-Clause
//! Spans to tables and back, as from a shell; and the handling of damaged tables.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kutrace_parquet::read::traces;
use kutrace_tests::draw::{sample, SAMPLES};
use kutrace_tests::Random;
use postprocess::sink::json;
use postprocess::span::Spans;

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir(&folder).unwrap();
    folder
}

fn text(spans: &Spans) -> Vec<u8> {
    let mut text = Vec::new();
    json::write(spans, &mut text).unwrap();
    text
}

fn run(tool: &str, words: &[&Path]) -> Output {
    Command::new(tool).args(words).output().unwrap()
}

const TO: &str = env!("CARGO_BIN_EXE_spantoparquet");
const FROM: &str = env!("CARGO_BIN_EXE_parquettospan");

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the lines of JSON, with those of the same start, duration and CPU in a fixed order.
fn lines(json: &[u8]) -> Vec<&str> {
    let mut lines: Vec<&str> = std::str::from_utf8(json).unwrap().lines().collect();
    let is_span = |line: &str| line.starts_with('[') && !line.starts_with("[999.0");
    let key = |line: &str| line.splitn(4, ',').take(3).collect::<Vec<_>>().join(",");
    for same in lines.chunk_by_mut(|a, b| is_span(a) && is_span(b) && key(a) == key(b)) {
        same.sort_unstable();
    }
    lines
}

#[test]
fn tables_give_the_spans_back() {
    let folder = folder("round");
    for name in SAMPLES {
        let (file, tables, json) = (folder.join("t.json"), folder.join(name), text(&sample(name)));
        fs::write(&file, &json).unwrap();
        let made = run(TO, &[&file, &tables]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
        let back = run(FROM, &[&tables]);
        assert_eq!((back.status.code(), stderr(&back).as_str()), (Some(0), ""), "{name}");
        assert_eq!(lines(&back.stdout), lines(&json), "{name}");
    }
}

#[test]
fn a_data_set_holds_many_traces_and_none_twice() {
    let (folder, tables) = (folder("many"), "tables");
    let (file, tables) = (folder.join("t.json"), folder.join(tables));
    for name in SAMPLES {
        fs::write(&file, text(&sample(name))).unwrap();
        assert_eq!(run(TO, &[&file, &tables]).status.code(), Some(0));
    }
    let again = run(TO, &[&file, &tables]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).ends_with(".parquet: already exists\n"), "{}", stderr(&again));
    let several = run(FROM, &[&tables]);
    assert_eq!((several.status.code(), several.stdout.len()), (Some(1), 0));
    assert!(stderr(&several).contains(": has 4 traces\nhint: parquettospan "), "{}", stderr(&several));
    for found in traces(&tables).unwrap() {
        let back = run(FROM, &[&tables, Path::new("--trace"), Path::new(&found.trace)]);
        assert_eq!(back.status.code(), Some(0), "{}", stderr(&back));
    }
    let none = run(FROM, &[&folder]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(stderr(&none).lines().count(), 1, "{}", stderr(&none));
}

/// Runs the tool with `input` on its standard input.
fn piped(words: &[&Path], input: &[u8]) -> Output {
    let mut command = Command::new(TO);
    let mut child = command.args(words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A tool that stops reading closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn spans_come_from_standard_input_too_and_what_is_cut_is_said() {
    let (folder, text) = (folder("piped"), text(&sample("convoy")));
    let (file, named, from_pipe, cut) =
        (folder.join("t.json"), folder.join("named"), folder.join("piped"), folder.join("cut"));
    fs::write(&file, &text).unwrap();
    assert_eq!(run(TO, &[&file, &named]).status.code(), Some(0));
    for words in [&[from_pipe.as_path()][..], &[Path::new("-"), &folder.join("dashed")]] {
        let output = piped(words, &text);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let (made, expected) = (walk(words[words.len() - 1]), walk(&named));
        let content = |files: &[PathBuf]| files.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
        assert!(expected.len() > 7 && content(&made) == content(&expected));
    }
    let output = piped(&[&cut], &text[..text.len() - 60]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("spantoparquet: stdin: "), "{}", stderr(&output));
    assert_eq!(run(FROM, &[&cut]).status.code(), Some(3), "the damage is passed on");
    for wrong in [&b""[..], b"no json\n", &[0; 9_000]] {
        let output = piped(&[&folder.join("wrong")], wrong);
        assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(1), 1), "{}", stderr(&output));
    }
    let mut random = Random(37);
    for n in 0..20 {
        let mut damaged = text.clone();
        damaged[random.below(text.len() as u64) as usize] ^= 1 << random.below(7);
        let output = piped(&[&folder.join(n.to_string())], &damaged);
        let said = stderr(&output);
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)) && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn what_was_not_written_to_its_end_leaves_nothing_and_can_be_written_again() {
    let folder = folder("half");
    let (file, tables) = (folder.join("t.json"), folder.join("tables"));
    fs::write(&file, text(&sample("convoy"))).unwrap();
    let files = || walk(&tables).into_iter().filter(|path| path.extension().is_some()).collect::<Vec<_>>();
    fs::create_dir_all(&tables).unwrap();
    fs::write(tables.join("threads"), "").unwrap();
    assert_eq!(run(TO, &[&file, &tables]).status.code(), Some(1));
    assert_eq!(files(), [""; 0].map(Path::new));
    fs::remove_file(tables.join("threads")).unwrap();
    assert_eq!(run(TO, &[&file, &tables]).status.code(), Some(0));
    let all = files();
    // State left by a killed writer: the last table has no name yet.
    fs::remove_file(all.iter().find(|path| path.starts_with(tables.join("traces"))).unwrap()).unwrap();
    assert_eq!(run(TO, &[&file, &tables]).status.code(), Some(0));
    assert_eq!(files(), all);
    assert_eq!(run(FROM, &[&tables]).status.code(), Some(0));
}

/// Returns all files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            all.extend(walk(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}

#[test]
fn a_table_that_is_missing_is_said_and_the_rest_is_used() {
    let folder = folder("missing");
    let (file, tables) = (folder.join("t.json"), folder.join("tables"));
    fs::write(&file, text(&sample("convoy"))).unwrap();
    assert_eq!(run(TO, &[&file, &tables]).status.code(), Some(0));
    fs::remove_dir_all(tables.join("waits")).unwrap();
    let back = run(FROM, &[&tables]);
    assert_eq!(back.status.code(), Some(3));
    assert!(stderr(&back).contains(": the table waits is missing\n"), "{}", stderr(&back));
    assert!(stderr(&back).contains(" rows are there, of "), "{}", stderr(&back));
    assert!(back.stdout.len() > 100_000);
}

#[test]
fn damaged_tables_are_no_panic_and_never_taken_for_whole() {
    let folder = folder("damaged");
    let (file, tables) = (folder.join("t.json"), folder.join("tables"));
    fs::write(&file, text(&sample("convoy"))).unwrap();
    assert_eq!(run(TO, &[&file, &tables]).status.code(), Some(0));
    let whole = run(FROM, &[&tables]).stdout;
    for path in walk(&tables).iter().filter(|path| !path.starts_with(tables.join("threads"))) {
        let bytes = fs::read(path).unwrap();
        for step in 0..12 {
            let mut damaged = bytes.clone();
            let at = (bytes.len() - 1) * step / 11;
            match step % 3 {
                0 => damaged[at] ^= 0x11,
                1 => damaged.truncate(at),
                _ => damaged[at] = !damaged[at],
            }
            fs::write(path, &damaged).unwrap();
            let back = run(FROM, &[&tables]);
            let said = stderr(&back);
            assert!(!said.contains("panicked"), "{} at {at}: {said}", path.display());
            let sound = back.status.code() == Some(0) && back.stdout == whole;
            assert!(sound || matches!(back.status.code(), Some(1 | 3)), "{} at {at}: {said}", path.display());
        }
        fs::write(path, &bytes).unwrap();
    }
}
