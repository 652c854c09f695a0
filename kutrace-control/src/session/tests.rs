// SPDX-License-Identifier: BSD-3-Clause
//! Sessions with a recorder in memory, which keeps a log of its calls.

use std::cell::{Cell, RefCell};
use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use kutrace_format::abi::block::{Header as BlockHeader, BYTES};
use kutrace_format::abi::command::{
    Blocks, Moment, Tracepoints, Vector, CPU_POSSIBLE, PORTS_ALL, SHIFT, STATE_STOPPED, WRAP,
};
use kutrace_format::abi::programs::{Granted, Quota, Taken};
use kutrace_format::file::{Header, HEADER_BYTES};
use kutrace_format::reading::{CounterFile, Reading, NOTHING};

use super::*;
use crate::device::{Attached, BlocksEnd};
use crate::output::IfExists;
use crate::selection::tests::block;

/// A recorder whose pool fills with two blocks when it is started.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    info: Cell<Info>,
    pub(crate) log: RefCell<Vec<&'static str>>,
    left: RefCell<Vec<u8>>,
    lost: u64,
}

impl Memory {
    fn set(&self, change: impl FnOnce(&mut Info)) {
        let mut info = self.info.get();
        change(&mut info);
        self.info.set(info);
    }
}

impl Recorder for Memory {
    type Pool = Vec<AtomicU32>;

    fn open() -> Result<Memory> {
        Ok(Memory::default())
    }

    fn info(&self) -> Result<Info> {
        Ok(self.info.get())
    }

    fn reset(&self, setup: Setup) -> Result<()> {
        self.log.borrow_mut().push(match (setup.flags & WRAP, setup.blocks) {
            (0, 0) => "reset",
            (0, 7) => "reset to 7",
            (0, _) => "reset to others",
            _ => "reset to wrap",
        });
        self.set(|info| *info = Info { flags: setup.flags, shift: SHIFT, tsc_khz: 1_000_000, ..Info::default() });
        Ok(())
    }

    fn choose(&self, ports: &Ports) -> Result<()> {
        self.log.borrow_mut().push(if *ports == Ports::default() { "choose none" } else { "choose ports" });
        Ok(())
    }

    fn choose_tracepoints(&self, _: &Tracepoints) -> Result<()> {
        self.log.borrow_mut().push("choose tracepoints");
        Ok(())
    }

    fn allow(&self, quota: Quota) -> Result<()> {
        assert_eq!(quota, Quota { process: 1 << 20, all: 64 << 20 });
        self.log.borrow_mut().push("allow");
        Ok(())
    }

    fn start(&self) -> Result<()> {
        self.log.borrow_mut().push("start");
        let start = Moment { tsc: 1, realtime_ns: 1, monotonic_ns: 1 };
        self.set(|info| *info = Info { state: STATE_TRACING, blocks: 2, blocks_taken: 2, start, ..*info });
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        self.log.borrow_mut().push("stop");
        let stop = Moment { tsc: 2, realtime_ns: 2, monotonic_ns: 2_000_000_001 };
        self.set(|info| *info = Info { state: STATE_STOPPED, stop, lost: self.lost, ..*info });
        Ok(())
    }

    fn snapshot(&self) -> Result<Moment> {
        self.log.borrow_mut().push("snapshot");
        Ok(Moment { tsc: 12 << SHIFT, realtime_ns: 2, monotonic_ns: 500_000_001 })
    }

    fn acquire(&self) -> Result<()> {
        self.log.borrow_mut().push("acquire");
        Ok(())
    }

    fn release(&self) -> Result<()> {
        self.log.borrow_mut().push("release");
        Ok(())
    }

    fn cpu(&self, cpu: u32) -> Result<Cpu> {
        Ok(Cpu { cpu, flags: CPU_POSSIBLE })
    }

    fn vectors(&self) -> Result<Vec<Vector>> {
        Ok(Vec::new())
    }

    fn full(&self) -> Result<Blocks> {
        Ok(Blocks::default())
    }

    fn free(&self, _: &Blocks) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: u64) -> Result<bool> {
        Ok(true)
    }

    fn end_blocks(&self) -> Result<BlocksEnd> {
        Ok(BlocksEnd::All)
    }

    fn look(&self) -> Result<Option<u64>> {
        Ok(Some(12))
    }

    fn leave(&self, bytes: &[u8]) -> Result<()> {
        self.left.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn left(&self) -> Result<Vec<u8>> {
        Ok(self.left.borrow().clone())
    }

    fn copy(&self, _: u32, _: &Granted, _: &mut [u8]) -> Result<bool> {
        unreachable!()
    }

    fn program_after(&self, _: u32) -> Result<Option<Attached>> {
        Ok(None)
    }

    fn take_back(&self, _: Taken) -> Result<bool> {
        Ok(false)
    }

    fn refused(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn kept(&self) -> Result<u64> {
        Ok(0)
    }

    /// The last block of the pool is still being written.
    fn pool(&self, blocks: u32) -> Result<Vec<AtomicU32>> {
        let tracing = self.info.get().state == STATE_TRACING;
        let blocks = (0..blocks).map(|cpu| block(cpu, 0, 10 + u64::from(cpu), 256));
        Ok(blocks.chain(tracing.then(|| block(0, 1, 12, 0))).flatten().collect())
    }
}

pub(crate) fn session(lost: u64) -> Session<Memory> {
    Session { recorder: Some(Memory { lost, ..Memory::default() }), ..Session::new() }
}

fn file(path: &Path) -> Output {
    Output::new(Some(path.to_owned()), IfExists::Keep)
}

#[test]
fn go_then_stop_writes_the_trace_and_leaves_it_in_the_recorder() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("1"), directory.path().join("2"));
    let mut session = session(0);
    session.go(Mode(WRAP)).unwrap();
    assert_eq!(session.stop(&file(&first)).unwrap(), Exit::Done);
    assert_eq!(session.stop(&file(&second)).unwrap(), Exit::Done);
    assert_eq!(
        *session.recorder().unwrap().log.borrow(),
        ["reset to wrap", "start", "acquire", "stop", "release", "acquire", "release"]
    );
    for path in [first, second] {
        let bytes = fs::read(path).unwrap();
        let header = Header::from_bytes(bytes[..HEADER_BYTES].try_into().unwrap()).unwrap();
        assert_eq!((header.blocks, header.shift, header.tsc_hz), (2, SHIFT, 1_000_000_000));
    }
}

#[test]
fn lost_events_are_written_around_and_end_with_status_3() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let mut session = session(5);
    session.go(Mode(0)).unwrap();
    assert_eq!(session.stop(&file(&path)).unwrap(), Exit::Lost);
    assert!(path.exists());
}

#[test]
fn ports_are_chosen_after_the_reset_that_forgets_them() {
    let mut session = session(0);
    let ports = Ports { count: PORTS_ALL, ..Ports::default() };
    session.with_packets(Some(ports)).go(Mode(0)).unwrap();
    session.off().unwrap();
    session.with_packets(None).go_held(Mode(0), 7).unwrap();
    let log = session.recorder().unwrap().log.borrow().clone();
    assert_eq!(log, ["reset", "choose ports", "start", "stop", "acquire", "reset to 7", "start"]);
}

#[test]
fn a_running_trace_is_not_started_again() {
    let mut session = session(0);
    session.go(Mode(0)).unwrap();
    for again in [session.go(Mode(WRAP)), session.on(), session.reset()] {
        assert_eq!(again.unwrap_err().to_string(), "a trace is running");
    }
    assert_eq!(*session.recorder().unwrap().log.borrow(), ["reset", "start"]);
}

#[test]
fn a_stopped_trace_is_not_gone_on_with() {
    let mut session = session(0);
    session.go(Mode(0)).unwrap();
    session.off().unwrap();
    assert_eq!(session.on().unwrap_err().to_string(), "the recorder holds a trace");
    session.reset().unwrap();
    session.on().unwrap();
}

#[test]
fn an_empty_recorder_has_nothing_to_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let error = session(0).stop(&file(&path)).unwrap_err();
    assert_eq!(error.to_string(), "nothing has been recorded");
    assert!(!path.exists());
}

#[test]
fn a_file_in_the_way_stops_the_trace_and_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("t"), directory.path().join("other"));
    fs::write(&path, "mine").unwrap();
    let mut session = session(0);
    session.go(Mode(0)).unwrap();
    assert!(session.stop(&file(&path)).is_err());
    assert_eq!(session.recorder().unwrap().info().unwrap().state, STATE_STOPPED);
    assert_eq!(session.stop(&file(&other)).unwrap(), Exit::Done);
}

#[test]
fn a_snapshot_holds_the_ended_blocks_and_the_trace_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let mut session = session(0);
    session.go(Mode(WRAP)).unwrap();
    assert_eq!(session.snapshot(&file(&path)).unwrap(), Exit::Done);
    assert_eq!(*session.recorder().unwrap().log.borrow(), ["reset to wrap", "start", "snapshot"]);
    let bytes = fs::read(&path).unwrap();
    let header = Header::from_bytes(bytes[..HEADER_BYTES].try_into().unwrap()).unwrap();
    assert_eq!((header.blocks, header.stop.monotonic_ns), (2, 500_000_001));
    let begins = [2, 1].map(|back| bytes[bytes.len() - back * BYTES + offset_of!(BlockHeader, begin)]);
    assert_eq!(begins, [10, 11]);
}

#[test]
fn a_snapshot_has_what_the_kernel_counted_first_and_last_in_a_section_of_a_size_known_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    let mut session = session(0);
    session.go(Mode(WRAP)).unwrap();
    let later = [Arc::new(reading::now())];
    assert_eq!(session.snapshot_since(&file(&path), &later, |_| Ok(())).unwrap(), (Exit::Done, 0));
    let bytes = fs::read(&path).unwrap();
    let layout = postprocess::raw::file::split(&bytes).unwrap();
    assert_eq!(layout.damage, []);
    let of =
        |file: CounterFile| layout.readings.iter().filter(|reading| reading.file == file as u16).collect::<Vec<_>>();
    let [first, last] = of(CounterFile::Stat)[..] else { panic!("two of each file") };
    let left = session.recorder().unwrap().left().unwrap();
    let at_go = Reading::split(&left).unwrap().0;
    assert!(layout.readings[0] == at_go && first.before < last.before, "nothing is gone");
    assert_eq!(layout.readings.last().unwrap().file, NOTHING);
}

#[test]
fn a_snapshot_is_not_for_a_pipe() {
    let mut session = session(0);
    session.go(Mode(WRAP)).unwrap();
    let error = session.snapshot(&Output::Stdout).unwrap_err();
    assert_eq!(error.to_string(), "stdout: a snapshot needs a file");
}

#[test]
fn a_reset_keeps_the_mode() {
    let mut session = session(0);
    session.go(Mode(WRAP)).unwrap();
    session.off().unwrap();
    session.reset().unwrap();
    assert_eq!(*session.recorder().unwrap().log.borrow(), ["reset to wrap", "start", "stop", "reset to wrap"]);
}
