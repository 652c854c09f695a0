// SPDX-License-Identifier: BSD-3-Clause
//! Programs in other languages, and programs that the kernel restricts, while nothing is traced: they do the same as
//! without the library.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LIBRARY: &str = env!("CARGO_MANIFEST_DIR");

/// Folder with libkutrace.so of this build, and the path for a program of this name.
fn places(name: &str) -> (PathBuf, PathBuf) {
    let library = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf();
    (library, folder.join(name))
}

/// Compiles a source file of the library with a compiler and its options.
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

/// A folder with a libkutrace.so of said.c.
fn said(name: &str) -> PathBuf {
    let (_, folder) = places(name);
    fs::create_dir_all(&folder).unwrap();
    compile("cc", "tests/said.c", &["-shared", "-fPIC"], &folder.join("libkutrace.so.0"));
    folder
}

#[test]
fn where_there_is_no_library_python_and_java_do_their_work() {
    let (_, nowhere) = places("nowhere");
    assert_eq!(python("examples/service.py", &nowhere), "");
    if let Some(classes) = java("without") {
        assert_eq!(run_java(&classes, &nowhere), "");
    }
}

/// Compiles the example in Java, if there is a compiler. Returns the folder of its classes.
fn java(name: &str) -> Option<PathBuf> {
    let (_, classes) = places(name);
    let sources = ["java/kutrace/Kutrace.java", "examples/Service.java"].map(|source| format!("{LIBRARY}/{source}"));
    let compiled = Command::new("javac").arg("-d").arg(&classes).args(sources).output().ok()?;
    assert!(compiled.status.success(), "{compiled:?}");
    Some(classes)
}

/// Runs it with the libraries of a folder.
fn run_java(classes: &Path, libraries: &Path) -> String {
    let mut java = Command::new("java");
    java.arg(format!("-Djava.library.path={}", libraries.display())).arg("-cp").arg(classes).arg("Service");
    let output = java.env("LD_LIBRARY_PATH", libraries).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn fields_in_java_have_the_types_of_their_values() {
    let Some(classes) = java("types") else { return };
    let home = fs::canonicalize(which("javac")).unwrap();
    let includes = home.parent().unwrap().parent().unwrap().join("include");
    let folder = said("said_java");
    let (include, linux) = (format!("-I{}", includes.display()), format!("-I{}/linux", includes.display()));
    let library = folder.join("libkutrace.so.0");
    let options = ["-shared", "-fPIC", "-Wno-unused-parameter", &include, &linux, library.to_str().unwrap()];
    compile("cc", "java/kutrace_java.c", &options, &folder.join("libkutrace_java.so"));
    let expected = [
        "begin java.handle",
        "begin java.find spath bcached",
        "counter java.queued",
        "end java.find",
        "mark java.reply istatus fratio spath",
        "end java.handle",
        "7 begin java.upload isize",
        "7 end java.upload",
        "mark java.done",
    ];
    assert_eq!(run_java(&classes, &folder).lines().collect::<Vec<_>>(), expected);
}

/// Path of a program.
fn which(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap()
}

/// The records of tests/types.c.
const TYPES: [&str; 14] = [
    "mark unsigned ua ub uc ud ue uf",
    "mark signed ia ib ic id ie if",
    "mark others fa fb bc xd xe.e",
    "begin texts sa sb sc",
    "begin inner",
    "mark fifteen i1 i2 i3 i4 i5 i6 i7 i8 i9 i10 i11 i12 i13 i14 s15",
    "end inner",
    "end texts ?a ?b ?c",
    "begin begun ia",
    "counter counter",
    "end begun",
    "7 begin upload isize",
    "7 end upload",
    "mark log smessage",
];

#[test]
fn fields_in_c_and_cpp_have_the_types_of_their_values_and_without_marks_no_library_is_needed() {
    let folder = said("said_types");
    let library = folder.join("libkutrace.so.0");
    for (compiler, options) in [("cc", &["-O0"][..]), ("cc", &[]), ("g++", &["-xc++", "-O0"]), ("g++", &["-xc++"])] {
        let program = folder.join("types");
        compile(compiler, "tests/types.c", &[options, &["-xnone", library.to_str().unwrap()]].concat(), &program);
        let said = Command::new(&program).env("LD_LIBRARY_PATH", &folder).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        assert_eq!(String::from_utf8(said.stdout).unwrap().lines().collect::<Vec<_>>(), TYPES);
        let without = folder.join("without");
        compile(compiler, "tests/types.c", &[options, &["-DKUTRACE_OFF", "-Wno-unused"]].concat(), &without);
        assert!(Command::new(&without).env_remove("LD_LIBRARY_PATH").status().unwrap().success());
    }
}

#[test]
fn spans_of_tasks_in_python_have_numbers_and_end_with_the_task() {
    let said = python("tests/tasks.py", &said("said"));
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
    let no_recorder = kutrace::original::test().is_err();
    if no_recorder {
        assert_eq!(succeed(&program, &[]), "0 0\n-38 -38\n");
        // Nor does it if it cannot find out about the filter.
        assert_eq!(succeed(&program, &["blind"]), "0 0\n-38 -38\n");
    }
    succeed(&program, &["asked before"]);
}
