// SPDX-License-Identifier: BSD-3-Clause
//! Results of the functions, in Rust and in C, on any kernel that runs the tests: 0 unless something is traced.

use std::borrow::Cow;
use std::env;
use std::process::Command;

use kutrace::original::{self, Named};

#[test]
fn rust_functions_record_only_what_is_traced() {
    let on = original::test().unwrap_or(false);
    assert_eq!(kutrace::is_on(), on);
    let marks = [original::mark_a("label"), original::mark_b(""), original::mark_c("c"), original::mark_d(u32::MAX)];
    assert_eq!(marks, [on; 4]);
    {
        let _outer = original::span("outer");
        let _inner = original::span("inner");
        let rpc = [original::rpc_request("m", 1, 0), original::rpc_response("m", 1, 9), original::rpc_resume("m", 1)];
        assert_eq!(rpc, [on; 3]);
    }
    assert_eq!([original::enqueue("q"), original::rpc_end(), original::dequeue("q")], [on; 3]);
    assert_eq!(kutrace::keep("reason"), on);
    assert_eq!([original::lock_try("l"), original::lock_acquired("l"), original::lock_released("l")], [on; 3]);
    assert_eq!(original::addevent(original::event::RESOURCE, 5).unwrap(), on);
    assert_eq!(original::addname(Named::Resource, 5, "resource").unwrap(), on);
    assert_eq!(original::addevent(kutrace_format::abi::event::SWITCH, 1).is_err(), on);
}

#[test]
fn macros_take_fields_of_any_type_and_compute_none_while_nothing_is_traced() {
    let on = kutrace::is_on();
    let computed = std::cell::Cell::new(0);
    let count = || {
        computed.set(computed.get() + 1);
        computed.get()
    };
    let text = String::from("text");
    assert_eq!(kutrace::mark!("plain"), on);
    assert_eq!(
        kutrace::mark!("signed", a = -1_i8, b = -1_i16, c = count(), d = -1_i64, e = -1_isize, f = i128::MIN),
        on
    );
    assert_eq!(kutrace::mark!("unsigned", a = 1_u8, b = 1_u16, c = 1_u32, d = 1_u64, e = 1_usize, f = u128::MAX,), on);
    assert_eq!(kutrace::mark!("others", a.b = 0.5, "c d" = 0.5_f32, e = true, f = kutrace::Hex(255), g = 'g'), on);
    let shown = Cow::from(&text);
    assert_eq!(
        kutrace::mark!("texts", a = text, b = &text, c = text.as_str(), d = shown, e = format_args!("{on}")),
        on
    );
    assert_eq!(
        [kutrace::counter!("a", 1), kutrace::counter!("b", text.len()), kutrace::counter!("c", -1_i64)],
        [on; 3]
    );
    assert_eq!(kutrace::log!("{} {text}", count()), on);
    {
        let _outer = kutrace::span!("outer");
        let _inner = kutrace::span!("inner", number = count());
        let upload = kutrace::async_span!("upload", 7, size = count());
        let other = kutrace::async_span!("upload", 8);
        std::thread::spawn(move || drop((upload, other))).join().unwrap();
    }
    assert_eq!(computed.get(), if on { 4 } else { 0 });
}

#[test]
fn c_functions_do_the_same_in_threads_and_signal_handlers_and_leave_errno() {
    let said = run_api();
    let on = original::test().unwrap_or(false);
    let errno = |answer: std::io::Result<u32>| answer.map_or_else(|e| -e.raw_os_error().unwrap(), |value| value as i32);
    let mut lines = 0;
    for line in said.lines() {
        let (name, value) = line.split_once(' ').unwrap();
        let expected = match name {
            "test" => errno(original::test().map(u32::from)),
            "version" => errno(original::version()),
            "no_name" => 0,
            "addname" => i32::from(on) * 2,
            "a_switch" | "a_pids_name" => i32::from(on) * -22, // EINVAL
            _ => i32::from(on),
        };
        assert_eq!(value, expected.to_string(), "{name}");
        lines += 1;
    }
    assert_eq!(lines, 3 * 23);
}

/// Compiles api.c against the library of this build, and runs it.
fn run_api() -> String {
    let folder = env!("CARGO_MANIFEST_DIR");
    let library = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let program = library.join("kutrace_api");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Werror", "-pthread", "-I"]).arg(format!("{folder}/include"));
    compile.arg(format!("{folder}/tests/api.c")).arg("-L").arg(&library).args(["-lkutrace", "-o"]).arg(&program);
    assert!(compile.status().unwrap().success());
    let run = Command::new(program).env("LD_LIBRARY_PATH", library).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}
