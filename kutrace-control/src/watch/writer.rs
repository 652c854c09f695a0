// SPDX-License-Identifier: BSD-3-Clause
//! Writes one recording at a time, in a thread of its own: a slow disk does not delay the watch, and no moment is
//! missed in the meantime. Moments during a write wait for its end, and share the next recording.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{bail, Result};

use crate::device::Recorder;
use crate::output::{IfExists, Output};
use crate::session::Session;

/// The writer.
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
    /// Returns whether a recording is being written.
    pub fn is_busy(&self) -> bool {
        self.writing.is_some()
    }

    /// Begins to write a recording of `what`; must not be called while busy. `session` is like the one that writes,
    /// `read` has earlier readings of the kernel's counters, and `room` is called with the maximum size in bytes.
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

    /// The finished recording, if there is one: with the counter from which on it has events of every CPU.
    pub fn done(&mut self) -> Option<(T, Result<u64>)> {
        self.writing.as_ref().filter(|writing| writing.thread.is_finished())?;
        self.wait()
    }

    /// Waits for the recording that is being written.
    pub fn wait(&mut self) -> Option<(T, Result<u64>)> {
        let Writing { what, thread } = self.writing.take()?;
        Some((what, thread.join().unwrap_or_else(|_| bail!("it was not written completely"))))
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
