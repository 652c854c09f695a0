// SPDX-License-Identifier: BSD-3-Clause
//! One case for every fault that was seen in the original's stages; ours have none of them. The golden files are as in
//! `span.rs`; each test's name states the correct behaviour.

use kutrace_tests::original::File;
use postprocess::event::number::{
    IRQ, IRQ_RETURN, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_D, MODEL_NAME, RUNNABLE, SCHED, SCHED_RETURN,
    SOFTIRQ, SOFTIRQ_RETURN, SWITCH, SYSCALL, SYSCALL_NAME, SYSCALL_RETURN, TSDELTA,
};
use postprocess::sink::page;
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::build;

use crate::golden::assert_golden;
use crate::span::told;

fn assert_case(name: &str, file: &File) {
    let events = source::decode(&file.bytes()).unwrap();
    assert_eq!(events.meta.quality, [""; 0]);
    assert_golden(&format!("faults/{name}.txt"), &told(events, 0));
}

#[test]
fn a_folded_call_of_one_count_lasts_one_count_though_the_model_is_known() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").name(1, MODEL_NAME, 0, "a CPU").name(2, SYSCALL_NAME, 39, "getpid").folded(
        100,
        SYSCALL + 39,
        0,
        1,
        7,
    );
    assert_case("one_count", &file);
}

#[test]
fn a_late_entry_across_the_period_of_20_bits_moves_nothing() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").entry(0x80000, SYSCALL + 39, 0).entry(0x80100, SYSCALL_RETURN + 39, 7);
    block.entry(0x10_0005, IRQ + 0xec, 0).entry(0x10_0010, IRQ_RETURN + 0xec, 0).entry(0xf_fffb, SYSCALL, 3).entry(
        0x10_0100,
        SYSCALL_RETURN,
        9,
    );
    assert_case("late_across_period", &file);
}

#[test]
fn a_tsdelta_that_opens_a_block_moves_nothing() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(100, SYSCALL, 3);
    file.block(0, 500_000_003, 7, "a").entry(500_000_000, TSDELTA, 499_999_900).entry(500_000_000, SYSCALL_RETURN, 9);
    assert_case("tsdelta_opens_block", &file);
}

#[test]
fn a_softirq_return_is_that_of_the_softirq_that_runs() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").entry(100, SOFTIRQ, 3).entry(120, SOFTIRQ_RETURN, 0);
    block.entry(130, SOFTIRQ, 1).entry(140, IRQ + 0xec, 0).entry(150, IRQ_RETURN + 0xec, 0).entry(
        160,
        SOFTIRQ_RETURN,
        0,
    );
    assert_case("softirq_returns", &file);
}

#[test]
fn model_host_and_kernel_are_known_wherever_their_names_stand() {
    let events = read(
        &mut "# [1] 2026-11-20_15:14:00.000000 cpu 00 flags 03 block 0\n5 1 34 7 a\n10 0 512 0  7 0  7 0 0 a.7 (200)\n\
        20 1 290 0 #1 SMP\n20 1 291 0 a CPU\n20 1 292 0 host\n30 0 2087 0  7 0  0 0 0 getpid (827)\n"
            .as_bytes(),
    )
    .unwrap();
    let (spans, _) = build(events);
    assert_eq!([spans.meta.kernel, spans.meta.cpu_model, spans.meta.host], ["#1 SMP", "a CPU", "host"]);
}

#[test]
fn events_more_than_999_seconds_after_the_minute_are_there() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(100, SYSCALL, 3);
    file.block(0, 120_000_000_000, 7, "a").entry(120_000_000_100, SYSCALL_RETURN, 9).entry(
        120_000_000_200,
        SYSCALL + 1,
        1,
    );
    file.stop = file.start + 130_000_000_000;
    file.lasts = 130_000_000_000;
    assert_case("after_999_s", &file);
}

#[test]
fn pids_marks_and_locks_keep_all_their_bits() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 123_456, "a").entry(100, RUNNABLE, 99_999).entry(110, MARK_D, 70_000);
    block.entry(120, LOCK_TRY, 0x12345).entry(200, LOCK_ACQUIRED, 0x12345).entry(300, LOCK_RELEASED, 0x12345);
    block.entry(400, SCHED, 0).entry(410, SWITCH, 99_999).entry(420, SCHED_RETURN, 0);
    block.entry(500, SCHED, 0).entry(510, SWITCH, 123_456).entry(520, SCHED_RETURN, 0);
    assert_case("all_bits", &file);
}

#[test]
fn a_call_of_ten_seconds_is_one_span_of_ten_seconds() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").entry(100, SYSCALL + 35, 0).entry(1_000_000_100, TSDELTA, 1_000_000_000);
    block.entry(1_000_000_100, SYSCALL_RETURN + 35, 0).entry(1_000_000_200, SYSCALL + 39, 0);
    assert_case("ten_seconds", &file);
}

#[test]
fn a_name_stays_text_in_json_and_page() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "x';alert(1)//").entry(100, SYSCALL + 39, 0).entry(110, SYSCALL_RETURN + 39, 7);
    assert_case("hostile_name", &file);
    let (spans, _) = build(source::decode(&file.bytes()).unwrap());
    let mut page = Vec::new();
    page::render(&spans, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let data = page.split("id=\"ku-meta\"").nth(1).unwrap().split("</script>").next().unwrap();
    let data = data.split_once('>').unwrap().1;
    let said: serde_json::Value = serde_json::from_str(data).unwrap();
    assert!(said["names"].as_array().unwrap().contains(&"x';alert(1)//.7".into()));
    assert_eq!(page.matches("alert(1)").count(), data.matches("alert(1)").count(), "the name is outside of the data");
}
