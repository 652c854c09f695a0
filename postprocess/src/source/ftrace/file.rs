// SPDX-License-Identifier: BSD-3-Clause
//! The parts of a file of trace-cmd: version 6 has them in a fixed order, version 7 in sections, which may be
//! compressed, and options with their places.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::str::FromStr;

use flate2::read::ZlibDecoder;

use super::format::Formats;
use super::page::Pages;
use super::MAGIC;
use crate::event::CPUS_MAX;
use crate::readable::count;

// Options, some with the place of a section.

/// The end of a list of options, and the place of the next.
pub const DONE: u16 = 0;
/// Microseconds from the clock to the time of day.
pub const DATE: u16 = 1;
/// Statistics of a CPU's ring buffer.
pub const CPUSTAT: u16 = 2;
/// The pages of an instance.
pub const BUFFER: u16 = 3;
/// The choice of clocks.
pub const CLOCK: u16 = 4;
/// The system, its host and its kernel.
pub const UNAME: u16 = 5;
/// Nanoseconds to add to times.
pub const OFFSET: u16 = 7;
/// The number of CPUs.
pub const CPUCOUNT: u16 = 8;
/// The rate of the processor's counter.
pub const TSC: u16 = 14;
/// The descriptions of pages and of records.
pub const HEADER_INFO: u16 = 16;
/// The descriptions of ftrace's own events.
pub const FTRACE_EVENTS: u16 = 17;
/// The descriptions of tracepoints, by group.
pub const EVENT_FORMATS: u16 = 18;
/// The kernel's symbols.
pub const KALLSYMS: u16 = 19;
/// Texts of the kernel's that events refer to.
pub const PRINTK: u16 = 20;
/// The names of threads.
pub const CMDLINES: u16 = 21;
/// Ours: the process of each thread, `PID PROCESS` in a line.
pub const PROCESSES: u16 = 0x4b55;
/// Ours: the recording keeps the newest events, so that none before its first pages are lost.
pub const WRAPPED: u16 = 0x4b56;

/// Flag of a section: it is compressed.
const COMPRESSED: u16 = 1;
/// Maximum bytes of a compressed part.
const UNPACKED_MAX: u32 = 1 << 30;
/// Largest size of a page of the ring buffer.
const PAGE_MAX: usize = 1 << 24;

/// The fault of a file that cannot be read.
type Fact = &'static str;

/// A file, as far as it is used.
#[derive(Clone, Debug, Default)]
pub struct File<'a> {
    /// The tracepoints.
    pub formats: Formats,
    /// Names of threads.
    pub threads: HashMap<u32, String>,
    /// Processes of threads.
    pub processes: HashMap<u32, u32>,
    /// True if the recording keeps the newest events.
    pub wraps: bool,
    /// Facts on what is missing, a sentence each.
    pub quality: Vec<String>,
    /// CPUs with their pages.
    cpus: Vec<(u32, Cow<'a, [u8]>)>,
    /// Size of a page.
    page: usize,
    clock: String,
    /// The system's name, host and kernel, as `uname` has them.
    uname: String,
    /// Nanoseconds from the clock to the times of day.
    since_1970: i64,
    /// Nanoseconds of a count of the clock, as a multiplier, a shift and an offset.
    scale: Option<(u32, u32, u64)>,
}

impl<'a> File<'a> {
    /// Reads the parts of a file.
    ///
    /// # Errors
    /// The fault, if the file is not a recording of pages.
    pub fn read(bytes: &'a [u8]) -> Result<File<'a>, Fact> {
        let mut file = File::default();
        let mut input = Input { bytes, at: MAGIC.len() };
        let version = input.text()?;
        if input.take(1)? != [0] {
            return Err("it is of a big-endian machine");
        }
        input.take(1)?;
        file.page = input.word()? as usize;
        match version.as_str() {
            "6" => file.version_6(input)?,
            "7" => file.version_7(input)?,
            _ => return Err("its version is not 6 or 7"),
        }
        if file.cpus.is_empty() {
            return Err("it has no pages of a CPU");
        }
        Ok(file)
    }

    /// The pages of each CPU.
    pub fn pages(&self) -> impl Iterator<Item = Pages<'_>> {
        self.cpus.iter().map(|(cpu, bytes)| Pages::new(*cpu, bytes, self.page))
    }

    /// A time of the clock in ns.
    pub fn nanoseconds(&self, at: u64) -> Option<u64> {
        let ns = match self.scale {
            Some((multiplier, shift, offset)) => {
                let scaled = (u128::from(at) * u128::from(multiplier)).checked_shr(shift)?;
                u64::try_from(scaled).ok()?.checked_add(offset)?
            }
            None => at,
        };
        // The converter adds the offset of a known clock.
        if self.is_monotonic() {
            Some(ns)
        } else {
            ns.checked_add_signed(self.since_1970)
        }
    }

    /// The same as a time of day, in ns since 1970, as far as it is known; 0 for one before.
    pub fn time_of_day(&self, at: u64) -> u64 {
        let shift = if self.is_monotonic() { self.since_1970 } else { 0 };
        self.nanoseconds(at).and_then(|ns| ns.checked_add_signed(shift)).unwrap_or_default()
    }

    /// Facts on the machine and on the clock, as lines of a recording's head.
    pub fn head(&self) -> impl Iterator<Item = String> {
        let mut words = self.uname.split(' ').skip(1);
        let [host, kernel] = [words.next(), words.next()].map(|word| word.unwrap_or_default().to_string());
        let (seconds, ns) = (self.since_1970.div_euclid(1_000_000_000), self.since_1970.rem_euclid(1_000_000_000));
        let clock = format!("# reference time: x = {seconds}.{ns:09} (TOD) = 0.000000000 (monotonic)");
        let lines = [("# hostname : ", host), ("# os release : ", kernel)];
        let named =
            lines.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| format!("{key}{value}"));
        named.chain((self.is_monotonic() && self.since_1970 != 0).then_some(clock))
    }

    fn is_monotonic(&self) -> bool {
        self.clock == "mono"
    }

    /// Parts in order: heads, tracepoints, symbols, names, options, pages.
    fn version_6(&mut self, mut input: Input<'a>) -> Result<(), Fact> {
        self.header_info(&mut input)?;
        self.ftrace_events(&mut input)?;
        self.event_formats(&mut input)?;
        let symbols = input.word()?;
        input.take(symbols as usize)?;
        let printk = input.word()?;
        input.take(printk as usize)?;
        self.command_lines(&mut input)?;
        let cpus = input.word()?.min(CPUS_MAX);
        let mut kind = input.take(10)?;
        if kind == b"options  \0" {
            loop {
                let option = input.half()?;
                if option == DONE {
                    break;
                }
                let size = input.word()? as usize;
                let data = input.take(size)?;
                match option {
                    BUFFER => self.quality.push("an instance of the trace is in a form that is not supported".into()),
                    _ => self.option(option, Input { bytes: data, at: 0 }),
                }
            }
            kind = input.take(10)?;
        }
        if kind != b"flyrecord\0" {
            return Err("it is the text of a latency tracer");
        }
        for cpu in 0..cpus {
            let (offset, size) = (input.long()?, input.long()?);
            self.cpu(cpu, input.bytes, offset, size);
        }
        // The clock is followed by its choice, as in `local [mono] boot`.
        if let Some((_, chosen)) = self.clock.split_once('[') {
            self.clock = chosen.split(']').next().unwrap_or_default().to_string();
        }
        Ok(())
    }

    /// Options with the places of everything else.
    fn version_7(&mut self, mut input: Input<'a>) -> Result<(), Fact> {
        let compression = input.text()?;
        input.text()?;
        let bytes = input.bytes;
        let (mut next, mut seen, mut buffers) = (input.long()?, 0, Vec::new());
        while next != 0 && seen < 1 << 10 {
            let list = section(bytes, next, &compression)?;
            (next, seen) = (0, seen + 1);
            let mut options = Input { bytes: &list, at: 0 };
            while options.at + 6 <= list.len() {
                let (option, size) = (options.half()?, options.word()? as usize);
                let mut data = Input { bytes: options.take(size)?, at: 0 };
                match option {
                    DONE => {
                        next = data.long()?;
                        break;
                    }
                    BUFFER => buffers.push(data.bytes.to_vec()),
                    HEADER_INFO | FTRACE_EVENTS | EVENT_FORMATS | CMDLINES => {
                        let part = section(bytes, data.long()?, &compression)?;
                        let mut input = Input { bytes: &part, at: 0 };
                        match option {
                            HEADER_INFO => self.header_info(&mut input)?,
                            FTRACE_EVENTS => self.ftrace_events(&mut input)?,
                            EVENT_FORMATS => self.event_formats(&mut input)?,
                            _ => self.command_lines(&mut input)?,
                        }
                    }
                    _ => self.option(option, data),
                }
            }
        }
        for buffer in buffers {
            let mut buffer = Input { bytes: &buffer, at: 0 };
            let is_compressed = is_compressed(bytes, buffer.long()?)?;
            buffer.text()?;
            self.clock = buffer.text()?;
            self.page = buffer.word()? as usize;
            for _ in 0..buffer.word()?.min(CPUS_MAX) {
                let (cpu, offset, size) = (buffer.word()?, buffer.long()?, buffer.long()?);
                if !is_compressed {
                    self.cpu(cpu, bytes, offset, size);
                    continue;
                }
                let mut unpacked = Vec::new();
                if let Err(fact) = chunks(bytes, offset, &compression, &mut unpacked) {
                    self.quality.push(format!("CPU {cpu}: {fact}"));
                }
                if cpu < CPUS_MAX {
                    self.cpus.push((cpu, Cow::Owned(unpacked)));
                }
            }
        }
        Ok(())
    }

    /// Takes the place of a CPU's pages.
    fn cpu(&mut self, cpu: u32, bytes: &'a [u8], offset: u64, size: u64) {
        let place = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        let Some(end) = place.and_then(|(from, size)| from.checked_add(size)) else { return };
        if end > bytes.len() {
            self.quality.push(format!("CPU {cpu}: the file is cut off before the end of its pages"));
        }
        if cpu < CPUS_MAX {
            self.cpus.push((cpu, Cow::Borrowed(bytes.get(offset as usize..end.min(bytes.len())).unwrap_or_default())));
        }
    }

    /// Takes an option that is a fact of its own; others are skipped.
    fn option(&mut self, option: u16, mut data: Input) {
        let text = || String::from_utf8_lossy(data.bytes).trim_end_matches('\0').trim().to_string();
        match option {
            CLOCK => self.clock = text(),
            UNAME => self.uname = text(),
            // In us, and in ns.
            DATE => self.since_1970 = self.since_1970.saturating_add(signed(&text()).saturating_mul(1000)),
            OFFSET => self.since_1970 = self.since_1970.saturating_add(signed(&text())),
            CPUSTAT => self.quality.extend(lost(&text())),
            WRAPPED => self.wraps = true,
            PROCESSES => self.processes.extend(text().lines().filter_map(by_thread::<u32>)),
            TSC => self.scale = scale(&mut data).ok(),
            _ => {}
        }
    }

    fn header_info(&mut self, input: &mut Input) -> Result<(), Fact> {
        for name in ["header_page", "header_event"] {
            if input.text()? != name {
                return Err("it does not describe its pages");
            }
            let size = input.long()?;
            let text = String::from_utf8_lossy(input.take(size as usize)?).into_owned();
            // The field of the records is the last one of a page.
            let field = text.lines().find(|line| line.contains(" data;")).unwrap_or_default();
            let number = |key: &str| field.split(key).nth(1)?.split(';').next()?.parse::<usize>().ok();
            if let Some(page) = number("offset:").zip(number("size:")).and_then(|(at, size)| at.checked_add(size)) {
                self.page = page.min(PAGE_MAX);
            }
        }
        Ok(())
    }

    fn ftrace_events(&mut self, input: &mut Input) -> Result<(), Fact> {
        for _ in 0..input.word()? {
            let size = input.long()?;
            self.formats.add(input.take(size as usize)?);
        }
        Ok(())
    }

    fn event_formats(&mut self, input: &mut Input) -> Result<(), Fact> {
        for _ in 0..input.word()? {
            input.text()?;
            self.ftrace_events(input)?;
        }
        Ok(())
    }

    /// Names of threads, `PID NAME` in each line.
    fn command_lines(&mut self, input: &mut Input) -> Result<(), Fact> {
        let size = input.long()?;
        let text = String::from_utf8_lossy(input.take(size as usize)?).into_owned();
        self.threads.extend(text.lines().filter_map(by_thread::<String>));
        Ok(())
    }
}

/// The contents of a section of version 7.
fn section(bytes: &[u8], offset: u64, compression: &str) -> Result<Vec<u8>, Fact> {
    let is_compressed = is_compressed(bytes, offset)?;
    let mut input = Input { bytes, at: offset as usize + 8 };
    let size = input.long()?;
    if !is_compressed {
        return Ok(input.take(size as usize)?.to_vec());
    }
    let (packed, size) = (input.word()?, input.word()?);
    unpack(compression, input.take(packed as usize)?, size)
}

/// True if a section of version 7 is compressed.
fn is_compressed(bytes: &[u8], offset: u64) -> Result<bool, Fact> {
    let at = usize::try_from(offset).ok().and_then(|at| at.checked_add(2)).ok_or(CUT)?;
    Ok(Input { bytes, at }.half()? & COMPRESSED != 0)
}

/// Appends the pages of a CPU, which were compressed in chunks.
fn chunks(bytes: &[u8], offset: u64, compression: &str, to: &mut Vec<u8>) -> Result<(), Fact> {
    let mut input = Input { bytes, at: usize::try_from(offset).map_err(|_| CUT)? };
    for _ in 0..input.word()? {
        let (packed, size) = (input.word()?, input.word()?);
        to.extend(unpack(compression, input.take(packed as usize)?, size)?);
    }
    Ok(())
}

/// Bytes that were compressed, of this size.
fn unpack(compression: &str, packed: &[u8], size: u32) -> Result<Vec<u8>, Fact> {
    const DAMAGED: Fact = "compressed bytes are damaged";
    if size > UNPACKED_MAX {
        return Err(DAMAGED);
    }
    match compression {
        "zlib" => {
            let mut bytes = Vec::new();
            ZlibDecoder::new(packed).take(size.into()).read_to_end(&mut bytes).map_err(|_| DAMAGED)?;
            Ok(bytes)
        }
        "zstd" => zstd::bulk::decompress(packed, size as usize).map_err(|_| DAMAGED),
        _ => Err("it is compressed in another way than zlib and zstd"),
    }
}

/// Multiplier, shift and offset of a clock.
fn scale(data: &mut Input) -> Result<(u32, u32, u64), Fact> {
    Ok((data.word()?, data.word()?, data.long()?))
}

/// A fact on a thread, `PID FACT`.
fn by_thread<F: FromStr>(line: &str) -> Option<(u32, F)> {
    let (pid, fact) = line.split_once(' ')?;
    Some((pid.parse().ok()?, fact.parse().ok()?))
}

/// The number in a text, decimal or with `0x`; 0 if there is none.
fn signed(text: &str) -> i64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap_or_default() as i64,
        None => text.parse().unwrap_or_default(),
    }
}

/// A sentence on the events that a CPU's statistics count as lost; pages have the places of others.
fn lost(stats: &str) -> Option<String> {
    let value = |key: &str| stats.lines().find_map(|line| line.trim().strip_prefix(key)?.trim().parse::<u64>().ok());
    let number: u64 = ["commit overrun:", "dropped events:"].iter().filter_map(|key| value(key)).sum();
    let cpu = stats.lines().next()?.trim().trim_start_matches("CPU:").trim().to_string();
    let missing = count(number, "event is", "events are");
    (number > 0).then(|| format!("CPU {cpu}: {missing} missing, by the kernel's count"))
}

/// The file ends before its head does, or a place in it is none of the file.
const CUT: Fact = "it is cut off or damaged in its head";

/// Bytes that are read one after the other.
#[derive(Clone, Copy, Debug)]
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], Fact> {
        let end = self.at.checked_add(size);
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or(CUT)?;
        self.at += size;
        Ok(taken)
    }

    fn number(&mut self, size: usize) -> Result<u64, Fact> {
        Ok(self.take(size)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn half(&mut self) -> Result<u16, Fact> {
        Ok(self.number(2)? as u16)
    }

    fn word(&mut self) -> Result<u32, Fact> {
        Ok(self.number(4)? as u32)
    }

    fn long(&mut self) -> Result<u64, Fact> {
        self.number(8)
    }

    /// A text up to its end mark.
    fn text(&mut self) -> Result<String, Fact> {
        let rest = self.bytes.get(self.at..).ok_or(CUT)?;
        let length = rest.iter().position(|byte| *byte == 0).ok_or(CUT)?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Ok(text)
    }
}
