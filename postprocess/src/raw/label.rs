// SPDX-License-Identifier: BSD-3-Clause
//! Names of programs' entries: the name in the program's area, with the values of its fields.
//!
//! A mark `request` with fields is named `request(size=17,path=/index)`. If an entry lacks a field, its value is `?`,
//! and the list ends there; if it has more values than its name has fields, `...` is at the end.

use std::fmt::Write;

use foldhash::HashMap;
use kutrace_format::abi::programs::{ASYNC_BEGIN, ASYNC_END, END, VALUE};
use kutrace_format::program::{fields, Entry, Fields, Value};

use super::program::{Programs, Said};
use crate::event::names::{clean, NameId, Names};

/// Maximum bytes of the fields of an entry: its payload has 120, but a name can have more fields than a library writes.
const FIELDS_MAX: usize = 480;

/// Names seen so far.
#[derive(Debug, Default)]
pub struct Labels {
    /// By program, number and kind of entry: the name of an entry without fields, and the number that all places of the
    /// program with that name share.
    plain: HashMap<(u32, u32, u32), (NameId, u32)>,
    /// By program and name: the first number with that name.
    numbers: HashMap<(u32, NameId), u32>,
    /// Async parts that have begun and not ended, by program, name and number: a unique number.
    open: HashMap<(u32, u32, u64), u32>,
    begun: u32,
}

/// Name of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The name.
    pub name: NameId,
    /// Number of the name.
    pub number: u32,
}

impl Labels {
    /// The name of a program's entry.
    pub fn label(&mut self, said: &Said, programs: &Programs, names: &mut Names) -> Label {
        let Said { program, section, entry, .. } = *said;
        let text = programs.name(section, entry.name);
        let key = (program, entry.name, entry.kind);
        let known = self.plain.get(&key).copied();
        let (plain, number) = known.unwrap_or_else(|| {
            let (base, _) = fields(text.unwrap_or_default(), &[]);
            let base = if base.is_empty() { format!("unnamed#{}", entry.name) } else { clean(base) };
            let id = names.id(&base);
            let number = *self.numbers.entry((program, id)).or_insert(entry.name);
            let plain = if matches!(entry.kind, END | ASYNC_END) { names.id(&format!("/{base}")) } else { id };
            self.plain.insert(key, (plain, number));
            (plain, number)
        });
        let (_, list) = fields(text.unwrap_or_default(), entry.fields);
        let name = match entry.kind {
            // The value stays out of the name: there may be as many values as entries.
            END | VALUE => plain,
            ASYNC_BEGIN => with(plain, Some(entry.value), list, names),
            // The place may be the one that began it, with fields that an end does not have.
            ASYNC_END => with(plain, Some(entry.value), fields(&[], &[]).1, names),
            _ => with(plain, None, list, names),
        };
        Label { name, number }
    }

    /// Number of an async part, which is new where the part begins and forgotten where it ends.
    pub fn part(&mut self, program: u32, entry: &Entry, name: u32) -> u32 {
        let key = (program, name, entry.value);
        let known = if entry.kind == ASYNC_END { self.open.remove(&key) } else { None };
        known.unwrap_or_else(|| {
            self.begun += 1;
            if entry.kind == ASYNC_BEGIN {
                self.open.insert(key, self.begun);
            }
            self.begun
        })
    }
}

/// A name, followed by a number and fields, if there are any.
fn with(plain: NameId, id: Option<u64>, mut list: Fields, names: &mut Names) -> NameId {
    let mut text = String::new();
    let mut add = |name: &str, value: &dyn std::fmt::Display| {
        let _ = write!(text, "{}{name}={value}", if text.is_empty() { "(" } else { "," });
    };
    if let Some(id) = id {
        add("id", &id);
    }
    let mut shown = 0;
    while let Some((name, value)) = list.next().filter(|_| shown < FIELDS_MAX) {
        let name = clean(name);
        shown += name.len() + 20;
        match value {
            Value::Unsigned(number) => add(&name, &number),
            Value::Signed(number) => add(&name, &number),
            Value::Float(number) => add(&name, &number),
            Value::Bool(is) => add(&name, &is),
            Value::Hex(number) => add(&name, &format_args!("0x{number:x}")),
            Value::Text(said, cut) => add(&name, &format_args!("{}{}", clean(said), if cut { "..." } else { "" })),
            Value::Constant(said) => add(&name, &clean(said)),
            Value::Missing => {
                add(&name, &"?");
                break;
            }
        }
    }
    if list.left() > 0 {
        add("...", &list.left());
    }
    if text.is_empty() {
        return plain;
    }
    let text = format!("{}{text})", names.text(plain));
    names.id(&text)
}
