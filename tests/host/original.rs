// SPDX-License-Identifier: BSD-3-Clause
//! Raw files of the original, made word by word, decode to the events that were recorded.

use kutrace_tests::original::{rich, File, LASTS, START, START_US};
use kutrace_tests::Random;
use postprocess::event::number::{
    IRQ, IRQ_NAME, IRQ_RETURN, KERNEL_NAME, LOCK_NAME, LOCK_TRY, METHOD_NAME, NAMES_LAST, PC_USER, PID_NAME,
    QUEUE_NAME, RETURN_BIT, RPC_REQUEST, SOFTIRQ, SOFTIRQ_RETURN, SWITCH, SYSCALL, SYSCALL_NAME, SYSCALL_RETURN, TRAP,
    TSDELTA,
};
use postprocess::event::{number, Event, Events, Interval, Meta};
use postprocess::id::CpuId;
use postprocess::raw::damage::NotATrace;
use postprocess::source;
use postprocess::span::{build, check};
use postprocess::time::Time;

use crate::damage::in_bounded_memory;
use kutrace_tests::cases::{cases, one_in};

const TIMER: u32 = IRQ + 0xec;

/// Everything from bytes to checked spans; returns the events.
fn run(bytes: &[u8]) -> Events {
    let events = source::decode(bytes).unwrap();
    sound(events.clone());
    events
}

fn sound(events: Events) {
    let intervals = events.meta.intervals.clone();
    let (spans, tally) = build(events);
    assert_eq!(check(&spans, &intervals, &tally), [""; 0]);
}

/// `ts dur event arg ret name` of all events but names known from the start, and the facts about the whole trace.
fn decode(file: &File) -> (Vec<String>, Meta) {
    let Events { meta, names, events } = run(&file.bytes());
    let brief = |e: &Event| format!("{} {} {:x} {} {} {}", e.ts, e.dur, e.event(), e.arg, e.ret, names.text(e.name));
    (events.iter().filter(|e| e.ts >= Time::ZERO).map(brief).collect(), meta)
}

/// The briefs after those of the first block's header.
fn briefs(file: &File) -> Vec<String> {
    let (events, meta) = decode(file);
    assert_eq!(meta.quality, [""; 0]);
    events.into_iter().filter(|e| !e.starts_with("0 1 ")).collect()
}

#[test]
fn a_stream_begins_with_who_runs_and_ends_with_its_last_entry() {
    let mut file = File::new(3);
    file.block(3, 7, 70_000, "prog").entry(90, TIMER, 0);
    let (events, meta) = decode(&file);
    assert_eq!(events, ["7 1 2 70000 0 prog", "7 1 200 70000 0 prog.70000", "90 0 5ec 0 0 irq#236"]);
    assert_eq!((meta.format, meta.flags, meta.base.as_str()), (3, 3, "2026-11-20_15:14:00"));
    assert_eq!(meta.intervals, [Interval { cpu: CpuId::new(3), from: Time(7), to: Time(90) }]);
}

#[test]
fn a_folded_call_keeps_argument_duration_and_value() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").name(1, SYSCALL_NAME, 39, "getpid").folded(10, SYSCALL + 39, 5, 20, -2);
    block.entry(50, SYSCALL + 39, 5).entry(60, SYSCALL_RETURN + 39, 65_535);
    assert_eq!(briefs(&file)[1..], ["10 20 827 5 65534 getpid", "50 0 827 5 0 getpid", "60 0 a27 0 65535 /getpid"]);
}

#[test]
fn a_name_is_said_at_the_start_and_where_it_stands() {
    let mut file = File::new(3);
    file.block(0, 0, 0, "swapper/0").name(20, KERNEL_NAME, 0, "#1 SMP  6.6").name(30, PID_NAME, 9, "rs:main Q:Reg");
    let Events { names, events, .. } = run(&file.bytes());
    let said: Vec<_> =
        events.iter().filter(|e| e.event() <= NAMES_LAST).map(|e| (e.ts.0, e.arg, names.text(e.name))).collect();
    assert_eq!(said[..3], [(-1, 0, "-idle-"), (-1, 0, "#1 SMP  6.6"), (-1, 9, "rs:main_Q:Reg")]);
    assert_eq!(said[3..], [(0, 0, "-idle-"), (20, 0, "#1 SMP  6.6"), (30, 9, "rs:main_Q:Reg")]);
}

#[test]
fn an_interrupt_between_timestamp_and_claim_comes_after_what_it_interrupted() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(110, TIMER, 0).entry(120, TIMER | RETURN_BIT, 0).entry(100, SYSCALL, 3);
    assert_eq!(briefs(&file), ["100 0 800 3 0 sys#0", "110 0 5ec 0 0 irq#236", "120 0 7ec 0 0 /irq#236"]);
}

#[test]
fn a_late_entry_finds_its_place_across_the_period_of_20_bits() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(0x80000, SYSCALL + 1, 0).entry(0x10_0005, TIMER, 0).entry(0xf_fffb, SYSCALL, 3);
    file.blocks[0].entry(0x10_0010, SYSCALL + 2, 0);
    let times: Vec<_> = briefs(&file).iter().map(|e| e.split(' ').next().unwrap().parse::<u64>().unwrap()).collect();
    assert_eq!(times, [0x80000, 0xf_fffb, 0x10_0005, 0x10_0010]);
}

#[test]
fn a_late_entry_finds_its_place_in_the_block_before() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(50, SYSCALL + 1, 0).entry(110, TIMER, 0);
    file.block(0, 112, 7, "a").entry(100, SYSCALL, 3).entry(130, SYSCALL + 2, 0);
    let said: Vec<_> = briefs(&file).into_iter().filter(|e| !e.contains(" 2 7 ")).collect();
    assert_eq!(said[1..3], ["100 0 800 3 0 sys#0", "110 0 5ec 0 0 irq#236"]);
}

#[test]
fn an_entry_before_the_begin_of_its_block_is_late_by_that() {
    let mut file = File::new(3);
    file.block(0, 0x10_0003, 7, "a").entry(0xf_fff9, SYSCALL + 1, 0);
    let (events, _) = decode(&file);
    assert_eq!(events[0], "1048569 0 801 0 0 sys#1");
}

#[test]
fn no_entry_is_before_the_minute() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").words.push(((START - 44_000) & 0xf_ffff) << 44 | u64::from(SYSCALL + 1) << 32);
    let (events, _) = decode(&file);
    assert!(events.contains(&"0 0 801 0 0 sys#1".to_string()), "{events:?}");
}

#[test]
fn seven_eighths_of_the_period_are_a_step_forward() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(5, SYSCALL + 1, 0).entry(5 + 0xe0000, SYSCALL + 2, 0);
    assert_eq!(briefs(&file)[1], format!("{} 0 802 0 0 sys#2", 5 + 0xe0000));
}

#[test]
fn a_tsdelta_bridges_any_gap_and_is_no_event() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").entry(5, SYSCALL + 1, 0);
    block.entry(500_000_000, TSDELTA, 499_999_995).entry(500_000_000, SYSCALL + 2, 0);
    block.entry(499_800_000, TSDELTA, -200_000i32 as u32).entry(499_800_000, SYSCALL + 3, 0);
    block.entry(4_400_000_000, TSDELTA, 3_900_200_000).entry(4_400_000_000, SYSCALL + 4, 0);
    let times: Vec<_> = briefs(&file).iter().map(|e| e.split(' ').next().unwrap().to_string()).collect();
    assert_eq!(times, ["5", "499800000", "500000000", "4400000000"]);
}

#[test]
fn a_tsdelta_that_opens_a_block_says_less_than_the_blocks_begin() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(5, SYSCALL + 1, 0);
    let block = file.block(0, 500_000_003, 7, "a").entry(500_000_000, TSDELTA, 499_999_995);
    block.entry(500_000_000, SYSCALL + 2, 0);
    assert_eq!(briefs(&file)[1], "500000000 0 802 0 0 sys#2");
}

#[test]
fn of_the_first_block_of_a_wrapped_trace_only_the_names_are_used() {
    let mut file = File::new(0x43);
    file.block(0, 0, 7, "a").name(1, SYSCALL_NAME, 1, "write").entry(5, SYSCALL + 1, 0);
    file.block(0, 9_000, 7, "a").entry(9_001, SYSCALL + 1, 0);
    file.block(0, 2_000, 7, "a").entry(2_001, SYSCALL + 1, 0);
    let (events, meta) = decode(&file);
    let calls: Vec<_> = events.iter().filter(|e| e.contains(" 801 ")).collect();
    assert_eq!(calls, ["2001 0 801 0 0 write", "9001 0 801 0 0 write"]);
    assert_eq!((meta.flags, meta.intervals[0].from), (0x43, Time(2_000)));
}

#[test]
fn counter_bytes_of_ipc_llc_or_both_belong_to_their_words() {
    for flags in [0x83, 0x23, 0xa3] {
        let mut file = File::new(flags);
        file.block(0, 0, 7, "a").folded(10, SYSCALL + 39, 5, 20, 0).counted(0x42).entry(50, SYSCALL, 0).counted(0x03);
        file.block(1, 60, 8, "b").sample(70, 0, 0x1234).entry(90, SYSCALL + 1, 0).counted(0x05);
        let events = run(&file.bytes()).events;
        let counted = |event| events.iter().find(|e| e.event() == event).unwrap().ipc;
        assert_eq!([SYSCALL + 39, SYSCALL, SYSCALL + 1, PC_USER, SWITCH].map(counted), [0x42, 3, 5, 0, 0]);
    }
}

#[test]
fn a_sample_stands_right_before_the_timer_interrupt_that_took_it() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").name(1, IRQ_NAME, 0x21, "local_timer_x").sample(5, 0, 0x7fff_0040);
    block.entry(100, IRQ + 0x21, 0).entry(140, IRQ_RETURN + 0x21, 0).sample(150, 2600, 0xffff_ffff_8100_0040);
    let said = briefs(&file);
    assert_eq!(said[1], "5 0 280 64513 0 PC=00007fff0040");
    assert_eq!(said[2], "99 1 209 2600 0 -freq-");
    assert_eq!(said[3], "99 0 281 1 0 PC=ffffffff81000040");
    assert_eq!(said[4], "100 0 521 0 0 local_timer_x");
}

#[test]
fn a_softirq_return_names_the_softirq_that_runs() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(10, SOFTIRQ, 3).folded(12, TRAP + 0x0e, 0, 5, 0).entry(20, SOFTIRQ_RETURN, 0);
    assert_eq!(briefs(&file)[2], "20 0 7ff 3 0 /BH:rx");
}

#[test]
fn softirqs_have_the_number_that_the_names_say() {
    let mut file = File::new(3);
    let block =
        file.block(0, 0, 7, "a").name(1, IRQ_NAME, 241, "BH").entry(10, IRQ + 0xf1, 3).entry(20, IRQ_RETURN + 0xf1, 0);
    block.entry(30, SOFTIRQ, 0);
    assert_eq!(briefs(&file)[1..], ["10 0 5ff 3 0 BH:rx", "20 0 7ff 3 0 /BH:rx", "30 0 5ff 0 0 BH:hi"]);
}

#[test]
fn names_of_threads_reach_all_pids_and_all_cpus() {
    let mut file = File::new(3);
    file.block(0, 0, 0, "swapper/0").entry(40, number::SWITCH, 70_001).entry(80, number::RUNNABLE, 99_999);
    file.block(1, 0, 0, "swapper/1").name(90, PID_NAME, 70_001 & 0xffff, "big").entry(91, number::SWITCH, 70_001);
    let said = briefs(&file);
    assert_eq!(said[..3], ["40 1 2 70001 0 big", "40 0 200 70001 0 big.70001", "80 1 206 99999 0 runnable.99999"]);
    assert_eq!(said[4], "91 0 200 70001 0 big.70001");
}

#[test]
fn block_headers_of_freebsd_count_pids_from_100000() {
    let mut file = File::new(3);
    file.block(0, 0, 100_007, "a").name(1, KERNEL_NAME, 0, "FreeBSD 13.1").entry(5, SYSCALL + 1, 0);
    file.block(1, 0, 100_011, "idle:cpu1").entry(5, SYSCALL + 2, 0);
    let (events, _) = decode(&file);
    assert!(events.contains(&"0 1 200 7 0 a.7".to_string()) && events.contains(&"0 1 2 0 0 -idle-".to_string()));
}

#[test]
fn locks_queues_and_rpcs_are_called_by_their_names() {
    let mut file = File::new(3);
    let block = file.block(0, 0, 7, "a").name(1, METHOD_NAME, 9, "get").name(2, LOCK_NAME, 0x2345, "mutex");
    block.name(3, QUEUE_NAME, 4, "input").entry(10, RPC_REQUEST, 9).entry(20, LOCK_TRY, 0x2345);
    block.entry(30, number::ENQUEUE, 4).entry(40, RPC_REQUEST, 0).entry(50, number::MARK_D, 70_000);
    let said = briefs(&file);
    assert_eq!(said[3..6], ["10 1 201 9 0 get.9", "20 1 210 9029 0 try_mutex", "30 1 21a 4 0 enq_input"]);
    assert_eq!(said[7], "50 1 20d 70000 0 mark_d");
    let rpcs: Vec<_> = run(&file.bytes()).events.iter().filter(|e| e.ts >= Time(10)).map(|e| e.rpc).collect();
    assert_eq!(rpcs, [9, 9, 9, 9, 0]);
}

#[test]
fn an_entry_that_cannot_be_opens_a_gap_to_the_next_block() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(10, SYSCALL + 1, 0).entry(20, KERNEL_NAME | 9 << 4, 0).entry(30, SYSCALL + 2, 0);
    file.block(0, 500, 8, "b").entry(510, SYSCALL + 3, 0);
    let (events, meta) = decode(&file);
    assert_eq!(
        meta.quality,
        ["block 0, byte 104: event number 0x192 has an impossible length; the rest of the block is skipped"]
    );
    assert_eq!(events[3..5], ["10 0 30000 0 0 -lost-", "500 1 2 8 0 b"]);
    assert_eq!(events[5..], ["500 1 200 8 0 b.8", "510 0 803 0 0 sys#3"]);
}

#[test]
fn words_that_mean_nothing_are_skipped() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(10, SYSCALL + 1, 0).words.extend([0, 0xffff_ffff_0000_0007]);
    file.blocks[0].entry(30, SYSCALL + 2, 0).words.push(u64::MAX);
    file.blocks[0].entry(40, SYSCALL + 3, 0);
    assert_eq!(briefs(&file), ["10 0 801 0 0 sys#1", "30 0 802 0 0 sys#2"]);
}

#[test]
fn a_block_of_another_time_is_skipped() {
    let mut file = File::new(3);
    file.block(0, 0, 7, "a").entry(10, SYSCALL + 1, 0);
    file.block(1, 1 << 40, 7, "a").entry((1 << 40) + 10, SYSCALL + 1, 0);
    let (events, meta) = decode(&file);
    assert_eq!(meta.quality, ["block 1, byte 65536: the block is not of this trace's time; skipped"]);
    assert_eq!(events.len(), 3);
}

#[test]
fn a_stop_counter_that_was_taken_for_one_of_32_bits_is_put_right() {
    let mut file = File::new(3);
    (file.start, file.stop) = (0x7000, 0x7000 + LASTS / 10 + (9 << 32));
    file.block(0, 0x10, 7, "a");
    let mut bytes = file.bytes();
    bytes[40..48].copy_from_slice(&(START_US + LASTS / 1000).to_le_bytes());
    assert_eq!(run(&bytes).meta.quality, ["byte 32: the counter at the stop has excess high bits; ignored"]);
}

#[test]
fn counters_of_32_bits_get_the_bits_they_lost() {
    let mut file = File::new(3);
    file.start = 0xffff_0000;
    file.stop = file.start + LASTS;
    file.block(0, 0, 7, "a");
    file.block(1, 0x20_0000, 7, "a");
    file.block(0, 0x7000_0000, 7, "a");
    let mut bytes = file.bytes();
    (0..3).for_each(|n| bytes[n * 65536 + 4..n * 65536 + 7].fill(0));
    let Events { meta, events, .. } = run(&bytes);
    assert_eq!(meta.quality, [""; 0]);
    let begins: Vec<_> =
        events.iter().filter(|e| e.event() == number::PID_NAME && e.ts >= Time::ZERO).map(|e| e.ts.0).collect();
    assert_eq!(begins, [0, 0x20_0000, 0x7000_0000]);
}

#[test]
fn a_trace_without_a_stop_has_a_clock_of_50_mhz() {
    let mut file = File::new(3);
    file.stop = 0;
    file.block(0, 0, 7, "a").entry(1_000, SYSCALL + 1, 0);
    let (events, meta) = decode(&file);
    assert_eq!(meta.quality, ["byte 16: start and stop give no usable clock rate; 50 MHz is assumed"]);
    assert_eq!(events[2], "2000 0 801 0 0 sys#1");
}

#[test]
fn every_truncation_is_read_as_far_as_it_goes_and_says_so() {
    in_bounded_memory("original::every_truncation_is_read_as_far_as_it_goes_and_says_so", || {
        let mut file = rich(20);
        file.blocks.truncate(1);
        let bytes = file.bytes();
        let whole = run(&bytes).events.len();
        // After the entries there are only zeros.
        for len in (0..4_000).chain((4_000..bytes.len()).step_by(7)).step_by(one_in(10)) {
            match source::decode(&bytes[..len]) {
                Err(e) => assert!(len < 96 && e == NotATrace::Unknown, "{len}"),
                Ok(events) => {
                    let at_a_block = len % (65536 + 8192) == 0;
                    assert!(events.events.len() <= whole + 2 && (at_a_block || !events.meta.is_whole()), "{len}");
                    sound(events);
                }
            }
        }
    });
}

#[test]
fn flipped_bits_harm_no_one() {
    in_bounded_memory("original::flipped_bits_harm_no_one", || {
        let bytes = rich(40).bytes();
        let used: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0 && bytes[at] != 0xff).collect();
        let mut random = Random(5);
        for round in 0..cases(1_000) {
            let mut broken = bytes.clone();
            for _ in 0..1 + round % 3 {
                broken[used[random.below(used.len() as u64) as usize]] ^= 1 << random.below(8);
            }
            let _ = source::decode(&broken).map(sound);
        }
    });
}
