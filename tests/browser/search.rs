// SPDX-License-Identifier: BSD-3-Clause
//! The search box: calls, times, and selectors, each compared with a count of the spans themselves.

use kutrace_tests::number::{idle, of_thread, on_cpu};
use postprocess::event::number::{
    ENQUEUE, FREQUENCY, IDLE_EXIT, IRQ, KERNEL, LOCK_HELD, LOCK_WAITED, LOST, MARK_A, MARK_D, PC_KERNEL, PC_USER,
    RPC_MIDDLE, RPC_RECEIVED, RPC_REQUEST, RPC_SENT, RX_PACKET, SCHED, SCHED_OLD, SCHED_RETURN, SOFTIRQ, SYSCALL, TRAP,
    TX_USER, USER, WAIT_A, WAIT_Z, WAKEUP_ARC, WAY_OUT,
};
use postprocess::span::what::What;
use postprocess::span::{Span, Spans};
use postprocess::time::Time;
use serde_json::{json, Value};

use crate::drawn::everything;
use crate::drive::run_on;
use crate::spans::{workload, Made};

#[test]
fn calls_are_found_by_argument_and_result_and_times_are_gone_to() {
    let spans = workload(3000);
    let tame = spans.spans.iter().filter(|s| !spans.names[s.name].starts_with('-')).count();
    let reads = spans.spans.iter().filter(|s| s.event() == SYSCALL as i32);
    let failed = reads.clone().filter(|s| s.ret == 65_534).count();
    let calls = json!([
        ["=|.", tame],
        ["=ENOENT", failed],
        [r"read\(3\)=5$", reads.clone().count() - failed],
        [r"read\(4\)", 0],
        [r"^page_fault\(3\)$", reads.clone().count()],
        [
            "ipc=5/8",
            spans.spans.iter().filter(|s| s.event() >= TRAP as i32 && !spans.names[s.name].starts_with('-')).count()
        ],
        ["^mark_a=hello$", spans.spans.iter().filter(|s| s.event() == MARK_A as i32).count()],
    ]);
    run_on("calls", &spans, &json!({ "calls": calls, "tracebase": spans.meta.tracebase }));
}

/// A search in the page's terms, and its expected hits: spans that hold `wanted`.
struct Search {
    pattern: &'static str,
    min: &'static str,
    invert: bool,
    wanted: fn(&Span, &str) -> bool,
}

impl Search {
    fn of(pattern: &'static str, wanted: fn(&Span, &str) -> bool) -> Search {
        Search { pattern, min: "", invert: false, wanted }
    }

    fn inverted(self) -> Search {
        Search { invert: true, ..self }
    }

    fn min(self, min: &'static str) -> Search {
        Search { min, ..self }
    }

    fn expected(&self, spans: &Spans) -> Value {
        let found = spans.spans.iter().filter(|s| (self.wanted)(s, &spans.names[s.name]));
        let (count, total) = found.fold((0u64, Time::ZERO), |(n, total), s| (n + 1, total + s.dur));
        json!({ "pattern": self.pattern, "min": self.min, "max": "", "invert": self.invert, "count": count, "total": total })
    }
}

/// Runs searches, each of which must find something, except for the last.
fn run_searches(spans: &Spans, searches: &[Search], errors: &Value) {
    let searches: Vec<_> = searches.iter().map(|search| search.expected(spans)).collect();
    for search in &searches[..searches.len() - 1] {
        assert!(search["count"].as_u64() > Some(0), "{search}");
    }
    run_on("selectors", spans, &json!({ "searches": searches, "errors": errors }));
}

fn tame(name: &str) -> bool {
    !name.starts_with('-')
}

fn thread(s: &Span, name: &str, pids: std::ops::RangeInclusive<u32>) -> bool {
    s.pid.is_some_and(|pid| pids.contains(&pid.number())) && tame(name)
}

#[test]
fn selectors_say_where_a_pattern_is_looked_for() {
    let mut made = Made(workload(300));
    for name in ["cpu:1", "disk io:7 done", "trace:4bf92f35", "otel(trace_id=4bf90000,span_id=12)"] {
        made.add(
            Span {
                cpu: on_cpu(2),
                pid: of_thread(1002),
                what: What::of(SYSCALL as i32 + 1),
                start: Time(6_000_000_100),
                dur: Time(5),
                ..idle()
            },
            name,
        );
    }
    let spans = made.done();
    let searches = [
        Search::of("cpu:1", |s, name| s.cpu == on_cpu(1) && tame(name)),
        Search::of("cpu:0,2-3 read", |s, name| (s.cpu == on_cpu(0) || s.cpu >= on_cpu(2)) && name == "read"),
        Search::of("  ^read$   cpu:2-", |s, name| s.cpu >= on_cpu(2) && name == "read"),
        Search::of("cpu:1-2 cpu:2-3", |s, name| s.cpu == on_cpu(2) && tame(name)),
        Search::of("pid:1001", |s, name| thread(s, name, 1001..=1001)),
        Search::of("pid:1001 kind:syscall", |s, _| s.pid == of_thread(1001) && s.event() == SYSCALL as i32),
        Search::of("pid:.1003,1000", |s, name| thread(s, name, 1000..=1000) || thread(s, name, 1003..=1003)),
        Search::of("pid:worker wait", |s, name| s.thread().is_some() && name == "wait_disk"),
        Search::of("kind:idle", |s, name| name == "-idle-" && s.event() == USER as i32),
        Search::of("pid:0- kind:idle,sched", |s, _| {
            s.event() == SCHED_OLD as i32 || (s.event() == USER as i32 && s.pid == of_thread(0))
        }),
        Search::of("kind:sched -sched-", |s, _| s.event() == SCHED_OLD as i32),
        Search::of("rpc:0 read", |_, name| name == "read"),
        Search::of("cpu:2 read", |s, name| s.cpu == on_cpu(2) && tame(name) && !name.contains("read")).inverted(),
        Search::of("cpu:2", |s, name| s.cpu == on_cpu(2) && tame(name) && s.dur >= Time(30)).min("0.3"),
        Search::of("page kind:fault cpu:0", |s, _| s.cpu == on_cpu(0) && s.event() == TRAP as i32 + 0x0e).min("0.05"),
        Search::of("cpu:1 =ENOENT", |s, _| s.cpu == on_cpu(1) && s.event() == SYSCALL as i32 && s.ret == 65_534),
        Search::of(r"read\(3\)=5 pid:1002-", |s, _| {
            s.pid >= of_thread(1002) && s.event() == SYSCALL as i32 && s.ret == 5
        }),
        Search::of("cpu:0 ipc=5/8", |s, name| {
            s.cpu == on_cpu(0) && s.event() >= TRAP as i32 && s.ipc == 5 && tame(name)
        }),
        Search::of("cpu:1 =5", |s, name| {
            s.cpu == on_cpu(1) && tame(name) && !(s.event() == SYSCALL as i32 && s.ret == 5)
        })
        .inverted(),
        // A colon after a backslash, in brackets or after a capital letter is the pattern's own.
        Search::of(r"^cpu\:1", |_, name| name == "cpu:1"),
        Search::of("(cpu:1)", |_, name| name == "cpu:1"),
        Search::of(r"io\:7 done", |_, name| name.contains("io:7 done")),
        // So is one after a word that is not a selector, but is in a name.
        Search::of("cpu:2 io:7 done", |_, name| name == "disk io:7 done"),
        // Marks that name a trace of OpenTelemetry, by the beginning of its id.
        Search::of("trace:4bf9", |_, name| name.contains("4bf9")),
        Search::of("trace:4BF92 cpu:2", |_, name| name == "trace:4bf92f35"),
        Search::of("BH:rx|read", |_, name| name == "read"),
        Search::of("cpu:9", |s, _| s.cpu == on_cpu(9)),
    ];
    let errors = json!([
        ["cpu:", "cpu: takes numbers, such as cpu:0,2-3"],
        ["read cpu:1,two", "cpu: takes numbers, such as cpu:0,2-3"],
        ["rpc:-3", "rpc: takes numbers, such as rpc:5 or rpc:1-"],
        ["pid:", "pid: takes numbers or parts of names, such as pid:1-99,bash"],
        ["kind:colour", "kind: takes idle, user, kernel, syscall, fault, irq, sched, wait, wakeup, mark"],
        ["kind:constructor", "kind: takes idle, user, kernel, syscall, fault, irq, sched, wait, wakeup, mark"],
        ["colour:red", r"no selector colour: — there are cpu: pid: rpc: woken: to: kind: — as text write colour\:"],
        [
            "constructor:1 read",
            r"no selector constructor: — there are cpu: pid: rpc: woken: to: kind: — as text write constructor\:"
        ],
        ["cpu:1 [", "not a regular expression"],
    ]);
    run_searches(&spans, &searches, &errors);
    run_on("selected", &spans, &json!({}));
}

#[test]
fn each_kind_has_its_word() {
    let spans = everything(0x85);
    let rpc = |s: &Span| if s.rpc > 0 { s.rpc & 0xffff } else { 0 };
    assert!(spans.spans.iter().any(|s| rpc(s) == 7));
    let searches = [
        Search::of("kind:idle", |s, _| s.thread().is_none() && matches!(s.event() as u32, USER | IDLE_EXIT)),
        Search::of("kind:user", |s, _| s.thread().is_some() && (USER..IDLE_EXIT).contains(&(s.event() as u32))),
        Search::of("kind:kernel", |s, _| {
            (TRAP..=SCHED_RETURN).contains(&(s.event() as u32)) || s.event() >= KERNEL as i32
        }),
        Search::of("kind:syscall", |s, _| {
            (SYSCALL..=SCHED_RETURN).contains(&(s.event() as u32))
                && !matches!(s.event() as u32, WAY_OUT | SCHED_OLD | SCHED)
        }),
        Search::of("kind:irq", |s, _| (IRQ..SOFTIRQ).contains(&(s.event() as u32))),
        Search::of("kind:sched", |s, _| matches!(s.event() as u32, SCHED_OLD | SCHED)),
        Search::of("kind:wait", |s, _| (WAIT_A..=WAIT_Z).contains(&(s.event() as u32))),
        Search::of("kind:wakeup", |s, _| s.event() == WAKEUP_ARC),
        Search::of("kind:mark", |s, _| (MARK_A..=MARK_D).contains(&(s.event() as u32))),
        Search::of("kind:sample", |s, _| matches!(s.event() as u32, PC_USER | PC_KERNEL)),
        Search::of("kind:freq", |s, _| s.event() == FREQUENCY as i32),
        Search::of("kind:lock", |s, _| matches!(s.event() as u32, LOCK_HELD | LOCK_WAITED)),
        Search::of("kind:queue", |s, _| s.event() == ENQUEUE as i32 && s.cpu.is_none()),
        Search::of("kind:rpc", |s, _| (RPC_REQUEST..=RPC_MIDDLE).contains(&(s.event() as u32))),
        Search::of("kind:message", |s, _| matches!(s.event() as u32, RPC_RECEIVED | RPC_SENT)),
        Search::of("kind:packet", |s, _| (RX_PACKET..=TX_USER).contains(&(s.event() as u32))),
        Search::of("kind:lost", |s, _| s.event() == LOST as i32),
        Search::of("rpc:7", |s, name| s.rpc > 0 && s.rpc & 0xffff == 7 && tame(name)),
        Search::of("rpc:1- kind:kernel", |s, _| s.rpc > 0 && (TRAP..=SCHED_RETURN).contains(&(s.event() as u32))),
        Search::of("rpc:0 kind:user", |s, _| s.rpc <= 0 && s.thread().is_some() && s.event() >= USER as i32),
        Search::of("pid:server kind:lock", |s, _| {
            s.pid == of_thread(50) && matches!(s.event() as u32, LOCK_HELD | LOCK_WAITED)
        }),
        Search::of("rpc:8-", |s, _| s.rpc & 0xffff > 8 && s.rpc > 0),
    ];
    run_searches(&spans, &searches, &json!([]));
}

#[test]
fn calls_are_told_apart_however_many_there_are_and_large_their_numbers() {
    let mut made = Made::default();
    for k in 0..70_000 {
        let call = Span {
            pid: of_thread(7),
            what: What::of(SYSCALL as i32),
            start: Time(k * 10),
            dur: Time(5),
            arg: k,
            ret: k % 7,
            ..idle()
        };
        made.add(call, "read");
    }
    // 5 billion and 705 million have the same low 32 bits, and so have the two results.
    for (arg, ret) in [(5_000_000_000, -2), (5_000_000_000, 4_294_967_294), (705_032_704, -2), (4, 65_534)] {
        let call = Span {
            pid: of_thread(7),
            what: What::of(SYSCALL as i32),
            start: Time(800_000 + ret),
            dur: Time(5),
            arg,
            ret,
            ..idle()
        };
        made.add(call, "read");
    }
    let searches = [
        Search::of(r"^read\(69999\)=", |s, _| s.arg == 69_999),
        Search::of(r"\(6\d\d\d\d\)=3$", |s, _| (60_000..70_000).contains(&s.arg) && s.ret == 3),
        Search::of("=ENOENT", |s, _| matches!(s.ret, -2 | 65_534)),
        Search::of("=4294967294", |s, _| s.ret == 4_294_967_294),
        Search::of(r"\(5000000000\)", |s, _| s.arg == 5_000_000_000),
        Search::of(r"\(705032704\)=ENOENT", |s, _| s.arg == 705_032_704),
        Search::of("=[0-6]$", |s, _| !(0..7).contains(&s.ret)).inverted(),
        Search::of("=ENOSPC", |_, _| false),
    ];
    run_searches(&made.done(), &searches, &json!([]));
}
