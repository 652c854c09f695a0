// SPDX-License-Identifier: GPL-2.0
//! The first mark of a process: everything that it has to do, and the memory it has afterwards and had not before.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::time::Instant;

use kutrace::sys;
use kutrace_format::abi::programs::WORDS_AT;

use crate::trace;

/// Prints ns and KiB.
pub fn print(out: &mut impl Write) -> io::Result<()> {
    trace(true);
    let (mut before, mut after) = ([0; 2048], [0; 2048]);
    memory(&mut before)?;
    memory(&mut after)?;
    memory(&mut before)?;
    let begin = Instant::now();
    let recorded = black_box(kutrace::mark!("first"));
    let ns = begin.elapsed().as_nanos();
    memory(&mut after)?;
    assert!(recorded, "the first mark is not recorded");
    writeln!(out, "first_ns {ns}\nfirst_kib {}", kib(&after) - kib(&before))
}

/// Prints the ns that the kernel takes for all that was asked of it there: its calls, and the first touch of three pages.
pub fn print_calls(out: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 2048];
    memory(&mut buffer)?;
    let begin = Instant::now();
    let streams = sys::map_wiped(4 << 20)?.cast::<u8>();
    let area = sys::map_area()?.cast::<u8>();
    for page in [streams, area, area.wrapping_add(WORDS_AT as usize)] {
        // SAFETY: it was mapped above.
        unsafe { page.write_volatile(1) };
    }
    writeln!(out, "calls_ns {}", begin.elapsed().as_nanos())
}

/// The kernel's figures for the memory of this process.
fn memory(text: &mut [u8]) -> io::Result<usize> {
    std::fs::File::open("/proc/self/smaps_rollup")?.read(text)
}

/// KiB that are its own: no file's.
fn kib(text: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(text);
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<i64>().ok()).unwrap_or(0)
    };
    of("Pss_Anon:") + of("Pss_Shmem:")
}
