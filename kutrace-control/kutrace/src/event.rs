// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of the events that programs record, each with one argument of 32 bits.

pub use kutrace_format::abi::event::{MARK_A, MARK_D};

/// A thread begins with the request of an RPC: its id in the low half, the size code of its message above; 0 ends it.
pub const RPC_REQUEST: u16 = 0x201;
/// A thread begins with the response.
pub const RPC_RESPONSE: u16 = 0x202;
/// A thread goes on with an RPC.
pub const RPC_MIDDLE: u16 = 0x203;
/// Mark b.
pub const MARK_B: u16 = MARK_A + 1;
/// Mark c.
pub const MARK_C: u16 = MARK_A + 2;
/// A lock was not free: its number.
pub const LOCK_TRY: u16 = 0x210;
/// A lock was got after a try.
pub const LOCK_ACQUIRED: u16 = 0x211;
/// A lock is given up.
pub const LOCK_RELEASED: u16 = 0x212;
/// The program received a message: the exclusive or of its first eight words.
pub const RX_USER: u16 = 0x216;
/// The program sends a message: the same.
pub const TX_USER: u16 = 0x217;
/// The program uses a resource: its number.
pub const RESOURCE: u16 = 0x219;
/// An RPC goes into a queue: the queue's number.
pub const ENQUEUE: u16 = 0x21a;
/// An RPC comes out of a queue.
pub const DEQUEUE: u16 = 0x21b;
