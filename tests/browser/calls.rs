// SPDX-License-Identifier: BSD-3-Clause
//! Compares the page's report of system calls with the event text; also pages that are cut or damaged.

use std::fs;
use std::path::{Path, PathBuf};

use kutrace_format::abi::event::{line, IRQ, SYSCALL, SYSCALL32, SYSCALL_RETURN};
use kutrace_format::abi::word::Call as Word;
use kutrace_format::file::NameKind;
use kutrace_tests::calls::{contradictions, is_call, Call, Said};
use kutrace_tests::chromium::run;
use kutrace_tests::number::{idle, of_thread, on_cpu};
use kutrace_tests::TraceBuilder;
use postprocess::event::names::NameId;
use postprocess::event::number::{user, USER};
use postprocess::event::write::Writer;
use postprocess::id::{CpuId, Pid};
use postprocess::sink::page;
use postprocess::source;
use postprocess::span::what::{Arc, What};
use postprocess::span::{build, Span, Spans, NONE};
use postprocess::time::Time;
use serde_json::{json, Value};

use crate::drive::run_on;
use crate::spans::{workload, Made};

const ERRORS: &str = include_str!("../../postprocess/src/tables/errno.txt");

/// Calls of the traces here whose first argument is an address.
const TAKE_ADDRESSES: &str =
    "access brk chdir chmod clone3 execve futex getcwd getrandom lstat madvise memfd_create mkdir mmap mmap2 \
    mprotect mremap munmap nanosleep open pipe pipe2 poll ppoll readlink rename rseq rt_sigsuspend \
    set_robust_list set_tid_address sigaltstack stat statfs sysinfo uname unlink";

/// A call as the page is to show it.
fn shown(call: &Call, returned: bool) -> String {
    let name = &call.name;
    let takes_address = TAKE_ADDRESSES.split_whitespace().any(|call| call == name);
    let folder = name.ends_with("at") || ["openat2", "renameat2", "faccessat2", "statx"].contains(&name.as_str());
    let arg = match call.arg {
        Some(65_436) if folder => "AT_FDCWD".to_string(),
        Some(arg) if takes_address => format!("0x...{arg:04x}"),
        arg => arg.map_or(String::new(), |arg| arg.to_string()),
    };
    let end = match call.ret.filter(|_| returned) {
        None if name.starts_with("exit") => String::new(),
        None => "...".to_string(),
        Some(value) => format!("={}", value_text(name, value, call.event >= line::SYSCALL32)),
    };
    format!("{name}({arg}){end}")
}

fn value_text(name: &str, value: i64, of_32: bool) -> String {
    let address = ["mmap", "mmap2", "mremap", "brk", "shmat", "rt_sigreturn"].contains(&name);
    let low = value as u32;
    match value {
        -4095..0 if name != "brk" => error(-value),
        _ if address && of_32 => format!("{low:#x}"),
        _ if of_32 => low.to_string(),
        _ if address || value < 0 || name == "lseek" && value > 127 => format!("0x...{low:08x}"),
        _ => value.to_string(),
    }
}

fn error(number: i64) -> String {
    let named = ERRORS.lines().find_map(|line| line.strip_prefix(&format!("{number} ")));
    match (named, number) {
        (Some(name), _) => name.to_string(),
        (_, 512) => "ERESTARTSYS".to_string(),
        (_, 514) => "ERESTARTNOHAND".to_string(),
        (_, 516) => "ERESTART_RESTARTBLOCK".to_string(),
        _ => format!("-{number}"),
    }
}

/// Asserts that the page of a raw trace reports its calls like the event text; returns its report.
fn assert_page_says_what_happened(bytes: &[u8], what: &str) -> Vec<String> {
    let events = source::decode(bytes).unwrap();
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    events.events.iter().for_each(|e| writer.event(e, &events.names).unwrap());
    writer.finish(&events.meta).unwrap();
    let answer = run_on("calls", &build(events).0, &json!({}));
    let number = |value: &Value| value.as_i64().unwrap();
    let calls = answer.as_array().unwrap().iter().filter(|s| is_call(number(&s[3]) as u32));
    let said: Vec<Said> = calls
        .map(|s| Said {
            start: number(&s[0]),
            end: number(&s[0]) + number(&s[1]),
            pid: number(&s[2]),
            event: number(&s[3]) as u32,
            text: s[4].as_str().unwrap().to_string(),
        })
        .collect();
    assert!(!said.is_empty());
    let found = contradictions(&String::from_utf8(text).unwrap(), &said, shown);
    assert!(found.is_empty(), "{what}: {}, such as\n{}", found.len(), found[..found.len().min(9)].join("\n"));
    said.into_iter().map(|s| s.text).collect()
}

#[test]
fn the_page_says_of_every_call_what_the_events_do() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let demo = std::env::var_os("KUTRACE_DEMO").map_or(here.join("../target/demo"), PathBuf::from).join("t.trace");
    let samples = fs::read_dir(here.join("../samples")).unwrap().map(|entry| entry.unwrap().path());
    let is_raw =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "trace" || ending == "raw") && path.exists();
    // The demo's has most kinds of events; those of single purposes are looked at by night.
    let is_asked = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        cfg!(feature = "night") || ["t", "faults", "postgres"].iter().any(|name| stem == *name)
    };
    for path in samples.chain([demo]).filter(is_raw).filter(is_asked) {
        assert_page_says_what_happened(&fs::read(&path).unwrap(), &path.display().to_string());
    }
}

#[test]
fn values_are_shown_as_far_as_they_are_known() {
    let mut trace = TraceBuilder::new(1, 1000);
    for (number, name) in
        [(0, "read"), (8, "lseek"), (9, "mmap"), (12, "brk"), (34, "pause"), (231, "exit_group"), (257, "openat")]
    {
        trace.name(NameKind::Syscall, number, name);
    }
    trace.name(NameKind::Syscall32, 192, "mmap2");
    trace.name(NameKind::Errno, 2, "ENOENT");
    trace.name(NameKind::Errno, 11, "EAGAIN");
    let cpu = trace.cpu(0).running(7, "a", Some(232));
    cpu.small_return(50, 3);
    let mut at = 100;
    for (nr, arg, value) in [
        (0, 3, 65_536),
        (0, 3, 65_534),
        (0, 3, -11),
        (0, 3, -512),
        (34, 0, -514),
        (0, 3, -524),
        (9, 0, 0x7654_3000),
        (9, 0, 0xfff0_0000_u32 as i32),
        (9, 0, -2),
        (12, 0, -100),
        (8, 3, 4096),
        (8, 3, 0),
        (257, 65_436, -2),
        (0, 3, -5000),
    ] {
        cpu.call(at, nr, arg).entry(at + 10, SYSCALL_RETURN + nr, &[value as u32]);
        at += 40;
    }
    let open: u32 = Word::open(0);
    cpu.entry(at, SYSCALL32 + 192, &[open]).entry(at + 10, kutrace_format::abi::event::OPEN_RETURN, &[0xf7d0_1000]);
    cpu.call(at + 40, 231, 0).switch(at + 60, 8, "b");
    let said = assert_page_says_what_happened(&trace.bytes(), "made");
    let expected = [
        "sys#232()=3",
        "read(3)=65536",
        "read(3)=65534",
        "read(3)=EAGAIN",
        "read(3)=ERESTARTSYS",
        "pause(0)=ERESTARTNOHAND",
        "read(3)=-524",
        "mmap(0x...0000)=0x...76543000",
        "mmap(0x...0000)=0x...fff00000",
        "mmap(0x...0000)=ENOENT",
        "brk(0x...0000)=0x...ffffff9c",
        "lseek(3)=0x...00001000",
        "lseek(3)=0",
        "openat(AT_FDCWD)=ENOENT",
        "read(3)=0x...ffffec78",
        "mmap2(0x...0000)=0xf7d01000",
        "exit_group(0)",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_return_that_was_not_is_nowhere_in_panel_table_file_and_search() {
    let call = Span { pid: of_thread(7), what: What::of(SYSCALL as i32 + 1), arg: 16, ..idle() };
    let spans = [
        Span { start: Time::ZERO, dur: Time(400), ret: NONE, ..call },
        Span {
            start: Time(400),
            dur: Time(200),
            what: What::of(IRQ as i32 + 0xec),
            ..Span { pid: of_thread(7), ..idle() }
        },
        Span { start: Time(600), dur: Time(400), ret: 9, name: NameId::EMPTY, ..call },
        Span { start: Time(1000), dur: Time(500), arg: NONE, ret: 3, ..call },
    ];
    let mut all =
        Spans { names: vec!["write".into(), "local_timer".into()], spans: spans.to_vec(), ..Spans::default() };
    all.spans[1].name = NameId(1);
    all.meta.value_bits = 32;
    run_on("returns", &all, &json!({}));
}

#[test]
fn calls_are_counted_selected_and_summed_up_as_wholes() {
    let mut made = Made::default();
    made.0.meta.flags = 0xa0;
    made.row((0, 0, USER, 0, 500, "-idle-"));
    made.row((1, 6, user(Pid::new(6)), 0, 680, "b.6"));
    made.row((1, 6, user(Pid::new(6)), 700, 1300, "b.6"));
    made.row((0, 5, user(Pid::new(5)), 500, 100, "a.5"));
    for (start, dur, cpu, ret, ipc) in [(600, 5, 0, NONE, 0b1001), (610, 5, 0, NONE, 0), (680, 20, 1, 7, 0b1011)] {
        let what = What::of(SYSCALL as i32);
        let (start, dur) = (Time(start), Time(dur));
        made.add(Span { cpu: on_cpu(cpu), pid: of_thread(5), what, start, dur, arg: 3, ret, ipc, ..idle() }, "read");
    }
    made.row((0, 5, u32::from(IRQ) + 0xec, 605, 5, "timer"));
    let arc = What::Arc(Arc::Wakeup { to: CpuId::new(0), woken: Pid::new(5) });
    made.add(
        Span { cpu: on_cpu(1), pid: of_thread(6), what: arc, start: Time(40), dur: Time(460), ..idle() },
        "-wakeup-",
    );
    run_on("things", &made.done(), &json!({}));
}

#[test]
fn what_led_to_a_wait_has_its_time_after_it_with_one_sign() {
    run_on("signs", &workload(60), &json!({}));
}

/// The places and texts of the scripts of a page's program, and of its style.
fn checked_elements(page: &str) -> Vec<(usize, &str)> {
    let starts = ["<script data-crc32=\"", "<style data-crc32=\""].into_iter().flat_map(|tag| page.match_indices(tag));
    let found: Vec<_> = starts
        .map(|(at, _)| {
            let from = at + page[at..].find('>').unwrap() + 1;
            (from, page[from..].split("</s").next().unwrap())
        })
        .collect();
    assert!(found.len() > 80, "{} scripts have a checksum", found.len());
    found
}

/// Cut anywhere, and each kind of damage: a sentence, never a page without a word, nor one with other spans.
#[test]
fn a_page_that_is_cut_or_damaged_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("t.html");
    page::render(&workload(60), &mut fs::File::create(&page).unwrap()).unwrap();
    let whole = fs::read_to_string(&page).unwrap();
    let at = |text: &str| whole.find(text).unwrap_or_else(|| panic!("no {text}"));
    let [meta, program, data, added] =
        ["id=\"ku-meta\"", "sourceURL=data/rows.js", "class=\"ku-data\">", "id=\"ku-added\""].map(at);
    let mut broken: Vec<(String, Vec<u8>)> = Vec::new();
    for cut in
        [at("<body>"), at("<header>"), meta, meta + 400, program, data - 20, data + 100, (data + added) / 2, added - 40]
    {
        broken.push((format!("cut at {cut}"), whole.as_bytes()[..cut].to_vec()));
    }
    let changes = [meta + 60, meta + 500, data + 40, (data + added) / 2, added + 30];
    for at in changes {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] ^= 1;
        broken.push((format!("changed at {at}"), bytes));
    }
    // All are checked in the same way, and each takes half a second: at night every one.
    let step = if cfg!(feature = "night") { 1 } else { 11 };
    for (place, element) in checked_elements(&whole).into_iter().step_by(step) {
        let digit = place + element.rfind(|c: char| c.is_ascii_digit()).expect("each script has its licence");
        let mut bytes = whole.clone().into_bytes();
        bytes[digit] ^= 1;
        broken.push((format!("another digit at {digit}, in ...{}", &whole[place + element.len() - 24..][..24]), bytes));
    }
    broken.push(("a program that is none".into(), whole.replace("class Chains {", "class Chains [").into_bytes()));
    for (k, (_, bytes)) in broken.iter().enumerate() {
        fs::write(folder.path().join(format!("broken{k}.html")), bytes).unwrap();
    }
    let whats: Vec<&str> = broken.iter().map(|(what, _)| what.as_str()).collect();
    run("broken", &page, &json!({ "folder": folder.path(), "broken": whats }));
}
