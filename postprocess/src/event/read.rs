// SPDX-License-Identifier: BSD-3-Clause
//! Text to events: ours, or the original's, sorted or not.
//!
//! Invariant: no content is an error; a line that is no event, name or comment is counted in [`super::Meta::quality`].

use std::io::{self, BufRead};

use super::{digits, number, Event, Events, Interval, CPUS_MAX};

/// Reads event lines to the end.
///
/// # Errors
/// Whatever `input` answers.
pub fn read(input: &mut impl BufRead) -> io::Result<Events> {
    let mut reader = Reader::default();
    reader.all.meta.format = 3;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        reader.line(line.trim_ascii());
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    all: Events,
    last: i64,
    unordered: bool,
    unread: u64,
    /// The last name seen with each event number: most lines repeat it, which saves the lookup.
    recent: Vec<u32>,
}

impl Reader {
    fn line(&mut self, line: &[u8]) {
        if line.first() == Some(&b'#') {
            self.comment(&String::from_utf8_lossy(line));
        } else if !line.is_empty() && !self.event(line) {
            self.unread += 1;
        }
    }

    /// Takes a name or event line; false if it is neither.
    fn event(&mut self, line: &[u8]) -> bool {
        let mut fields = Fields { rest: line };
        let (Some(ts), Some(dur), Some(event)) = (fields.number(), fields.number(), fields.number()) else {
            return false;
        };
        let Ok(event) = u32::try_from(event) else { return false };
        let read = match number::class(event) {
            number::Class::Name => self.name(ts, event, &mut fields),
            _ => self.transition(ts, dur, event, &mut fields),
        };
        let Some(read) = read else { return false };
        self.unordered |= read.ts < self.last;
        self.last = read.ts;
        self.all.events.push(read);
        true
    }

    fn name(&mut self, ts: i64, event: u32, fields: &mut Fields) -> Option<Event> {
        let arg = fields.number()? as u32;
        let name = self.all.names.id(&String::from_utf8_lossy(fields.rest.trim_ascii()));
        Some(Event { ts, dur: 1, event: event & 0xf0f, arg, name, ..Event::default() })
    }

    fn transition(&mut self, ts: i64, dur: i64, event: u32, fields: &mut Fields) -> Option<Event> {
        let cpu = u32::try_from(fields.number()?).ok()?;
        let pid = fields.number()? as u32;
        let rpc = fields.number()? as u32;
        let arg = fields.number()? as u32;
        let ret = fields.number()? as u32;
        let ipc = u8::try_from(fields.number()?).ok()?;
        let name = self.named(event, fields.text()?);
        Some(Event { ts, dur: dur.max(0), event, cpu, pid, rpc, arg, ret, ipc, name })
    }

    fn named(&mut self, event: u32, text: &[u8]) -> u32 {
        let at = (event & 0xfff) as usize;
        if self.recent.len() <= at {
            self.recent.resize(0x1000, 0);
        }
        if self.all.names.text(self.recent[at]).as_bytes() != text {
            self.recent[at] = self.all.names.id(&String::from_utf8_lossy(text));
        }
        self.recent[at]
    }

    fn comment(&mut self, line: &str) {
        let meta = &mut self.all.meta;
        if let Some(block) = line.strip_prefix("# [1] ") {
            return self.block(block);
        }
        let Some((key, value)) = line.strip_prefix("# ## ").and_then(|l| l.split_once(": ")) else { return };
        match key {
            "FORMAT" => meta.format = value.parse().unwrap_or(meta.format),
            "FLAGS" => meta.flags |= value.parse().unwrap_or(0),
            "LOST" => meta.lost = meta.lost.saturating_add(value.parse().unwrap_or(0)),
            "QUALITY" => meta.quality.push(value.to_string()),
            "CPU" => match interval(value) {
                Some(i) => self.traced(i),
                None => self.unread += 1,
            },
            _ => {}
        }
    }

    /// Takes the interval of a CPU; of two for one CPU, what is between their ends.
    fn traced(&mut self, i: Interval) {
        match self.all.meta.intervals.iter_mut().find(|known| known.cpu == i.cpu) {
            Some(known) => (known.from, known.to) = (known.from.min(i.from), known.to.max(i.to)),
            None => self.all.meta.intervals.push(i),
        }
    }

    /// Takes the minute of the earliest block as the one that times count from.
    fn block(&mut self, text: &str) {
        let Some(minute) = text.get(..17).filter(|t| t.starts_with(|c: char| c.is_ascii_digit())) else { return };
        let base = format!("{minute}00");
        let known = &mut self.all.meta.base;
        if known.is_empty() || base < *known {
            *known = base;
        }
    }

    fn finish(mut self) -> Events {
        if self.unordered {
            self.all.events.sort_by_key(|e| e.ts);
        }
        if self.unread > 0 {
            let n = self.unread;
            self.all.meta.quality.push(format!("{n} lines of the event text could not be read"));
        }
        self.all
    }
}

fn interval(text: &str) -> Option<Interval> {
    let mut fields = Fields { rest: text.as_bytes() };
    let cpu = u32::try_from(fields.number()?).ok().filter(|&cpu| cpu < CPUS_MAX)?;
    let (from, to) = (fields.number()?, fields.number()?);
    (from <= to).then_some(Interval { cpu, from, to })
}

/// The blank-separated fields of a line.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|&c| c != b' ')?;
        let rest = &self.rest[start..];
        let end = rest.iter().position(|&c| c == b' ').unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }

    #[inline]
    fn number(&mut self) -> Option<i64> {
        digits::get(self.text()?)
    }
}
