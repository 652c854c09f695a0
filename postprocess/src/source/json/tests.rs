// SPDX-License-Identifier: BSD-3-Clause
//! Written spans read back in whatever form they come, and missing or impossible content is reported.

use super::*;
use crate::event::number::{CALLOUT, SYSCALL};
use crate::id::{CpuId, Pid};
use crate::sink::json::{write, LINE};
use crate::span::what::What;
use crate::time::Time;

#[test]
fn what_is_written_reads_back_the_same() {
    let (cpu, pid) = (Some(CpuId::new(3)), Some(Pid::new(4_194_303)));
    let span = Span {
        start: Time(-1),
        dur: Time(123),
        cpu,
        pid,
        what: What::of(SYSCALL as i32 + 4),
        arg: 65_535,
        ..Span::default()
    };
    let long = Span {
        start: Time(1_000 * Time::SECOND.0 + 7),
        dur: Time(90_000_000_000),
        name: NameId(1),
        ret: 65_500,
        ..span
    };
    let meta = Meta {
        title: "a \"b\" </script>".into(),
        mbit_sec: 1000,
        lost: 9,
        quality: vec!["cut".into()],
        boot_id: "00010203-0405-0607-0809-0a0b0c0d0e0f".into(),
        monotonic: Some(-5),
        recorder: "perf".into(),
        added: serde_json::json!({ "notes": [{ "text": "it's </script>\n" }] }),
        ..Meta::default()
    };
    let (span, long) = (Span { name: NameId(1), ..span }, Span { name: NameId(2), ..long });
    let spans = Spans { meta, names: vec!["".into(), "x\\'".into(), "é".into()], spans: vec![span, long] };
    let mut text = Vec::new();
    write(&spans, &mut text).unwrap();
    assert_eq!(read(&mut &text[..]).unwrap(), spans);
}

/// An export of the original's viewer: everything before the events in one line, views after them.
const EXPORTED: &str = concat!(
    "  {  \"Comment\" : \"V2 with IPC field\",  \"flags\" : 131,  \"mbit_sec\" : 100,  \"title\" : \"t, {x}\",  \"version\" : 3, ",
    "\"events\" : [ [ 49.41830734, 0.00000001, 0, 8292, 0, 526, 0, 0, 0, \"bash.8292\"],\n",
    "[ 49.41895135, 0.00000545, 0, 8287, 0, 73823, 0, 0, 5, \"a]b,.8287\"],\n[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n],\n",
    "\"extra\" : [\n[ 49.41895135, 0.00000545, 0, 8287, 0, -4, 60, -2, 0, \"look here\"]\n],\n",
    "\"savedview\" : [\n  [\"&#x21d0;\", {\"rangeX\":1396,\"xleft_ts\":49.4,\"grouplength\":[4,54,0,0],\"search_text\":\"\"}],\n",
    "  [\"&#x2780;\", {\"xleft_ts\":50.08196468481376,\"rowToHilite\":[0]}]\n]}\n\n",
);

#[test]
fn callouts_and_views_of_the_original_are_read_and_written_again() {
    let spans = read(&mut EXPORTED.as_bytes()).unwrap();
    let meta = &spans.meta;
    assert_eq!((meta.flags, meta.mbit_sec, meta.title.as_str()), (131, 100, "t, {x}"));
    assert_eq!(meta.quality, Vec::<String>::new());
    assert_eq!(spans.spans.iter().map(|s| s.event()).collect::<Vec<_>>(), [526, 73823, CALLOUT]);
    assert_eq!((spans.spans[2].arg, spans.spans[2].ret), (60, -2));
    assert_eq!(meta.saved_views.iter().map(|v| v.0.as_str()).collect::<Vec<_>>(), ["&#x21d0;", "&#x2780;"]);
    assert_eq!(meta.saved_views[1].1["xleft_ts"], 50.08196468481376);
    let mut text = Vec::new();
    write(&spans, &mut text).unwrap();
    assert_eq!(read(&mut &text[..]).unwrap(), spans);
    serde_json::from_slice::<Value>(&text).unwrap();
    let one_line = String::from_utf8(text).unwrap().replace('\n', " ");
    assert_eq!(read(&mut one_line.as_bytes()).unwrap(), spans);
}

#[test]
fn no_apostrophe_ends_the_script_that_the_original_puts_the_json_into() {
    let meta = Meta { title: "it's".into(), ..Meta::default() };
    let spans = Spans {
        meta,
        names: vec!["".into(), "x';alert(1)//".into()],
        spans: vec![Span { name: NameId(1), ..Span::default() }],
    };
    let mut text = Vec::new();
    write(&spans, &mut text).unwrap();
    assert!(!text.contains(&b'\''));
    let again = read(&mut &text[..]).unwrap();
    assert_eq!((again.names, again.meta.title), (spans.names, spans.meta.title));
}

#[test]
fn a_span_reads_the_same_in_any_form() {
    for (line, exact) in [
        ("[-1.00000010, 0.00000001, -1, 4194303, 0, -3, 2, 65535, 15, \"a.b/c\"]", true),
        ("[12.34567890, 0.5, 1, 2, 3, 4, 5, 6, 7, \"x\"]", false),
        ("[12.34567890,0.00000001,1,2,3,4,5,6,7,\"x\"]", false),
        ("[ 12.34567890, 0.00000001, 1, 2, 3, 4, 5.0, 6, 7, \"\\u00e9\"]", false),
    ] {
        let plain = |line: &str| {
            let mut reader = Reader::new();
            reader.plain(line.as_bytes()).map(|()| reader.spans[0])
        };
        let fast = plain(line);
        assert_eq!(fast.is_some(), exact, "{line}");
        let spaced = line.replace(", ", ",  ");
        let slow = read(&mut spaced.as_bytes()).unwrap();
        assert!(plain(&spaced).is_none() && slow.spans.len() == 1);
        assert_eq!(fast.unwrap_or(slow.spans[0]), slow.spans[0], "{line}");
    }
}

#[test]
fn a_cut_file_keeps_its_spans_and_says_so() {
    let text = b"  {\n \"title\" : \"t\",\n\"events\" : [\n[  1.00000000, 0.00000010, 0, 1, 0, 2052, 0, 0, 0, \"read\"],\n[  2.0000";
    let spans = read(&mut &text[..]).unwrap();
    assert_eq!(spans.spans.len(), 1);
    assert_eq!(spans.meta.quality.len(), 2);
}

#[test]
fn spans_that_are_missing_are_said_to_be() {
    let line = "[  1.00000000, 0.00000010, 0, 1, 0, 2052, 3, null, 0, \"read\"],\n";
    let text = |lines: usize, end: &str| format!("{{\n\"events\" : [\n{}{end}", line.repeat(lines));
    let said = |text: String| read(&mut text.as_bytes()).unwrap().meta.quality;
    let end = "[999.0, 0.0, 0, 0, 0, 0, 3, 0, 0, \"\"]\n]}\n";
    assert_eq!(said(text(3, end)), [""; 0]);
    assert_eq!(said(text(2, end)), ["the JSON has 2 of 3 spans"]);
    assert_eq!(said(text(4, end)), ["the JSON has 4 of 3 spans"]);
    assert_eq!(said(text(2, "[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n]}\n")), [""; 0]);
    let whole = text(3, end);
    for cut in 0..whole.len() - 2 {
        assert!(!said(whole[..cut].to_string()).is_empty(), "{cut}");
    }
}

#[test]
fn no_line_is_too_long_for_the_tools_of_the_original() {
    let name = |n: u64| format!("a_name_of_some_length_{n}");
    let open = ["7:start", "7:end", "1024:both"].map(|file| OpenFile::split(&format!("{file}:")).unwrap().0);
    let files = |n: u32| open.into_iter().map(|file| (file, format!("/a {n}:").repeat(n as usize - 999))).collect();
    let meta = Meta {
        counts: (0..300).map(|n| (name(n), n << 20)).collect(),
        errors: (1..134).map(|n| (n, name(n.into()))).collect(),
        cgroups: (1000..1010).map(|n| (n, "/it's.slice".repeat(n as usize - 999))).collect(),
        files: (1000..1010).map(|n| (n, files(n))).collect(),
        processes: (1000..1300).map(|n| (n, n - 1)).collect(),
        quality: (0..20).map(name).collect(),
        host: "host".into(),
        cpu_model: "CPU".into(),
        kernel: "6.12".into(),
        value_bits: 32,
        mbit_sec: 1000,
        ..Meta::default()
    };
    let mut text = Vec::new();
    write(&Spans { meta: meta.clone(), ..Spans::default() }, &mut text).unwrap();
    let lines: Vec<&[u8]> = text.split(|&c| c == b'\n').collect();
    assert!(lines.iter().all(|line| line.len() < LINE));
    // `makeself` compares this many bytes, up to the list's end.
    let end = lines.iter().position(|line| line.starts_with(b"[999")).unwrap();
    assert!(lines[..=end].is_sorted_by_key(|line| &line[..line.len().min(4)]), "{}", String::from_utf8_lossy(&text));
    assert_eq!(read(&mut &text[..]).unwrap().meta, meta);
}

#[test]
fn numbers_that_cannot_be_are_no_others() {
    for row in [
        "1.00000000, 0.00000010, 4294967296, 1, 0, 2052, 3, 0, 0",
        "1.00000000, 0.00000010, 0, 4294967297, 0, 2052, 3, 0, 0",
        "1.00000000, 0.00000010, 0, 1, 0, 4294969348, 3, 0, 0",
        "1.00000000, 0.00000010, 0, 1, 0, 2052, 3, 0, 300",
        "1.00000000, 0.00000010, 0, 1, 0, 2052, 1e30, 0, 0",
        "1e300, 0.00000010, 0, 1, 0, 2052, 3, 0, 0",
        "99999999999.00000000, 0.00000010, 0, 1, 0, 2052, 3, 0, 0",
    ] {
        let text = format!("{{\n\"events\" : [\n[{row}, \"read\"],\n[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n]}}\n");
        let spans = read(&mut text.as_bytes()).unwrap();
        assert_eq!((spans.spans.len(), spans.meta.quality.len()), (0, 1), "{row}");
    }
}
