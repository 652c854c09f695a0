// SPDX-License-Identifier: BSD-3-Clause
//! State of the recorder as lines of text.

use std::fmt::Write;

use kutrace_format::abi::block;
use kutrace_format::abi::command::{Info, IPC, LLC, STATE_EMPTY, STATE_STOPPED, STATE_TRACING, STREAM, WRAP};

use crate::device::process_name;

/// The lines; `refused` has sentences about refused programs, `kept` is the number of bytes that an earlier kernel
/// left, `now_ns` is CLOCK_MONOTONIC.
pub fn lines(info: &Info, refused: &[String], kept: u64, now_ns: u64) -> String {
    let mut text = String::new();
    for (label, value) in [
        ("state", state(info, now_ns)),
        ("mode", mode(info)),
        ("used", used(info)),
        ("lost", format!("{} events", info.lost)),
        ("held", held(info)),
        ("clock", clock(info)),
        ("notes", [&notes(info), refused].concat().join("; ")),
        ("kept", self::kept(kept)),
        ("module", format!("version {}, {} CPUs", info.version, info.cpus)),
    ] {
        if value.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{:8}{value}", format!("{label}:"));
    }
    text
}

/// Seconds from start to stop, or until `now_ns` while tracing.
pub fn seconds(info: &Info, now_ns: u64) -> f64 {
    let end = if info.state == STATE_TRACING { now_ns } else { info.stop.monotonic_ns };
    end.saturating_sub(info.start.monotonic_ns) as f64 / 1e9
}

/// Size of this many blocks in MB.
pub fn megabytes(blocks: u32) -> f64 {
    f64::from(blocks) * block::BYTES as f64 / f64::from(1 << 20)
}

/// Further notes on the trace, one sentence each.
pub fn notes(info: &Info) -> Vec<String> {
    postprocess::raw::notes(info.notes, info.refused_names, info.refused_marks)
}

/// Returns whether older blocks were overwritten.
pub fn has_wrapped(info: &Info) -> bool {
    info.flags & WRAP != 0 && info.blocks_taken > info.blocks
}

fn state(info: &Info, now_ns: u64) -> String {
    match info.state {
        STATE_EMPTY => "empty, nothing recorded".to_owned(),
        STATE_TRACING => format!("tracing for {:.3} s", seconds(info, now_ns)),
        STATE_STOPPED => format!("stopped, {:.3} s recorded", seconds(info, now_ns)),
        other => format!("unknown ({other})"),
    }
}

fn mode(info: &Info) -> String {
    let full = match info.flags & (WRAP | STREAM) {
        0 => "stop when full",
        STREAM => "stream, written while it is recorded",
        _ => "wrap, the newest events are kept",
    };
    let counters = match info.flags & (IPC | LLC) {
        0 => "",
        IPC => "; IPC",
        LLC => "; LLC",
        _ => "; IPC and LLC",
    };
    format!("{full}{counters}")
}

fn used(info: &Info) -> String {
    let total = megabytes(info.blocks);
    if info.flags & STREAM != 0 {
        let (taken, all) = (info.blocks_taken, megabytes(info.blocks_taken));
        return format!("{taken} blocks so far ({all:.1} MB), in {} ({total:.1} MB)", info.blocks);
    }
    let used = info.blocks_taken.min(info.blocks);
    let wrapped = match has_wrapped(info) {
        true => format!(", older ones overwritten (lap {})", info.blocks_taken / info.blocks + 1),
        false => String::new(),
    };
    format!("{used} of {} blocks ({:.1} of {total:.1} MB){wrapped}", info.blocks, megabytes(used))
}

fn held(info: &Info) -> String {
    match info.holder {
        0 => "by no process".to_owned(),
        process => format!("by {}", process_name(process)),
    }
}

fn kept(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => {
            let megabytes = bytes as f64 / f64::from(1 << 20);
            format!("{megabytes:.1} MB of the previous kernel: kutrace_control recover --boot")
        }
    }
}

fn clock(info: &Info) -> String {
    let mhz = f64::from(info.tsc_khz) / 1e3;
    let count = 1u32.checked_shl(info.shift).unwrap_or(0);
    format!("TSC {mhz:.3} MHz, {:.1} ns per count", f64::from(count) / mhz * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::abi::command::{Moment, NOTE_SLEEP, NOTE_UNSTABLE, VERSION};

    fn info() -> Info {
        Info {
            version: VERSION,
            state: STATE_TRACING,
            flags: 0,
            shift: 4,
            cpus: 4,
            blocks: 512,
            tsc_khz: 2_592_000,
            blocks_taken: 24,
            lost: 0,
            start: Moment { tsc: 1, realtime_ns: 2, monotonic_ns: 1_000_000_000 },
            ..Info::default()
        }
    }

    #[test]
    fn a_running_trace_shows_its_time_so_far() {
        let expected = "\
state:  tracing for 1.500 s
mode:   stop when full
used:   24 of 512 blocks (1.5 of 32.0 MB)
lost:   0 events
held:   by no process
clock:  TSC 2592.000 MHz, 6.2 ns per count
module: version 16, 4 CPUs
";
        assert_eq!(lines(&info(), &[], 0, 2_500_000_000), expected);
        let kept = "kept:   64.0 MB of the previous kernel: kutrace_control recover --boot\n";
        assert!(lines(&info(), &[], 64 << 20, 0).contains(kept));
    }

    #[test]
    fn what_is_wrong_with_a_trace_is_said() {
        assert!(notes(&info()).is_empty());
        let info = Info { notes: NOTE_SLEEP | NOTE_UNSTABLE, refused_names: 7, ..info() };
        let notes = notes(&info);
        assert_eq!(notes.len(), 3);
        assert!(lines(&info, &[], 0, 0).contains(&format!("notes:  {}; {}; 7 names of programs", notes[0], notes[1])));
    }

    #[test]
    fn a_wrapped_trace_says_that_older_blocks_are_gone() {
        let info = Info { flags: WRAP, blocks_taken: 700, ..info() };
        assert_eq!(used(&info), "512 of 512 blocks (32.0 of 32.0 MB), older ones overwritten (lap 2)");
    }

    #[test]
    fn the_mode_tells_what_is_counted() {
        let with = |flags| mode(&Info { flags, ..info() });
        assert_eq!([with(IPC), with(LLC)], ["stop when full; IPC", "stop when full; LLC"]);
        assert_eq!(with(WRAP | IPC | LLC), "wrap, the newest events are kept; IPC and LLC");
    }

    #[test]
    fn a_stopped_trace_has_the_seconds_up_to_its_stop() {
        let stop = Moment { monotonic_ns: 4_000_000_000, ..Moment::default() };
        let info = Info { state: STATE_STOPPED, stop, ..info() };
        assert_eq!(state(&info, 9_000_000_000), "stopped, 3.000 s recorded");
    }
}
