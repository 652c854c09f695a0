// SPDX-License-Identifier: BSD-3-Clause
//! Numbers of the events that programs record, each with one argument of 32 bits.

pub use kutrace_format::abi::event::{
    DEQUEUE, ENQUEUE, LOCK_ACQUIRED, LOCK_RELEASED, LOCK_TRY, MARK_A, MARK_B, MARK_C, MARK_D, RESOURCE, RPC_MIDDLE,
    RPC_REQUEST, RPC_RESPONSE, RX_USER, TX_USER,
};
