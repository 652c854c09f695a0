// SPDX-License-Identifier: BSD-3-Clause
//! Text to events: ours, or the original's, sorted or not.
//!
//! Invariant: no content is an error; a line that is not an event, name or comment is counted in
//! [`super::Meta::quality`].

use std::io::{self, BufRead};

use kutrace_format::abi::event::NAME_LENGTH;
use kutrace_format::capability::Unseen;

use super::batch::Batch;
use super::fact::Fact;
use super::names::{NameId, Names};
use super::what::What;
use super::{digits, number, Event, Interval, Meta, CPUS_MAX};
use crate::id::{CpuId, Pid};
use crate::line::{Lines, Unread};
use crate::time::Time;

/// The newest known format.
const NEWEST: u32 = 5;
/// Number of events in a batch.
const BATCH: usize = 1 << 12;

/// Reads event lines.
///
/// Text of a format that [orders it](Unseen::orders_text), stated before its first event, is ordered, and is passed on
/// as it is read, unless its first events show that someone has changed this. Any other text is read to its end and
/// ordered first.
#[derive(Debug)]
pub struct Text<R> {
    lines: Lines<R>,
    read: Read,
    ordered: bool,
}

/// Contents read so far.
#[derive(Debug)]
struct Read {
    meta: Meta,
    names: Names,
    /// Number of names passed on.
    sent: usize,
    events: Vec<Event>,
    unread: Unread,
    /// The number of the line being read.
    at: u64,
    /// Number of lines of names and events, and the expected number, if the end states it.
    count: u64,
    all: Option<Option<u64>>,
    /// The last name seen with each event number: most lines repeat it, which saves the lookup.
    recent: Vec<NameId>,
    /// True once the header was seen, and once another one was.
    begun: bool,
    another: bool,
}

impl<R: BufRead> Text<R> {
    /// A reader of `input`; reads up to the first event, or everything if the text may not be ordered.
    ///
    /// # Errors
    /// Any error of `input`, here and below.
    pub fn new(input: R) -> io::Result<Text<R>> {
        let meta = Meta { format: 3, ..Meta::default() };
        let (names, events, recent) = (Names::default(), Vec::new(), vec![NameId::EMPTY; number::NUMBERS as usize]);
        let read = Read {
            meta,
            names,
            sent: 0,
            events,
            unread: Unread::default(),
            at: 0,
            count: 0,
            all: None,
            recent,
            begun: false,
            another: false,
        };
        let mut text = Text { lines: Lines::new(input), read, ordered: false };
        while text.read.events.is_empty() && text.next_line()? {
            text.read.unread.hope("event text")?;
        }
        text.ordered = Unseen::orders_text(text.read.meta.format);
        while text.ordered && text.read.events.len() < BATCH && text.next_line()? {}
        text.ordered &= text.read.events.is_sorted_by_key(|e| e.ts);
        if !text.ordered {
            while text.next_line()? {}
            // Events of the same time keep their order.
            text.read.events.sort_by_key(|e| e.ts);
        }
        Ok(text)
    }

    /// Facts about the whole trace so far.
    pub fn meta(&self) -> &Meta {
        &self.read.meta
    }

    /// The next events; `None` at the end.
    ///
    /// # Errors
    /// As [`Text::new`].
    pub fn batch(&mut self) -> io::Result<Option<Batch<Event>>> {
        while self.ordered && self.read.events.len() < BATCH && self.next_line()? {}
        let Read { names, sent, events, .. } = &mut self.read;
        let new = names.since(*sent).to_vec();
        *sent += new.len();
        let rows = std::mem::replace(events, Vec::with_capacity(BATCH));
        Ok(Some(Batch { names: new, rows }).filter(|b| !b.rows.is_empty()))
    }

    /// Facts about the whole trace at the end.
    pub fn finish(self) -> Meta {
        let Read { mut meta, unread, count, all, another, .. } = self.read;
        meta.quality.extend(unread.sentence("event text"));
        match all.filter(|_| !another) {
            Some(None) => meta.quality.push("the event text ends before its end".to_string()),
            Some(Some(all)) if all != count => {
                meta.quality.push(format!("the event text has {count} of {all} lines of events"));
            }
            _ => {}
        }
        if meta.format > NEWEST {
            meta.quality.push(format!("the events are of format {}, newer than this program", meta.format));
        }
        meta
    }

    /// Reads a line; false if there is none.
    fn next_line(&mut self) -> io::Result<bool> {
        let Some((line, whole)) = self.lines.read_to_end()?.filter(|_| !self.read.another) else { return Ok(false) };
        self.read.at += 1;
        self.read.line(line.trim_ascii(), whole);
        Ok(!self.read.another)
    }
}

impl Read {
    /// Takes a line; in a text with a count, a line without an end is cut off.
    fn line(&mut self, line: &[u8], whole: bool) {
        if line.first() == Some(&b'#') {
            return self.comment(&String::from_utf8_lossy(line));
        }
        self.count += u64::from(!line.is_empty());
        if !line.is_empty() && (!whole && self.all.is_some() || !self.event(line)) {
            self.unread.add(self.at);
        }
    }

    /// Takes the line of a fact or an event; false if it is neither.
    fn event(&mut self, line: &[u8]) -> bool {
        let mut fields = Fields { rest: line };
        let (Some(ts), Some(dur), Some(event)) = (fields.number(), fields.number(), fields.number()) else {
            return false;
        };
        let Ok(event) = u32::try_from(event) else { return false };
        let read = match What::of(event) {
            What::Fact(_) => self.fact(Time(ts), event, &mut fields),
            _ => self.transition(Time(ts), Time(dur), event, &mut fields),
        };
        let Some(read) = read else { return false };
        self.events.push(read);
        true
    }

    fn fact(&mut self, ts: Time, event: u32, fields: &mut Fields) -> Option<Event> {
        let arg = fields.word()?;
        let text = String::from_utf8_lossy(fields.rest.trim_ascii());
        let (fact, name) = Fact::read(event & !NAME_LENGTH, &text)?;
        let (what, name) = (What::Fact(fact), self.names.id(name));
        Some(Event { ts, dur: Time::UNIT, what, arg, name, ..Event::default() })
    }

    fn transition(&mut self, ts: Time, dur: Time, event: u32, fields: &mut Fields) -> Option<Event> {
        let dur = Some(dur).filter(|&dur| dur >= Time::ZERO)?;
        let cpu = CpuId::new(u32::try_from(fields.number()?).ok()?);
        let pid = Pid::of_column(fields.number()?)??;
        let rpc = u32::try_from(fields.number()?).ok()?;
        let arg = fields.word()?;
        let ret = fields.word()? as i32;
        let ipc = u8::try_from(fields.number()?).ok()?;
        let read = Event { ts, dur, what: What::of(event), cpu, pid, rpc, arg, ret, ipc, name: NameId::EMPTY };
        let recent = &mut self.recent[(event % number::NUMBERS) as usize];
        fields.skip_blanks();
        let behind = fields.rest.strip_prefix(self.names.text(*recent).as_bytes());
        if event == number::PROGRAM_VALUE || !matches!(behind, Some([b' ', ..])) {
            let text = fields.text()?;
            let text = if event == number::PROGRAM_VALUE { without_value(text, &read) } else { text };
            *recent = self.names.id(&String::from_utf8_lossy(text));
        }
        Some(Event { name: *recent, ..read })
    }

    fn comment(&mut self, line: &str) {
        let meta = &mut self.meta;
        if let Some(block) = line.strip_prefix("# [1] ") {
            return self.block(block);
        }
        let Some((key, value)) = line.strip_prefix("# ## ").and_then(|l| l.split_once(": ")) else { return };
        match key {
            "VERSION" if std::mem::replace(&mut self.begun, true) => {
                self.another = true;
                let fact = format!("line {}: another trace begins; skipped: one trace at a time", self.at);
                meta.quality.push(fact);
            }
            "FORMAT" => meta.format = value.parse().unwrap_or(meta.format),
            "FLAGS" => meta.flags |= value.parse().unwrap_or(0),
            "LOST" => meta.lost = meta.lost.saturating_add(value.parse().unwrap_or(0)),
            "UNSEEN" => match Unseen::from_text(value) {
                Some(Unseen(bit)) => meta.unseen |= bit,
                None => meta.quality.push(format!("the trace cannot show {value}, which this program does not know")),
            },
            "MACHINE" => match serde_json::from_str(value) {
                Ok(machine) => meta.machines.push(machine),
                Err(_) => self.unread.add(self.at),
            },
            "BOOT_ID" => meta.boot_id = value.to_string(),
            "MONOTONIC" => meta.monotonic = value.parse().ok(),
            "RECORDER" => meta.recorder = value.to_string(),
            "COUNTED" => meta.counted.push(value.to_string()),
            "QUALITY" => meta.quality.push(value.to_string()),
            "EVENTS" => self.all = Some(value.parse().ok()),
            "CPU" => match interval(value) {
                Some(i) => self.traced(i),
                None => self.unread.add(self.at),
            },
            _ => {}
        }
    }

    /// Takes the interval of a CPU; two for one CPU are joined.
    fn traced(&mut self, i: Interval) {
        match self.meta.intervals.iter_mut().find(|known| known.cpu == i.cpu) {
            Some(known) => (known.from, known.to) = (known.from.min(i.from), known.to.max(i.to)),
            None => self.meta.intervals.push(i),
        }
    }

    /// Takes the minute of the earliest block as the minute that times count from.
    fn block(&mut self, text: &str) {
        let Some(minute) = text.get(..17).filter(|t| t.starts_with(|c: char| c.is_ascii_digit())) else { return };
        let base = format!("{minute}00");
        let known = &mut self.meta.base;
        if known.is_empty() || base < *known {
            *known = base;
        }
    }
}

/// The name of a value, which is followed by the value in lines.
fn without_value<'a>(text: &'a [u8], event: &Event) -> &'a [u8] {
    text.strip_suffix(format!("={}", event.value()).as_bytes()).unwrap_or(text)
}

fn interval(text: &str) -> Option<Interval> {
    let mut fields = Fields { rest: text.as_bytes() };
    let cpu = CpuId::of_column(fields.number()?)?.filter(|cpu| cpu.number() < CPUS_MAX)?;
    let (from, to) = (fields.number()?, fields.number()?);
    (from <= to).then_some(Interval { cpu, from: Time(from), to: Time(to) })
}

/// The blank-separated fields of a line.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let (text, rest) = self.rest.split_at(memchr::memchr(b' ', self.rest).unwrap_or(self.rest.len()));
        self.rest = rest;
        (!text.is_empty()).then_some(text)
    }

    /// A number of 32 bits, signed or unsigned.
    #[inline]
    fn word(&mut self) -> Option<u32> {
        let number = self.number()?;
        u32::try_from(number).or_else(|_| i32::try_from(number).map(|number| number as u32)).ok()
    }

    #[inline]
    fn number(&mut self) -> Option<i64> {
        self.skip_blanks();
        // Most numbers have one digit.
        if let [digit @ b'0'..=b'9', b' ', rest @ ..] = self.rest {
            self.rest = rest;
            return Some((digit - b'0').into());
        }
        let (value, rest) = digits::split(self.rest)?;
        self.rest = rest;
        rest.first().is_none_or(|&c| c == b' ').then_some(value)
    }
}
