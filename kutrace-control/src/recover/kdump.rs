// SPDX-License-Identifier: BSD-3-Clause
//! A core file of makedumpfile, also written by QEMU: each page in it is compressed on its own, by zlib, LZO, snappy or
//! zstd; the file is plain or *flattened*, the form for a pipe.
//!
//! ```text
//! | header | sub header | bitmap of memory | bitmap of pages that are there | descriptors | pages |      in blocks
//!
//! header:      0 "KDUMP   "   424 status u32   428 bytes of a block and page i32   432 blocks of the sub header i32
//!            436 blocks of both bitmaps u32
//! descriptor:  0 offset u64   8 bytes u32   12 flags u32   16 zero
//!
//! flattened:   0 "makedumpfile"   4096 records: offset i64, bytes i64, both big-endian, then the bytes; -1, -1 ends
//! ```
//!
//! Invariant: see [`super::image`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use anyhow::{bail, ensure, Context, Result};
use flate2::read::ZlibDecoder;
use kutrace_format::abi::landmark::PAGE;

use super::lzo;

/// A core file of makedumpfile.
#[derive(Debug)]
pub struct Kdump {
    source: Source,
    status: u32,
    /// Place of the page descriptors in the file.
    descriptors: u64,
    /// A bit for each page of memory: 1 if the file has it.
    bitmap: Vec<u8>,
    /// For each byte of the bitmap: number of pages in the file before it.
    before: Vec<u32>,
    /// The pages that were read last: page tables are read over and over.
    recent: RefCell<VecDeque<(u64, Vec<u8>)>>,
}

const MAGIC: &[u8] = b"KDUMP   ";
/// Status: the disk was full.
const INCOMPLETE: u32 = 8;
/// Flags of a page: its compression; none if it is not compressed.
const ZLIB: u32 = 1;
const LZO: u32 = 2;
const SNAPPY: u32 = 4;
const ZSTD: u32 = 0x20;
const COMPRESSED: u32 = 0x3f;
/// Maximum number of recent pages.
const RECENT: usize = 16;
/// A bitmap of this many bytes covers 32 TiB of memory.
const BITMAP_MAX: u64 = 1 << 30;

impl Kdump {
    /// Opens a core file of makedumpfile.
    ///
    /// # Errors
    /// If the file has another format, or cannot be read.
    pub fn open(file: File) -> Result<Kdump> {
        let source = Source::open(file)?;
        let mut header = [0; 440];
        ensure!(source.read_exact_at(&mut header, 0).is_ok(), "too short for one");
        ensure!(header.starts_with(MAGIC), "neither an ELF core nor one of makedumpfile");
        let number = |at: usize| u64::from(u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or_default()));
        ensure!(number(428) == PAGE as u64, "pages of {} bytes", number(428));
        let (sub, both) = (number(432), number(436));
        let bytes = both * PAGE as u64 / 2;
        ensure!(bytes <= BITMAP_MAX, "damaged: a bitmap of {bytes} bytes");
        let mut bitmap = vec![0; bytes as usize];
        source.read_exact_at(&mut bitmap, (1 + sub) * PAGE as u64 + bytes).context("the bitmap of pages is missing")?;
        let count = |pages: &mut u32, byte: &u8| {
            let before = *pages;
            *pages += byte.count_ones();
            Some(before)
        };
        let before = bitmap.iter().scan(0, count).collect();
        let descriptors = (1 + sub + both) * PAGE as u64;
        Ok(Kdump { source, status: number(424) as u32, descriptors, bitmap, before, recent: RefCell::default() })
    }

    /// Addresses of the pages in the file.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        let bits = self.bitmap.iter().enumerate().filter(|(_, byte)| **byte != 0);
        let pages = bits
            .flat_map(|(at, byte)| (0..8).filter(move |bit| byte >> bit & 1 != 0).map(move |bit| 8 * at as u64 + bit));
        pages.map(|page| page * PAGE as u64)
    }

    /// Reads memory at an address, within one page; false if the file does not have the page or it cannot be
    /// decompressed.
    ///
    /// # Errors
    /// If the file cannot be read, or the compression is unknown.
    pub fn read(&self, physical: u64, into: &mut [u8]) -> io::Result<bool> {
        let (number, at) = (physical / PAGE as u64, physical as usize % PAGE);
        let mut recent = self.recent.borrow_mut();
        if !recent.iter().any(|(known, _)| *known == number) {
            let Some(page) = self.page(number)? else { return Ok(false) };
            recent.push_back((number, page));
            if recent.len() > RECENT {
                recent.pop_front();
            }
        }
        let part =
            recent.iter().find(|(known, _)| *known == number).and_then(|(_, page)| page.get(at..at + into.len()));
        Ok(part.map(|part| into.copy_from_slice(part)).is_some())
    }

    fn page(&self, number: u64) -> io::Result<Option<Vec<u8>>> {
        let (byte, bit) = ((number / 8) as usize, number % 8);
        let Some(bits) = self.bitmap.get(byte).filter(|bits| **bits >> bit & 1 != 0) else { return Ok(None) };
        let place = u64::from(self.before[byte] + (bits & ((1 << bit) - 1)).count_ones());
        let mut descriptor = [0; 24];
        self.source.read_exact_at(&mut descriptor, self.descriptors + 24 * place)?;
        let long = |at: usize| u64::from_le_bytes(descriptor[at..at + 8].try_into().unwrap_or_default());
        let (offset, bytes, flags) = (long(0), long(8) as u32 as usize, (long(8) >> 32) as u32);
        if bytes > PAGE {
            return Ok(None);
        }
        let mut data = vec![0; bytes];
        self.source.read_exact_at(&mut data, offset)?;
        let page = match flags & COMPRESSED {
            0 => Some(data),
            ZLIB => inflate(&data),
            LZO => lzo::decompress(&data, PAGE),
            SNAPPY => unsnap(&data),
            ZSTD => zstd::bulk::decompress(&data, PAGE).ok(),
            by => {
                let fact = format!("its pages are compressed in an unknown way ({by:#x})");
                return Err(io::Error::other(fact + ": make it with `makedumpfile -c`, by zlib"));
            }
        };
        Ok(page.filter(|page| page.len() == PAGE))
    }

    /// Damage of the file as a whole, if any.
    pub fn damage(&self) -> Option<String> {
        (self.status & INCOMPLETE != 0).then(|| "the image is incomplete: makedumpfile ran out of space".to_owned())
    }
}

fn inflate(data: &[u8]) -> Option<Vec<u8>> {
    let mut page = Vec::with_capacity(PAGE);
    ZlibDecoder::new(data).take(PAGE as u64).read_to_end(&mut page).ok()?;
    Some(page)
}

fn unsnap(data: &[u8]) -> Option<Vec<u8>> {
    let mut page = vec![0; PAGE];
    let bytes = snap::raw::Decoder::new().decompress(data, &mut page).ok()?;
    page.truncate(bytes);
    Some(page)
}

/// The file as it was before it was flattened.
#[derive(Debug)]
struct Source {
    file: File,
    /// Pieces of a flattened file by their offset in the plain file: length and place in this file.
    pieces: Option<BTreeMap<u64, (u64, u64)>>,
}

impl Source {
    fn open(file: File) -> Result<Source> {
        let mut magic = [0; 12];
        if file.read_exact_at(&mut magic, 0).is_err() || magic != *b"makedumpfile" {
            return Ok(Source { file, pieces: None });
        }
        let (mut pieces, mut at) = (BTreeMap::new(), 4096);
        let mut record = [0; 16];
        // A truncated file has no end record.
        while file.read_exact_at(&mut record, at).is_ok() {
            let number = |at: usize| i64::from_be_bytes(record[at..at + 8].try_into().unwrap_or_default());
            let (Ok(offset), Ok(bytes)) = (u64::try_from(number(0)), u64::try_from(number(8))) else { break };
            let Some(next) = (at + 16).checked_add(bytes) else { bail!("damaged: a piece of {bytes} bytes") };
            ensure!(offset.checked_add(bytes).is_some(), "damaged: a piece for byte {offset}");
            put(&mut pieces, offset, (bytes, at + 16));
            at = next;
        }
        Ok(Source { file, pieces: Some(pieces) })
    }

    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let Some(pieces) = &self.pieces else { return self.file.read_exact_at(into, offset) };
        let mut done = 0;
        while done < into.len() {
            let at = offset.saturating_add(done as u64);
            let (start, (bytes, place)) = pieces.range(..=at).next_back().ok_or(io::ErrorKind::UnexpectedEof)?;
            let part = (into.len() - done).min(bytes.saturating_sub(at - start) as usize);
            if part == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.file.read_exact_at(&mut into[done..done + part], place + (at - start))?;
            done += part;
        }
        Ok(())
    }
}

/// Inserts a piece; earlier pieces that overlap it are cut.
fn put(pieces: &mut BTreeMap<u64, (u64, u64)>, offset: u64, (bytes, place): (u64, u64)) {
    let end = offset + bytes;
    while let Some((&start, &(old, old_place))) =
        pieces.range(..end).next_back().filter(|(start, (old, _))| *start + old > offset)
    {
        pieces.remove(&start);
        if start < offset {
            pieces.insert(start, (offset - start, old_place));
        }
        if start + old > end {
            pieces.insert(end, (start + old - end, old_place + (end - start)));
        }
    }
    pieces.insert(offset, (bytes, place));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use flate2::write::ZlibEncoder;

    /// A file of the pages 1 (raw), 9 (zlib) and 10 (damaged).
    fn kdump() -> Vec<u8> {
        let mut file = vec![0; 4 * PAGE + 3 * 24];
        file[..8].copy_from_slice(MAGIC);
        for (at, value) in [(428, PAGE as u32), (432, 1), (436, 2)] {
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        file[3 * PAGE..3 * PAGE + 2].copy_from_slice(&[1 << 1, 1 << 1 | 1 << 2]);
        let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&[9; PAGE]).unwrap();
        for (n, (data, flags)) in
            [(vec![1; PAGE], 0), (encoder.finish().unwrap(), ZLIB), (vec![7; 100], ZLIB)].iter().enumerate()
        {
            let descriptor =
                [&(file.len() as u64).to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), &flags.to_le_bytes()]
                    .concat();
            file[4 * PAGE + 24 * n..][..16].copy_from_slice(&descriptor);
            file.extend(data);
        }
        file
    }

    /// The same file in pieces out of order, the first written twice.
    fn flattened(file: &[u8]) -> Vec<u8> {
        let mut flat = b"makedumpfile".to_vec();
        flat.resize(4096, 0);
        let mut add = |offset: usize, bytes: &[u8]| {
            flat.extend((offset as i64).to_be_bytes());
            flat.extend((bytes.len() as i64).to_be_bytes());
            flat.extend(bytes);
        };
        add(0, &vec![0xee; 3 * PAGE]);
        add(PAGE, &file[PAGE..]);
        add(0, &file[..PAGE + 1]);
        flat.extend([0xff; 16]);
        flat
    }

    fn open(bytes: &[u8]) -> Result<Kdump> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Kdump::open(file)
    }

    #[test]
    fn pages_are_found_by_their_bits_in_plain_and_flattened_files() {
        let plain = kdump();
        for file in [&plain, &flattened(&plain)] {
            let kdump = open(file).unwrap();
            let page = PAGE as u64;
            assert_eq!(kdump.pages().collect::<Vec<_>>(), [page, 9 * page, 10 * page]);
            let mut bytes = [0; 16];
            for (number, there) in [(0, None), (1, Some(1)), (9, Some(9)), (10, None), (11, None), (1 << 40, None)] {
                let read = kdump.read(number * page + 5, &mut bytes).unwrap();
                assert_eq!(read.then_some(bytes), there.map(|byte| [byte; 16]), "{number}");
            }
        }
    }

    /// A file with one page for each of these, from page 8 on.
    fn of_pages(pages: &[(Vec<u8>, u32)]) -> Vec<u8> {
        let mut file = vec![0; 4 * PAGE + pages.len() * 24];
        file[..8].copy_from_slice(MAGIC);
        for (at, value) in [(428, PAGE as u32), (432, 1), (436, 2)] {
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        file[3 * PAGE + 1] = ((1 << pages.len()) - 1) as u8;
        for (n, (data, flags)) in pages.iter().enumerate() {
            let (offset, bytes) = ((file.len() as u64).to_le_bytes(), (data.len() as u32).to_le_bytes());
            file[4 * PAGE + 24 * n..][..16].copy_from_slice(&[&offset[..], &bytes, &flags.to_le_bytes()].concat());
            file.extend(data);
        }
        file
    }

    #[test]
    fn pages_are_read_however_they_are_compressed_and_no_damage_makes_them_others() {
        let page: Vec<u8> = (0..PAGE).map(|at| (at / 64) as u8 ^ (at % 7) as u8).collect();
        let mut zlib = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&page).unwrap();
        let compressed = [
            (page.clone(), 0),
            (zlib.finish().unwrap(), ZLIB),
            (lzokay_native::compress(&page).unwrap(), LZO),
            (snap::raw::Encoder::new().compress_vec(&page).unwrap(), SNAPPY),
            (zstd::bulk::compress(&page, 0).unwrap(), ZSTD),
        ];
        assert!(compressed[1..].iter().all(|(data, _)| data.len() < PAGE / 2));
        let read = |pages: &[(Vec<u8>, u32)], number: usize| {
            let mut read = vec![0; PAGE];
            let is_there = open(&of_pages(pages)).unwrap().read(((8 + number) * PAGE) as u64, &mut read);
            is_there.map(|is_there| is_there.then_some(read)).map_err(|error| error.to_string())
        };
        for (number, (data, flags)) in compressed.iter().enumerate() {
            assert_eq!(read(&compressed, number).unwrap().as_ref(), Some(&page), "{flags}");
            let cut = [(data[..data.len() / 2].to_vec(), *flags)];
            assert_eq!(read(&cut, 0).unwrap(), None, "{flags}");
            let more = [(vec![0xff; 100], *flags)];
            assert_eq!(read(&more, 0).unwrap(), None, "{flags}");
        }
        let unknown = read(&[(page, 0x10)], 0).unwrap_err();
        assert!(unknown.starts_with("its pages are compressed in an unknown way (0x10)"), "{unknown}");
    }

    #[test]
    fn a_file_that_is_cut_anywhere_has_less_and_does_no_harm() {
        let plain = kdump();
        for whole in [&plain, &flattened(&plain)] {
            for length in (0..whole.len()).step_by(97) {
                let Ok(kdump) = open(&whole[..length]) else { continue };
                for page in kdump.pages().take(3) {
                    match kdump.read(page, &mut [0; 16]) {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof),
                    }
                }
            }
        }
    }
}
