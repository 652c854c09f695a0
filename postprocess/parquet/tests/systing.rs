// SPDX-License-Identifier: BSD-3-Clause
//! Tables in the form that systing writes, by its published schema, to spans.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;

/// Values of a column; 32-bit and 64-bit columns are the same here.
enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<&'static str>>),
}

fn numbers(values: &[i64]) -> Column {
    Column::Numbers(values.iter().copied().map(Some).collect())
}

fn texts(values: &[&'static str]) -> Column {
    Column::Texts(values.iter().map(|text| Some(*text).filter(|text| !text.is_empty())).collect())
}

/// Writes a table with these columns, such as `required int64 ts`.
fn table(folder: &Path, name: &str, columns: &[(&str, Column)]) {
    let fields: Vec<String> = columns.iter().map(|(field, _)| format!("{field};")).collect();
    let schema = Arc::new(parse_message_type(&format!("message schema {{ {} }}", fields.join(" "))).unwrap());
    let file = File::create(folder.join(format!("{name}.parquet"))).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (field, column) in columns {
        let mut to = group.next_column().unwrap().unwrap();
        let levels = |all: Vec<bool>| all.into_iter().map(i16::from).collect::<Vec<i16>>();
        let optional = field.starts_with("optional");
        match column {
            Column::Numbers(values) => {
                let present = levels(values.iter().map(Option::is_some).collect());
                let present = optional.then_some(&present[..]);
                let values: Vec<i64> = values.iter().flatten().copied().collect();
                let narrow: Vec<i32> = values.iter().map(|value| *value as i32).collect();
                match field.contains("int32") {
                    true => to.typed::<Int32Type>().write_batch(&narrow, present, None),
                    false => to.typed::<Int64Type>().write_batch(&values, present, None),
                }
                .unwrap()
            }
            Column::Texts(values) => {
                let present = levels(values.iter().map(Option::is_some).collect());
                let texts: Vec<_> = values.iter().flatten().map(|text| (*text).into()).collect();
                to.typed::<ByteArrayType>().write_batch(&texts, optional.then_some(&present[..]), None).unwrap()
            }
        };
        to.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Two CPUs for 100 us, from 1 s after the boot: on the first `a b` waits at 20 us, and `new` runs from 30 us to its
/// end at 60 us. A disk interrupts the second one, on which something is missing from 40 to 50 us.
fn recording(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir(&folder).unwrap();
    let at = |us: &[i64]| numbers(&us.iter().map(|us| 1_000_000_000 + us * 1000).collect::<Vec<_>>());
    let long = |us: &[i64]| numbers(&us.iter().map(|us| us * 1000).collect::<Vec<_>>());
    table(
        &folder,
        "process",
        &[
            ("required int64 upid", numbers(&[5, 6])),
            ("required int32 pid", numbers(&[70, 80])),
            ("optional binary name (UTF8)", texts(&["a", "new"])),
        ],
    );
    table(
        &folder,
        "thread",
        &[
            ("required int64 utid", numbers(&[1, 2, 3, 4])),
            ("required int32 tid", numbers(&[0, 71, 80, 71])),
            ("optional binary name (UTF8)", texts(&["swapper/0", "a b", "new", ""])),
            ("optional int64 upid", Column::Numbers(vec![None, Some(5), Some(6), None])),
        ],
    );
    let state = |states: &[i64]| Column::Numbers(states.iter().map(|n| Some(*n).filter(|n| *n != 0)).collect());
    table(
        &folder,
        "sched_slice",
        &[
            ("required int64 ts", at(&[60, 0, 20, 30, 0, 50, 100, 100])),
            ("required int64 dur", long(&[40, 20, 10, 30, 40, 50, 10, 10])),
            ("required int32 cpu", numbers(&[0, 0, 0, 0, 1, 1, 0, 1])),
            ("required int64 utid", numbers(&[1, 2, 1, 3, 1, 1, 2, 2])),
            ("optional int32 end_state", state(&[0, 1, 0, 0, 0, 0, 0, 0])),
            ("required int32 priority", numbers(&[120; 8])),
        ],
    );
    table(
        &folder,
        "irq_slice",
        &[
            ("required int64 ts", at(&[10])),
            ("required int64 dur", long(&[5])),
            ("required int32 cpu", numbers(&[1])),
            ("required int32 irq", numbers(&[25])),
            ("optional binary name (UTF8)", texts(&["virtio2"])),
        ],
    );
    for (name, us, cpu) in [("wakeup_new", 15, 0), ("process_exit", 55, 0)] {
        let columns = [
            ("required int64 ts", at(&[us])),
            ("required int32 cpu", numbers(&[cpu])),
            ("required int64 utid", numbers(&[3])),
        ];
        table(&folder, name, &columns);
    }
    table(
        &folder,
        "clock_snapshot",
        &[
            ("required int32 clock_id", numbers(&[0, 7])),
            ("required int64 timestamp_ns", numbers(&[1_767_225_599_000_000_000, 0])),
        ],
    );
    folder
}

fn run(folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_systingtospan")).args(["--check".as_ref(), folder]).output().unwrap()
}

/// Returns the activity of a CPU: from and to in microseconds, and its name.
fn runs(json: &str, cpu: i64) -> Vec<(i64, i64, String)> {
    let us = |value: &Value| (value.as_f64().unwrap() * 1e6).round() as i64;
    let rows = json.lines().filter_map(|line| serde_json::from_str::<Vec<Value>>(line.trim_end_matches(',')).ok());
    let here = rows.filter(|row| row[2] == cpu && us(&row[1]) > 0);
    here.map(|row| (us(&row[0]), us(&row[0]) + us(&row[1]), row.last().unwrap().as_str().unwrap().to_string()))
        .collect()
}

#[test]
fn threads_and_interrupts_are_where_the_tables_say() {
    let made = run(&recording("systing"));
    let (json, said) = (String::from_utf8(made.stdout).unwrap(), String::from_utf8(made.stderr).unwrap());
    assert_eq!(made.status.code(), Some(3), "{said}");
    assert!(said.contains("1 event was lost while recording"), "{said}");
    // 2026-01-01 00:00:00, since the recording's first moment is one second after the boot.
    assert!(json.contains("2026-01-01"), "{json}");
    for unseen in ["\"wakeups\"", "\"system calls\"", "\"faults\"", "\"where events are missing\""] {
        assert!(json.contains(unseen), "{unseen}: {json}");
    }
    let named = |from, to, name: &str| (from, to, name.to_string());
    let first = runs(&json, 0);
    for one in [named(0, 20, "a_b.71"), named(30, 60, "new.80")] {
        assert!(first.contains(&one), "{one:?}: {first:?}");
    }
    let second = runs(&json, 1);
    assert!(second.contains(&named(10, 15, "virtio2")), "{second:?}");
    assert!(second.iter().any(|(_, to, name)| (*to, name.as_str()) == (50, "-lost-")), "{second:?}");
}

#[test]
fn a_table_that_is_damaged_is_said_and_the_others_are_used() {
    let folder = recording("systing-damaged");
    let path = folder.join("irq_slice.parquet");
    let whole = fs::read(&path).unwrap();
    for cut in [0, 3, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let made = run(&folder);
        let said = String::from_utf8(made.stderr).unwrap();
        assert_eq!(made.status.code(), Some(3), "{said}");
        assert!(
            said.contains("systing-damaged: irq_slice.parquet: ") && said.contains("skipped from there on"),
            "{said}"
        );
        assert!(String::from_utf8(made.stdout).unwrap().contains("new.80"));
    }
    let slices = folder.join("sched_slice.parquet");
    let sound = fs::read(&slices).unwrap();
    for n in (0..sound.len()).step_by(7) {
        let mut bytes = sound.clone();
        bytes[n] ^= 0x55;
        fs::write(&slices, &bytes).unwrap();
        let made = run(&folder);
        let said = String::from_utf8(made.stderr).unwrap();
        assert!(made.status.code().is_some_and(|code| code <= 3) && !said.contains("panicked"), "byte {n}: {said}");
    }
    fs::remove_file(&slices).unwrap();
    let made = run(&folder);
    let said = String::from_utf8(made.stderr).unwrap();
    assert_eq!(made.status.code(), Some(1), "{said}");
    assert!(said.starts_with("systingtospan: ") && said.contains("sched_slice.parquet: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
