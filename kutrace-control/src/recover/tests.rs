// SPDX-License-Identifier: BSD-3-Clause
//! Images of an invented machine: two CPUs, and a pool of three blocks whose pages are scattered in its memory.

use std::fs;
use std::path::PathBuf;

use kutrace_format::abi::event::MARK_D;
use kutrace_format::abi::landmark::{self, Fields, Machine, Sighting, PAGE};
use kutrace_format::abi::programs::{word, Program, FULL_TIME as WHOLE_TIME, MARK, RUNS_AT, WORDS_AT};
use kutrace_tests::cases::one_in;
use postprocess::event::names::Names;
use postprocess::event::number::PROGRAM_MARK;
use tempfile::TempDir;

use super::*;
use crate::output::IfExists;

/// Kernel memory of the machine: blocks, the table of the CPUs' offsets, the CPUs' states.
const MEMORY: u64 = 0xffff_c900_0000_0000;
const OFFSETS: u64 = MEMORY + 3 * BYTES as u64;
const STATES: u64 = OFFSETS + 4096;
const PAGES: u64 = 3 * 16 + 2;
/// Physical pages: three tables, the landmark, and the memory, each page of which is two pages after the one before,
/// modulo 51.
const TABLES: [u64; 3] = [1, 2, 3];
const LANDMARK: u64 = 4;
const FIRST: u64 = 5;
const END: u64 = FIRST + PAGES + 1;

const FIELDS: Fields = Fields {
    this: 8,
    position: 16,
    depth: 24,
    gone_at_start: 28,
    lost: 32,
    refused_names: 40,
    refused_marks: 48,
    seen: 0,
};

/// The physical page of a page of the kernel's memory: 51 of them, which 3 divides.
fn scattered(page: u64) -> u64 {
    FIRST + page * 2 % 51
}

/// The memory from physical page 0 on.
struct Crashed(Vec<u8>);

impl Crashed {
    fn at(&mut self, address: u64, bytes: &[u8]) {
        for (n, byte) in bytes.iter().enumerate() {
            let at = address - MEMORY + n as u64;
            self.0[(scattered(at / 4096) * 4096 + at % 4096) as usize] = *byte;
        }
    }

    fn number(&mut self, address: u64, value: u64) {
        self.at(address, &value.to_le_bytes());
    }

    /// Block `index` of the pool: marks with these numbers, 16 counts apart; `bits` used.
    fn block(&mut self, index: u64, cpu: u32, sequence: u64, begin: u64, marks: impl Iterator<Item = u32>, bits: u64) {
        let address = MEMORY + index * BYTES as u64;
        for (at, value) in [
            (offset_of!(Header, magic), MAGIC.into()),
            (offset_of!(Header, begin), begin),
            (offset_of!(Header, content_bits), bits),
            (offset_of!(Header, packet_bits), BYTES as u64 * 8),
            (offset_of!(Header, sequence), sequence),
            (offset_of!(Header, cpu), cpu.into()),
        ] {
            self.number(address + at as u64, value);
        }
        for (n, mark) in marks.enumerate() {
            let entry = (begin as u32 + 16 * (n as u32 + 1)) << 12 | u32::from(MARK_D);
            self.number(address + 128 + 8 * n as u64, u64::from(mark) << 32 | u64::from(entry));
        }
    }

    /// CPU 0 has a complete block and fills another, CPU 1 fills the third.
    fn new() -> Crashed {
        let mut all = Crashed(vec![0; (END * 4096) as usize]);
        let entry = |page: u64| ((page * 4096) | PRESENT_AND_WRITABLE).to_le_bytes();
        let index = |shift: u64| ((MEMORY >> shift) % 512 * 8) as usize;
        for (level, shift) in [(0, 30), (1, 21)] {
            let at = TABLES[level] as usize * 4096 + index(shift);
            all.0[at..at + 8].copy_from_slice(&entry(TABLES[level + 1]));
        }
        for page in 0..PAGES {
            let at = TABLES[2] as usize * 4096 + index(12) + 8 * page as usize;
            all.0[at..at + 8].copy_from_slice(&entry(scattered(page)));
        }
        for cpu in 0..2 {
            // An impossible CPU follows these two; its state has an address without memory.
            all.number(OFFSETS + 8 * cpu, cpu * 256);
            let state = STATES + cpu * 256;
            all.number(state + 8, state);
            all.number(state + 32, 5 + cpu);
        }
        all.number(OFFSETS + 16, 1 << 30);
        all.block(0, 0, 7, 1000, 0..8000, (128 + 8 * 8000) * 8);
        all.block(1, 0, 8, 200_000, 8000..8003, 0);
        all.number(STATES + 16, MEMORY + BYTES as u64 + 128 + 3 * 8);
        all.block(2, 1, 0, 2000, 9000..9006, 0);
        all.number(STATES + 256 + 16, MEMORY + 2 * BYTES as u64 + 128 + 6 * 8);
        all.landmark();
        all
    }

    fn landmark(&mut self) {
        let mut put =
            |at: usize, bytes: &[u8]| self.0[LANDMARK as usize * 4096 + at..][..bytes.len()].copy_from_slice(bytes);
        put(0, &landmark::MAGIC);
        let machine = offset_of!(Landmark, machine);
        let top = offset_of!(Machine, tables) + ((MEMORY >> 39) % 512 - 256) as usize * 8;
        let start = Moment { tsc: 10_000, realtime_ns: 1_764_000_000_000_000_000, monotonic_ns: 5_000_000_000 };
        let info = offset_of!(Landmark, info);
        let began = info + offset_of!(Info, start);
        for (at, value) in [
            (machine + offset_of!(Machine, physical), LANDMARK * 4096),
            (machine + offset_of!(Machine, levels), 4),
            (machine + offset_of!(Machine, mask), 0x000f_ffff_ffff_f000),
            (machine + top, (TABLES[0] * 4096) | PRESENT_AND_WRITABLE),
            (machine + offset_of!(Machine, offsets), OFFSETS),
            (machine + offset_of!(Machine, states), STATES),
            (offset_of!(Landmark, blocks), MEMORY),
            (began + offset_of!(Moment, tsc), start.tsc),
            (began + offset_of!(Moment, realtime_ns), start.realtime_ns),
            (began + offset_of!(Moment, monotonic_ns), start.monotonic_ns),
        ] {
            put(at, &value.to_le_bytes());
        }
        put(machine + offset_of!(Machine, host), b"made-up");
        for (at, value) in [
            (offset_of!(Info, version), VERSION),
            (offset_of!(Info, state), 1),
            (offset_of!(Info, flags), WRAP),
            (offset_of!(Info, shift), 4),
            (offset_of!(Info, cpus), 3),
            (offset_of!(Info, blocks), 3),
            (offset_of!(Info, tsc_khz), 2_000_000),
        ] {
            put(info + at, &value.to_le_bytes());
        }
        let Fields { this, position, depth, lost, gone_at_start, refused_names, refused_marks, seen } = FIELDS;
        let fields = [this, position, depth, lost, gone_at_start, refused_names, refused_marks, seen];
        for (n, field) in fields.iter().enumerate() {
            put(offset_of!(Landmark, fields) + 4 * n, &field.to_le_bytes());
        }
    }

    /// An ELF core with these ranges of physical pages.
    fn core(&self, ranges: &[(u64, u64)]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        for (at, value) in [(16, 4), (18, 62), (20, 1), (52, 64), (54, 56), (56, ranges.len() as u8)] {
            file[at] = value;
        }
        file[32] = 64;
        let mut memory = Vec::new();
        for (from, to) in ranges {
            let part = &self.0[*from as usize * 4096..*to as usize * 4096];
            let offset = 64 + 56 * ranges.len() + memory.len();
            let bytes = part.len() as u64;
            for number in [u64::from(PT_LOAD), offset as u64, 0, from * 4096, bytes, bytes, 0] {
                file.extend(number.to_le_bytes());
            }
            memory.extend_from_slice(part);
        }
        file.extend(memory);
        file
    }
}

const PRESENT_AND_WRITABLE: u64 = 3;
const PT_LOAD: u32 = object::elf::PT_LOAD.0;

/// Result of recovering an image: the status, and the trace.
fn recovered(image: &[u8]) -> Result<(Exit, Vec<u8>)> {
    let folder = TempDir::new()?;
    let [core, trace]: [PathBuf; 2] = ["core", "t.trace"].map(|name| folder.path().join(name));
    fs::write(&core, image)?;
    let exit = recover(&core, &Output::new(Some(trace.clone()), IfExists::Keep))?;
    Ok((exit, fs::read(&trace)?))
}

/// Result of recovering an image: the status, and the numbers of each CPU's marks in the trace.
fn marks(image: &[u8]) -> Result<(Exit, [Vec<u32>; 2])> {
    let (exit, bytes) = recovered(image)?;
    Ok((exit, marks_in(&bytes)))
}

fn marks_in(bytes: &[u8]) -> [Vec<u32>; 2] {
    let trace = postprocess::source::trace(bytes).unwrap();
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let mut marks = [Vec::new(), Vec::new()];
    while let Some(event) = decoder.next(&mut names) {
        if event.event() == u32::from(MARK_D) {
            marks[event.cpu.index()].push(event.arg);
        }
    }
    marks
}

#[test]
fn every_word_is_found_by_the_landmark_and_blocks_end_where_their_cpus_were() {
    let image = Crashed::new().core(&[(0, 9), (9, END)]);
    let (exit, found) = marks(&image).unwrap();
    assert_eq!(found, [(0..8003).collect::<Vec<_>>(), (9000..9006).collect()]);
    // Each CPU had lost events before.
    assert_eq!(exit, Exit::Lost);
    assert!(recovered(&image).unwrap().1.windows(7).any(|text| text == b"made-up"));
}

#[test]
fn what_is_there_of_a_damaged_image_is_used() {
    let whole = Crashed::new();
    // A page in the middle of CPU 0's first block is missing: the part before it and the next block stay.
    let gap = scattered(5);
    let (exit, [zero, one]) = marks(&whole.core(&[(0, gap), (gap + 1, END)])).unwrap();
    let cut = (5 * 4096 - 128) as u32 / 8;
    assert_eq!((exit, zero), (Exit::Lost, (0..cut).chain(8000..8003).collect()));
    assert_eq!(one.len(), 6);
    // The header of CPU 0's second block is missing: all else stays.
    let gap = scattered(16);
    let (exit, [zero, one]) = marks(&whole.core(&[(0, gap), (gap + 1, END)])).unwrap();
    assert_eq!((exit, zero.len(), one.len()), (Exit::Lost, 8000, 6));
}

#[test]
fn an_image_without_a_recorder_is_refused() {
    let mut crashed = Crashed::new();
    let said = |image: &[u8]| format!("{:#}", marks(image).unwrap_err());
    assert!(said(b"hello").contains("core: not an image of a machine's memory: "), "{}", said(b"hello"));
    let without = crashed.core(&[(0, LANDMARK), (LANDMARK + 1, END)]);
    assert!(said(&without).contains("core: no recorder in this image"), "{}", said(&without));
    // A copy of a landmark does not count.
    let page = crashed.0[LANDMARK as usize * 4096..][..PAGE].to_vec();
    crashed.0[..PAGE].copy_from_slice(&page);
    assert!(marks(&crashed.core(&[(0, END)])).is_ok());
    assert!(said(&crashed.core(&[(0, LANDMARK), (LANDMARK + 1, END)])).contains("no recorder"));
    // Tables without the pool, and the pool without its tables.
    for ranges in [&[(0, FIRST)][..], &[(LANDMARK, END)]] {
        assert!(said(&crashed.core(ranges)).contains("the recorder's memory is not in this image"));
    }
}

#[test]
fn no_byte_of_a_landmark_or_a_table_does_harm() {
    let whole = Crashed::new();
    for (page, step) in [(LANDMARK, one_in(70)), (TABLES[2], one_in(610)), (TABLES[0], 0)] {
        for at in (0..4096).step_by(step.max(1)).filter(|at| step > 0 || at % 512 == 0) {
            let mut crashed = Crashed(whole.0.clone());
            crashed.0[page as usize * 4096 + at] ^= 0xa5;
            let _ = marks(&crashed.core(&[(0, END)]));
        }
    }
}

/// Address of the module's lists: on the page of the CPUs' states. And the first of the four pages of a program.
const LISTS: u64 = STATES + 1024;
const FRAMES: u64 = END;

const PLACES: landmark::Programs = landmark::Programs {
    processes: LISTS,
    others: LISTS + 16,
    process: landmark::Process { list: 8, told: 24, count: 80, grants: 88 },
    grant: landmark::Grant { list: 0, offset: 16, bytes: 20, tid: 24, sequence: 32, tsc: 40, frames: 48 },
    reserved: 0,
};
const PROCESS: u64 = LISTS + 128;
const NAMES: u64 = LISTS + 256;
const WORDS: u64 = LISTS + 320;
const OTHER: u64 = LISTS + 384;
/// Time of the kernel's last entry.
const LAST: u64 = (200_000 + 16 * 3) * 16;

/// The same machine with a program: a page of names, two of words of thread 21, and one of thread 22. `late`: time of
/// the last mark of thread 22.
fn with_program(late: u64) -> Crashed {
    let mut all = Crashed::new();
    all.0.resize((FRAMES as usize + 4) * 4096, 0);
    let [places, process, grant] = [offset_of!(Landmark, programs), 16, 32];
    for (at, value) in [(0, PLACES.processes), (8, PLACES.others)] {
        all.0[LANDMARK as usize * 4096 + places + at..][..8].copy_from_slice(&value.to_le_bytes());
    }
    let (of, at) = (PLACES.process, PLACES.grant);
    for (start, fields) in [
        (process, &[of.list, of.told, of.count, of.grants][..]),
        (grant, &[at.list, at.offset, at.bytes, at.tid, at.sequence, at.tsc, at.frames]),
    ] {
        for (n, field) in fields.iter().enumerate() {
            all.0[LANDMARK as usize * 4096 + places + start + 4 * n..][..4].copy_from_slice(&field.to_le_bytes());
        }
    }
    let two = |low: u64, high: u64| low | high << 32;
    // Nothing was lost; the threads on CPU 0, then idle, and on CPU 1.
    (0..2).for_each(|cpu| all.number(STATES + cpu * 256 + 32, 0));
    for (block, thread) in [(0, 21), (2, 22)] {
        all.at(MEMORY + block * BYTES as u64 + offset_of!(Header, pid) as u64, &u32::to_le_bytes(thread));
    }
    for (address, value) in [
        (LISTS, PROCESS + 8),
        (PROCESS + 8, LISTS),
        // The number of its attachment, and its process id.
        (PROCESS + 24, two(1, 20)),
        (PROCESS + 24 + offset_of!(Program, comm) as u64, u64::from_le_bytes(*b"planned\0")),
        (PROCESS + 80, 3),
        (PROCESS + 88, NAMES),
        (NAMES, WORDS),
        (NAMES + 16, two(0, 4096)),
        (NAMES + 24, 21),
        (NAMES + 32, 1),
        (NAMES + 48, FRAMES),
        (WORDS, OTHER),
        (WORDS + 16, two(RUNS_AT.into(), 8192)),
        (WORDS + 24, 21),
        (WORDS + 32, 2),
        (WORDS + 40, 20_000),
        (WORDS + 48, FRAMES + 1),
        (WORDS + 56, FRAMES + 2),
        (OTHER, PROCESS + 88),
        (OTHER + 16, two(WORDS_AT.into(), 4096)),
        (OTHER + 24, 22),
        (OTHER + 32, 3),
        (OTHER + 40, 40_000),
        (OTHER + 48, FRAMES + 3),
    ] {
        all.number(address, value);
    }
    let mut put =
        |at: usize, value: u64| all.0[FRAMES as usize * 4096 + at..][..8].copy_from_slice(&value.to_le_bytes());
    put(64, u64::from_le_bytes(*b"\x04\0mark\0\0"));
    let mark = |time: u64| word(MARK, 0, 8) | time & 0xffff_ffff;
    (0..517).for_each(|n| put(4096 + 8 * n, mark(20_001 + n as u64)));
    for (n, value) in [mark(40_001), mark(40_002), word(WHOLE_TIME, 1, 0), late, mark(late)].into_iter().enumerate() {
        put(3 * 4096 + 8 * n, value);
    }
    all
}

/// Number of marks of both threads, and the reported losses.
fn programs(crashed: &Crashed, ranges: &[(u64, u64)]) -> ([usize; 2], Vec<String>) {
    let (bytes, losses) = {
        let folder = TempDir::new().unwrap();
        let core = folder.path().join("core");
        fs::write(&core, crashed.core(ranges)).unwrap();
        let image = Image::open(&core).unwrap();
        let landmark = newest(landmarks(&image).unwrap()).unwrap();
        let memory = Memory::new(&image, landmark.machine);
        let found = find(&memory, &landmark.programs, u64::MAX).unwrap();
        (recovered(&crashed.core(ranges)).unwrap().1, found.losses())
    };
    let trace = postprocess::source::trace(&bytes).unwrap();
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let mut marks = [0; 2];
    while let Some(event) = decoder.next(&mut names) {
        if event.event() == PROGRAM_MARK {
            marks[event.pid.number() as usize - 21] += 1;
        }
    }
    (marks, losses)
}

#[test]
fn what_programs_recorded_is_found_up_to_two_ticks_after_the_kernel_s_last_entry() {
    let all = &[(0, FRAMES + 4)];
    let nothing = Vec::<String>::new();
    for (later, marks) in [(0, 3), (39_999_999, 3), (40_000_001, 2)] {
        assert_eq!(programs(&with_program(LAST + later), all), ([517, marks], nothing.clone()), "{later}");
    }
    let bytes = recovered(&with_program(LAST).core(all)).unwrap().1;
    for text in [&b"planned"[..], b"mark"] {
        assert!(bytes.windows(text.len()).any(|found| found == text));
    }
    // A module that is older than this.
    assert_eq!(programs(&Crashed::new(), &[(0, END)]), ([0, 0], nothing));
}

#[test]
fn what_a_program_recorded_ends_at_the_first_page_that_is_not_there() {
    let crashed = with_program(LAST);
    let said = |missing: &str| vec![format!("of the memory of programs' marks, {missing} not in the image")];
    assert_eq!(programs(&crashed, &[(0, FRAMES + 2)]), ([512, 0], said("2 of 4 pages are")));
    let gap = [(0, FRAMES + 1), (FRAMES + 2, FRAMES + 4)];
    assert_eq!(programs(&crashed, &gap), ([0, 3], said("1 of 4 pages are")));
    assert_eq!(programs(&crashed, &[(0, FRAMES)]), ([0, 0], said("4 of 4 pages are")));
}

#[test]
fn lists_that_do_not_return_end_and_have_what_is_in_them_once() {
    let all = &[(0, FRAMES + 4)];
    let said = "1 list is damaged in the memory of programs' marks: some marks are missing";
    // The back link, of the processes and of the grants.
    for (link, to, marks) in [
        (PROCESS + 8, PROCESS + 8, [517, 3]),
        (OTHER, NAMES, [517, 3]),
        (WORDS, NAMES, [517, 0]),
        // The same page twice; a grant beyond the area.
        (WORDS + 56, FRAMES + 1, [0, 3]),
        (WORDS + 16, 4096 | 1 << 60, [0, 3]),
    ] {
        let mut crashed = with_program(LAST);
        crashed.number(link, to);
        assert_eq!(programs(&crashed, all), (marks, vec![said.to_owned()]), "{link:x}");
    }
}

#[test]
fn no_byte_of_the_lists_does_harm() {
    let whole = with_program(LAST);
    let places = LANDMARK as usize * 4096 + offset_of!(Landmark, programs);
    let lists = (scattered((LISTS - MEMORY) / 4096) * 4096 + LISTS % 4096) as usize;
    for at in (places..places + 64).chain(lists..lists + 480).step_by(one_in(7)) {
        for change in [1, 0x80, 0xa5] {
            let mut crashed = Crashed(whole.0.clone());
            crashed.0[at] ^= change;
            let _ = marks(&crashed.core(&[(0, FRAMES + 4)]));
        }
    }
}

/// The same machine's memory in a range that survives a reboot: one piece, with its landmark, a sighting of each CPU,
/// and the blocks. `seen`: the counter when both CPUs were sighted.
fn kept(seen: u64) -> Vec<u8> {
    const START: u64 = 0xffff_8880_7000_0000;
    const POOL: u64 = 1 << 16;
    let mut made = Crashed::new();
    let mut memory = made.0[LANDMARK as usize * 4096..][..PAGE].to_vec();
    memory.resize((POOL + 3 * BYTES as u64) as usize, 0);
    let mut put = |at: u64, value: u64| memory[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
    let machine = offset_of!(Landmark, machine) as u64;
    let [offsets, sightings, taken] = [4096, 4160, 4096 + 192];
    for (at, value) in [
        (machine + offset_of!(Machine, physical) as u64, 0x7000_0000),
        (machine + offset_of!(Machine, levels) as u64, 0),
        (machine + offset_of!(Machine, tables) as u64, START),
        (machine + offset_of!(Machine, offsets) as u64, START + offsets),
        (machine + offset_of!(Machine, states) as u64, START + sightings),
        (offset_of!(Landmark, blocks) as u64, START + POOL),
        (offset_of!(Landmark, blocks_taken) as u64, START + taken),
        (offset_of!(Landmark, sighted) as u64, 500_000 * 16),
    ] {
        put(at, value);
    }
    for (cpu, place) in [(0, POOL + BYTES as u64 + 128 + 3 * 8), (1, POOL + 2 * BYTES as u64 + 128 + 6 * 8)] {
        put(offsets + 8 * cpu, 64 * cpu);
        let sighting = sightings + 64 * cpu;
        put(sighting + offset_of!(Sighting, this) as u64, START + sighting);
        put(sighting + offset_of!(Sighting, position) as u64, START + place);
        put(sighting + offset_of!(Sighting, seen) as u64, seen);
    }
    // A third CPU is impossible.
    put(offsets + 16, 1 << 30);
    let fields = landmark::SIGHTING;
    let Fields { this, position, depth, lost, gone_at_start, refused_names, refused_marks, seen } = fields;
    for (n, field) in
        [this, position, depth, lost, gone_at_start, refused_names, refused_marks, seen].iter().enumerate()
    {
        memory[offset_of!(Landmark, fields) + 4 * n..][..4].copy_from_slice(&field.to_le_bytes());
    }
    memory[..16].copy_from_slice(&landmark::RESERVED);
    for page in 0..3 * 16 {
        let at = scattered(page) as usize * 4096;
        let from = made.0[at..at + 4096].to_vec();
        memory[(POOL + page * 4096) as usize..][..4096].copy_from_slice(&from);
    }
    made.0.clear();
    memory
}

/// Result of recovering this memory, which is in a file after other data.
fn marks_of_kept(memory: &[u8]) -> Result<(Exit, [Vec<u32>; 2])> {
    let folder = TempDir::new()?;
    let [device, trace] = ["device", "t.trace"].map(|name| folder.path().join(name));
    fs::write(&device, [&[7; 4096], memory].concat())?;
    let image = Image::kept(fs::File::open(&device)?, 4096, memory.len() as u64)?;
    let exit = recover_from(&image, "device", &Output::new(Some(trace.clone()), IfExists::Keep))?;
    Ok((exit, marks_in(&fs::read(trace)?)))
}

#[test]
fn memory_that_outlived_a_reboot_has_all_up_to_where_cpus_were_sighted() {
    let (exit, found) = marks_of_kept(&kept(300_000)).unwrap();
    assert_eq!(found, [(0..8003).collect::<Vec<_>>(), (9000..9006).collect()]);
    // The recorder was not stopped.
    assert_eq!(exit, Exit::Lost);
    // CPU 0's second block was begun after the sighting, at a place where another had been before.
    let (_, found) = marks_of_kept(&kept(150_000)).unwrap();
    assert_eq!(found, [(0..8000).collect::<Vec<_>>(), (9000..9006).collect()]);
}

#[test]
fn no_byte_of_memory_that_outlived_a_reboot_does_harm() {
    let whole = kept(300_000);
    for at in (0..8192).step_by(one_in(37)) {
        let mut memory = whole.clone();
        memory[at] ^= 0xa5;
        let _ = marks_of_kept(&memory);
    }
    assert!(marks_of_kept(&whole[..10_000]).is_err(), "the blocks are missing");
}
