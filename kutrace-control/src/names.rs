// SPDX-License-Identifier: BSD-3-Clause
//! Names for the numbers in a trace: the `NAME` section.
//!
//! Invariant: gathering never fails; names that this machine does not provide are skipped.

pub mod files;
pub mod groups;
pub mod guests;
pub mod known;
pub mod machine;
pub mod mapped;
pub mod maps;
pub mod symbols;
pub mod tasks;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kutrace_format::abi::command::{Cpu, Vector, CPU_OFFLINE, CPU_POSSIBLE};
use kutrace_format::abi::event;
use kutrace_format::file::{self, Name, NameKind};
use postprocess::tables;

use files::File;
use groups::Group;
use maps::Maps;
use tasks::Task;

/// Names by kind and number; interrupts also by CPU, functions by the whole address, files by descriptor. A later name
/// replaces an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Names {
    records: BTreeMap<(NameKind, u32, u32), Record>,
    /// The mappings that get names if they were sampled.
    maps: Maps,
}

#[derive(Clone, Debug)]
struct Record {
    second: u32,
    text: Vec<u8>,
}

/// State of the machine when tracing started.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The control groups.
    pub groups: Vec<Group>,
    /// The files that processes have open.
    pub files: Vec<File>,
    /// The virtual CPUs of guests.
    pub guests: Vec<guests::Thread>,
}

impl Start {
    /// The current state.
    pub fn now() -> Start {
        Start {
            tasks: tasks::alive(Path::new("/proc")),
            groups: groups::all(Path::new(MOUNTS)),
            files: files::open(Path::new("/proc")),
            guests: guests::all(Path::new(guests::KVM)),
        }
    }
}

/// The mount table.
const MOUNTS: &str = "/proc/self/mountinfo";
/// The clocks that the kernel can use.
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Name of the idle task of every CPU.
const IDLE: &[u8] = b"-idle-";

impl Names {
    /// The names of this machine, from its state `now`, and from the recorder's CPUs and vectors. `at_start` is the
    /// state when tracing started: its tasks name their ids, since the trace itself reports a later name or a reused
    /// id. The trace does not report the path of a control group, so the last known path is used.
    pub fn gather(at_start: &Start, now: &Start, cpus: &[Cpu], vectors: &[Vector]) -> Names {
        let mut names = Names::of_tables();
        for Vector { which, name, .. } in vectors {
            let which = event::Vector(*which);
            let Some(cpu) = which.cpu() else { continue };
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            names.add(NameKind::Irq, which.vector(), cpu + 1, name);
        }
        let tickless = machine::cpus(&fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default());
        for cpu in cpus.iter().filter(|cpu| cpu.flags & CPU_POSSIBLE != 0) {
            let offline = if cpu.flags & CPU_OFFLINE != 0 { file::CPU_OFFLINE } else { 0 };
            let second = offline | if tickless.contains(&cpu.cpu) { file::CPU_TICKLESS } else { 0 };
            names.add_cpu(cpu.cpu, second);
        }
        names.add(NameKind::Kernel, 0, 0, machine::kernel().as_bytes());
        names.add(NameKind::Host, 0, 0, machine::host().as_bytes());
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        names.add(NameKind::CpuModel, 0, 0, machine::cpu_model(&cpuinfo).unwrap_or_default().as_bytes());
        let clocks = fs::read_to_string(CLOCKS).unwrap_or_default();
        names.add(NameKind::Hypervisor, 0, 0, guests::hypervisor(&cpuinfo, &clocks).unwrap_or_default().as_bytes());
        // The counter of a guest may be set while the guest starts: the later value counts.
        for (thread, number, text) in at_start.guests.iter().chain(&now.guests) {
            names.add(NameKind::Vcpu, *thread, *number, text.as_bytes());
        }
        for task in now.tasks.iter().chain(&at_start.tasks) {
            names.add(NameKind::Task, task.pid, task.tgid, &task.comm);
        }
        for task in at_start.tasks.iter().chain(&now.tasks) {
            names.add(NameKind::Cgroup, task.pid, 0, &task.cgroup);
        }
        for (files, when) in [(&at_start.files, file::FILE_AT_START), (&now.files, file::FILE_AT_END)] {
            for File { process, descriptor, path } in files {
                names.add_file(*process, *descriptor, when, path);
            }
        }
        for (id, path) in at_start.groups.iter().chain(&now.groups) {
            names.add(NameKind::CgroupPath, *id, 0, path);
        }
        names
    }

    /// The names that are the same on every machine.
    pub fn of_tables() -> Names {
        let mut names = Names::default();
        for (kind, table) in tables::TABLES {
            for (number, name) in tables::entries(table) {
                names.add(kind, number, 0, name.as_bytes());
            }
        }
        names.add(NameKind::Task, 0, 0, IDLE);
        names
    }

    /// These names, and the mappings of programs' files that are named if they have samples.
    pub fn with_maps(self, maps: Maps) -> Names {
        Names { maps, ..self }
    }

    /// Adds a CPU with the flags `second`: [`file::CPU_OFFLINE`], [`file::CPU_TICKLESS`].
    pub fn add_cpu(&mut self, cpu: u32, second: u32) {
        self.records.insert((NameKind::Cpu, cpu, 0), Record { second, text: Vec::new() });
    }

    /// Adds an open file: one record if a descriptor is the same file at both times.
    fn add_file(&mut self, process: u32, descriptor: u32, when: u32, path: &[u8]) {
        let at_start = (NameKind::File, process, descriptor | file::FILE_AT_START);
        let is_same = |record: &Record| when == file::FILE_AT_END && record.text == path;
        let before = if self.records.get(&at_start).is_some_and(is_same) { file::FILE_AT_START } else { 0 };
        if before != 0 {
            self.records.remove(&at_start);
        }
        self.add(NameKind::File, process, descriptor | before | when, path);
    }

    /// Adds a name, cut at the 65535 bytes a record holds. An empty one is not added.
    pub fn add(&mut self, kind: NameKind, number: u32, second: u32, text: &[u8]) {
        if !text.is_empty() {
            let text = text[..text.len().min(u16::MAX.into())].to_vec();
            let part = if matches!(kind, NameKind::Irq | NameKind::Symbol | NameKind::Map | NameKind::File) {
                second
            } else {
                0
            };
            self.records.insert((kind, number, part), Record { second, text });
        }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The payload of the section, ordered by kind and number.
    pub fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for (&(kind, number, _), record) in &self.records {
            let name = Name { kind: kind as u16, number, second: record.second, text: &record.text };
            payload.extend_from_slice(&name.to_bytes());
            payload.extend_from_slice(&record.text);
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut payload: &[u8]) -> Vec<(u16, u32, u32, Vec<u8>)> {
        let mut records = Vec::new();
        while let Some((name, rest)) = Name::split(payload) {
            records.push((name.kind, name.number, name.second, name.text.to_vec()));
            payload = rest;
        }
        assert!(payload.is_empty());
        records
    }

    #[test]
    fn a_later_name_replaces_an_earlier_one_and_an_empty_one_does_not() {
        let mut names = Names::default();
        names.add(NameKind::Task, 5, 4, b"old");
        names.add(NameKind::Task, 5, 3, b"new");
        names.add(NameKind::Task, 5, 3, b"");
        assert_eq!(read(&names.payload()), [(2, 5, 3, b"new".to_vec())]);
    }

    #[test]
    fn a_name_too_long_for_its_record_is_cut() {
        let mut names = Names::default();
        names.add(NameKind::Host, 0, 0, &[b'x'; 70_000]);
        assert_eq!(read(&names.payload())[0].3.len(), 65_535);
    }

    #[test]
    fn gathering_names_this_machine_and_keeps_the_tasks_of_the_start() {
        let pid = std::process::id();
        let gone = Task { pid: u32::MAX, tgid: 1, comm: b"gone".to_vec(), cgroup: b"/gone".to_vec() };
        let renamed = Task { pid, tgid: pid, comm: b"before".to_vec(), cgroup: b"/before".to_vec() };
        let cpus = [(0, CPU_POSSIBLE), (1, 0), (2, CPU_POSSIBLE | CPU_OFFLINE)].map(|(cpu, flags)| Cpu { cpu, flags });
        let mut name = [0; event::NAME_BYTES];
        name[..4].copy_from_slice(b"eth0");
        let vector = Vector { which: event::Vector::of(3, 0x21).0, reserved: 0, name };
        let start = Start { tasks: vec![gone, renamed], groups: vec![(7, b"/removed".to_vec())], ..Start::default() };
        let names = Names::gather(&start, &Start::now(), &cpus, &[vector]);
        let records = read(&names.payload());
        assert_eq!(records.len(), names.len());
        assert!(records.contains(&(2, 0, 0, b"-idle-".to_vec())));
        assert!(records.contains(&(2, u32::MAX, 1, b"gone".to_vec())));
        assert!(records.contains(&(2, pid, pid, b"before".to_vec())));
        let own = tasks::alive(Path::new("/proc")).into_iter().find(|task| task.pid == pid).unwrap().cgroup;
        assert!(records.contains(&(NameKind::Cgroup as u16, u32::MAX, 0, b"/gone".to_vec())));
        assert!(records.contains(&(NameKind::Cgroup as u16, pid, 0, own)));
        assert!(records.contains(&(NameKind::CgroupPath as u16, 7, 0, b"/removed".to_vec())));
        assert!(records.contains(&(8, 39, 0, b"getpid".to_vec())));
        assert!(records.contains(&(NameKind::Host as u16, 0, 0, machine::host().into_bytes())));
        assert!(records.contains(&(5, 0x21, 4, b"eth0".to_vec())));
        let cpus: Vec<_> =
            records.iter().filter(|record| record.0 == NameKind::Cpu as u16).map(|r| (r.1, r.2)).collect();
        assert_eq!(cpus, [(0, 0), (2, 1)]);
    }
}
