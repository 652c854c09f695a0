// SPDX-License-Identifier: BSD-3-Clause
//! The image of a machine's memory, by physical addresses: an ELF core, from /proc/vmcore or QEMU's
//! `dump-guest-memory`, or a core compressed by makedumpfile.
//!
//! Invariant: no content of the file makes a reader fail; unreadable memory counts as missing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{anyhow, ensure, Context, Result};
use kutrace_cli::Failure;
use kutrace_format::abi::landmark::{MAGIC, PAGE, RESERVED};
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};

use super::kdump::Kdump;

/// An image.
#[derive(Debug)]
pub enum Image {
    /// An ELF core.
    Elf(Elf),
    /// A core of makedumpfile.
    Kdump(Kdump),
    /// Memory of an earlier kernel that survived a reboot: the range that the module has preserved.
    Kept(Elf),
}

/// Ranges of memory in a file, as listed by an ELF core.
#[derive(Debug)]
pub struct Elf {
    file: File,
    /// Size of the file in bytes.
    length: u64,
    segments: Vec<Segment>,
}

/// A range of memory, and its place in the file.
#[derive(Clone, Copy, Debug)]
struct Segment {
    physical: u64,
    bytes: u64,
    offset: u64,
}

impl Image {
    /// Opens an image.
    ///
    /// # Errors
    /// If the file cannot be read, or is not an image of a 64-bit machine.
    pub fn open(path: &Path) -> Result<Image> {
        let named = || path.display().to_string();
        let file = File::open(path).with_context(named)?;
        let mut magic = [0; 8];
        let _ = file.read_at(&mut magic, 0).with_context(named)?;
        let opened = match magic.starts_with(object::elf::ELFMAG.as_slice()) {
            true => elf(file).map(Image::Elf),
            false => Kdump::open(file).map(Image::Kdump),
        };
        opened
            .map_err(|error| Failure::new(format!("not an image of a machine's memory: {error:#}"), HINT))
            .with_context(named)
    }

    /// A range of memory in a file from `offset` on, which begins with a landmark that has its address.
    ///
    /// # Errors
    /// If the range cannot be read, or has no landmark.
    pub fn kept(file: File, offset: u64, bytes: u64) -> Result<Image> {
        let mut head = [0; 24];
        file.read_exact_at(&mut head, offset)?;
        let (magic, physical) = head.split_at(RESERVED.len());
        let physical = physical.try_into().map(u64::from_le_bytes)?;
        ensure!(magic == RESERVED && physical < u64::MAX - bytes - PAGE as u64, "no landmark at its start");
        let segments = vec![Segment { physical, bytes, offset }];
        Ok(Image::Kept(Elf { file, length: offset.saturating_add(bytes), segments }))
    }

    /// The magic number of landmarks in this image.
    pub fn magic(&self) -> [u8; 16] {
        match self {
            Image::Kept(_) => RESERVED,
            Image::Elf(_) | Image::Kdump(_) => MAGIC,
        }
    }

    /// Addresses of all pages.
    pub fn pages(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Image::Elf(elf) | Image::Kept(elf) => Box::new(elf.pages()),
            Image::Kdump(kdump) => Box::new(kdump.pages()),
        }
    }

    /// Reads memory at an address, within one page; false if some of it is not in the image.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, physical: u64, into: &mut [u8]) -> io::Result<bool> {
        let read = match self {
            Image::Elf(elf) | Image::Kept(elf) => elf.read(physical, into),
            Image::Kdump(kdump) => kdump.read(physical, into),
        };
        match read {
            // The file is shorter than its header states.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => read,
        }
    }

    /// Damage of the file as a whole, if any.
    pub fn damage(&self) -> Option<String> {
        match self {
            Image::Elf(elf) | Image::Kept(elf) => elf.damage(),
            Image::Kdump(kdump) => kdump.damage(),
        }
    }
}

const HINT: &str =
    "made by `cp /proc/vmcore FILE` or makedumpfile in the kernel of kdump, or by QEMU's `dump-guest-memory`";

impl Elf {
    /// Addresses of the pages in the file, which may be shorter than its header states.
    fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments.iter().flat_map(|one| {
            let there = one.bytes.min(self.length.saturating_sub(one.offset));
            (one.physical.next_multiple_of(PAGE as u64)..one.physical + there).step_by(PAGE)
        })
    }

    fn read(&self, physical: u64, into: &mut [u8]) -> io::Result<bool> {
        let holds = |one: &&Segment| {
            let at = physical.checked_sub(one.physical);
            at.is_some_and(|at| at <= one.bytes && into.len() as u64 <= one.bytes - at)
        };
        let Some(one) = self.segments.iter().find(holds) else { return Ok(false) };
        self.file.read_exact_at(into, one.offset + (physical - one.physical)).map(|()| true)
    }

    fn damage(&self) -> Option<String> {
        let beyond = |one: &Segment| one.bytes.min((one.offset + one.bytes).saturating_sub(self.length));
        let missing = self.segments.iter().map(beyond).fold(0, u64::saturating_add);
        (missing > 0).then(|| format!("the image is cut: {missing} bytes of memory are missing"))
    }
}

/// An ELF core, and the ranges of memory that it lists.
fn elf(file: File) -> Result<Elf> {
    let length = file.metadata()?.len();
    let cache = ReadCache::new(&file);
    let header = FileHeader64::<Endianness>::parse(&cache)?;
    let endian = header.endian()?;
    let listed = header.program_headers(endian, &cache)?;
    let is_sound = |one: &Segment| {
        let page = PAGE as u64;
        one.physical.checked_add(one.bytes).is_some_and(|end| end <= u64::MAX - page)
            && one.offset.checked_add(one.bytes).is_some()
    };
    let segments: Vec<Segment> = listed
        .iter()
        .filter(|listed| listed.p_type(endian) == PT_LOAD)
        .map(|listed| Segment {
            physical: listed.p_paddr(endian),
            bytes: listed.p_filesz(endian),
            offset: listed.p_offset(endian),
        })
        .filter(is_sound)
        .collect();
    match segments.is_empty() {
        true => Err(anyhow!("an ELF file without memory")),
        false => Ok(Elf { file, length, segments }),
    }
}
