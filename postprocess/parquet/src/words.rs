// SPDX-License-Identifier: BSD-3-Clause
//! Columns of texts with few distinct values: names, kinds, the trace.
//!
//! Spans already have their names as numbers. So a column of them needs only the texts that occur and their positions:
//! a dictionary, and a page of numbers into it. Looking up the text of each row again, as the writer of columns does,
//! takes longer than all other work on a row.
//!
//! The numbers are in Parquet's hybrid of runs and packed bits. A run of a value is twice its length and the value.
//! Other values are packed eight at a time, low bits first, after an odd number that gives the count of eights that
//! follow.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Least number of equal values that form a run.
const RUN: usize = 16;
/// Number of values that are packed at a time.
const EIGHT: usize = 8;
/// Largest number of eights after one number, which is then two bytes.
const EIGHTS: usize = 1 << 12;

/// Returns a column chunk: its bytes, and its description in the file.
pub fn chunk(
    texts: &[ByteArray],
    rows: &[u32],
    (column, level): (ColumnDescPtr, i32),
) -> Result<(Bytes, ColumnCloseResult)> {
    let (dictionary, numbers) = occurring(texts.len(), rows);
    let width = u32::BITS - (dictionary.len() as u32).saturating_sub(1).leading_zeros();
    let mut of_texts = Vec::new();
    for &id in &dictionary {
        let text = texts[id as usize].data();
        of_texts.extend_from_slice(&(text.len() as u32).to_le_bytes());
        of_texts.extend_from_slice(text);
    }
    let mut of_rows = vec![width as u8];
    hybrid(&numbers, width, &mut of_rows);

    let compressed = |bytes: &[u8]| zstd::bulk::compress(bytes, level).map(Bytes::from).map_err(ParquetError::from);
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let page = Page::DictionaryPage {
        buf: compressed(&of_texts)?,
        num_values: dictionary.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let first = pages.write_page(CompressedPage::new(page, of_texts.len()))?;
    let page = Page::DataPage {
        buf: compressed(&of_rows)?,
        num_values: rows.len() as u32,
        encoding: Encoding::RLE_DICTIONARY,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let second = pages.write_page(CompressedPage::new(page, of_rows.len()))?;
    pages.close()?;

    let extreme = |least: bool| {
        let all = dictionary.iter().map(|&id| &texts[id as usize]);
        let data = |text: &&ByteArray| text.data().to_vec();
        if least { all.min_by_key(data) } else { all.max_by_key(data) }.cloned()
    };
    let metadata = ColumnChunkMetaData::builder(column)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::try_new(level)?))
        .set_num_values(rows.len() as i64)
        .set_total_compressed_size((first.compressed_size + second.compressed_size) as i64)
        .set_total_uncompressed_size((first.uncompressed_size + second.uncompressed_size) as i64)
        .set_dictionary_page_offset(Some(first.offset as i64))
        .set_data_page_offset(second.offset as i64)
        .set_statistics(Statistics::byte_array(extreme(true), extreme(false), None, Some(0), false))
        .build()?;
    let bytes = sink.into_inner()?;
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows.len() as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok((bytes.into(), close))
}

/// Returns the texts that occur, in the order of their first occurrence, and for each row its number among these.
fn occurring(texts: usize, rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut places, mut dictionary) = (vec![u32::MAX; texts], Vec::new());
    let numbers = rows.iter().map(|&id| {
        let place = &mut places[id as usize];
        if *place == u32::MAX {
            *place = dictionary.len() as u32;
            dictionary.push(id);
        }
        *place
    });
    let numbers = numbers.collect();
    (dictionary, numbers)
}

/// Writes numbers of `width` bits.
fn hybrid(numbers: &[u32], width: u32, to: &mut Vec<u8>) {
    let (mut packed, mut at) = (0, 0);
    while at < numbers.len() {
        let same = numbers[at..].iter().take_while(|number| **number == numbers[at]).count();
        if same < RUN {
            // Eight values are packed, whatever follows; only the last group may have fewer.
            at = (at + EIGHT).min(numbers.len());
            continue;
        }
        pack(&numbers[packed..at], width, to);
        varint(same << 1, to);
        to.extend_from_slice(&numbers[at].to_le_bytes()[..width.div_ceil(8) as usize]);
        at += same;
        packed = at;
    }
    pack(&numbers[packed..], width, to);
}

fn pack(numbers: &[u32], width: u32, to: &mut Vec<u8>) {
    for part in numbers.chunks(EIGHTS * EIGHT) {
        varint(part.len().div_ceil(EIGHT) << 1 | 1, to);
        for eight in part.chunks(EIGHT) {
            let (mut bits, mut have) = (0_u64, 0);
            for n in 0..EIGHT {
                bits |= u64::from(eight.get(n).copied().unwrap_or(0)) << have;
                have += width;
                while have >= 8 {
                    to.push(bits as u8);
                    bits >>= 8;
                    have -= 8;
                }
            }
        }
    }
}

fn varint(mut number: usize, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the numbers as a reader does.
    fn read(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut head, mut shift) = (0_usize, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                head |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if head & 1 == 0 {
                let (value, rest) = bytes.split_at(width.div_ceil(8) as usize);
                let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
                numbers.extend(vec![value; head >> 1]);
                bytes = rest;
            } else {
                let (packed, rest) = bytes.split_at((head >> 1) * width as usize);
                let bit = |n: usize| u32::from(packed[n / 8] >> (n % 8) & 1);
                let one = |n: usize| (0..width as usize).map(|b| bit(n * width as usize + b) << b).sum::<u32>();
                numbers.extend((0..(head >> 1) * 8).map(one));
                bytes = rest;
            }
        }
        assert!(bytes.is_empty() && numbers.len() < count + 8, "{count}: {}", numbers.len());
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn runs_and_what_is_between_them_are_read_back() {
        let mut random = kutrace_tests::Random(7);
        for width in [0, 1, 3, 8, 9, 17] {
            for parts in [0, 1, 2, 40] {
                let mut numbers = Vec::new();
                for _ in 0..parts {
                    let value = random.below(1 << width) as u32;
                    numbers.extend(vec![value; random.below(40) as usize]);
                    let some = random.below(40);
                    numbers.extend((0..some).map(|_| random.below(1 << width) as u32));
                }
                let mut bytes = Vec::new();
                hybrid(&numbers, width, &mut bytes);
                assert_eq!(read(&bytes, width, numbers.len()), numbers, "{width} bits");
            }
        }
        let long: Vec<u32> = (0..100_000).map(|n| n % 5).collect();
        let mut bytes = Vec::new();
        hybrid(&long, 3, &mut bytes);
        assert_eq!(read(&bytes, 3, long.len()), long);
    }

    #[test]
    fn only_texts_that_occur_are_in_the_dictionary() {
        assert_eq!(occurring(5, &[3, 3, 1, 3]), (vec![3, 1], vec![0, 0, 1, 0]));
        assert_eq!(occurring(5, &[]), (vec![], vec![]));
    }
}
