// SPDX-License-Identifier: BSD-3-Clause
//! Conservation: each call of a hook is in the trace, or is counted as lost, as overwritten or as outside of the trace.
//!
//! A counting module (`xtask vm --count`) counts calls at the top of every hook, separately from the recorder's work.

use crate::blocks::Blocks;
use crate::guest::{self, Run};

/// Seconds of load under each recorder.
const SECONDS: u32 = guest::by_form(2, 5, 60);

/// Output of the module at the stop; events of all CPUs.
#[derive(Debug)]
struct Counts {
    /// Calls of hooks.
    calls: u64,
    /// Events in the blocks of the pool.
    recorded: u64,
    /// Events that found no room.
    lost: u64,
    /// Events of blocks that were used again.
    overwritten: u64,
    /// Calls before the recording began or after it ended.
    outside: u64,
}

impl Counts {
    fn of(run: &Run) -> Counts {
        let [calls, recorded, lost, overwritten, outside] =
            ["calls", "recorded", "lost", "overwritten", "outside"].map(|name| run.number(name));
        Counts { calls, recorded, lost, overwritten, outside }
    }
}

/// Traces page faults, signals, timers, switches, pipes and forks on two CPUs with a pool of `megabytes`, and checks
/// what holds in every mode; the load comes again until `kutrace_control status` has a line of `pattern`. `status` is what
/// `kutrace_control stop` ends with.
fn conserved(megabytes: u32, mode: &str, pattern: &str, status: i32) -> Counts {
    let script = format!(
        r#"
        insmod $KUTRACE_MODULE tracemb={megabytes}
        kutrace_control {mode}
        load() {{
            stress-ng --quiet --fault 1 --kill 1 --timer 1 --itimer 1 --switch 1 --pipe 1 --fork 1 --timeout {SECONDS}
            kutrace_control status | grep -q '{pattern}'
        }}
        await load
        status=0
        kutrace_control stop $SHARE/t.raw || status=$?
        dmesg | grep -o 'kutrace: count: .*' | tail -n 1 | grep -o '[a-z]*=[0-9]*'
        exit $status
        "#
    );
    let run = guest::run(&[guest::AT_ONCE, "--no-load", "--count", "--cpus", "2", "--mem", "4096"], &script);
    assert_eq!(run.status, status, "stdout:\n{}\nstderr:\n{}", run.out, run.err);
    let counts = Counts::of(&run);
    eprintln!("conservation, {mode} {megabytes} MB: {counts:?}");
    let Counts { calls, recorded, lost, overwritten, outside } = counts;
    assert!(calls > 10_000, "{counts:?}");
    assert_eq!(calls, recorded + lost + overwritten + outside, "{counts:?}");

    let blocks = Blocks::read(&run.file("t.raw"));
    for (cpu, blocks) in &blocks.cpus {
        for block in blocks {
            assert_eq!(block.decoded, block.counted, "cpu {cpu}: {block:?}");
        }
    }
    // A flight recorder keeps the block of a call that has not returned longer than those after it, and then the file
    // has only these.
    let kept = if mode == "gowrap" { u64::from(megabytes) * 16 - blocks.all().count() as u64 } else { 0 };
    let left_out = recorded - blocks.all().map(|b| b.decoded).sum::<u64>();
    let most_in_kept = kept * blocks.all().map(|b| b.decoded).max().unwrap_or(0);
    assert!(left_out <= 2 * most_in_kept, "{left_out} events in {kept} blocks are not in the file");
    assert_eq!(blocks.header.lost, lost);
    counts
}

#[test]
fn with_room_for_all_nothing_is_lost() {
    let counts = conserved(guest::by_form(768, 1536, 1536), "go", "^lost: *0 ", 0);
    assert_eq!((counts.lost, counts.overwritten), (0, 0));
}

#[test]
fn wrapping_loses_only_what_it_overwrites() {
    let counts = conserved(2, "gowrap", "(lap", 0);
    assert!(counts.lost == 0 && counts.overwritten > 0, "{counts:?}");
}

#[test]
fn without_room_every_loss_is_counted() {
    let counts = conserved(1, "go", "^lost: *[1-9]", 3);
    assert!(counts.lost > 0 && counts.overwritten == 0, "{counts:?}");
}
