// SPDX-License-Identifier: BSD-3-Clause
//! Control groups: the recorded facts, those that follow for other threads, and that both reach every output.

use kutrace_format::abi::event::{EXIT, MEMBER, RUNNABLE, TASK};
use kutrace_format::file::NameKind;
use kutrace_tests::{Recorder, TraceBuilder};
use postprocess::direct::{spans_of_raw, summary_of_raw};
use postprocess::id::Pid;
use postprocess::machine::file::{self, Machine};
use postprocess::machine::shift::Shift;
use postprocess::sink::summary::By;
use postprocess::sink::{json, page};
use postprocess::source;
use postprocess::span::limit::SpanLimit;
use postprocess::span::Spans;
use postprocess::time::Time;

use crate::golden::assert_golden;

const WEB: &str = "/system.slice/web.service";
const DOCKER: &str = "/system.slice/docker-3f2a9b1c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8.scope";

/// A record of a thread, of a process, in the group of this number.
fn task(cpu: &mut Recorder, at: u64, pid: u32, process: u32, group: u32) {
    let name = u32::from_le_bytes(*b"run\0");
    cpu.entry(at, TASK, &[pid, process, group << 16 | 0xffff, name, 0, 0, 0]);
}

/// Threads 10, 11 and 20 are named; 12, 13 and 14 are made by those; of 21 only the number of its group is known, and
/// that of 24 is the number of two groups.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new(2, 10_000);
    for (pid, path) in [(10, WEB), (20, DOCKER), (22, "/a"), (23, "/b"), (30, "/x y")] {
        trace.name(NameKind::Cgroup, pid, path);
    }
    let cpu = trace.cpu(0);
    let threads = [(10, 10, 5), (11, 10, 5), (20, 20, 6), (22, 22, 7), (23, 23, 7), (30, 30, 0)];
    for (at, (pid, process, group)) in (10..).zip(threads) {
        task(cpu, at, pid, process, group);
    }
    cpu.switch(100, 10, "run");
    for (at, pid, group) in [(200, 12, 5), (300, 14, 6)] {
        cpu.call(at, 56, 0).entry(at + 10, RUNNABLE, &[pid]).small_return(at + 20, pid as i8);
        task(cpu, at + 30, pid, pid, group);
    }
    cpu.switch(400, 12, "run").call(500, 56, 0).entry(510, RUNNABLE, &[13]).small_return(520, 13);
    task(cpu, 530, 13, 13, 5);
    for (at, pid) in [(600, 13), (1_000, 14), (2_000, 11), (2_500, 22), (2_600, 23)] {
        cpu.switch(at, pid, "run");
    }
    let cpu = trace.cpu(1);
    for (at, pid, group) in [(50, 21, 6), (51, 24, 7), (52, 25, 0)] {
        task(cpu, at, pid, pid, group);
    }
    for (at, pid) in [(100, 20), (3_000, 21), (4_000, 24), (4_500, 25), (5_000, 30)] {
        cpu.switch(at, pid, "run");
    }
    trace
}

fn spans(bytes: &[u8]) -> Spans {
    spans_of_raw(bytes, SpanLimit::new(usize::MAX)).unwrap().0
}

#[test]
fn a_thread_of_which_nothing_is_told_is_where_its_maker_is_or_others_of_its_number() {
    let meta = spans(&trace().bytes()).meta;
    let of = |pid| meta.cgroup_of(Pid::new(pid));
    assert_eq!([10, 11, 20, 30].map(of), [Some(WEB), Some(WEB), Some(DOCKER), Some("/x_y")], "named");
    assert_eq!([12, 13].map(of), [Some(WEB); 2], "made by those");
    assert_eq!(of(14), Some(DOCKER), "made into the group of another number");
    assert_eq!(of(21), Some(DOCKER), "by its number");
    assert_eq!([24, 25].map(of), [None; 2], "the number is that of several groups, or of none");
}

#[test]
fn a_thread_is_in_the_group_whose_id_the_recorder_told() {
    let mut trace = trace();
    for (id, path) in [(1, "/"), (900, WEB), (901, "/a/short")] {
        trace.name(NameKind::CgroupPath, id, path);
    }
    // 12 is not in its maker's group, 20 has ended and had moved, 22 continues in the group it was last named in, and
    // the group of 13 had been removed when paths were read.
    let cpu = trace.cpu(0);
    for (at, pid, id) in [(6_000, 12, 901), (6_001, 20, 900), (6_002, 22, 900), (6_003, 13, 950)] {
        cpu.entry(at, MEMBER, &[pid, id]);
    }
    trace.cpu(1).switch(6_000, 20, "run").entry(6_100, EXIT, &[0]).switch(6_200, 30, "run");
    let meta = spans(&trace.bytes()).meta;
    let of = |pid| meta.cgroup_of(Pid::new(pid));
    assert_eq!([12, 20, 22, 13].map(of), [Some("/a/short"), Some(WEB), Some("/a"), Some("removed.950")]);
}

#[test]
fn a_summary_adds_up_the_threads_of_each_control_group() {
    let summary = summary_of_raw(&trace().bytes(), 0).unwrap();
    assert_golden("summary/cgroups.txt", &summary.text(10, By::Cgroup));
    let value: serde_json::Value = serde_json::from_str(&summary.json(1).unwrap()).unwrap();
    assert_eq!((&value["cgroups"]["first"][0]["name"], &value["cgroups"]["left_out"]), (&"/b".into(), &5.into()));
    let time =
        |list: &[postprocess::sink::summary::work::Program]| list.iter().map(|p| p.user + p.kernel).sum::<Time>();
    assert_eq!(time(&summary.cgroups), time(&summary.programs));
}

#[test]
fn text_json_and_pages_carry_control_groups() {
    let bytes = trace().bytes();
    let whole = spans(&bytes);
    let (mut text, mut made) = (Vec::new(), Vec::new());
    json::write(&whole, &mut text).unwrap();
    page::render(&whole, &mut made).unwrap();
    assert!(!whole.meta.cgroups.is_empty());
    assert_eq!(source::json::read(&mut &text[..]).unwrap().meta.cgroups, whole.meta.cgroups);
    assert_eq!(page::lift(std::str::from_utf8(&made).unwrap()).unwrap().meta.cgroups, whole.meta.cgroups);
}

/// Group 5 of one machine has nothing to do with that of another.
#[test]
fn groups_of_several_machines_are_not_mixed_up() {
    let one = |path: &str| {
        let mut trace = TraceBuilder::new(1, 1_000);
        trace.name(NameKind::Cgroup, 10, path);
        let cpu = trace.cpu(0);
        task(cpu, 10, 10, 10, 5);
        task(cpu, 11, 11, 11, 5);
        cpu.switch(100, 10, "run").switch(500, 11, "run");
        trace.bytes()
    };
    let traces = [one("/a"), one("/b")];
    let machine = |name: &str| {
        let (name, clock) = (name.to_string(), name.to_string());
        Machine { name, clock, shift: Shift::by(Time::ZERO, None), ..Machine::default() }
    };
    let parts: Vec<(Machine, &[u8])> = vec![(machine("a"), &traces[0]), (machine("b"), &traces[1])];
    let mut bytes = Vec::new();
    file::write(&parts, &mut bytes).unwrap();
    let meta = spans(&bytes).meta;
    let of = |machine: u32| [10, 11].map(|pid| meta.cgroup_of(Pid::new(pid).on(machine)).unwrap());
    assert_eq!([of(0), of(1)], [["/a"; 2], ["/b"; 2]]);
}
