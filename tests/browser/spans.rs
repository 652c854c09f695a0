// SPDX-License-Identifier: BSD-3-Clause
//! Spans for pages: a builder, a workload of four CPUs, the expected answers of a page; and the tests that need no more
//! than a scenario on that workload.

use kutrace_tests::number::{idle, of_thread, on_cpu};
use postprocess::event::names::NameId;
use postprocess::event::number::{
    user, IRQ, MARK_A, ROW_LABEL, ROW_LABEL_LAST, SCHED_OLD, SCHED_RETURN, SYSCALL, TRAP, USER, WAIT_A,
};
use postprocess::id::{CpuId, Pid};
use postprocess::span::order::order;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{Meta, Span, Spans, NONE};
use postprocess::time::Time;
use serde_json::json;

use crate::drive::run_on;

/// CPU and thread, -1 for none; event number, start, duration and name.
pub type Row = (i32, i32, u32, i64, i64, &'static str);

/// Collects spans, giving every name one number.
#[derive(Default)]
pub struct Made(pub Spans);

impl Made {
    pub fn add(&mut self, span: Span, name: &str) {
        let names = &mut self.0.names;
        let place = names.iter().position(|n| n == name).unwrap_or_else(|| {
            names.push(name.to_string());
            names.len() - 1
        });
        self.0.spans.push(Span { name: NameId(place as u32), ..span });
    }

    pub fn row(&mut self, (cpu, pid, event, start, dur, name): Row) {
        let (start, dur) = (Time(start), Time(dur));
        let span = Span { cpu: on_cpu(cpu), pid: of_thread(pid), what: What::of(event as i32), start, dur, ..idle() };
        self.add(span, name);
    }

    pub fn done(mut self) -> Spans {
        order(&mut self.0.spans);
        self.0
    }
}

/// Four CPUs that each read, fault, idle and are interrupted, `rounds` times, in threads that wait and wake each other.
pub fn workload(rounds: i64) -> Spans {
    let mut made = Made::default();
    made.0.meta = Meta { title: "workload".into(), tracebase: "2026-01-02_03:04:00".into(), ..Meta::default() };
    made.0.meta.flags = 0x80;
    for cpu in 0..4i32 {
        let pid = 1000 + cpu;
        let mut at = 6_000_000_000 + i64::from(cpu) * 7;
        for round in 0..rounds {
            let execution: [(u32, i32, i64, &str); 7] = [
                (user(Pid::new(pid as u32)), pid, 300, "worker"),
                (SYSCALL, pid, 41, "read"),
                (user(Pid::new(pid as u32)), pid, 23, "worker"),
                (TRAP + 0x0e, pid, 87, "page_fault"),
                (SCHED_OLD, pid, 12, "-sched-"),
                (USER, 0, 500 + round % 40, "-idle-"),
                (IRQ + 0xec, 0, 9, "local_timer_vector"),
            ];
            let wait = Span {
                cpu: None,
                pid: of_thread(pid),
                what: What::of(WAIT_A as i32 + 3),
                start: Time(at + 463),
                dur: Time(509),
                ..idle()
            };
            made.add(wait, "wait_disk");
            let other = (cpu + 1) % 4;
            let (to, woken) = (CpuId::new(other as u32), Pid::new(1000 + other as u32));
            let arc = Span {
                cpu: on_cpu(cpu),
                pid: of_thread(pid),
                what: What::Arc(Arc::Wakeup { to, woken }),
                start: Time(at + 310),
                dur: Time(400),
                ..idle()
            };
            made.add(arc, "-wakeup-");
            if round % 50 == 0 {
                made.add(
                    Span {
                        cpu: on_cpu(cpu),
                        pid: of_thread(pid),
                        what: What::of(MARK_A as i32),
                        start: Time(at + 5),
                        dur: Time(1),
                        ..idle()
                    },
                    "mark_a=hello",
                );
            }
            for (event, pid, dur, name) in execution {
                let ret = if round % 3 == 0 { 65_534 } else { 5 };
                let name = if name == "worker" { format!("worker.{pid}") } else { name.to_string() };
                made.add(
                    Span {
                        cpu: on_cpu(cpu),
                        pid: of_thread(pid),
                        what: What::of(event as i32),
                        start: Time(at),
                        dur: Time(dur),
                        arg: 3,
                        ret,
                        ipc: 5,
                        ..idle()
                    },
                    &name,
                );
                at += dur;
            }
        }
    }
    made.done()
}

/// Expected answers that `drive.mjs` compares with a page: searches and hits.
pub fn expectations(spans: &Spans) -> serde_json::Value {
    // A search tries the first 128 characters of a name (postprocess/viewer/data/texts.js); functions of C++ have more.
    fn beginning(name: &str) -> &str {
        name.char_indices().nth(128).map_or(name, |(end, _)| &name[..end])
    }
    let searched = |s: &&Span| !matches!(s.event() as u32, ROW_LABEL | ROW_LABEL_LAST);
    let count = |matches: &dyn Fn(&str, &Span) -> bool| {
        let found = spans.spans.iter().filter(searched).filter(|s| matches(beginning(&spans.names[s.name]), s));
        found.fold((0u64, 0i64), |(n, total), s| (n + 1, total + s.dur.0))
    };
    let search = |pattern: &str, [min, max]: [&str; 2], invert: bool, (n, total): (u64, i64)| json!({ "pattern": pattern, "min": min, "max": max, "invert": invert, "count": n, "total": total });
    let tame = |name: &str| !name.starts_with('-');
    let is_user =
        |s: &Span| matches!(s.what, What::Run(Activity::User(_))) && s.pid.is_some_and(|pid| pid != Pid::IDLE);
    // Durations of spans without pieces: `whole_calls` covers those of calls.
    let searches = [
        search("read", ["", ""], false, count(&|name, _| tame(name) && name.contains("read"))),
        search("^page_fault$", ["", ""], false, count(&|name, _| name == "page_fault")),
        search("^-sched-", ["", ""], false, count(&|name, _| name.starts_with("-sched-"))),
        search(".", ["", ""], false, count(&|name, _| tame(name) && !name.is_empty())),
        search("no such name", ["", ""], false, (0, 0)),
        search("read", ["", ""], true, count(&|name, _| tame(name) && !name.contains("read"))),
        search("^-", ["110 ns", "5.2us"], false, count(&|name, s| !tame(name) && (11..=520).contains(&s.dur.0))),
        search("kind:user", ["230 ns", ".87"], false, count(&|_, s| is_user(s) && (23..=87).contains(&s.dur.0))),
        search(
            "kind:user e",
            ["", "0.0009ms"],
            false,
            count(&|name, s| is_user(s) && name.contains('e') && s.dur.0 <= 90),
        ),
    ];
    let known = |value: i64| Some(value).filter(|&value| value != NONE);
    let executed =
        |s: &&Span| s.cpu.is_some() && s.dur > Time::ZERO && (TRAP..=SCHED_RETURN).contains(&(s.event() as u32));
    let step = (spans.spans.iter().filter(executed).count() / 25).max(1);
    let hits = spans.spans.iter().filter(executed).step_by(step).map(|s| {
        json!({ "start": s.start, "dur": s.dur, "cpu": s.cpu, "pid": s.pid, "event": s.event(), "arg": known(s.values().0),
            "ret": known(s.values().1), "name": spans.names[s.name] })
    });
    json!({
        "spans": spans.spans.len(),
        "searches": searches,
        "hits": hits.collect::<Vec<_>>(),
    })
}

/// A test for each scenario, on a workload of 300 rounds and with nothing more to expect.
macro_rules! on_a_workload {
    ($($test:ident: $scenario:literal,)*) => {$(
        #[test]
        fn $test() {
            run_on($scenario, &workload(300), &json!({}));
        }
    )*};
}

on_a_workload! {
    the_wheel_zooms_at_the_pointer_down_to_one_entry: "wheel",
    the_keyboard_reaches_everything: "keys",
    idle_is_a_line_user_execution_a_band_and_the_kernel_fills_its_row: "picture",
    clicks_drags_and_labels_do_what_they_promise: "pointer",
    a_measured_range_is_summed_up_by_name_cpu_and_thread: "totals",
    the_address_of_the_page_holds_what_is_in_sight: "address",
    extremes_of_the_trace_are_one_click_away: "start",
    a_group_shows_all_its_rows_those_highlighted_or_none: "highlight",
    names_stand_above_spans_that_have_no_room_for_them: "tags",
    columns_take_whatever_their_groups_hold: "columns",
    long_spans_are_found_among_many_that_overlap: "reach",
    every_theme_is_legible_and_the_look_outlives_the_page: "look",
    notes_stand_on_spans_and_are_moved_written_and_removed: "notes",
    views_are_saved_named_restored_and_left_again: "views",
    the_strip_shows_how_busy_the_trace_is_and_where_matches_are: "strip",
    what_is_in_sight_is_a_table_too: "list",
    a_list_is_sorted_grouped_kept_in_part_and_given_away: "lists",
    spans_of_one_name_or_two_are_highlighted_with_their_total: "kinds",
    everything_can_be_done_by_keyboard_and_the_sheet_says_how: "keyboard",
    the_sheet_of_keys_opens_at_its_title_in_any_window: "sheet",
    nothing_lies_outside_of_a_small_window_or_over_something_else: "narrow",
    the_panel_moves_nothing_in_the_picture_and_can_be_made_wider: "panel",
    two_fingers_zoom_where_they_are: "pinch",
    what_a_tap_on_a_phone_selects_stays_in_sight: "phone",
    nothing_looks_alive_before_the_page_is: "opening",
    what_is_found_on_closed_rows_is_one_click_away: "closed",
    esc_undoes_one_thing_and_enter_gives_the_keys_back: "steps",
    what_fits_into_sight_stays_there: "whole",
    rows_of_cpus_keep_their_height_when_threads_open: "heights",
    a_switch_that_is_on_differs_in_forced_colours: "forced",
    pinned_rows_stay_in_sight: "pins",
    text_is_legible_on_every_colour_of_every_theme: "legible",
}
