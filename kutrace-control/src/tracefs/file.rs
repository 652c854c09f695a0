// SPDX-License-Identifier: BSD-3-Clause
//! The file of a recording: version 7 of trace-cmd's format, not compressed. Sections follow each other; the last but
//! one lists the places of all, and the last has the pages.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result};
use postprocess::source::ftrace::{
    BUFFER, CLOCK, CMDLINES, CPUCOUNT, CPUSTAT, DATE, DONE, EVENT_FORMATS, FTRACE_EVENTS, HEADER_INFO, KALLSYMS, MAGIC,
    PRINTK, PROCESSES, UNAME, WRAPPED,
};

use super::Instance;

/// Pages begin at a multiple of this in the file.
const ALIGNED: u64 = 4096;
/// Bytes of a section's head.
const HEAD: usize = 16;

/// Writes the recording of `instance`, which has ended.
///
/// # Errors
/// Any error of tracefs or of `out`.
pub fn write(instance: &mut Instance, out: &mut dyn Write) -> Result<()> {
    let (events, path) = (instance.root.join("events"), instance.path.clone());
    let mut file = [MAGIC, b"7\0\0\x08", &(ALIGNED as u32).to_le_bytes(), b"none\0\0"].concat();
    let list = file.len();
    file.extend([0; 8]);
    let mut places: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut add = |file: &mut Vec<u8>, id: u16, contents: Vec<u8>| {
        places.push((id, (file.len() as u64).to_le_bytes().to_vec()));
        section(file, id, contents.len());
        file.extend(contents);
    };
    let mut heads = Vec::new();
    for name in ["header_page", "header_event"] {
        heads.extend([name.as_bytes(), b"\0", &sized(&read(&events.join(name))?)].concat());
    }
    add(&mut file, HEADER_INFO, heads);
    let print = sized(&read(&events.join("ftrace/print/format"))?);
    add(&mut file, FTRACE_EVENTS, [&1u32.to_le_bytes()[..], &print].concat());
    let mut formats = (instance.events.len() as u32).to_le_bytes().to_vec();
    for event in &instance.events {
        let group = event.split('/').next().unwrap_or_default();
        let format = sized(&read(&events.join(event).join("format"))?);
        formats.extend([group.as_bytes(), b"\0", &1u32.to_le_bytes(), &format].concat());
    }
    add(&mut file, EVENT_FORMATS, formats);
    add(&mut file, KALLSYMS, vec![0; 4]);
    add(&mut file, PRINTK, vec![0; 4]);
    let (mut names, mut processes) = (Vec::new(), Vec::new());
    for thread in &instance.threads {
        names.extend([format!("{} ", thread.pid).as_bytes(), &thread.comm, b"\n"].concat());
        writeln!(processes, "{} {}", thread.pid, thread.tgid)?;
    }
    add(&mut file, CMDLINES, sized(&names));

    let uname = rustix::system::uname();
    let uname =
        [uname.sysname(), uname.nodename(), uname.release(), uname.machine()].map(|part| part.to_string_lossy());
    let since_1970 = (instance.moment.realtime_ns - instance.moment.monotonic_ns) / 1000;
    places.extend([
        (CPUCOUNT, (instance.cpus.len() as u32).to_le_bytes().to_vec()),
        (UNAME, format!("{}\0", uname.join(" ")).into_bytes()),
        (DATE, format!("{since_1970:#x}\0").into_bytes()),
        (CLOCK, [&read(&path.join("trace_clock"))?[..], b"\0"].concat()),
        (PROCESSES, processes),
    ]);
    if instance.wrap {
        places.push((WRAPPED, Vec::new()));
    }
    for pages in &instance.cpus {
        let stats = read(&path.join(format!("per_cpu/cpu{}/stats", pages.cpu)))?;
        places.push((CPUSTAT, [format!("CPU: {}\n", pages.cpu).as_bytes(), &stats, b"\0"].concat()));
    }
    let at = (file.len() as u64).to_le_bytes();
    file[list..list + 8].copy_from_slice(&at);
    // The place of the pages follows from the size of the list, which does not depend on it.
    let known = options(&places, &buffer(instance, 0)).len();
    let buffer_at = (file.len() + HEAD + known) as u64;
    let list = options(&places, &buffer(instance, buffer_at));
    section(&mut file, DONE, list.len());
    file.extend(list);
    let data = (buffer_at + HEAD as u64).next_multiple_of(ALIGNED);
    let bytes: u64 = instance.cpus.iter().map(|pages| pages.bytes).sum();
    section(&mut file, BUFFER, (data - buffer_at - HEAD as u64 + bytes) as usize);
    file.resize(data as usize, 0);
    out.write_all(&file)?;
    for pages in &mut instance.cpus {
        pages.to.seek(SeekFrom::Start(0))?;
        io::copy(&mut pages.to, out)?;
    }
    Ok(())
}

/// The head of a section.
fn section(file: &mut Vec<u8>, id: u16, bytes: usize) {
    file.extend(id.to_le_bytes());
    file.extend([0; 6]);
    file.extend((bytes as u64).to_le_bytes());
}

/// The list of options.
fn options(places: &[(u16, Vec<u8>)], buffer: &[u8]) -> Vec<u8> {
    let mut list = Vec::new();
    let end = (DONE, 0u64.to_le_bytes());
    let all = places.iter().map(|(id, data)| (*id, &data[..])).chain([(BUFFER, buffer), (end.0, &end.1)]);
    for (id, data) in all {
        list.extend(id.to_le_bytes());
        list.extend((data.len() as u32).to_le_bytes());
        list.extend(data);
    }
    list
}

/// The places of the pages of all CPUs, in a section that begins at `at`.
fn buffer(instance: &Instance, at: u64) -> Vec<u8> {
    let mut list = [&at.to_le_bytes()[..], b"\0mono\0", &(ALIGNED as u32).to_le_bytes()].concat();
    list.extend((instance.cpus.len() as u32).to_le_bytes());
    let mut data = (at + HEAD as u64).next_multiple_of(ALIGNED);
    for pages in &instance.cpus {
        list.extend(pages.cpu.to_le_bytes());
        list.extend(data.to_le_bytes());
        list.extend(pages.bytes.to_le_bytes());
        data += pages.bytes;
    }
    list
}

/// Contents after their size.
fn sized(contents: &[u8]) -> Vec<u8> {
    [&(contents.len() as u64).to_le_bytes()[..], contents].concat()
}

/// Reads a file of tracefs; some of them give all that they have to the first read, whatever its size.
fn read(path: &Path) -> Result<Vec<u8>> {
    let whole = || {
        let (mut file, mut bytes, mut part) = (File::open(path)?, Vec::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut part)? {
                0 => return io::Result::Ok(bytes),
                read => bytes.extend(&part[..read]),
            }
        }
    };
    whole().with_context(|| path.display().to_string())
}
