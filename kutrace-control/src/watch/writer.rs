// SPDX-License-Identifier: BSD-3-Clause
//! One recording at a time, written beside the watching: a disk that is slow holds nobody up, and no moment is missed
//! meanwhile. Those that come meanwhile wait for it, in one recording.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{bail, Result};

use crate::device::Recorder;
use crate::output::{IfExists, Output};
use crate::session::Session;

/// What writes.
#[derive(Debug)]
pub struct Writer<T> {
    writing: Option<Writing<T>>,
}

#[derive(Debug)]
struct Writing<T> {
    what: T,
    thread: JoinHandle<Result<u64>>,
}

impl<T> Default for Writer<T> {
    fn default() -> Writer<T> {
        Writer { writing: None }
    }
}

impl<T> Writer<T> {
    /// Whether it writes.
    pub fn is_busy(&self) -> bool {
        self.writing.is_some()
    }

    /// Begins to write a recording of `what`, which is not to be called while it is busy. `session` is like the one that
    /// does it, `read` what the kernel had counted before, and `room` is told how many bytes it will have at most.
    pub fn begin<R: Recorder + 'static>(
        &mut self,
        session: &Session<R>,
        what: T,
        file: PathBuf,
        read: Vec<Arc<Vec<u8>>>,
        room: impl FnOnce(u64) -> Result<()> + Send + 'static,
    ) {
        let no_symbols = session.is_without_symbols();
        let thread = thread::spawn(move || {
            let output = Output::File { path: file, existing: IfExists::Replace };
            let mut session = Session::<R>::new();
            Ok(session.without_symbols(no_symbols).snapshot_since(&output, &read, room)?.1)
        });
        self.writing = Some(Writing { what, thread });
    }

    /// What has been written, if it was begun and is done: the counter from which on the recording has every CPU.
    pub fn done(&mut self) -> Option<(T, Result<u64>)> {
        self.writing.as_ref().filter(|writing| writing.thread.is_finished())?;
        self.wait()
    }

    /// Waits for what is being written.
    pub fn wait(&mut self) -> Option<(T, Result<u64>)> {
        let Writing { what, thread } = self.writing.take()?;
        Some((what, thread.join().unwrap_or_else(|_| bail!("it was not written to its end"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::{session, Memory};

    #[test]
    fn what_is_written_is_given_back_once_whatever_became_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::default();
        assert!(!writer.is_busy() && writer.done().is_none());
        writer.begin::<Memory>(&session(0), "moment", folder.path().join("t.trace"), Vec::new(), |_| Ok(()));
        assert!(writer.is_busy());
        let (what, written) = loop {
            match writer.done() {
                Some(done) => break done,
                None => thread::yield_now(),
            }
        };
        // The recorder that it opens is empty.
        let error = format!("{:#}", written.unwrap_err());
        assert!(what == "moment" && error.contains("overwrote every block"), "{error}");
        assert!(!writer.is_busy() && writer.wait().is_none());
    }
}
