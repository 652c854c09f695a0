// SPDX-License-Identifier: BSD-3-Clause
//! A recorder whose memory is too small: losses are counted, and the kept part is right.

use postprocess::event::number::LOST;

use crate::guest;
use crate::trace::Recording;

/// Calls, switches and forks of which a megabyte has no room for a third.
const STORM: &str = "stress-ng --quiet --switch 2 --switch-ops 4000 --fork 1 --fork-ops 100
    for cpu in 0 1; do taskset -c $cpu dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none & done; wait";

#[test]
fn a_full_recorder_keeps_the_oldest_and_counts_the_rest() {
    let run = guest::run(
        &["--no-load", "--cpus", "2"],
        &format!("insmod $KUTRACE_MODULE tracemb=1\nkutrace_control go\n{STORM}\nkutrace_control stop $SHARE/t.raw"),
    );
    assert_eq!(run.status, 3, "lost events are an exit status of their own\n{}", run.err);
    let trace = Recording::read_and_ask(&run.file("t.raw"));
    let lost = trace.events.meta.lost;
    assert!(lost > 1000, "{lost}");
    let told: u64 = trace.of(LOST).map(|gap| u64::from(gap.arg)).sum();
    assert_eq!(told, lost, "the last block of each CPU has the number of losses after it");
    assert!(run.err.contains(&format!(" {lost} events lost")), "{}", run.err);
    assert_eq!(std::fs::metadata(run.file("t.raw")).unwrap().len() >> 16, 16, "16 blocks are in 1 MiB");
    trace.check();
}
