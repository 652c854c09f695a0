// SPDX-License-Identifier: BSD-3-Clause
//! Drawings in addition to execution: from event text through the stages to a page in a browser.

use kutrace_tests::number::{idle, of_thread, on_cpu};
use postprocess::event::number::{
    user, DEQUEUE, ENQUEUE, FREQUENCY, IDLE_EXIT, IRQ, LOCK_ACQUIRED, LOCK_HELD, LOCK_RELEASED, LOCK_TRY, LOCK_WAITED,
    LOST, MARK_A, MARK_B, MARK_D, MWAIT, PC_USER, RESOURCE, ROW_LABEL, RPC_RECEIVED, RPC_REQUEST, RPC_RESPONSE,
    RPC_SENT, RUNNABLE, RX_PACKET, RX_USER, SCHED, SCHED_RETURN, SOFTIRQ, SPECIAL_LAST, STALLED, STEAL, SWITCH,
    SYSCALL, TRAP, TX_PACKET, TX_USER, USER, WAIT_A,
};
use postprocess::id::{CpuId, Pid};
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::what::{Arc, What};
use postprocess::span::{build, Meta, Span, Spans};
use postprocess::time::Time;
use serde_json::json;

use crate::drive::run_on;
use crate::spans::{workload, Made, Row};

/// Event text, written in any order; times in units of 10 ns.
struct Text(Vec<(i64, String)>);

/// Start of the trace.
const BEGIN: i64 = 500_000_000;
/// A microsecond.
const US: i64 = 100;

impl Text {
    /// An event at `us` microseconds after the start.
    fn at(&mut self, us: i64, event: u32, cpu: u32, pid: u32, arg: u32, name: &str) {
        self.call(us, 0, event, cpu, pid, arg, name);
    }

    /// An event that lasts `dur` units.
    #[allow(clippy::too_many_arguments)]
    fn call(&mut self, us: i64, dur: i64, event: u32, cpu: u32, pid: u32, arg: u32, name: &str) {
        let ts = BEGIN + us * US;
        let dur = if (RPC_REQUEST..=SPECIAL_LAST).contains(&event) { 1 } else { dur };
        let ipc = us.unsigned_abs() % 16 * 17;
        self.0.push((ts, format!("{ts} {dur} {event} {cpu}  {pid} 0  {arg} 0 {ipc} {name} ({event:x})")));
    }

    fn spans(mut self, flags: u32) -> Spans {
        self.0.sort_by_key(|(ts, _)| *ts);
        let head = format!("# ## VERSION: 3\n# ## FORMAT: 5\n# [1] 2026-01-02_03:04:05.0 cpu 00 flags {flags:02x} block 0\n# ## FLAGS: {flags}\n");
        let body: Vec<String> = self.0.into_iter().map(|(_, line)| line).collect();
        let mut spans = build(read(&mut (head + &body.join("\n")).as_bytes()).unwrap()).0;
        spans.meta.flags = flags;
        spans
    }
}

/// A server that takes a request from the network, waits for a lock and queues the request; a worker that takes it out
/// of the queue and answers. Timers sample where they are and how fast their CPUs run. CPU 1 loses events. At last the
/// worker wakes the server.
pub fn everything(flags: u32) -> Spans {
    let mut t = Text(Vec::new());
    for (pid, name) in [(50, "server"), (51, "worker")] {
        t.0.push((-1, format!("-1 1 34 {pid} {name}")));
    }
    let message = 110 << 16 | 7;
    t.call(0, 1, SWITCH, 0, 50, 50, "server.50");
    t.call(0, 1, SWITCH, 1, 51, 51, "worker.51");
    t.at(5, MARK_A, 0, 50, 1, "mark_a=start");
    t.at(6, MARK_D, 0, 50, 42, "mark_d=42");
    t.at(8, LOCK_TRY, 1, 51, 5, "try_table");
    t.at(9, LOCK_ACQUIRED, 1, 51, 5, "acq_table");
    t.call(12, 500, SYSCALL, 1, 51, 3, "read");
    t.at(20, RESOURCE, 1, 51, 4, "disk");
    t.at(30, RX_PACKET, 0, 50, 0x0abc, "rx.0ABC");
    t.at(40, RX_USER, 0, 50, 0x0abc, "urx.0ABC");
    t.at(41, RPC_REQUEST, 0, 50, message, "lookup.7");
    t.at(50, LOCK_TRY, 0, 50, 5, "try_table");
    t.at(59, LOCK_RELEASED, 1, 51, 5, "rel_table");
    t.at(60, LOCK_ACQUIRED, 0, 50, 5, "acq_table");
    t.at(90, LOCK_RELEASED, 0, 50, 5, "rel_table");
    t.at(95, ENQUEUE, 0, 50, 3, "enq_work");
    t.at(96, RPC_REQUEST, 0, 50, 0, "-rpc-");
    t.at(120, DEQUEUE, 1, 51, 3, "deq_work");
    t.at(121, RPC_REQUEST, 1, 51, 7, "lookup.7");
    t.at(150, RPC_RESPONSE, 1, 51, message, "lookup.7");
    t.at(155, TX_USER, 1, 51, 0x0def, "utx.0DEF");
    t.call(158, 800, SYSCALL + 1, 1, 51, 4, "write");
    t.at(160, TX_PACKET, 1, 51, 0x0def, "tx.0DEF");
    t.at(180, RPC_RESPONSE, 1, 51, 0, "-rpc-");
    for (cpu, pid, sleeps) in [(0, 50, 210), (1, 51, 190)] {
        t.at(sleeps, SCHED, cpu, pid, 0, "-sched-");
        t.at(sleeps + 2, SWITCH, cpu, 0, 0, "-idle-");
        t.at(sleeps + 3, SCHED_RETURN, cpu, 0, 0, "/-sched-");
        t.at(sleeps + 5, MWAIT, cpu, 0, 32, "mwait");
    }
    for k in 1..20 {
        for cpu in 0..2 {
            let us = 100 * k + i64::from(cpu);
            if cpu == 1 && (1500..1760).contains(&us) {
                continue;
            }
            let pid = if (200..=1800).contains(&us) { 0 } else { 50 + cpu };
            t.at(us, FREQUENCY, cpu, pid, [800, 1600, 3600][(k % 3) as usize], "-freq-");
            t.at(us, PC_USER + cpu, cpu, pid, 77, ["hash_find", "copy_page"][(k % 2) as usize]);
            t.call(us, 150, IRQ + 0xec, cpu, pid, 0, "local_timer_vector");
            if pid == 0 {
                t.at(us + 4, MWAIT, cpu, 0, 32, "mwait");
            }
        }
    }
    t.call(1750, 100, IRQ + 0x0b, 0, 0, 0, "eth0");
    t.at(1752, RUNNABLE, 0, 0, 50, "runnable.50");
    t.at(1760, SCHED, 0, 0, 0, "-sched-");
    t.at(1762, SWITCH, 0, 50, 50, "server.50");
    t.at(1764, SCHED_RETURN, 0, 50, 0, "/-sched-");
    t.at(1500, LOST, 1, 0, 9, "-lost-");
    t.call(1760, 1, SWITCH, 1, 51, 51, "worker.51");
    t.at(1910, SCHED, 0, 50, 0, "-sched-");
    t.at(1912, SWITCH, 0, 0, 0, "-idle-");
    t.at(1914, SCHED_RETURN, 0, 0, 0, "/-sched-");
    t.at(1930, RUNNABLE, 1, 51, 50, "runnable.50");
    t.at(1940, SCHED, 0, 0, 0, "-sched-");
    t.at(1942, SWITCH, 0, 50, 50, "server.50");
    t.at(1944, SCHED_RETURN, 0, 50, 0, "/-sched-");
    t.at(1990, MARK_B, 0, 50, 2, "mark_b=end");
    t.call(1995, 10, SYSCALL + 39, 0, 50, 0, "getpid");
    t.call(1995, 10, SYSCALL + 39, 1, 51, 0, "getpid");
    t.spans(flags)
}

#[test]
fn the_stages_number_spans_as_the_page_expects() {
    let spans = everything(0x85).spans;
    for (event, cpu, dur) in [
        (RPC_RECEIVED, 0, 1638), // message received
        (RPC_SENT, 0, 1638),     // message sent
        (FREQUENCY, 0, 10_000),  // frequency
        (ENQUEUE, -1, 2500),     // in a queue
        (PC_USER, 0, 10_000),    // sample
        (LOCK_HELD, -1, 5000),   // lock held
        (LOCK_WAITED, -1, 1000), // lock tried
        (IDLE_EXIT, 0, 1330),    // leaving low power
        (LOST, 1, 26_000),       // lost
    ] {
        let mut of_event = spans.iter().filter(|s| s.event() == event as i32 && s.cpu == on_cpu(cpu));
        assert!(of_event.any(|s| s.dur.0 == dur), "no {event:#x} on CPU {cpu} that lasts {dur}: {spans:#?}");
    }
}

#[test]
fn what_was_sampled_counted_and_marked_is_drawn_and_can_be_switched_off() {
    run_on("layers", &everything(0x85), &json!({ "dials": true }));
    run_on("layers", &everything(0x25), &json!({ "dials": true }));
    run_on("layers", &everything(0xa5), &json!({ "dials": true }));
    run_on("layers", &everything(0x05), &json!({ "dials": false }));
}

#[test]
fn locks_queues_and_messages_lie_on_the_rows_of_who_had_them() {
    run_on("resources", &everything(0x85), &json!({}));
}

#[test]
fn a_wave_leaves_low_power_and_recording_itself_is_drawn_from_near() {
    run_on("curves", &everything(0x85), &json!({}));
}

#[test]
fn what_the_host_took_is_hatched_over_what_the_cpu_was_at_whose_colour_and_name_stay() {
    let mut made = Made::default();
    let rows: [Row; 7] = [
        (0, 7, ROW_LABEL, 0, 1, "kutrace_control+redis-benchmark.7"),
        (0, 7, user(Pid::new(7)), 0, 1000, "prog.7"),
        (0, 7, SYSCALL + 39, 1000, 4000, "getpid"),
        (0, 7, STEAL, 1500, 3400, "stolen:other"),
        (0, 7, STALLED, 5000, 1000, "-stalled-"),
        (0, 7, user(Pid::new(7)), 6000, 1000, "prog.7"),
        (0, 7, STEAL, 6200, 600, "stolen:other"),
    ];
    rows.into_iter().for_each(|row| made.row(row));
    run_on("stolen", &made.done(), &json!({}));
}

#[test]
fn arcs_lead_from_who_wakes_or_interrupts_to_whom_and_the_legend_tells_them_apart() {
    let mut made = Made::default();
    for cpu in 0..2 {
        made.add(Span { cpu: on_cpu(cpu), what: What::of(USER as i32), dur: Time(100_000), ..idle() }, "-idle-");
    }
    let arc = Span { start: Time(20_000), dur: Time(30_000), ..idle() };
    let (to, woken) = (CpuId::new(1), Pid::new(7));
    made.add(Span { what: What::Arc(Arc::Wakeup { to, woken }), ..arc }, "-wakeup-");
    made.add(Span { what: What::Arc(Arc::Ipi { to }), start: Time(60_000), ..arc }, "-ipi-");
    run_on("arcs", &made.done(), &json!({}));
}

/// Two threads that do the same for an RPC each, the second 4000 units later and woken by the first.
fn alike() -> Spans {
    let mut made = Made::default();
    made.0.meta.flags = 0x80;
    for (cpu, begin) in [(0, 1000), (1, 5000)] {
        let (pid, rpc) = (50 + cpu, 3 + cpu);
        made.add(Span { cpu: on_cpu(cpu), what: What::of(USER as i32), dur: Time(begin), ..idle() }, "-idle-");
        let on = Span { cpu: on_cpu(cpu), pid: of_thread(pid), rpc, ..idle() };
        let rows = [
            (USER as i32 + pid, 0, 300, format!("worker.{pid}")),
            (SYSCALL as i32 + 1, 300, 200, "write".into()),
            (TRAP as i32 + 0x0e, 500, 100, "page_fault".into()),
            (USER as i32 + pid, 1000, 400, format!("worker.{pid}")),
        ];
        for (event, at, dur, name) in rows {
            made.add(Span { what: What::of(event), start: Time(begin + at), dur: Time(dur), ipc: 5, ..on }, &name);
        }
        let aside = Span { cpu: None, ..on };
        made.add(
            Span { what: What::of(WAIT_A as i32 + 3), start: Time(begin + 600), dur: Time(400), ..aside },
            "wait_disk",
        );
        made.add(
            Span { what: What::of(LOCK_HELD as i32), start: Time(begin + 100), dur: Time(150), arg: 9, ..aside },
            "=table",
        );
        made.add(
            Span { what: What::of(MARK_A as i32), start: Time(begin + 50), dur: Time(1), ..on },
            &format!("mark_a=go{cpu}"),
        );
        made.add(
            Span { cpu: on_cpu(cpu), what: What::of(USER as i32), start: Time(begin + 600), dur: Time(400), ..idle() },
            "-idle-",
        );
        made.add(
            Span {
                cpu: on_cpu(cpu),
                what: What::of(USER as i32),
                start: Time(begin + 1400),
                dur: Time(5000 - begin),
                ..idle()
            },
            "-idle-",
        );
    }
    let what = What::Arc(Arc::Wakeup { to: CpuId::new(1), woken: Pid::new(51) });
    let arc = Span { pid: of_thread(50), what, start: Time(1350), dur: Time(3650), ..idle() };
    made.add(arc, "-wakeup-");
    made.done()
}

#[test]
fn rows_that_count_from_their_own_begins_are_drawn_and_hit_there() {
    run_on("relative", &alike(), &json!({}));
}

#[test]
fn stripes_tell_calls_of_one_colour_apart_in_every_theme() {
    let mut made = Made::default();
    let calls = (0..24).map(|nr| (SYSCALL as i32 + nr, 0, 1000, format!("call{nr}")));
    let others = [
        (TRAP as i32 + 0x0e, "page_fault"),
        (TRAP as i32 + 0x0d, "gp_fault"),
        (IRQ as i32 + 0xec, "timer"),
        (IRQ as i32 + 0x0b, "disk"),
        (SCHED as i32, "-sched-"),
    ];
    let others = others.map(|(event, name)| (event, 0, 1000, name.to_string()));
    let halves = [1, 3].map(|nr| (SOFTIRQ as i32, nr, 1000, format!("BH:{nr}")));
    let narrow = [(SYSCALL as i32, 0, 60, "call0".to_string()), (SYSCALL as i32 + 1, 0, 60, "call1".into())];
    let mut start = 0;
    for (event, arg, dur, name) in calls.chain(others).chain(halves).chain(narrow) {
        made.add(
            Span { what: What::of(event), arg, start: Time(start), dur: Time(dur), pid: of_thread(9), ..idle() },
            &name,
        );
        start += dur;
    }
    run_on("stripes", &made.done(), &json!({}));
}

#[test]
fn rows_of_which_nothing_is_in_sight_hide() {
    let mut made = Made::default();
    for k in 0..120i32 {
        let (pid, start) = (100 + k, i64::from(k) * 10_000);
        let span = Span {
            pid: of_thread(pid),
            what: What::of(USER as i32 + pid),
            start: Time(start),
            dur: Time(10_000),
            ..idle()
        };
        made.add(span, &format!("short{}.{pid}", if k % 2 == 0 { "-lived" } else { "" }));
    }
    run_on("hiding", &made.done(), &json!({}));
}

/// Five threads run one after the other, and wait all the time else.
fn sleepers() -> Spans {
    let mut made = Made::default();
    for k in 0..5i32 {
        let (pid, start) = (50 + k, i64::from(k) * 10_000);
        let runs = Span {
            pid: of_thread(pid),
            what: What::of(USER as i32 + pid),
            start: Time(start),
            dur: Time(10_000),
            ..idle()
        };
        made.add(runs, &format!("worker.{pid}"));
        for (from, to) in [(0, start), (start + 10_000, 50_000)] {
            let waits = Span {
                cpu: None,
                pid: of_thread(pid),
                what: What::of(WAIT_A as i32 + 13),
                start: Time(from),
                dur: Time(to - from),
                ..idle()
            };
            if from < to {
                made.add(waits, "wait_net");
            }
        }
    }
    made.done()
}

#[test]
fn rows_on_which_nothing_runs_in_sight_hide_if_asked() {
    run_on("asleep", &sleepers(), &json!({}));
}

#[test]
fn the_row_under_the_pointer_keeps_its_place_while_others_hide() {
    run_on("held", &sleepers(), &json!({}));
}

#[test]
fn threads_stand_in_the_order_that_is_chosen() {
    let mut spans = sleepers();
    spans.meta.processes = [(50, 54), (51, 53)].into();
    run_on("ordered", &spans, &json!({}));
}

#[test]
fn a_wait_ends_in_the_letter_of_its_reason_in_morse_code() {
    let mut made = Made::default();
    made.add(Span { what: What::of(USER as i32), dur: Time(1_000_000), ..idle() }, "-idle-");
    for (k, letter) in ('a'..='z').enumerate() {
        let pid = 100 + k as i32;
        let span = Span {
            cpu: None,
            pid: of_thread(pid),
            what: What::of(WAIT_A as i32 + k as i32),
            start: Time(100),
            dur: Time(900_000),
            ..idle()
        };
        made.add(span, &format!("wait_{letter}"));
    }
    run_on("morse", &made.done(), &json!({}));
}

#[test]
fn dots_say_where_a_pixel_hides_several_spans() {
    run_on("dots", &workload(3000), &json!({}));
}

#[test]
fn a_recording_that_wrapped_says_so_above_the_picture() {
    let mut spans = workload(3);
    spans.meta.flags = 0x45;
    run_on("open", &spans, &json!({ "spans": spans.spans.len(), "banner": ["end of a longer recording"] }));
}

#[test]
fn a_page_is_made_of_what_the_original_exports() {
    let text = concat!(
        "  {  \"Comment\" : \"V2 with IPC field\",  \"flags\" : 131,  \"title\" : \"exported\",  ",
        "\"tracebase\" : \"2021-10-28_14:01:00\",  \"version\" : 3, \"events\" : [ ",
        "[ 49.41895135, 0.00000545, 0, 8287, 0, 73823, 0, 0, 4, \"kutrace_control.8287\"],\n",
        "[ 49.41895680, 0.00001508, 0, 8287, 0, 2049, 1, 9, 0, \"write\"],\n[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n],\n",
        "\"extra\" : [\n[ 49.41895680, 0.00001508, 0, 8287, 0, -4, 60, -2, 0, \"look here\"]\n],\n",
        "\"savedview\" : [\n  [\"&#x21d0;\", {}],\n  [\"&#x2780;\", {\"xleft_ts\":49.418952,\"xright_ts\":49.41896,\"groupcompress\":[2,0,0,0]}]\n]}\n\n",
    );
    let spans = source::json::read(&mut text.as_bytes()).unwrap();
    assert_eq!(spans.meta.quality, Vec::<String>::new());
    run_on("exported", &spans, &json!({}));
}

#[test]
fn highlighted_rows_and_what_is_drawn_are_in_the_address() {
    run_on("remembered", &everything(0x85), &json!({}));
}

#[test]
fn a_figure_has_all_that_is_drawn_beside_execution() {
    run_on("figure", &everything(0x85), &json!({ "title": "KUtrace, 2026-01-02 03:04" }));
}

#[test]
fn a_trace_of_nothing_but_resources_has_their_rows() {
    let mut made = Made::default();
    made.0.meta = Meta::default();
    made.add(
        Span {
            cpu: None,
            pid: of_thread(5),
            rpc: -1,
            what: What::of(LOCK_HELD as i32),
            start: Time(10),
            dur: Time(500),
            arg: 9,
            ..idle()
        },
        "=table",
    );
    run_on("open", &made.done(), &json!({ "spans": 1 }));
}
