// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Network packets: which of them are recorded, and by what number.

/// Words at the start of a packet's data that are looked at: 32 bytes.
pub const WORDS: usize = 4;
/// Bytes of them that the filter can look at.
const FILTERED: usize = 24;

/// Whether the filter takes a packet that begins with `words`.
///
/// Bit n of `mask` stands for byte n, of the first 24. The bytes that it selects, the others taken as zero, are read
/// as four-byte words whose exclusive or must be `wanted`. Mask 0 takes no packet, -1 takes every packet.
pub const fn is_wanted(words: &[u64; WORDS], mask: i64, wanted: u32) -> bool {
    if mask == 0 || mask == -1 {
        return mask != 0;
    }
    let (mut sum, mut n) = (0, 0);
    while n < FILTERED {
        if mask >> n & 1 != 0 {
            let byte = (words[n / 8] >> (8 * (n % 8))) as u8;
            sum ^= (byte as u32) << (8 * (n % 4));
        }
        n += 1;
    }
    sum == wanted
}

/// What a packet is recorded by: the exclusive or of the first eight four-byte words of its data.
pub const fn hash(words: &[u64; WORDS]) -> u32 {
    let all = words[0] ^ words[1] ^ words[2] ^ words[3];
    (all ^ all >> 32) as u32
}
