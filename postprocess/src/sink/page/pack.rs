// SPDX-License-Identifier: BSD-3-Clause
//! One column of numbers as few bytes: narrow values by byte planes, wide ones after them, then gzip, whose checksum
//! both readers verify as they inflate.
//!
//! ```text
//! | low bytes of all values | next bytes of all values | ... | wide values, 8 bytes each |   -> gzip
//! ```
//! A plane holds bytes of one significance: they resemble each other more than the bytes of one value do.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use flate2::read::{DeflateDecoder, GzDecoder};
use flate2::write::GzEncoder;
use flate2::Compression;

/// A column, compressed.
pub struct Packed {
    /// Bytes of a narrow value.
    pub width: usize,
    /// Number of values that needed eight bytes.
    pub wide: usize,
    /// The compressed planes and wide values.
    pub bytes: Vec<u8>,
}

/// Effort to find repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Little, for values that hardly repeat: more effort would not make them smaller.
    Quick,
    /// Half the time of deflate's default, for 4 % more bytes.
    Usual,
}

/// Storage form of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Form of version 1: raw deflate without a checksum, and values that are present or 0.
    Bare,
    /// Form of all later versions: gzip, and values that may be absent.
    Checked,
}

/// Bytes of an escaped value.
const WIDE: usize = 8;

/// Returns the value of `width` bytes that stands for a wide one: all ones.
const fn escape(width: usize) -> u64 {
    (1 << (8 * width)) - 1
}

/// Compresses `values`, with the width that needs the fewest bytes before compression.
pub fn pack(values: &[i64], effort: Effort) -> Packed {
    let wide_of = |width: usize| values.iter().filter(|&&v| !fits(v, width)).count();
    let cost = |(width, wide): (usize, usize)| values.len() * width + WIDE * wide;
    let (mut width, mut wide) = (1, wide_of(1));
    for wider in [2, 4] {
        // If few values are wide, none is examined again.
        if cost((wider, 0)) < cost((width, wide)) {
            let other = (wider, wide_of(wider));
            (width, wide) = std::cmp::min_by_key((width, wide), other, |&choice| cost(choice));
        }
    }
    let mut plain = Vec::with_capacity(values.len() * width + WIDE * wide);
    for plane in 0..width {
        let narrow = |v: i64| (v as u64).min(escape(width));
        plain.extend(values.iter().map(|&v| (narrow(v) >> (8 * plane)) as u8));
    }
    if wide > 0 {
        values.iter().filter(|&&v| !fits(v, width)).for_each(|v| plain.extend_from_slice(&v.to_le_bytes()));
    }
    let level = match effort {
        Effort::Quick => 2,
        Effort::Usual => 4,
    };
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(level));
    // Neither step can fail: a vector takes every byte.
    let bytes = gzip.write_all(&plain).and_then(|()| gzip.finish()).unwrap_or_default();
    Packed { width, wide, bytes }
}

/// Unpacks `rows` values from [`pack`]; `None` if `bytes` do not hold them.
pub fn unpack(bytes: &[u8], form: Form, rows: usize, width: usize, wide: usize) -> Option<Vec<i64>> {
    if !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let planes = rows.checked_mul(width)?;
    let expected = planes.checked_add(wide.checked_mul(WIDE)?)?;
    let mut plain = Vec::new();
    let max = expected as u64 + 1;
    match form {
        Form::Bare => DeflateDecoder::new(bytes).take(max).read_to_end(&mut plain).ok()?,
        Form::Checked => GzDecoder::new(bytes).take(max).read_to_end(&mut plain).ok()?,
    };
    if plain.len() != expected {
        return None;
    }
    let (narrow, behind) = plain.split_at(planes);
    let mut behind = behind.chunks_exact(WIDE).map(|b| b.try_into().map(i64::from_le_bytes));
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = (0..width).rev().fold(0u64, |v, plane| v << 8 | u64::from(narrow[plane * rows + row]));
        values.push(if value == escape(width) { behind.next()?.ok()? } else { value as i64 });
    }
    Some(values)
}

fn fits(value: i64, width: usize) -> bool {
    (value as u64) < escape(width)
}

/// Applies `work` to every job, on as many threads as there are CPUs. The results are in the order of the jobs.
pub fn on_all_cpus<J: Sync, A: Send>(jobs: &[J], work: impl Fn(&J) -> A + Sync) -> Vec<A> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<A>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let take_jobs = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        let Some(job) = jobs.get(i) else { return };
        let answer = work(job);
        if let Ok(mut place) = answers[i].lock() {
            *place = Some(answer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(take_jobs);
        }
    });
    // Every job was taken by a thread, and a thread that panicked has already ended the scope.
    answers.into_iter().filter_map(|a| a.into_inner().ok().flatten()).collect()
}
