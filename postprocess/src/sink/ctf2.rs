// SPDX-License-Identifier: BSD-3-Clause
//! The metadata of CTF 2: a sequence of JSON texts, where CTF 1.8 has one text of its own language. The streams of both
//! are the same bytes, and what they hold is declared once, in the words of CTF 1.8: `u32 magic; text comm[16];`.
//!
//! In CTF 2 a field means something by its role, not by its name; [`ROLES`] says which names have which.

use serde_json::{json, Value};

/// Which edition of the Common Trace Format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edition {
    /// 1.8: all that read CTF.
    #[default]
    One,
    /// 2: babeltrace2 from 2.1 on.
    Two,
}

/// What fields of packets and headers of events mean, by name.
const ROLES: [(&str, &str); 11] = [
    ("magic", "packet-magic-number"),
    ("uuid", "metadata-stream-uuid"),
    ("stream_id", "data-stream-class-id"),
    ("timestamp_begin", "default-clock-timestamp"),
    ("timestamp_end", "packet-end-default-clock-timestamp"),
    ("content_size", "packet-content-length"),
    ("packet_size", "packet-total-length"),
    ("packet_seq_num", "packet-sequence-number"),
    ("events_discarded", "discarded-event-record-counter-snapshot"),
    ("id", "event-record-class-id"),
    ("timestamp", "default-clock-timestamp"),
];

/// Whether the names of fields give them roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Those of packets, and of headers of events.
    OfStream,
    /// Those of an event of its own.
    OfEvent,
}

/// A part of the metadata as the sequence has it.
pub fn fragment(part: &Value) -> String {
    format!("\x1e{part}\n")
}

/// The first part: this is CTF 2, of a trace with this identity if it has one.
pub fn preamble(uuid: Option<&[u8; 16]>) -> Value {
    let mut part = json!({"type": "preamble", "version": 2});
    if let Some(uuid) = uuid {
        part["uuid"] = json!(uuid);
    }
    part
}

/// A clock that counts `hz` a second, and was zero at this many seconds and counts after 1970.
pub fn clock(id: &str, hz: u64, (seconds, cycles): (i64, u64)) -> Value {
    let offset = json!({"seconds": seconds, "cycles": cycles});
    json!({"type": "clock-class", "id": id, "frequency": hz, "origin": "unix-epoch", "offset-from-origin": offset})
}

/// An event of this number; `fields` is a structure.
pub fn event(id: usize, name: &str, fields: &Value) -> Value {
    json!({"type": "event-record-class", "id": id, "name": name, "payload-field-class": fields})
}

/// An integer of `bits` bits, with its sign (`i`) or without (`u`), that begins at a multiple of `align` bits.
pub fn integer(kind: char, bits: u32, align: u32) -> Value {
    let kind = if kind == 'i' { "fixed-length-signed-integer" } else { "fixed-length-unsigned-integer" };
    json!({"type": kind, "length": bits, "byte-order": "little-endian", "alignment": align})
}

/// A structure of these members.
pub fn structure(members: &[Value], align: u32) -> Value {
    json!({"type": "structure", "member-classes": members, "minimum-alignment": align})
}

/// A member of a structure.
pub fn member(name: &str, class: &Value) -> Value {
    json!({"name": name, "field-class": class})
}

/// The members that are declared so.
pub fn members(declared: &str, fields: Fields) -> Vec<Value> {
    let declarations = declared.split(';').map(str::trim).filter(|declaration| !declaration.is_empty());
    let one = |declaration: &str| {
        let (kind, name) = declaration.split_once(' ').unwrap_or((declaration, ""));
        let (name, length) = name.trim_end_matches(']').split_once('[').unwrap_or((name, ""));
        let mut class = class(kind, length.parse().unwrap_or(0));
        let role = ROLES.iter().find(|(known, _)| *known == name).filter(|_| fields == Fields::OfStream);
        if let Some((_, role)) = role {
            class["roles"] = json!([role]);
        }
        member(name, &class)
    };
    declarations.map(one).collect()
}

/// The class of a field: its type, and how many there are if it is more than one.
fn class(kind: &str, length: u32) -> Value {
    match kind {
        "text" => json!({"type": "static-length-string", "length": length}),
        "string" => json!({"type": "null-terminated-string"}),
        "u8" if length > 0 => json!({"type": "static-length-blob", "length": length}),
        // By the clock.
        "counter" | "moment" => integer('u', 64, 8),
        _ => {
            let bits = kind[1..].parse().unwrap_or(32);
            integer(if kind.starts_with('i') { 'i' } else { 'u' }, bits, if bits % 8 == 0 { 8 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_become_classes_and_only_those_of_streams_have_roles() {
        let declared = "u8 uuid[16]; moment timestamp; i32 id; u12 cpu; text comm[16]; string name; ";
        let of = |fields| members(declared, fields);
        let class = |n: usize, key: &str| of(Fields::OfEvent)[n]["field-class"][key].clone();
        let types: Vec<Value> = (0..6).map(|n| class(n, "type")).collect();
        let unsigned = "fixed-length-unsigned-integer";
        let expected = [
            "static-length-blob",
            unsigned,
            "fixed-length-signed-integer",
            unsigned,
            "static-length-string",
            "null-terminated-string",
        ];
        assert_eq!(types, expected);
        assert_eq!(
            [(0, 16), (1, 64), (2, 32), (3, 12), (4, 16)].map(|(n, length)| class(n, "length") == length),
            [true; 5]
        );
        assert_eq!([1, 2, 3].map(|n| class(n, "alignment")), [8, 8, 1]);
        let roles = |fields| of(fields).iter().filter(|member| !member["field-class"]["roles"].is_null()).count();
        assert_eq!((roles(Fields::OfStream), roles(Fields::OfEvent)), (3, 0));
    }

    #[test]
    fn a_fragment_is_one_text_of_the_sequence() {
        assert_eq!(fragment(&preamble(None)), "\u{1e}{\"type\":\"preamble\",\"version\":2}\n");
    }
}
