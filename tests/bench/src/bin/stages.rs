// SPDX-License-Identifier: BSD-3-Clause
//! The stages as functions, for `cargo xtask bench`.
//!
//! `stages repeat FROM ENTRIES TO` writes a trace of as many entries or more, from a recorded one, which is copied as
//! it is if it has as many; prints how many.
//! `stages page FROM TO` goes from a raw file to a page in one process.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::{bail, Context, Result};
use kutrace_tests::repeat::Recorded;
use postprocess::direct;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["repeat", from, entries, to] => repeat(from, entries.parse()?, to),
        ["page", from, to] => page(from, to),
        _ => bail!("stages repeat FROM ENTRIES TO | stages page FROM TO"),
    }
}

fn repeat(from: &str, entries: u64, to: &str) -> Result<()> {
    let bytes = std::fs::read(from).context(from.to_string())?;
    let recorded = Recorded::new(&bytes).with_context(|| format!("{from}: not a whole raw trace"))?;
    let mut out = BufWriter::new(File::create(to).context(to.to_string())?);
    let written = match recorded.entries() {
        enough if enough >= entries => out.write_all(&bytes).map(|()| enough),
        _ => recorded.repeat(entries, &mut out),
    };
    let entries = written.and_then(|n| out.flush().map(|()| n)).context(to.to_string())?;
    writeln!(io::stdout(), "entries {entries}")?;
    Ok(())
}

fn page(from: &str, to: &str) -> Result<()> {
    let bytes = std::fs::read(from).context(from.to_string())?;
    let mut out = BufWriter::with_capacity(1 << 20, File::create(to).context(to.to_string())?);
    direct::page_of_raw(&bytes, "", &mut out).context(from.to_string())?;
    out.flush().context(to.to_string())
}
