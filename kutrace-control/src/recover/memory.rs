// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's memory in an image, by virtual addresses: translated by the kernel's page tables, starting from the
//! landmark. Memory that survives a reboot is one contiguous piece, and needs no tables.

use std::io;

use kutrace_format::abi::landmark::{Landmark, Machine, PAGE};

use super::image::Image;
use crate::sys;

/// The memory.
#[derive(Debug)]
pub struct Memory<'a> {
    image: &'a Image,
    /// Parameters of address translation.
    machine: Machine,
}

/// Bit of a page table entry: the entry is valid.
const PRESENT: u64 = 1;
/// Bit of a page table entry: it maps memory of the entry's size, not a further table.
const LARGE: u64 = 1 << 7;

/// The landmarks in an image.
///
/// # Errors
/// If the file cannot be read.
pub fn landmarks(image: &Image) -> io::Result<Vec<Landmark>> {
    let mut found = Vec::new();
    for page in image.pages() {
        let mut head = [0; 24];
        let is_one = image.read(page, &mut head)? && head[..16] == image.magic() && head[16..] == page.to_le_bytes();
        let mut bytes = [0; PAGE];
        if is_one && image.read(page, &mut bytes)? {
            found.push(sys::landmark(&bytes));
        }
    }
    Ok(found)
}

impl Memory<'_> {
    /// The kernel's memory as its landmark describes it.
    pub fn new(image: &Image, machine: Machine) -> Memory<'_> {
        Memory { image, machine }
    }

    /// Reads memory at an address. Returns the number of bytes before the first one that is not in the image.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let bytes = (PAGE - at as usize % PAGE).min(into.len() - done);
            let part = &mut into[done..done + bytes];
            let Some(physical) = self.physical(at)? else { break };
            if !self.image.read(physical, part)? {
                break;
            }
            done += bytes;
        }
        Ok(done)
    }

    /// A number of `BYTES` bytes, if it is in the image.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn number<const BYTES: usize>(&self, address: u64) -> io::Result<Option<u64>> {
        let mut bytes = [0; 8];
        Ok((self.read(address, &mut bytes[..BYTES])? == BYTES).then(|| u64::from_le_bytes(bytes)))
    }

    /// Reads the page with this physical page number; false if it is not in the image.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn frame(&self, number: u64, into: &mut [u8]) -> io::Result<bool> {
        match number.checked_mul(PAGE as u64) {
            Some(physical) => self.image.read(physical, into),
            None => Ok(false),
        }
    }

    /// The physical address of a virtual one.
    fn physical(&self, address: u64) -> io::Result<Option<u64>> {
        let Machine { physical: landmark, levels, mask, tables, .. } = &self.machine;
        match levels {
            0 => return Ok(address.checked_sub(tables[0]).and_then(|within| landmark.checked_add(within))),
            4..=5 => {}
            _ => return Ok(None),
        }
        let index = |shift: u64| (address >> shift) % 512;
        let mut shift = 12 + 9 * (levels - 1);
        let Some(&entry) = index(shift).checked_sub(256).and_then(|at| tables.get(at as usize)) else {
            return Ok(None);
        };
        let mut entry = entry;
        while entry & PRESENT != 0 {
            let size = 1 << shift;
            if shift == 12 || (entry & LARGE != 0 && shift <= 30) {
                return Ok(Some((entry & mask & !(size - 1)) | (address & (size - 1))));
            }
            shift -= 9;
            let mut bytes = [0; 8];
            if !self.image.read((entry & mask).wrapping_add(8 * index(shift)), &mut bytes)? {
                break;
            }
            entry = u64::from_le_bytes(bytes);
        }
        Ok(None)
    }
}
