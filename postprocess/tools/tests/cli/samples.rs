// SPDX-License-Identifier: BSD-3-Clause
//! Samples of program counters, named by functions.

use std::path::PathBuf;

use super::*;

/// Returns JSON of spans that are samples of this thread with this event number, at these addresses.
fn samples(event: u32, thread: u32, addresses: impl Iterator<Item = u64>) -> Vec<u8> {
    let line = |pc| format!("[0.0, 0.1, 0, {thread}, 0, {event}, 7, 0, 0, \"PC={pc:012x}\"],\n");
    let lines: String = addresses.map(line).collect();
    format!("{{\n\"events\" : [\n{lines}[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n]}}\n").into_bytes()
}

/// Returns names and arguments of the spans in a tool's output.
fn named(output: &Output) -> Vec<(String, i64)> {
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let spans = json["events"].as_array().unwrap().iter();
    spans.filter(|s| s[0] != 999.0).map(|s| (s[9].as_str().unwrap().into(), s[6].as_i64().unwrap())).collect()
}

#[test]
fn kernel_samples_get_the_names_of_functions() {
    let list = temporary("kallsyms", b"ffffffff81000010 T second\nffffffff81000000 T first\n");
    let list = list.to_str().unwrap();
    let addresses = [0xffff_ffff_8100_0004, 0xffff_ffff_8100_0010, 16, 0xffff_ffff_8100_0008];
    let output = run(SAMPTONAME_K, &[list], &samples(641, 7, addresses.into_iter()));
    assert_eq!((code(&output), stderr(&output).as_str()), (0, "samptoname_k: 3 samples named, 1 not known\n"));
    let named_spans = named(&output);
    let names: Vec<&str> = named_spans.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["PC=first", "PC=second", "PC=000000000010", "PC=first"]);
    assert!(named_spans[0].1 == named_spans[3].1 && named_spans[0].1 != named_spans[1].1 && named_spans[2].1 == 7);
    let user = run(SAMPTONAME_K, &[list], &samples(640, 7, addresses.into_iter()));
    assert_eq!(stderr(&user), "samptoname_k: 0 samples named, 0 not known\n");
}

#[inline(always)]
fn inside(number: u64) -> u64 {
    std::hint::black_box(number).wrapping_mul(3)
}

#[inline(never)]
extern "C" fn landmark(number: u64) -> u64 {
    inside(std::hint::black_box(number)).rotate_left(1)
}

#[test]
fn user_samples_get_the_names_of_functions_and_of_those_put_into_them() {
    assert_eq!(std::hint::black_box(landmark as extern "C" fn(u64) -> u64)(1), 6);
    let maps = format!("==== /proc/66/maps\n{}", std::fs::read_to_string("/proc/self/maps").unwrap());
    let maps = temporary("maps", maps.as_bytes());
    let start = landmark as *const () as u64;
    let input = samples(640, 66, (start..start + 40).chain([1]));
    let output = run(SAMPTONAME_U, &[maps.to_str().unwrap()], &input);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, "samptoname_u: 40 samples named, 1 not known\n"));
    let names = named(&output);
    assert_eq!(names[0].0, "PC=cli::samples::landmark");
    assert!(
        names.iter().any(|(name, _)| name.ends_with("cli::samples::inside in cli::samples::landmark")),
        "{names:?}"
    );
    assert_eq!(names[40].0, "PC=000000000001");
    let elsewhere = run(SAMPTONAME_U, &[maps.to_str().unwrap(), "--root", "/nowhere"], &input);
    assert!(stderr(&elsewhere).starts_with("samptoname_u: /nowhere/"), "{}", stderr(&elsewhere));
    assert!(named(&elsewhere)[0].0.starts_with("PC=cli-"), "the file is known, the function is not");
}

extern "C" {
    fn getpid() -> i32;
}

#[test]
fn user_samples_in_a_stripped_library_get_the_names_of_symbols() {
    let maps = format!("==== /proc/66/maps\n{}", std::fs::read_to_string("/proc/self/maps").unwrap());
    let maps = temporary("maps_of_libc", maps.as_bytes());
    let start = getpid as *const () as u64;
    let output = run(SAMPTONAME_U, &[maps.to_str().unwrap()], &samples(640, 66, [start].into_iter()));
    let names = named(&output);
    assert!(names[0].0.ends_with("getpid"), "{names:?}");
}

#[test]
fn lists_that_name_nothing_are_refused_in_one_line() {
    let hidden = temporary("hidden", b"0000000000000000 T first\n");
    for (tool, list, fact) in [
        (SAMPTONAME_K, temporary("empty", b""), "no kernel symbols; expected lines like those of /proc/kallsyms"),
        (SAMPTONAME_K, hidden, "every address is 0, because the kernel hides them; copy /proc/kallsyms as root"),
        (SAMPTONAME_U, temporary("nomaps", b""), "no maps; expected a line `==== /proc/PID/maps` before each"),
        (SAMPTONAME_U, PathBuf::from("/nowhere"), "No such file or directory (os error 2)"),
    ] {
        let list = list.to_str().unwrap();
        let output = run(tool, &[list], b"");
        let said = stderr(&output);
        assert_eq!((code(&output), output.stdout.as_slice(), said.lines().count()), (1, &b""[..], 1), "{said}");
        assert!(said.ends_with(&format!(": {list}: {fact}\n")), "{said}");
    }
}
