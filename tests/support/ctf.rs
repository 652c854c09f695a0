// SPDX-License-Identifier: BSD-3-Clause
//! Compares babeltrace2's reading of a converted trace with our own reader's of the raw file.

use std::collections::BTreeMap;

use kutrace_format::abi::event;
use kutrace_format::abi::word::Call;
use kutrace_format::event::Event;
use postprocess::raw::stream::{Item, Opening, Stream};
use postprocess::raw::{self, Raw};

/// Nanoseconds by which times may differ at the start: ours are rounded to 10, babeltrace2's to 1 and its start to one
/// count of the clock.
const ROUNDING_NS: i64 = 20;

/// An entry, as both readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Nanoseconds after 1970.
    pub ns: i64,
    /// The word of a system call; `None` for any other entry.
    pub call: Option<Call>,
}

/// Fails unless `text`, what `babeltrace2 --clock-seconds --no-delta` printed, has the same entries on each CPU as the
/// raw file of `bytes`, at the same times. Returns how many.
pub fn compare(bytes: &[u8], text: &str) -> usize {
    let raw = raw::parse(bytes).unwrap();
    let theirs = printed(text);
    let started = raw.header.start.realtime_ns as i64;
    let mut count = 0;
    for (cpu, blocks) in raw.cpus() {
        let opening = Opening::of(raw.header.flags);
        let start = raw.header.start.tsc >> raw.clock.shift();
        let ours: Vec<Entry> =
            Stream::new(cpu, blocks.to_vec(), start, opening).filter_map(|timed| entry(&raw, timed)).collect();
        let theirs = theirs.get(&cpu.number()).map_or(&[][..], |entries| entries);
        assert_eq!(ours.len(), theirs.len(), "events on CPU {cpu}");
        for (our, their) in ours.iter().zip(theirs) {
            // Its clock's rate is rounded to 1 Hz.
            let drift = (our.ns - started).abs() / (2 * raw.clock.counter_hz() as i64);
            let is_near = (our.ns - their.ns).abs() <= ROUNDING_NS + drift;
            assert!(is_near && our.call == their.call, "{our:?} {their:?}");
        }
        count += ours.len();
    }
    assert_eq!(theirs.values().map(Vec::len).sum::<usize>(), count, "no other CPU");
    count
}

fn entry(raw: &Raw, timed: raw::stream::Timed) -> Option<Entry> {
    let Item::Entry(number, words, _) = timed.item else { return None };
    let call = match Event::read(number, words) {
        Some(Event::Call { nr: ..event::SYSCALLS, call }) => Some(call),
        _ => None,
    };
    let ns = raw.clock.base * 1_000_000_000 + raw.clock.units(timed.at).0 * 10;
    Some(Entry { ns, call })
}

/// The lines by CPU, without those that only bridge time.
fn printed(text: &str) -> BTreeMap<u32, Vec<Entry>> {
    let mut cpus = BTreeMap::<u32, Vec<Entry>>::new();
    for line in text.lines().filter(|line| !line.contains(" full_time: ")) {
        let time = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).unwrap_or_else(|| panic!("{line}")).0;
        let (seconds, fraction) = time.split_once('.').unwrap_or_else(|| panic!("{line}"));
        let ns = format!("{seconds}{fraction}").parse().unwrap();
        let cpu = number(line, "cpu_id").unwrap_or_else(|| panic!("{line}"));
        cpus.entry(cpu as u32).or_default().push(Entry { ns, call: call(line) });
    }
    cpus
}

/// The call that a line shows, if it shows one.
fn call(line: &str) -> Option<Call> {
    let (dur, ret) = (number(line, "dur")?, number(line, "ret_plus_128")?);
    let folded = (ret != 0).then(|| (dur as u16, (ret - 128) as i8));
    Some(Call { arg: number(line, "arg")? as u16, folded })
}

/// The number after `name = ` in a line.
fn number(line: &str, name: &str) -> Option<i64> {
    let (_, rest) = line.split_once(&format!(" {name} = "))?;
    let digits = rest.split([',', ' ']).next()?;
    let hexadecimal = digits.strip_prefix("0x").map(|digits| i64::from_str_radix(digits, 16));
    hexadecimal.unwrap_or_else(|| digits.parse()).ok()
}
