// SPDX-License-Identifier: BSD-3-Clause
//! Data tier: what other programs read of a trace, by their own packages from PyPI. Run by `cargo xtask test`.

mod fleet;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use kutrace_parquet::kind;
use kutrace_parquet::write::write;
use kutrace_tests::draw::{drawn, made, sample, Drawn, SAMPLES};
use kutrace_tests::skip::skip;
use kutrace_tests::tree;
use kutrace_tools::draw::draw;
use kutrace_tools::spans::Ordering;
use kutrace_tools::Common;
use postprocess::direct::spans_of_raw;
use postprocess::event::{number, Event, Events};
use postprocess::id::Pid;
use postprocess::sink::otlp;
use postprocess::source::events::read;
use postprocess::span::build;
use postprocess::span::limit::Keep;
use postprocess::span::what::{Arc, What};
use postprocess::span::{Span, Spans};
use postprocess::why::best::offered;
use postprocess::why::request::{find, Ask, Found, Request};
use postprocess::why::Timeline;

/// A Python with the packages of `requirements.txt`; nothing where there is none, or no network.
static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let wanted = tree::root().join("tests/data/requirements.txt");
    let folder = tree::root().join("target/data");
    let (python, made) = (folder.join("bin/python"), folder.join("requirements.txt"));
    let text = fs::read_to_string(&wanted).expect("requirements.txt");
    if fs::read_to_string(&made).is_ok_and(|made| made == text) {
        return Ok(python);
    }
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(said.lines().last().unwrap_or_default().to_string())
    };
    run("python3", &["-m", "venv", "--clear", &folder.to_string_lossy()])?;
    run(
        &python.to_string_lossy(),
        &["-m", "pip", "install", "--quiet", "--retries", "1", "--requirement", &wanted.to_string_lossy()],
    )?;
    fs::write(&made, text).expect("a note of what is installed");
    Ok(python)
});

/// Output of a script of this folder for its input; empty if it cannot run, which is reported.
fn script(name: &str, words: &[&str], input: &[u8]) -> Option<String> {
    bytes(name, words, input).map(|bytes| String::from_utf8(bytes).expect("text"))
}

fn bytes(name: &str, words: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let python = match &*PYTHON {
        Ok(python) => python,
        Err(why) => {
            skip(name, why);
            return None;
        }
    };
    let mut command = Command::new(python);
    command.arg(tree::root().join("tests/data").join(name)).args(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a Python");
    let (mut stdin, input) = (child.stdin.take().expect("a pipe"), input.to_vec());
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("an end");
    feeder.join().expect("a writer").expect("a reader");
    assert!(output.status.success(), "{name}: {}", output.status);
    Some(output.stdout)
}

/// Number of spans of each name, among those selected.
fn counts(spans: &Spans, wanted: impl Fn(&Span) -> bool) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for span in spans.spans.iter().filter(|span| wanted(span)) {
        *counts.entry(spans.names[span.name].clone()).or_default() += 1;
    }
    counts
}

#[test]
fn perfetto_s_own_schema_reads_what_the_spans_say() {
    for name in SAMPLES {
        let spans = sample(name);
        let bytes = drawn(&spans).0;
        let Some(text) = script("decode.py", &[], &bytes) else { return };
        let read: BTreeMap<String, BTreeMap<String, usize>> = serde_json::from_str(&text).expect("counts");
        let none = BTreeMap::new();
        let read = |kind: &str| read.get(kind).unwrap_or(&none);
        assert_eq!(*read("waits"), counts(&spans, |s| matches!(s.what(), What::Wait(_))), "{name}");
        let sum = |wanted: &dyn Fn(&Span) -> bool| counts(&spans, wanted).values().sum::<usize>();
        let arcs = sum(&|s| matches!(s.what(), What::Arc(Arc::Wakeup { .. } | Arc::Ipi { .. })));
        assert_eq!((read("flows")["sent"], read("flows")["arrived"]), (arcs, arcs), "{name}");
        let of = |event: u32| sum(&|s: &Span| s.event() == event as i32);
        assert_eq!(read("ftrace")["sched_waking"], of(number::RUNNABLE), "{name}");
        // By our own decoder: the same slices, each with its end.
        let told = Drawn::perfetto(&bytes);
        let mut slices = BTreeMap::new();
        told.slices.values().flatten().for_each(|slice| *slices.entry(slice.name.clone()).or_default() += 1);
        assert_eq!((read("own"), read("instants")), (&slices, &told.instants), "{name}");
        assert_eq!(read("ends")["own"], slices.values().sum::<usize>(), "{name}");
        assert_eq!(read("ftrace")["sched_switch"], told.states.len(), "{name}");
    }
}

#[test]
fn perfetto_s_own_schema_reads_every_kind_of_what_a_trace_has() {
    let spans = made();
    let Found { asked, requests, .. } = find(&Timeline::new(&spans), &Ask::Best).expect("requests");
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("t.pftrace");
    let mut ordering = Ordering::default();
    let last = Keep::finish(&mut ordering, spans.clone());
    let common = Common { output: Some(to.clone()), quiet: true };
    draw(ordering.finish(last).expect("order"), common.open().expect("a file")).expect("a trace");
    let Some(text) = script("decode.py", &[], &fs::read(to).expect("a trace")) else { return };
    let read: BTreeMap<String, BTreeMap<String, usize>> = serde_json::from_str(&text).expect("counts");
    let of = |number: u32| move |s: &Span| s.event() == number as i32;
    let total = |counts: BTreeMap<String, usize>| counts.values().sum::<usize>();
    let is_part = |s: &Span| of(number::PROGRAM_BEGIN)(s) || of(number::PROGRAM_ASYNC_BEGIN)(s);
    let is_sample = |s: &Span| of(number::PC_USER)(s) || of(number::PC_KERNEL)(s);
    // What lasts and is not a part is a message, or the time of an RPC in a queue.
    let is_message = |s: &Span| {
        let lasts = s.dur.0 > 1 && !is_part(s) && !is_sample(s) && !of(number::FREQUENCY)(s);
        lasts && matches!(s.what(), What::Point(_))
    };
    let apart = [number::RUNNABLE, number::MWAIT, number::FREQUENCY, number::PROGRAM_VALUE];
    let is_instant = |s: &Span| {
        matches!(s.what(), What::Point(_)) && !is_part(s) && !is_message(s) && !apart.iter().any(|&n| of(n)(s))
    };
    let expected = BTreeMap::from([
        ("waits", counts(&spans, |s| matches!(s.what(), What::Wait(_)))),
        ("locks", counts(&spans, |s| matches!(s.what(), What::Lock(_)))),
        ("parts", counts(&spans, is_part)),
        ("messages", counts(&spans, is_message)),
        ("instants", counts(&spans, is_instant)),
        ("requests", BTreeMap::from([(asked, requests.len())])),
    ]);
    for (kind, expected) in expected {
        assert!(total(expected.clone()) > 0, "{kind}");
        assert_eq!(read[kind], expected, "{kind}");
    }
    for (event, number) in [("cpu_frequency", number::FREQUENCY), ("sched_waking", number::RUNNABLE)] {
        let expected = total(counts(&spans, of(number)));
        assert_eq!((read["ftrace"][event], expected > 0), (expected, true), "{event}");
    }
    let values = counts(&spans, of(number::PROGRAM_VALUE));
    assert!(total(values.clone()) > 0);
    for (name, count) in values {
        assert_eq!(read["counters"][&name], count, "{name}");
    }
    // Each low-power state has an end.
    assert_eq!(read["ftrace"]["cpu_idle"], 2 * total(counts(&spans, of(number::MWAIT))));
    let arcs = total(counts(&spans, |s| matches!(s.what(), What::Arc(Arc::Wakeup { .. } | Arc::Ipi { .. }))));
    assert_eq!((read["flows"]["sent"], read["flows"]["arrived"], arcs > 1), (arcs, arcs, true));
    for cpu in 0..2 {
        let own = spans.spans.iter().filter(|s| s.is_execution() && s.cpu.is_some_and(|c| c.number() == cpu));
        let steps = own.map(|s| s.ipc & 15).collect::<Vec<_>>().chunk_by(|a, b| a == b).count();
        assert!(steps > 3, "{cpu}");
        assert_eq!(read["counters"][&format!("CPU {cpu} instructions per cycle")], steps, "{cpu}");
    }
}

#[test]
fn opentelemetry_s_own_schema_reads_the_requests_with_their_calls_and_waits() {
    for name in ["redis", "disk", "pipeline"] {
        let spans = sample(name);
        let timeline = Timeline::new(&spans);
        let Found { asked, requests, .. } = find(&timeline, &Ask::Best).expect("requests");
        let mut lines = Vec::new();
        let written = otlp::write(&timeline, &asked, &requests, &mut lines).expect("memory");
        let Some(text) = script("otlp.py", &[], &lines) else { return };
        type Read = (BTreeMap<String, (usize, i64)>, Vec<(String, String)>);
        let (counts, hosts): Read = serde_json::from_str(&text).expect("counts");
        let ns = requests.iter().map(|request| request.dur().0 * 10).sum();
        assert_eq!(counts["request"], (requests.len(), ns), "{name}");
        assert_eq!(counts.values().map(|(n, _)| n).sum::<usize>(), written.spans, "{name}");
        let within = |s: &&Span, r: &Request| s.pid == Some(r.pid) && (r.start..r.end).contains(&s.start);
        let waits = spans.spans.iter().filter(|s| matches!(s.what(), What::Wait(_)));
        let waits: usize = waits.map(|s| requests.iter().filter(|r| within(&s, r)).count()).sum();
        assert_eq!((counts["wait"].0, waits > 5), (waits, true), "{name}");
        assert!(counts["call"].0 > 5 && hosts.iter().all(|(host, _)| *host == spans.meta.host), "{name}: {hosts:?}");
    }
}

/// Hosts with names that are alike, in order.
const ALIKE: [&str; 5] = ["a b", "a%20b", "a/b", "a_b", "é=1:2"];

/// The tables of a trace of each of these.
fn alike() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, randomid) in ALIKE.into_iter().zip(1..) {
        let mut spans = made();
        (spans.meta.host, spans.meta.randomid) = (name.to_string(), randomid);
        let mut ordering = Ordering::default();
        let last = Keep::finish(&mut ordering, spans);
        write(ordering.finish(last).expect("order"), folder.path(), None).expect("tables");
    }
    folder
}

#[test]
fn hosts_whose_names_are_alike_stay_apart() {
    let folder = alike();
    for table in ["spans", "traces"] {
        let sql = format!("select distinct host from {table} order by host collate c");
        let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes()) else { return };
        let rows: Vec<(String,)> = serde_json::from_str(&text).expect("rows");
        assert_eq!(rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ALIKE, "{table}");
    }
}

#[test]
fn what_perfetto_s_own_schema_writes_is_read_as_the_text_it_was_made_of() {
    let mut text = Vec::new();
    let packed = fs::File::open(tree::root().join("tests/golden/others/load.trace-cmd.gz")).expect("a recording");
    GzDecoder::new(packed).read_to_end(&mut text).expect("its text");
    let Some(trace) = bytes("encode.py", &[], &text) else { return };
    let happened = |events: &Events| -> Vec<(i64, u32, u32, Pid, u32, i32, String)> {
        let event = |e: &Event| {
            let name = events.names.text(e.name).to_string();
            (e.ts.0, e.cpu.number(), e.event(), e.pid, e.arg, e.ret, name)
        };
        let mut all: Vec<_> = events.events.iter().filter(|e| e.what.is_event()).map(event).collect();
        // Events of the same time have an order only within a CPU.
        all.sort_by_key(|e| (e.0, e.1));
        all
    };
    let (told, read) = (read(&text[..]).expect("text"), read(&trace[..]).expect("a trace"));
    assert!(told.events.len() > 5_000 && read.meta.quality.is_empty(), "{:?}", read.meta.quality);
    let (expected, found) = (happened(&told), happened(&read));
    let differ = expected.iter().zip(&found).find(|(a, b)| a != b);
    assert_eq!((differ, expected.len()), (None, found.len()));
    assert_eq!(told.meta.unseen(), read.meta.unseen());
    let (spans, _) = build(read);
    assert_eq!((&*spans.meta.host, &*spans.meta.kernel), ("box", "6.1.0"));
}

/// The tables of a sample, in a folder that is new.
fn tables(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    add(name, folder.path());
    folder
}

/// Adds a sample to a folder of tables.
fn add(name: &str, folder: &Path) {
    let mut ordering = Ordering::default();
    let raw = fs::read(tree::root().join("samples").join(name).with_extension("trace")).expect(name);
    let (last, _) = spans_of_raw(&raw, &mut ordering).expect(name);
    write(ordering.finish(last).expect(name), folder, None).expect("tables");
}

#[test]
fn duckdb_reads_as_much_of_each_kind_as_the_spans_have() {
    for name in SAMPLES {
        let (spans, folder) = (sample(name), tables(name));
        let mut expected: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
        for span in &spans.spans {
            let (table, kind) = kind::of(span.what());
            let (rows, ns) = expected.entry((table.folder(), kind)).or_default();
            (*rows, *ns) = (*rows + 1, *ns + span.dur.0 * 10);
        }
        let part = |table: &str| {
            format!("select '{table}', kind, count(*), sum(dur_ns)::bigint, min(host) from {table} group by kind")
        };
        let sql = ["spans", "waits", "arcs", "points"].map(part).join(" union all ");
        let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes()) else { return };
        let rows: Vec<(String, String, i64, i64, String)> = serde_json::from_str(&text).expect("rows");
        assert!(rows.iter().all(|row| row.4 == spans.meta.host), "{name}");
        let read: BTreeMap<_, _> = rows.iter().map(|r| ((r.0.as_str(), r.1.as_str()), (r.2, r.3))).collect();
        assert_eq!(read, expected, "{name}");
    }
}

#[test]
fn what_a_cpu_did_adds_up_to_its_time_as_its_spans_do() {
    for name in SAMPLES {
        let sql = "select count(*), count(s.cpu),
                count(*) filter (busy_ns + idle_ns + stalled_ns + offline_ns + lost_ns <> end_ns - start_ns),
                count(*) filter (idle_ns <> s.idle or start_ns <> first_ns or end_ns <> last_ns or machine = '')
            from cpus full join (
                select trace, cpu, coalesce(sum(dur_ns) filter (kind in ('idle', 'idle_exit')), 0) as idle,
                    min(start_ns) as first_ns, max(start_ns + dur_ns) as last_ns
                from spans group by all) s using (trace, cpu)";
        let folder = tables(name);
        let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes()) else { return };
        let rows: Vec<(usize, usize, usize, usize)> = serde_json::from_str(&text).expect("rows");
        let cpus = sample(name).spans.iter().filter_map(|s| s.cpu).collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(rows, [(cpus, cpus, 0, 0)], "{name}");
    }
}

#[test]
fn the_causes_of_each_request_add_up_to_its_time() {
    let mut all = 0;
    for name in SAMPLES {
        let spans = sample(name);
        let timeline = Timeline::new(&spans);
        let Ok((ask, Found { asked, requests, .. })) = offered(&timeline) else { continue };
        if matches!(ask, Ask::Range(_)) {
            continue;
        }
        let sql = "select what, count(*), sum(dur_ns)::bigint, count(*) filter (dur_ns <> known)
            from (select any_value(r.what) as what, r.dur_ns, sum(c.dur_ns) as known
                from requests r join causes c using (trace, request) group by r.trace, r.request, r.dur_ns)
            group by what";
        let folder = tables(name);
        let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes()) else { return };
        let rows: Vec<(String, usize, i64, usize)> = serde_json::from_str(&text).expect("rows");
        let ns = requests.iter().map(|request| request.dur().0 * 10).sum();
        assert_eq!(rows, [(asked, requests.len(), ns, 0)], "{name}");
        all += requests.len();
    }
    assert!(all > 250, "{all}");
}

#[test]
fn the_tables_say_who_threads_and_traces_are() {
    for name in SAMPLES {
        let raw = fs::read(tree::root().join("samples").join(name).with_extension("trace")).expect(name);
        let mut ordering = Ordering::default();
        let (mut last, _) = spans_of_raw(&raw, &mut ordering).expect(name);
        last.meta.cgroups.extend((2..1000).step_by(2).map(|pid| (pid, format!("/system.slice/a\"é{pid}.service"))));
        let (meta, folder) = (last.meta.clone(), tempfile::tempdir().expect("a folder"));
        write(ordering.finish(last).expect(name), folder.path(), None).expect("tables");
        let sql = "select t.pid, t.tgid, t.cgroup, r.boot_id, r.monotonic_base_ns, r.source
            from threads t join traces r using (trace) order by t.pid";
        let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes()) else { return };
        type Row = (u32, u32, Option<String>, String, Option<i64>, String);
        let rows: Vec<Row> = serde_json::from_str(&text).expect("rows");
        for (pid, tgid, cgroup, boot_id, monotonic, source) in &rows {
            let pid = Pid::new(*pid);
            assert_eq!((*tgid, cgroup.as_deref()), (meta.process_of(pid).number(), meta.cgroup_of(pid)), "{name}");
            assert_eq!((boot_id, monotonic, &**source), (&meta.boot_id, &meta.monotonic, "hooks"), "{name}");
        }
        assert!(rows.iter().any(|row| row.2.is_some()) && rows.iter().any(|row| row.2.is_none()), "{name}");
        assert!(rows.len() > 4 && meta.boot_id.len() == 36 && meta.monotonic.is_some(), "{name}: {meta:?}");
    }
}

/// The queries of docs/data.md, each with its answer.
fn examples() -> Vec<(String, String)> {
    let docs = fs::read_to_string(tree::root().join("docs/data.md")).expect("docs");
    let example = |part: &str| {
        let mut fenced = part.split("```\n");
        let (sql, answer) = (fenced.next().expect("a query"), fenced.nth(1).expect("an answer"));
        (sql.to_string(), answer.to_string())
    };
    let examples: Vec<_> = docs.split("```sql\n").skip(1).map(example).collect();
    assert_eq!(examples.len(), 14);
    examples
}

#[test]
fn duckdb_gives_the_answers_of_the_docs() {
    let folder = tables("redis");
    let asked = |sql: &str| -> Option<Vec<Vec<serde_json::Value>>> {
        let text = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes())?;
        Some(serde_json::from_str(&text).expect("rows"))
    };
    for (sql, answer) in examples() {
        let Some((columns, rows)) = asked(&format!("describe {sql}")).zip(asked(&sql)) else { return };
        let word = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // The docs' columns are aligned.
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = |row: &Vec<serde_json::Value>| row.iter().map(word).collect::<Vec<_>>().join(" ");
        let head = columns.iter().map(|column| word(&column[0])).collect::<Vec<_>>().join(" ");
        let found: Vec<_> = std::iter::once(head).chain(rows.iter().map(line)).collect();
        assert_eq!(found, answer.lines().map(squeezed).collect::<Vec<_>>(), "{sql}");
    }
}
