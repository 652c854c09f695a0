// SPDX-License-Identifier: BSD-3-Clause
//! What the functions answer, in Rust and in C, on whatever kernel the tests run: 0 unless something is traced.

use std::env;
use std::process::Command;

use kutrace::Named;

#[test]
fn rust_functions_record_only_what_is_traced() {
    let on = kutrace::test().unwrap_or(false);
    assert_eq!(kutrace::is_on(), on);
    let marks = [kutrace::mark_a("label"), kutrace::mark_b(""), kutrace::mark_c("c"), kutrace::mark_d(u32::MAX)];
    assert_eq!(marks, [on; 4]);
    {
        let _outer = kutrace::span("outer");
        let _inner = kutrace::span("inner");
        let rpc = [kutrace::rpc_request("m", 1, 0), kutrace::rpc_response("m", 1, 9), kutrace::rpc_resume("m", 1)];
        assert_eq!(rpc, [on; 3]);
    }
    assert_eq!([kutrace::enqueue("q"), kutrace::rpc_end(), kutrace::dequeue("q")], [on; 3]);
    assert_eq!(kutrace::keep("reason"), on);
    assert_eq!([kutrace::lock_try("l"), kutrace::lock_acquired("l"), kutrace::lock_released("l")], [on; 3]);
    assert_eq!(kutrace::addevent(kutrace::event::RESOURCE, 5).unwrap(), on);
    assert_eq!(kutrace::addname(Named::Resource, 5, "resource").unwrap(), on);
    assert_eq!(kutrace::addevent(kutrace_format::abi::event::SWITCH, 1).is_err(), on);
}

#[test]
fn c_functions_do_the_same_in_threads_and_signal_handlers_and_leave_errno() {
    let said = run_api();
    let on = kutrace::test().unwrap_or(false);
    let errno = |answer: std::io::Result<u32>| answer.map_or_else(|e| -e.raw_os_error().unwrap(), |value| value as i32);
    let mut lines = 0;
    for line in said.lines() {
        let (name, value) = line.split_once(' ').unwrap();
        let expected = match name {
            "test" => errno(kutrace::test().map(u32::from)),
            "version" => errno(kutrace::version()),
            "go" | "control" | "stop" => -2, // ENOENT
            "no_name" => 0,
            "addname" => i32::from(on) * 2,
            "a_switch" | "a_pids_name" => i32::from(on) * -22, // EINVAL
            _ => i32::from(on),
        };
        assert_eq!(value, expected.to_string(), "{name}");
        lines += 1;
    }
    assert_eq!(lines, 3 * 23 + 3);
}

/// Compiles api.c against the library of this build, and runs it where no kutrace_control is.
fn run_api() -> String {
    let folder = env!("CARGO_MANIFEST_DIR");
    let library = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let program = library.join("kutrace_api");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Werror", "-pthread", "-I"]).arg(format!("{folder}/include"));
    compile.arg(format!("{folder}/tests/api.c")).arg("-L").arg(&library).args(["-lkutrace", "-o"]).arg(&program);
    assert!(compile.status().unwrap().success());
    let run = Command::new(program).arg("t.trace").env("LD_LIBRARY_PATH", library).env("PATH", "").output().unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}
