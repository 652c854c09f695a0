// SPDX-License-Identifier: BSD-3-Clause
//! Converters from other recorders and to other viewers: a file and standard input give the same result, damage is
//! reported and changes the status, and no input causes a panic.

use std::fs;
use std::path::Path;

use kutrace_format::file::NameKind;
use kutrace_tests::draw::Drawn;
use kutrace_tests::{busy, Random, TraceBuilder};
use postprocess::machine::file::{self, Machine};
use postprocess::machine::shift::Shift;
use postprocess::time::Time;

use super::*;

/// Tools that write formats of other viewers to standard output.
const OUT: [&str; 2] = [SPANTOPERFETTO, SPANTOOTLP];

/// Input of a tool, and the same with damage in it.
struct Recording {
    tool: &'static str,
    whole: Vec<u8>,
    damaged: Vec<u8>,
}

/// Returns calls of a thread, one line per edge; if `is_damaged`, a nonsense line replaces one of them.
fn calls(line: impl Fn(usize, &str) -> String, is_damaged: bool) -> Vec<u8> {
    let edge = |n: usize| match n % 2 {
        _ if is_damaged && n == 500 => "nonsense\n".to_string(),
        0 => line(n, "sys_enter: NR 0 (3, 0, 0, 0, 0, 0)"),
        _ => line(n, "sys_exit: NR 0 = 1"),
    };
    (0..1_000).map(edge).collect::<String>().into_bytes()
}

fn recordings() -> [Recording; 3] {
    let ftrace = |n: usize, event: &str| format!("  a-7   [000] d..2.  1.{n:06}: {event}\n");
    let perf = |n: usize, event: &str| format!("  a     7 [000]  1.{:09}: raw_syscalls:{event}\n", n * 1_000);
    let perfetto = run(SPANTOPERFETTO, &["--quiet"], &json(&busy(2, 2_000, 4))).stdout;
    let cut = perfetto[..perfetto.len() - 7].to_vec();
    [
        Recording { tool: FTRACETOSPAN, whole: calls(ftrace, false), damaged: calls(ftrace, true) },
        Recording { tool: PERFTOSPAN, whole: calls(perf, false), damaged: calls(perf, true) },
        Recording { tool: PERFETTOTOSPAN, whole: perfetto, damaged: cut },
    ]
}

/// Changes some bytes, or cuts the end off.
fn changed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let mut at = || random.below(bytes.len() as u64) as usize;
    let (first, second, cut) = (at(), at(), at());
    changed[first] ^= 1 << (second % 8);
    changed[second] = b"\0\xff\n9-\" "[first % 7];
    if cut % 3 == 0 {
        changed.truncate(cut);
    }
    changed
}

#[test]
fn a_recording_of_others_is_read_from_a_file_or_standard_input_and_damage_is_said() {
    for Recording { tool, whole, damaged } in recordings() {
        let file = temporary(&format!("whole.{}", Path::new(tool).file_name().unwrap().display()), &whole);
        let file = file.to_str().unwrap();
        let piped = run(tool, &["--check"], &whole);
        assert_eq!(code(&piped), 0, "{tool}: {}", stderr(&piped));
        assert!(piped.stdout.len() > 10_000);
        for words in [&[file][..], &["--input", file]] {
            assert!(run(tool, words, b"").stdout == piped.stdout, "{tool} {words:?}");
        }
        assert!(run(tool, &["--binary"], &whole).stdout.starts_with(b"KUspans2"), "{tool}");
        let made = run(tool, &["--quiet"], &damaged);
        assert_eq!((code(&made), stderr(&made).lines().count()), (3, 1), "{tool}: {}", stderr(&made));
        assert!(stderr(&made).contains(": stdin: "), "{}", stderr(&made));
        assert_eq!(code(&run(SPANTOHTML, &[], &made.stdout)), 3, "{tool}: the damage is passed on");
        let none = run(tool, &[], b"");
        assert_eq!((code(&none), none.stdout.len(), stderr(&none).lines().count()), (1, 0, 1), "{tool}");
        assert!(stderr(&none).ends_with(": stdin: no events\n"), "{}", stderr(&none));
        let mut random = Random(23);
        for _ in 0..20 {
            let output = run(tool, &["--check"], &changed(&whole, &mut random));
            let said = stderr(&output);
            assert!(matches!(code(&output), 0 | 1 | 3) && !said.contains("panicked"), "{tool}: {said}");
            assert!(!said.contains("do not cover"), "{tool}: {said}");
        }
    }
}

#[test]
fn what_others_read_is_made_of_a_file_or_standard_input_and_damage_is_said() {
    let sample = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/pipeline.trace")).unwrap();
    let events = run(RAWTOEVENT, &[], &sample).stdout;
    let (text, frames) = (run(EVENTTOSPAN, &[], &events).stdout, run(EVENTTOSPAN, &["--binary"], &events).stdout);
    let file = temporary("converters.json", &text);
    for tool in OUT {
        let piped = run(tool, &["--quiet"], &text);
        assert_eq!((code(&piped), stderr(&piped).as_str()), (0, ""), "{tool}");
        assert!(piped.stdout.len() > 10_000);
        assert!(run(tool, &[file.to_str().unwrap()], b"").stdout == piped.stdout, "{tool}");
        let framed = run(tool, &[], &frames).stdout;
        // Names have other numbers in frames.
        let same = tool == SPANTOPERFETTO && Drawn::perfetto(&framed) == Drawn::perfetto(&piped.stdout);
        assert!(same || framed == piped.stdout, "{tool}");
        let cut = run(tool, &["--quiet"], &text[..text.len() - 60]);
        assert_eq!((code(&cut), cut.stdout.len() > 10_000), (3, true), "{tool}: {}", stderr(&cut));
        assert!(stderr(&cut).ends_with(": stdin: the JSON ends before its end mark\n"), "{}", stderr(&cut));
        let none = run(tool, &[], b"no json\n");
        assert_eq!((code(&none), none.stdout.len()), (1, 0), "{tool}: {}", stderr(&none));
        let mut random = Random(29);
        for input in [&text, &frames] {
            for _ in 0..10 {
                let output = run(tool, &[], &changed(input, &mut random));
                let said = stderr(&output);
                assert!(matches!(code(&output), 0 | 1 | 3) && !said.contains("panicked"), "{tool}: {said}");
            }
        }
    }
}

#[test]
fn of_whom_a_thread_is_is_said_to_be_left_out() {
    let mut trace = TraceBuilder::new(1, 3_000);
    trace.name(NameKind::Cgroup, 100, "/system.slice/web.service");
    trace.cpu(0).switch(100, 100, "a").call(200, 0, 5).small_return(300, 1);
    let alone = trace.bytes();
    let machine =
        |name: &str| Machine { name: name.to_string(), shift: Shift::by(Time::ZERO, None), ..Machine::default() };
    let mut both = Vec::new();
    file::write(&[(machine("a"), &alone[..]), (machine("b"), &alone[..])], &mut both).unwrap();
    let spans = |raw: &[u8]| run(EVENTTOSPAN, &[], &run(RAWTOEVENT, &[], raw).stdout).stdout;
    for (raw, several) in [(&alone, false), (&both, true)] {
        let spans = spans(raw);
        let said = stderr(&run(SPANTOPERFETTO, &[], &spans));
        assert!(said.contains(": control groups are omitted\n"), "{said}");
        assert_eq!(said.contains(": the machine of each thread is omitted\n"), several, "{said}");
    }
}
