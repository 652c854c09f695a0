// SPDX-License-Identifier: BSD-3-Clause
//! A backend of `log`: each line is a mark `log` with its level, target and message.

use kutrace::{Fields, Site};
use log::{Level, LevelFilter, Log, Metadata, Record, SetLoggerError};

static ERROR: Site = Site::new("log\0=level=ERROR\0starget\0smessage");
static WARN: Site = Site::new("log\0=level=WARN\0starget\0smessage");
static INFO: Site = Site::new("log\0=level=INFO\0starget\0smessage");
static DEBUG: Site = Site::new("log\0=level=DEBUG\0starget\0smessage");
static TRACE: Site = Site::new("log\0=level=TRACE\0starget\0smessage");

/// Records log lines while anything is traced, and passes every line on to another logger if it has one.
pub struct Logger {
    next: Option<Box<dyn Log>>,
}

impl Logger {
    /// A logger that passes nothing on.
    pub const fn new() -> Logger {
        Logger { next: None }
    }

    /// A logger that passes everything on.
    pub fn before(next: Box<dyn Log>) -> Logger {
        Logger { next: Some(next) }
    }

    /// Makes it the program's logger, for lines up to `level`.
    ///
    /// # Errors
    /// If the program has one already.
    pub fn install(self, level: LevelFilter) -> Result<(), SetLoggerError> {
        log::set_boxed_logger(Box::new(self))?;
        log::set_max_level(level);
        Ok(())
    }
}

impl Default for Logger {
    fn default() -> Logger {
        Logger::new()
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Logger").finish_non_exhaustive()
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        kutrace::is_on() || self.next.as_ref().is_some_and(|next| next.enabled(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        if kutrace::is_on() {
            let site = match record.level() {
                Level::Error => &ERROR,
                Level::Warn => &WARN,
                Level::Info => &INFO,
                Level::Debug => &DEBUG,
                Level::Trace => &TRACE,
            };
            site.mark_as_typed(&Fields::new().str(record.target()).display(*record.args()));
        }
        if let Some(next) = &self.next {
            next.log(record);
        }
    }

    fn flush(&self) {
        if let Some(next) = &self.next {
            next.flush();
        }
    }
}
