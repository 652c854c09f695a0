// SPDX-License-Identifier: BSD-3-Clause
//! LZO1X, the stream that Linux describes in Documentation/staging/lzo.rst.
//!
//! ```text
//! a first byte of 18 or more    that many literals, less 17
//! 0000LLLL                      after no literals: 3 + L literals
//! 0000DDSS H                    after 1 to 3: 2 bytes from D + 4 H + 1 back; after more: 3 bytes from 2048 further
//! 0001HLLL D16                  2 + L bytes from 16384 + H * 16384 + D16 / 4 back; from 16384 back: the end
//! 001LLLLL D16                  2 + L bytes from D16 / 4 + 1 back
//! LLLDDDSS H                    1 + L bytes from D + 8 H + 1 back, L from 2 on
//!
//! L of 0                        the maximum of its bits, plus 255 for each zero byte that follows, plus the next byte
//! S, or the low bits of D16     number of literals that follow
//! ```
//!
//! Invariant: damaged input gives `None`, and no output is longer than the requested maximum.

/// The bytes of a stream, at most `most`; `None` if the stream is invalid or has more.
pub fn decompress(stream: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut all = Decompressed { stream, bytes: Vec::with_capacity(most), most };
    // Number of literals in the last step; 4 also means more.
    let mut literals = 0;
    if let Some(count @ 1..) = stream.first()?.checked_sub(17) {
        all.byte()?;
        all.literals(count.into())?;
        literals = count.min(4);
    }
    loop {
        let code = all.byte()?;
        let low = usize::from(code >> 2 & 3);
        let (length, distance, then) = match (code, literals) {
            (0..=15, 0) => {
                let length = all.length(code & 15, 15)?;
                all.literals(3 + length)?;
                literals = 4;
                continue;
            }
            (0..=15, 1..=3) => (2, low + 4 * usize::from(all.byte()?) + 1, code & 3),
            (0..=15, _) => (3, low + 4 * usize::from(all.byte()?) + 2049, code & 3),
            (16..=31, _) => {
                let length = all.length(code & 7, 7)?;
                let (back, then) = all.pair()?;
                match 2048 * usize::from(code & 8) + back {
                    0 => return Some(all.bytes),
                    back => (2 + length, 16384 + back, then),
                }
            }
            (32..=63, _) => {
                let length = all.length(code & 31, 31)?;
                let (back, then) = all.pair()?;
                (2 + length, back + 1, then)
            }
            (64.., _) => {
                let back = usize::from(code >> 2 & 7) + 8 * usize::from(all.byte()?);
                (1 + usize::from(code >> 5), back + 1, code & 3)
            }
        };
        all.copy(length, distance)?;
        all.literals(then.into())?;
        literals = then;
    }
}

struct Decompressed<'a> {
    /// The rest of the stream.
    stream: &'a [u8],
    bytes: Vec<u8>,
    most: usize,
}

impl Decompressed<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.stream.split_off_first().copied()
    }

    /// A distance of 14 bits, and the number of literals that follow.
    fn pair(&mut self) -> Option<(usize, u8)> {
        let number = u16::from_le_bytes([self.byte()?, self.byte()?]);
        Some((usize::from(number >> 2), number as u8 & 3))
    }

    /// A length in the code, or a longer one if that is 0.
    fn length(&mut self, bits: u8, longest: usize) -> Option<usize> {
        let mut length = longest;
        if bits != 0 {
            return Some(bits.into());
        }
        loop {
            match self.byte()? {
                0 => length += 255,
                rest => return Some(length + usize::from(rest)),
            }
        }
    }

    fn literals(&mut self, count: usize) -> Option<()> {
        let literals = self.stream.split_off(..count)?;
        self.has_room(count)?;
        self.bytes.extend_from_slice(literals);
        Some(())
    }

    /// Repeats earlier output; source and copy may overlap.
    fn copy(&mut self, length: usize, distance: usize) -> Option<()> {
        self.has_room(length)?;
        let from = self.bytes.len().checked_sub(distance)?;
        for at in from..from + length {
            self.bytes.push(self.bytes[at]);
        }
        Some(())
    }

    fn has_room(&self, count: usize) -> Option<()> {
        (count <= self.most - self.bytes.len()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic pseudorandom numbers.
    fn numbers(seed: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(seed), |n| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)))
    }

    /// Bytes of many kinds: one value, few values, words that repeat at any distance, all values.
    fn samples() -> Vec<Vec<u8>> {
        let of = |bytes: usize, some: u32| numbers(some).map(move |n| (n >> 16) % some).take(bytes);
        let mut samples = vec![vec![7], vec![0; 4096], vec![9; 300_000]];
        for (bytes, some) in [(4096, 2), (4096, 256), (4096, 17), (20, 256), (300, 3), (100_000, 90)] {
            samples.push(of(bytes, some).map(|n| n as u8).collect());
        }
        for (bytes, words) in [(4096, 40), (80_000, 3000), (200_000, 20_000)] {
            samples.push(of(bytes / 4, words).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect());
        }
        samples
    }

    #[test]
    fn what_another_program_compressed_comes_back() {
        for sample in samples() {
            let stream = lzokay_native::compress(&sample).unwrap();
            assert!(decompress(&stream, sample.len()).as_ref() == Some(&sample), "{} bytes", sample.len());
            if let Some(less) = sample.len().checked_sub(1) {
                assert_eq!(decompress(&stream, less), None);
            }
        }
    }

    #[test]
    fn what_is_damaged_or_cut_gives_no_more_than_was_asked_for() {
        for sample in samples().iter().filter(|sample| sample.len() <= 4096) {
            let stream = lzokay_native::compress(sample).unwrap();
            for at in 0..stream.len() {
                assert_eq!(decompress(&stream[..at], 4096), None, "cut at {at}");
                for bit in 0..8 {
                    let mut damaged = stream.clone();
                    damaged[at] ^= 1 << bit;
                    assert!(decompress(&damaged, 4096).is_none_or(|bytes| bytes.len() <= 4096));
                }
            }
        }
        let any: Vec<u8> = numbers(1).map(|n| (n >> 24) as u8).take(100_000).collect();
        for part in any.chunks(61) {
            assert!(decompress(part, 4096).is_none_or(|bytes| bytes.len() <= 4096));
        }
        assert_eq!(decompress(&[0; 4096], 4096), None);
    }
}
