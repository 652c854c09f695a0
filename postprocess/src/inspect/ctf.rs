// SPDX-License-Identifier: BSD-3-Clause
//! CTF: metadata that turns the blocks of a raw file into a trace of the Common Trace Format, 1.8. Nothing else is
//! needed.
//!
//! A block is a packet without any change: its header is packet header and packet context, an entry is the event
//! header, the argument words are the event's fields. The numbers come from the format crate: every event with argument
//! words there is declared, and the fields of the block's header are listed in the order of their offsets.

use std::fmt::Write;
use std::mem::offset_of;

use kutrace_format::abi::block::{Header, HEADER_WORDS};
use kutrace_format::abi::event::{self, argument_words, Shape};
use kutrace_format::abi::word::{EVENT_BITS, TIME_BITS};
use kutrace_format::event::{of_entry, Argument, Form};
use kutrace_format::file::NameKind;
use kutrace_format::flag;

use crate::event::names::{clean_sentence, Names};
use crate::event::number;
use crate::raw::name::EventNames;
use crate::raw::{self, Raw};

/// Types of the fields below. Bytes of text appear as text, up to the first zero.
const TYPES: &str = "\
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 12; align = 1; signed = false; } := u12;
typealias integer { size = 20; align = 1; signed = false; } := u20;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 24; align = 8; signed = false; } := u24;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text;
";

/// A system call's word in its two forms; see the format crate's `word`. CTF cannot subtract, hence the name
/// `ret_plus_128`; it is 0 in a call that returns later.
const CALL: &str = "\
struct call {
    enum : integer { size = 1; align = 1; signed = false; } { short_form = 0, long_form = 1 } form;
    variant <form> {
        struct {
            integer { size = 7; align = 1; signed = false; } dur;
            integer { size = 8; align = 1; signed = false; } ret_plus_128;
            integer { size = 16; align = 1; signed = false; base = 16; } arg;
        } short_form;
        struct {
            integer { size = 15; align = 1; signed = false; } dur;
            integer { size = 8; align = 1; signed = false; } ret_plus_128;
            integer { size = 8; align = 1; signed = true; } arg;
        } long_form;
    } call;
} align(32);
";

/// A field of the block's header: its offset, its size and its declaration in CTF.
struct Field {
    at: usize,
    bytes: usize,
    text: &'static str,
}

const PACKET_HEADER: &[Field] = &[
    Field { at: offset_of!(Header, magic), bytes: 4, text: "u32 magic" },
    Field { at: offset_of!(Header, uuid), bytes: 16, text: "u8 uuid[16]" },
    Field { at: offset_of!(Header, stream), bytes: 4, text: "u32 stream_id" },
];
const PACKET_CONTEXT: &[Field] = &[
    Field { at: offset_of!(Header, begin), bytes: 8, text: "counter timestamp_begin" },
    Field { at: offset_of!(Header, end), bytes: 8, text: "counter timestamp_end" },
    Field { at: offset_of!(Header, content_bits), bytes: 8, text: "u64 content_size" },
    Field { at: offset_of!(Header, packet_bits), bytes: 8, text: "u64 packet_size" },
    Field { at: offset_of!(Header, sequence), bytes: 8, text: "u64 packet_seq_num" },
    Field { at: offset_of!(Header, lost), bytes: 8, text: "u64 events_discarded" },
    Field { at: offset_of!(Header, cpu), bytes: 4, text: "u32 cpu_id" },
    Field { at: offset_of!(Header, pid), bytes: 4, text: "u32 first_pid" },
    Field { at: offset_of!(Header, tgid), bytes: 4, text: "u32 first_tgid" },
    Field { at: offset_of!(Header, task_state), bytes: 4, text: "u32 first_state" },
    Field { at: offset_of!(Header, comm), bytes: 16, text: "text first_comm[16]" },
    Field { at: offset_of!(Header, flags), bytes: 4, text: "u32 flags" },
    Field { at: offset_of!(Header, crc32), bytes: 4, text: "u32 crc32" },
    Field { at: offset_of!(Header, events), bytes: 4, text: "u32 events" },
    Field { at: offset_of!(Header, for_now), bytes: 12, text: "text reserved[12]" },
];
const _: () = assert!(follow(PACKET_CONTEXT, follow(PACKET_HEADER, 0)) == HEADER_WORDS * 4);

/// Returns the offset after `fields`, which are contiguous from `at` on.
const fn follow(fields: &[Field], mut at: usize) -> usize {
    let mut n = 0;
    while n < fields.len() {
        assert!(fields[n].at == at);
        at += fields[n].bytes;
        n += 1;
    }
    at
}

/// Returns the metadata of a trace.
pub fn metadata(raw: &Raw) -> String {
    let (hz, seconds, counts) = clock(raw);
    let start = format!("freq = {hz}; offset_s = {seconds}; offset = {counts}; ");
    let (context, header) = (fields(PACKET_CONTEXT), fields(PACKET_HEADER));
    let (uuid, environment) = (raw::uuid(&raw.header.uuid), environment(raw));
    let mut text = format!(
        "/* CTF 1.8 */\n{TYPES}{CALL}\
trace {{ major = 1; minor = 8; uuid = \"{uuid}\"; byte_order = le; packet.header := struct {{ {header}}}; }};
env {{ {environment}}};
clock {{ name = counter; {start}}};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.counter.value; }} := counter;
stream {{
    id = 0;
    packet.context := struct {{ {context}}};
    event.header := struct {{
        integer {{ size = {EVENT_BITS}; align = 1; signed = false; }} id;
        integer {{ size = {TIME_BITS}; align = 1; signed = false; map = clock.counter.value; }} timestamp;
    }} align(32);
}};
"
    );
    let mut names = Names::default();
    let (mut known, _) = EventNames::new(raw.names(), &mut names);
    for number in (0..1 << EVENT_BITS).filter(|&number| argument_words(number).is_some()) {
        let (name, fields) = (name(number, &mut known, &mut names), arguments(number));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "event {{ id = {number}; name = \"{name}\"; stream_id = 0; fields := {fields}; }};");
    }
    text
}

/// Returns the rate of the counter, and the time of its zero: seconds and counts after 1970.
fn clock(raw: &Raw) -> (u64, i64, u64) {
    let hz = raw.clock.counter_hz();
    let started = i128::from(raw.header.start.realtime_ns) * i128::from(hz) / 1_000_000_000;
    let zero = started - i128::from(raw.header.start.tsc >> raw.clock.shift());
    (hz, zero.div_euclid(hz.into()) as i64, zero.rem_euclid(hz.into()) as u64)
}

fn fields(fields: &[Field]) -> String {
    fields.iter().map(|field| format!("{}; ", field.text)).collect()
}

fn environment(raw: &Raw) -> String {
    let mut text = format!("tracer_name = \"kutrace\"; tracer_major = {}; ", raw.flags() & flag::VERSION);
    let kinds = [(NameKind::Host, "hostname"), (NameKind::Kernel, "kernel_version"), (NameKind::CpuModel, "cpu_model")];
    for (kind, key) in kinds {
        for record in raw.names().iter().filter(|record| record.kind == kind as u16) {
            let _ = write!(text, "{key} = \"{}\"; ", clean_sentence(record.text));
        }
    }
    text
}

/// Returns the name of an event: as in the event text, if it has a name of its own there.
fn name(number: u16, known: &mut EventNames, names: &mut Names) -> String {
    let default = of_entry(number).map_or("", |row| row.name).to_string();
    let id = match number {
        event::NOP..=event::NAME | event::OPEN_RETURN | event::SWITCH => return default,
        event::PC_USER | event::PC_KERNEL => return default,
        event::SOFTIRQ..=event::SOFTIRQ_LAST => known.softirq(number::SOFTIRQ, number.into(), names),
        event::SOFTIRQ_RETURN..=event::SOFTIRQ_RETURN_LAST => {
            known.softirq(number::SOFTIRQ_RETURN, number.into(), names)
        }
        event::SYSCALL32..=event::SYSCALL32_LAST => {
            known.event(number::SYSCALL32 + u32::from(number - event::SYSCALL32), names)
        }
        event::SMALL_RETURN..=event::SMALL_RETURN_LAST => {
            return format!("{default} {}", i32::from(number - event::SMALL_RETURN) - 128)
        }
        _ => known.event(number.into(), names),
    };
    names.text(id).to_string()
}

/// Returns the fields of an event's argument words.
fn arguments(number: u16) -> String {
    let text = |Argument { name, form }: &Argument| match form {
        Form::Unsigned(bits) => format!("u{bits} {name}; "),
        Form::Signed(bits) => format!("i{bits} {name}; "),
        Form::Counter => format!("counter {name}; "),
        Form::Text(bytes) => format!("text {name}[{bytes}]; "),
        Form::Call => format!("struct call {name}; "),
        Form::Words(words) => format!("u32 {name}[{words}]; "),
    };
    match event::shape(number).map_or(&[][..], Shape::arguments) {
        [Argument { form: Form::Call, .. }] => "struct call".to_string(),
        arguments => format!("struct {{ {}}}", arguments.iter().map(text).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use kutrace_format::event::rows;

    use super::*;

    #[test]
    fn every_type_of_a_field_is_declared() {
        for shape in rows().filter_map(|row| row.shape) {
            for argument in shape.arguments() {
                let name = match argument.form {
                    Form::Unsigned(bits) => format!("u{bits}"),
                    Form::Signed(bits) => format!("i{bits}"),
                    Form::Text(_) => "text".to_string(),
                    Form::Words(_) => "u32".to_string(),
                    Form::Counter | Form::Call => continue,
                };
                assert!(TYPES.contains(&format!(" := {name};\n")), "{name} of {argument:?}");
            }
        }
    }

    #[test]
    fn the_fields_of_an_event_are_in_the_order_of_its_words() {
        assert_eq!(arguments(event::NOP), "struct { }");
        assert_eq!(arguments(event::SYSCALL), "struct call");
        assert_eq!(arguments(event::IPI), "struct { u16 cpu; u8 vector; u8 unused; }");
        assert_eq!(arguments(event::TASK), "struct { u32 pid; u32 tgid; u16 call; u16 cgroup; text comm[16]; }");
    }
}
