// SPDX-License-Identifier: BSD-3-Clause
//! Programs in other languages, and programs that the kernel restricts, where nothing is traced: they do what they would do
//! without the library.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LIBRARY: &str = env!("CARGO_MANIFEST_DIR");

/// Where libkutrace.so of this build is, and where a program of this name is to be.
fn places(name: &str) -> (PathBuf, PathBuf) {
    let library = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf();
    (library, folder.join(name))
}

/// Compiles a source of the library's with a compiler and its options.
fn compile(compiler: &str, source: &str, options: &[&str], program: &Path) {
    let (library, _) = places("");
    let mut compile = Command::new(compiler);
    compile.args(["-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]).arg(format!("-I{LIBRARY}/include"));
    compile.arg(format!("{LIBRARY}/{source}")).arg("-L").arg(library).args(options).arg("-o").arg(program);
    assert!(compile.status().unwrap().success(), "{compile:?}");
}

/// Runs a program with libkutrace.so of this build.
fn run(program: &Path, arguments: &[&str]) -> Output {
    let (library, _) = places("");
    Command::new(program).args(arguments).env("LD_LIBRARY_PATH", library).output().unwrap()
}

fn succeed(program: &Path, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_examples_in_c_and_cpp_do_their_work_untraced() {
    for (compiler, source, options) in
        [("cc", "examples/service.c", &[][..]), ("g++", "examples/service.cc", &["-std=c++17"])]
    {
        let (_, program) = places(&format!("service_{compiler}"));
        compile(compiler, source, &[options, &["-lkutrace"]].concat(), &program);
        assert_eq!(succeed(&program, &[]), "");
    }
}

#[test]
fn the_example_in_rust_does_its_work_untraced() {
    let (library, _) = places("");
    assert_eq!(succeed(&library.join("../examples/requests"), &[]), "");
}

/// Runs a program in Python with this folder's libkutrace.so.
fn python(program: &str, library: &Path) -> String {
    let mut python = Command::new("python3");
    python.arg(format!("{LIBRARY}/{program}")).env("PYTHONPATH", format!("{LIBRARY}/python"));
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").env("LD_LIBRARY_PATH", library).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_in_python_does_its_work_untraced() {
    assert_eq!(python("examples/service.py", &places("").0), "");
}

#[test]
fn parts_of_tasks_in_python_have_numbers_and_end_with_the_task() {
    let (_, folder) = places("said");
    fs::create_dir_all(&folder).unwrap();
    compile("cc", "tests/said.c", &["-shared", "-fPIC"], &folder.join("libkutrace.so.0"));
    let said = python("tests/tasks.py", &folder);
    let expected = [
        "1 begin handle inumber",
        "mark handling",
        "2 begin read spath",
        "3 begin handle inumber",
        "mark handling",
        "4 begin read spath",
        "2 end read",
        "1 end handle",
        "4 end read",
        "3 end handle",
        "5 begin items",
        "mark aside",
        "mark between",
        "5 end items",
        "begin plain",
        "end plain",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_program_that_a_filter_would_kill_for_system_call_1023_never_makes_it() {
    let (_, program) = places("sealed");
    compile("cc", "tests/sealed.c", &["-lkutrace"], &program);
    let no_recorder = kutrace::test().is_err();
    if no_recorder {
        assert_eq!(succeed(&program, &[]), "0 0\n-38 -38\n");
        // Nor does it where it cannot know of the filter.
        assert_eq!(succeed(&program, &["blind"]), "0 0\n-38 -38\n");
    }
    succeed(&program, &["asked before"]);
}
