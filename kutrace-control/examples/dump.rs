// SPDX-License-Identifier: BSD-3-Clause
//! Speed of writing a trace from the pool to a file, compared to a copy of that file by reads and writes of one block,
//! as with `dd`, each until it is on the disk. `cargo run --release -p kutrace-control --example dump -- FOLDER`

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use anyhow::{ensure, Context, Result};
use kutrace_control::dump;
use kutrace_control::names::{Names, Start};
use kutrace_control::output::{IfExists, Output};
use kutrace_control::selection::{Recycling, Selection};
use kutrace_format::abi::block::{Header, BYTES, MAGIC, WORDS};
use kutrace_format::abi::command::Info;
use rustix::time::{clock_gettime, ClockId};

const BLOCKS: usize = 8192;
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("dump: FOLDER is missing")?);
    let (trace, duplicate) = (folder.join("dump.raw"), folder.join("dump.copy"));
    let pool: Vec<AtomicU32> = (0..BLOCKS).flat_map(full_block).map(AtomicU32::new).collect();
    let names = Names::gather(&Start::default(), &Start::now(), &[], &[]);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push([measure(|| write(&pool, &names, &trace))?, measure(|| copy(&trace, &duplicate))?]);
        fs::remove_file(&trace)?;
        fs::remove_file(&duplicate)?;
    }
    let megabytes = (BLOCKS * BYTES) as f64 / 1e6;
    let mut out = io::stdout().lock();
    writeln!(out, "megabytes {megabytes:.0}")?;
    for (way, name) in ["dump", "copy"].iter().enumerate() {
        let rate = |of: fn(&Cost) -> f64| megabytes / median(rounds.iter().map(|round| of(&round[way])));
        writeln!(out, "{name} {:.0}\n{name}_cpu {:.0}", rate(|cost| cost.seconds), rate(|cost| cost.cpu_seconds))?;
    }
    Ok(writeln!(out, "ratio {:.2}", median(rounds.iter().map(|[dump, copy]| dump.seconds / copy.seconds)))?)
}

/// The words of a full block, as the recorder leaves it.
fn full_block(number: usize) -> impl Iterator<Item = u32> {
    let fields = [
        (offset_of!(Header, magic), MAGIC),
        (offset_of!(Header, begin), number as u32),
        (offset_of!(Header, end), number as u32 + 1),
        (offset_of!(Header, content_bits), BYTES as u32 * 8),
        (offset_of!(Header, packet_bits), BYTES as u32 * 8),
        (offset_of!(Header, sequence), number as u32),
    ];
    let header = move |at: usize| fields.iter().find(|(offset, _)| *offset == at * 4).map(|(_, value)| *value);
    (0..WORDS).map(move |at| match at * 4 < size_of::<Header>() {
        true => header(at).unwrap_or_default(),
        false => (number as u32).wrapping_mul(0x9e37_79b9).wrapping_add(at as u32),
    })
}

/// Same steps as `kutrace_control stop` once the recorder has stopped.
fn write(pool: &[AtomicU32], names: &Names, path: &Path) -> Result<()> {
    let selection = Selection::of(pool, Recycling::Never, u64::MAX);
    ensure!(selection.blocks.len() == BLOCKS, "dump: {} blocks", selection.blocks.len());
    let header = dump::header(&Info::default(), &selection, [1; 16], [2; 16]);
    Output::new(Some(path.to_owned()), IfExists::Keep)
        .write(|out| dump::write_trace(&header, pool, &selection, names, &[], out, &mut |_| Ok(())))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create_new(to)?);
    let mut block = vec![0; BYTES];
    loop {
        match from.read(&mut block)? {
            0 => return Ok(to.sync_all()?),
            bytes => to.write_all(&block[..bytes])?,
        }
    }
}

/// Time of a round.
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
}

fn measure(work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    work()?;
    Ok(Cost { seconds: begin.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds() - cpu })
}

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
