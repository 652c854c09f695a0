// SPDX-License-Identifier: BSD-3-Clause
//! What programs recorded into memory of their own: copied as it is, with what the recorder knows of it.
//!
//! Programs may still write, and in wrap mode the recorder may grant a part anew: such a part is left out.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::Result;
use kutrace_format::abi::programs::{Granted, Program};
use kutrace_format::file::{Section, PROGRAM};
use rustix::io::pread;

use crate::sys;

/// A section for each program that attached, one after the other, in a file as they are.
pub fn sections(device: &impl AsFd) -> Result<Vec<u8>> {
    let mut sections = Vec::new();
    let mut serial = 0;
    while let Some(next) = read(device, serial)? {
        serial = next.serial;
        sections.extend_from_slice(&section(&next));
    }
    Ok(sections)
}

/// A program as it was read.
#[derive(Debug, Default)]
struct Copy {
    serial: u32,
    told: Program,
    grants: Vec<Granted>,
    area: Vec<u8>,
}

/// The program after the one with this number.
fn read(device: &impl AsFd, after: u32) -> Result<Option<Copy>> {
    let Some((told, mut grants, file)) = list(device, after)? else { return Ok(None) };
    let end = grants.iter().map(|grant| grant.offset as usize + grant.bytes as usize).max().unwrap_or(0);
    let mut area = vec![0; end];
    let mut filled = 0;
    while filled < end {
        match pread(&file, &mut area[filled..], filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    let now = list(device, after)?.filter(|(now, ..)| now.serial == told.serial);
    keep(&mut grants, now.as_ref().map_or(&[], |(_, now, _)| now));
    Ok(Some(Copy { serial: told.serial, told, grants, area }))
}

/// What is known of it: itself, its grants, and the file of its area.
fn list(device: &impl AsFd, after: u32) -> Result<Option<(Program, Vec<Granted>, OwnedFd)>> {
    let mut grants = Vec::new();
    loop {
        let mut told = Program { serial: after, ..Program::default() };
        let Some(file) = sys::next_program(device.as_fd(), &mut told, &mut grants)? else { return Ok(None) };
        if told.grants as usize <= grants.len() {
            grants.truncate(told.grants as usize);
            return Ok(Some((told, grants, file)));
        }
        grants.resize(told.grants as usize + 1024, Granted::default());
    }
}

/// Leaves out what was granted anew while it was copied, and what of a grant another thread got meanwhile.
fn keep(grants: &mut Vec<Granted>, now: &[Granted]) {
    let now: HashMap<u64, u32> = now.iter().map(|grant| (grant.sequence, grant.bytes)).collect();
    grants.retain_mut(|grant| {
        let bytes = now.get(&grant.sequence);
        grant.bytes = grant.bytes.min(bytes.copied().unwrap_or(0));
        bytes.is_some()
    });
}

/// What programs say that they could not record, and which of them got no memory, of sections that [`sections`] made.
pub fn losses(mut sections: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((head, rest)) = sections.split_first_chunk() {
        let head = Section::from_bytes(head);
        let Some((payload, rest)) = rest.split_at_checked(head.bytes as usize) else { break };
        sections = rest;
        if head.tag == PROGRAM {
            found.extend(postprocess::raw::program::parse(0, payload).iter().flat_map(|program| program.losses()));
        }
    }
    found
}

fn section(program: &Copy) -> Vec<u8> {
    let Copy { told, grants, area, .. } = program;
    let mut payload = Vec::with_capacity(64 + 32 * grants.len() + area.len());
    for number in [told.serial, told.tgid, grants.len() as u32, 0] {
        payload.extend_from_slice(&number.to_le_bytes());
    }
    payload.extend_from_slice(&told.refused.to_le_bytes());
    payload.extend_from_slice(&(area.len() as u64).to_le_bytes());
    payload.extend_from_slice(&told.comm);
    for grant in grants {
        for number in [grant.offset, grant.bytes, grant.tid, grant.kind] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        payload.extend_from_slice(&grant.sequence.to_le_bytes());
        payload.extend_from_slice(&grant.tsc.to_le_bytes());
    }
    payload.extend_from_slice(area);
    let crc32 = crc32fast::hash(&payload);
    let head = Section { tag: PROGRAM, crc32, bytes: payload.len() as u64, items: grants.len() as u64 };
    [&head.to_bytes()[..], &payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::file::SECTION_BYTES;
    use kutrace_format::program::{GRANT_BYTES, HEAD_BYTES};

    #[test]
    fn what_changed_while_it_was_copied_is_left_out() {
        let grant = |sequence, bytes| Granted { sequence, bytes, ..Granted::default() };
        let mut grants = vec![grant(1, 4096), grant(2, 4096), grant(3, 64)];
        keep(&mut grants, &[grant(1, 4096), grant(3, 32), grant(4, 32), grant(5, 4096)]);
        assert_eq!(grants, [grant(1, 4096), grant(3, 32)]);
    }

    #[test]
    fn a_section_has_the_layout_of_the_format() {
        let grants = vec![Granted { offset: 0, bytes: 4096, tid: 7, kind: 1, sequence: 0, tsc: 9 }];
        let told =
            Program { serial: 3, tgid: 6, refused: 2, comm: *b"web\0\0\0\0\0\0\0\0\0\0\0\0\0", ..Program::default() };
        let bytes = section(&Copy { serial: 3, told, grants, area: vec![5; 4096] });
        let head = Section::from_bytes(bytes[..SECTION_BYTES].try_into().unwrap());
        let payload = &bytes[SECTION_BYTES..];
        assert_eq!((head.tag, head.items, head.bytes), (PROGRAM, 1, payload.len() as u64));
        assert_eq!(head.crc32, crc32fast::hash(payload));
        assert_eq!(payload.len(), HEAD_BYTES + GRANT_BYTES + 4096);
        assert_eq!((payload[0], payload[4], payload[8], payload[16], &payload[32..35]), (3, 6, 1, 2, &b"web"[..]));
        assert_eq!((payload[HEAD_BYTES + 8], payload[HEAD_BYTES + 24]), (7, 9));
    }
}
