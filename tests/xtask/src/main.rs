// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask`: from a bare machine to a trace (`demo`), a checked tree (`test`, `soak`), a guest (`vm`), numbers
//! (`bench`), manuals (`man`) and packages (`dist`).

#![forbid(unsafe_code)]

mod place;
mod progress;
mod packages;
mod versions;
mod toolchain;
mod kernel;
mod module;
mod tools;
mod man;
mod dist;
mod guest;
mod vm;
mod demo;
mod test;
mod port;
mod check;
mod bench;
mod mutants;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::kernel::series::Series;
use crate::kernel::Which;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The commands of the project's developers", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything, trace a workload in the VM and leave target/demo/t.trace and t.html
    Demo {
        /// The kernel to trace: one of those of `cargo xtask vm`; `stock` is one of Debian's, which need not be built
        #[arg(long, value_name = "KERNEL", value_parser = Which::parse, default_value = "small")]
        kernel: Which,
        /// Workload to trace instead of tests/vm/workload.sh
        #[arg(last = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// Run CMD as root in the VM and exit with its status
    Vm(Box<vm::VmArgs>),
    /// Run every tier of tests, the gate of every change
    Test(test::TestArgs),
    /// Run every tier in its long form, with other seeds and on other kernels
    Night,
    /// Run the longest form of the recorder's tests in the VM, also on other kernels, and every mutant: hours
    Soak,
    /// Remove one hook or one line of the recorder at a time: a test must fail for each
    Mutants(mutants::MutantsArgs),
    /// Work on the kernel patches
    #[command(subcommand)]
    Patches(Patches),
    /// Measure what tracing costs, in instructions, nanoseconds and bytes, and how fast tools and page are
    Bench(bench::BenchArgs),
    /// Write manual pages and completions below target/share, for packages
    Man,
    /// Make Debian packages, a tarball of static tools and their checksums in target/dist
    Dist(dist::DistArgs),
}

#[derive(Subcommand)]
enum Patches {
    /// Check each patch: style, builds with gcc and clang, with hooks and without, and the same instructions without
    Check {
        /// Number of the first patch to check
        #[arg(long, value_name = "N", default_value_t = 1)]
        from: usize,
        /// Series to use
        #[arg(long, value_enum, default_value_t = Series::USUAL)]
        series: Series,
    },
    /// Apply the series to another kernel's source: status 0 if all of it applies, 3 if parts need manual work
    Port {
        /// Kernel source; it is not modified
        tree: PathBuf,
        /// New folder for the ported series, and for hunks that do not apply
        #[arg(long, default_value = "target/ported")]
        out: PathBuf,
    },
}

/// Reports the place of the outcome; returns the status.
fn tell(task: &str, folder: &Path) -> u8 {
    eprintln!("xtask: {task}: {}", folder.display());
    0
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Demo { kernel, command } => demo::run(kernel, &command).map(|()| 0),
        Task::Vm(args) => vm::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Night => test::night(),
        Task::Soak => test::soak(),
        Task::Mutants(args) => mutants::run(&args),
        Task::Patches(Patches::Check { from, series }) => check::run(series, from).map(|()| 0),
        Task::Patches(Patches::Port { tree, out }) => port::run(&tree, &out),
        Task::Bench(args) => bench::run(&args).map(|()| 0),
        Task::Man => man::run().map(|share| tell("man", &share)),
        Task::Dist(args) => dist::run(&args).map(|out| tell("dist", &out)),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
