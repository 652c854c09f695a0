// SPDX-License-Identifier: BSD-3-Clause
//! Frames: events or spans from one stage to the next, without the work that text takes.
//!
//! ```text
//! | magic [8] | frame | frame | ... | end frame |
//!
//! frame:  0 kind u8   1 payload bytes u32   5 crc32 of the payload u32   9 payload
//! ```
//!
//! Numbers of the frame's head are little-endian; those of payloads have 7 bits a byte, the lowest first, with the high
//! bit set in all but the last byte; a number that may be negative has its sign in the lowest bit.
//!
//! | kind | payload |
//! |---|---|
//! | `A` about | JSON of the facts about the whole trace; a later one replaces it |
//! | `N` names | number of the first, then for each its length in bytes and its text, UTF-8 |
//! | `R` rows | ten numbers each, as in [`Row::columns`]; the first as the difference to the row before, 0 at first |
//! | `E` end | number of all rows |
//!
//! Rows of events are in time order, those of spans need not be.
//!
//! Invariant: no content is an error, except another version; damage and cuts are reported in the quality of the facts
//! about the trace.

use std::io::{self, BufRead, Read, Write};
use std::marker::PhantomData;

use crate::event::batch::{Batch, Row, COLUMNS};

/// Number of bytes of rows that make a frame.
const FRAME: usize = 64 * 1024;
/// Maximum length of a payload.
const LONGEST: u64 = 1 << 24;
/// Bytes before the payload.
const HEAD: usize = 9;

const ABOUT: u8 = b'A';
const NAMES: u8 = b'N';
const ROWS: u8 = b'R';
const END: u8 = b'E';

/// Writes frames of rows.
#[derive(Debug)]
pub struct Writer<W, T> {
    out: W,
    rows: Vec<u8>,
    /// First column of the row before in this frame.
    before: i64,
    names: usize,
    count: u64,
    of: PhantomData<T>,
}

impl<W: Write, T: Row> Writer<W, T> {
    /// A writer to `out`, which need not be buffered.
    ///
    /// # Errors
    /// Any error of `out`, here and below.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&T::MAGIC)?;
        Ok(Writer { out, rows: Vec::with_capacity(FRAME + 128), before: 0, names: 0, count: 0, of: PhantomData })
    }

    /// The output.
    pub fn get(&self) -> &W {
        &self.out
    }

    /// Writes the facts about the whole trace.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn about(&mut self, about: &T::About) -> io::Result<()> {
        let text = serde_json::to_vec(about)?;
        self.frame(ABOUT, &text)
    }

    /// Writes one row; `names` are all names so far.
    ///
    /// # Errors
    /// As [`Writer::new`].
    #[inline]
    pub fn row(&mut self, row: &T, names: &[impl AsRef<str>]) -> io::Result<()> {
        let mut columns = row.columns();
        let first = columns[0];
        columns[0] = first.wrapping_sub(self.before);
        self.before = first;
        columns.iter().for_each(|&column| put(&mut self.rows, zigzag(column)));
        self.count += 1;
        match self.rows.len() >= FRAME {
            true => self.flush(names),
            false => Ok(()),
        }
    }

    /// Writes the last rows, the facts about the whole trace, and the end; and flushes. Returns the output.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self, about: &T::About, names: &[impl AsRef<str>]) -> io::Result<W> {
        self.flush(names)?;
        self.about(about)?;
        let mut end = Vec::new();
        put(&mut end, self.count);
        self.frame(END, &end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self, names: &[impl AsRef<str>]) -> io::Result<()> {
        for new in names[self.names..].chunks(FRAME / 64) {
            let mut payload = Vec::new();
            put(&mut payload, self.names as u64);
            for name in new.iter().map(AsRef::as_ref) {
                put(&mut payload, name.len() as u64);
                payload.extend_from_slice(name.as_bytes());
            }
            self.names += new.len();
            self.frame(NAMES, &payload)?;
        }
        let mut rows = std::mem::take(&mut self.rows);
        self.frame(ROWS, &rows)?;
        rows.clear();
        self.rows = rows;
        self.before = 0;
        Ok(())
    }

    fn frame(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let mut head = [kind, 0, 0, 0, 0, 0, 0, 0, 0];
        head[1..5].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[5..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        self.out.write_all(&head)?;
        self.out.write_all(payload)
    }
}

/// True if `input` begins with frames of these rows; consumes nothing.
///
/// # Errors
/// Any error of `input`, or that the frames are of another version.
pub fn begins<T: Row>(input: &mut impl BufRead) -> io::Result<bool> {
    let start = input.fill_buf()?;
    let (name, version) = T::MAGIC.split_at(7);
    match start.strip_prefix(name) {
        None => Ok(false),
        Some(rest) if rest.starts_with(version) => Ok(true),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "byte 7: frames of a version not known")),
    }
}

/// Reads frames of rows.
#[derive(Debug)]
pub struct Reader<R, T: Row> {
    input: R,
    about: T::About,
    damage: Vec<String>,
    /// Number of bytes read.
    at: u64,
    names: usize,
    count: u64,
    ended: bool,
    payload: Vec<u8>,
}

impl<R: BufRead, T: Row> Reader<R, T> {
    /// A reader of `input`, for which [`begins`] is true; reads the facts that come before the rows.
    ///
    /// # Errors
    /// Any error of `input`, here and below.
    pub fn new(mut input: R) -> io::Result<Self> {
        input.consume(T::MAGIC.len());
        let at = T::MAGIC.len() as u64;
        let (about, damage, payload) = (T::About::default(), Vec::new(), Vec::new());
        let mut reader = Reader { input, about, damage, at, names: 0, count: 0, ended: false, payload };
        if reader.input.fill_buf()?.first() == Some(&ABOUT) {
            reader.frame(&mut Batch { names: Vec::new(), rows: Vec::new() })?;
        }
        Ok(reader)
    }

    /// Facts about the whole trace so far.
    pub fn about(&self) -> &T::About {
        &self.about
    }

    /// The next rows, and the names that are new in them; `None` at the end.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn batch(&mut self) -> io::Result<Option<Batch<T>>> {
        let mut batch = Batch { names: Vec::new(), rows: Vec::new() };
        while batch.rows.is_empty() && !self.ended {
            self.frame(&mut batch)?;
        }
        if batch.rows.is_empty() && self.damage.is_empty() && !self.input.fill_buf()?.is_empty() {
            self.damaged(self.at, "more follows the end of the frames; skipped: one trace at a time");
        }
        Ok(Some(batch).filter(|b| !b.rows.is_empty()))
    }

    /// Facts about the whole trace at the end.
    pub fn finish(mut self) -> T::About {
        T::quality(&mut self.about).append(&mut self.damage);
        self.about
    }

    /// Reads one frame, into `batch` if it has names or rows.
    fn frame(&mut self, batch: &mut Batch<T>) -> io::Result<()> {
        let place = self.at;
        let mut head = [0; HEAD];
        if self.read(HEAD as u64)? < HEAD {
            self.end(place, "the frames end before their end mark");
            return Ok(());
        }
        head.copy_from_slice(&self.payload);
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        if u64::from(length) > LONGEST {
            self.end(place, "not a frame header; rest ignored");
            return Ok(());
        }
        if self.read(length.into())? < length as usize {
            self.end(place, "the frames end before their end mark");
            return Ok(());
        }
        if crc32fast::hash(&self.payload).to_le_bytes() != head[5..] {
            self.damaged(place, "the checksum of the frame does not match; skipped");
            return Ok(());
        }
        let payload = std::mem::take(&mut self.payload);
        if self.take(head[0], &payload, batch).is_none() {
            self.damaged(place, "malformed frame; rest skipped");
        }
        self.payload = payload;
        Ok(())
    }

    /// Takes the payload of a frame; `None` if it is invalid.
    fn take(&mut self, kind: u8, mut payload: &[u8], batch: &mut Batch<T>) -> Option<()> {
        match kind {
            ABOUT => self.about = serde_json::from_slice(payload).ok().filter(T::possible)?,
            NAMES => {
                let first = usize::try_from(get(&mut payload)?).ok()?;
                // Names whose frame was damaged are empty; each took a byte or more there.
                let missing = first.checked_sub(self.names).filter(|_| first as u64 <= self.at)?;
                batch.names.extend((0..missing).map(|_| Box::from("")));
                self.names = first;
                while !payload.is_empty() {
                    let length = usize::try_from(get(&mut payload)?).ok()?;
                    let (text, rest) = payload.split_at_checked(length)?;
                    batch.names.push(String::from_utf8_lossy(text).into());
                    self.names += 1;
                    payload = rest;
                }
            }
            ROWS => {
                let mut before = 0i64;
                batch.rows.reserve(payload.len() / (2 * COLUMNS));
                while !payload.is_empty() {
                    let mut columns = [0; COLUMNS];
                    for column in &mut columns {
                        *column = unzigzag(get(&mut payload)?);
                    }
                    before = before.wrapping_add(columns[0]);
                    columns[0] = before;
                    batch.rows.push(T::of(columns)?);
                    self.count += 1;
                }
            }
            END => {
                self.ended = true;
                let (sent, count) = (get(&mut payload)?, self.count);
                if sent != count {
                    self.damage.push(format!("the frames have {count} of {sent} rows"));
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads this many bytes into `payload`, or as many as are left.
    fn read(&mut self, bytes: u64) -> io::Result<usize> {
        self.payload.clear();
        let read = self.input.by_ref().take(bytes).read_to_end(&mut self.payload)?;
        self.at += read as u64;
        Ok(read)
    }

    fn end(&mut self, place: u64, fact: &str) {
        self.ended = true;
        self.damaged(place, fact);
    }

    fn damaged(&mut self, place: u64, fact: &str) {
        self.damage.push(format!("byte {place}: {fact}"));
    }
}

/// Maps small numbers of either sign to small numbers, negative and positive by turns.
#[inline]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[inline]
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn get(from: &mut &[u8]) -> Option<u64> {
    match **from {
        [byte @ ..0x80, ref rest @ ..] => {
            *from = rest;
            Some(byte.into())
        }
        _ => get_long(from),
    }
}

fn get_long(from: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}
