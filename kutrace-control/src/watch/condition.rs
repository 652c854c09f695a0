// SPDX-License-Identifier: BSD-3-Clause
//! Conditions to watch for, in their written form: `call:fsync > 50ms`, `wait_cpu > 5ms`, `psi:cpu some 10%`, `signal`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use kutrace_format::abi::event::{
    IRQ, IRQ_LAST, IRQ_RETURN, IRQ_RETURN_LAST, MARK_A, MARK_C, OPEN_RETURN, RESOURCE, RPC_REQUEST, RPC_RESPONSE,
    RUNNABLE, SMALL_RETURN, SMALL_RETURN_LAST, SOFTIRQ, SOFTIRQ_LAST, SOFTIRQ_RETURN, SOFTIRQ_RETURN_LAST, SYSCALL,
    SYSCALL32, SYSCALL_RETURN,
};
use kutrace_format::base40;
use kutrace_format::file::NameKind;
use postprocess::tables;

use crate::quantity::duration;

/// A condition, and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The user's text, with single spaces.
    pub text: String,
    /// The parsed condition.
    pub what: What,
}

/// Kind of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Something takes longer than this many nanoseconds.
    Longer(Thing, u64),
    /// Threads wait for a resource for more than this part of a second.
    Pressure {
        /// `cpu`, `io`, `memory` or `irq`.
        resource: String,
        /// True if all threads wait.
        full: bool,
        /// Percent of the time.
        percent: f64,
    },
    /// SIGUSR1 arrives.
    Signal,
    /// A program requests a snapshot by `kutrace::keep`.
    Keep,
}

/// Something with a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// An RPC of this method, from its request to its response.
    Rpc(String),
    /// The time from one mark of a thread to another.
    Mark(String, String),
    /// A span that a program records without a system call, also an async one.
    Span(String),
    /// A system call: its possible event numbers.
    Call(Vec<u16>),
    /// A runnable thread waits for a CPU.
    WaitCpu,
    /// A softirq; of this number.
    Softirq(Option<u8>),
    /// An interrupt of a device, or of the processor.
    Irq(String),
    /// A thread of this name keeps its CPU.
    Run(String),
}

/// Resources with pressure.
const RESOURCES: [&str; 4] = ["cpu", "io", "irq", "memory"];
/// Text that lists the valid conditions.
const EXPECTED: &str =
    "expected span:NAME, rpc:METHOD, mark:A..B, call:NAME, wait_cpu, softirq, irq:NAME or run:PROGRAM with \
                        `> TIME` after it, `psi:cpu some 10%`, signal or keep";

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let invalid = |fact: &str| format!("invalid condition '{text}': {fact}");
        let what = what(text.trim()).map_err(|fact| invalid(&fact))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(Condition { text: words.join(" "), what })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// Returns whether the condition is about records in programs' own memory.
    pub fn is_of_programs(&self) -> bool {
        matches!(self.what, What::Longer(Thing::Span(_) | Thing::Mark(..), _))
    }

    /// Numbers of the events needed to evaluate the condition, in addition to switches and ends of threads.
    pub fn events(&self) -> Vec<RangeInclusive<u16>> {
        match &self.what {
            What::Longer(Thing::Rpc(_), _) => vec![RPC_REQUEST..=RPC_RESPONSE],
            What::Longer(Thing::Mark(..), _) => vec![MARK_A..=MARK_C],
            What::Longer(Thing::Call(events), _) => {
                let returns =
                    events.iter().filter(|&&call| call < SYSCALL32).map(|call| call - SYSCALL + SYSCALL_RETURN);
                let one = |event| event..=event;
                let of_any = [OPEN_RETURN..=OPEN_RETURN, SMALL_RETURN..=SMALL_RETURN_LAST];
                events.iter().copied().chain(returns).map(one).chain(of_any).collect()
            }
            What::Longer(Thing::WaitCpu, _) => vec![RUNNABLE..=RUNNABLE],
            What::Longer(Thing::Softirq(_), _) => vec![SOFTIRQ..=SOFTIRQ_LAST, SOFTIRQ_RETURN..=SOFTIRQ_RETURN_LAST],
            What::Longer(Thing::Irq(_), _) => vec![IRQ..=IRQ_LAST, IRQ_RETURN..=IRQ_RETURN_LAST],
            What::Keep => vec![MARK_C..=MARK_C, RESOURCE..=RESOURCE],
            What::Longer(Thing::Run(_) | Thing::Span(_), _) | What::Pressure { .. } | What::Signal => Vec::new(),
        }
    }
}

fn what(text: &str) -> Result<What, String> {
    match text {
        "signal" => return Ok(What::Signal),
        "keep" => return Ok(What::Keep),
        _ => {}
    }
    if let Some(pressure) = text.strip_prefix("psi:") {
        return psi(pressure);
    }
    let (thing, limit) = text.split_once('>').ok_or(EXPECTED)?;
    let limit = duration(limit.trim()).map_err(|_| format!("'{}' is not a time such as 5ms", limit.trim()))?;
    let limit = u64::try_from(limit.as_nanos()).map_err(|_| "this time is too long")?;
    Ok(What::Longer(self::thing(thing.trim())?, limit))
}

fn thing(text: &str) -> Result<Thing, String> {
    let (kind, name) = text.split_once(':').unwrap_or((text, ""));
    let named = |thing: fn(String) -> Thing| match name {
        "" => Err(format!("{kind}: needs a name")),
        name => Ok(thing(name.to_string())),
    };
    match (kind, name) {
        ("rpc", _) => named(Thing::Rpc),
        ("irq", _) => named(Thing::Irq),
        ("run", _) => named(Thing::Run),
        ("span", _) => named(Thing::Span),
        ("wait_cpu", "") => Ok(Thing::WaitCpu),
        ("softirq", "") => Ok(Thing::Softirq(None)),
        ("softirq", name) => {
            let number = tables::of(NameKind::Softirq)
                .find(|(_, known)| *known == name || name.strip_prefix("BH:") == Some(known));
            let (number, _) = number.ok_or_else(|| format!("no softirq is named {name}"))?;
            Ok(Thing::Softirq(Some(number as u8)))
        }
        ("mark", _) => {
            let both = name.split_once("..").filter(|(from, to)| !from.is_empty() && !to.is_empty());
            let (from, to) = both.ok_or("mark: expected two names separated by ..")?;
            Ok(Thing::Mark(from.to_string(), to.to_string()))
        }
        ("call", "") => Err("call: needs a name".to_string()),
        ("call", name) => {
            let of = |kind, base: u16| {
                let numbers = tables::of(kind).filter(move |(_, known)| *known == name);
                numbers.filter_map(move |(number, _)| Some(base + u16::try_from(number).ok().filter(|n| *n < 511)?))
            };
            let events: Vec<u16> = of(NameKind::Syscall, SYSCALL).chain(of(NameKind::Syscall32, SYSCALL32)).collect();
            match events.is_empty() {
                true => Err(format!("no system call is named {name}")),
                false => Ok(Thing::Call(events)),
            }
        }
        _ => Err(EXPECTED.to_string()),
    }
}

/// The value of a name as the label of a mark by system call, if it is valid: one to six of a-z 0-9 - . /
pub fn label(text: &str) -> Option<u32> {
    let digits: Option<Vec<u32>> = text.bytes().map(base40::digit).collect();
    let digits = digits.filter(|digits| (1..=base40::LENGTH).contains(&digits.len()))?;
    Some(base40::value(digits.into_iter()))
}

fn psi(text: &str) -> Result<What, String> {
    let expected = "expected a resource, some or full, and a percentage, as in psi:cpu some 10%";
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != ">").collect();
    let [resource, which, percent] = words[..] else { return Err(expected.to_string()) };
    let full = match which {
        "some" => false,
        "full" => true,
        _ => return Err(expected.to_string()),
    };
    let percent = percent.strip_suffix('%').and_then(|percent| percent.parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..100.0).contains(percent)).ok_or(expected)?;
    match RESOURCES.contains(&resource) {
        true => Ok(What::Pressure { resource: resource.to_string(), full, percent }),
        false => Err(format!("the kernel measures no pressure of '{resource}', only of {}", RESOURCES.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<What, String> {
        text.parse::<Condition>().map(|condition| condition.what)
    }

    #[test]
    fn conditions_are_understood_with_and_without_spaces() {
        let fsync = vec![SYSCALL + 74, SYSCALL32 + 118];
        for text in ["call:fsync > 50ms", "call:fsync>50ms", "  call:fsync  >  0.05 "] {
            assert_eq!(of(text), Ok(What::Longer(Thing::Call(fsync.clone()), 50_000_000)), "{text}");
        }
        assert_eq!(of("wait_cpu > 5ms"), Ok(What::Longer(Thing::WaitCpu, 5_000_000)));
        assert_eq!(of("run:make>1s"), Ok(What::Longer(Thing::Run("make".into()), 1_000_000_000)));
        assert_eq!(of("rpc:get > 20ms"), Ok(What::Longer(Thing::Rpc("get".into()), 20_000_000)));
        assert_eq!(of("softirq > 2ms"), Ok(What::Longer(Thing::Softirq(None), 2_000_000)));
        assert_eq!(of("softirq:rx > 2ms"), Ok(What::Longer(Thing::Softirq(Some(3)), 2_000_000)));
        assert_eq!(of("mark:q../q > 1ms"), Ok(What::Longer(Thing::Mark("q".into(), "/q".into()), 1_000_000)));
        assert_eq!(of("span:find it > 1ms"), Ok(What::Longer(Thing::Span("find it".into()), 1_000_000)));
        let value = |text: &str| base40::value(text.bytes().filter_map(base40::digit));
        assert_eq!(
            ["q", "/hello", "seven77", "a b", ""].map(label),
            [Some(value("q")), Some(value("/hello")), None, None, None]
        );
        let pressure = What::Pressure { resource: "cpu".into(), full: false, percent: 10.0 };
        assert_eq!(of("psi:cpu some 10%"), Ok(pressure.clone()));
        assert_eq!(of("psi:cpu some > 10%"), Ok(pressure));
        assert_eq!((of("signal"), of("keep")), (Ok(What::Signal), Ok(What::Keep)));
        assert_eq!("call:fsync  > 50ms".parse::<Condition>().unwrap().to_string(), "call:fsync > 50ms");
    }

    #[test]
    fn what_is_not_understood_is_said_in_one_line() {
        for (text, fact) in [
            ("", EXPECTED),
            ("fsync > 5ms", EXPECTED),
            ("call:fsync", EXPECTED),
            ("call:fsync > soon", "'soon' is not a time such as 5ms"),
            ("call:fsink > 5ms", "no system call is named fsink"),
            ("rpc: > 5ms", "rpc: needs a name"),
            ("mark:a > 5ms", "mark: expected two names separated by .."),
            ("mark:..b > 5ms", "mark: expected two names separated by .."),
            ("span: > 5ms", "span: needs a name"),
            ("psi:gpu some 10%", "the kernel measures no pressure of 'gpu', only of cpu, io, irq, memory"),
            ("psi:cpu 10%", "expected a resource, some or full, and a percentage, as in psi:cpu some 10%"),
            ("softirq:nothing > 1ms", "no softirq is named nothing"),
        ] {
            assert_eq!(of(text).unwrap_err(), format!("invalid condition '{text}': {fact}"));
        }
    }
}
