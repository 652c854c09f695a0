// SPDX-License-Identifier: BSD-3-Clause
//! The marks of the original KUtrace: labels of six characters, RPCs, locks and queues, by system call 1023.
//!
//! Each records the time of the call on the CPU that makes it. A `bool` result says whether that is in the trace, which
//! it is not while nothing is traced; it may be ignored. A lock, a queue and a named span become numbers of 16 bits, so
//! two names may share one; the recorder is told each name by itself.
//!
//! New programs need this for what the marks of the crate's root have no word for: which thread waits for which lock,
//! which RPC is in which queue, and the program's messages.

pub mod event;
mod insert;
pub(crate) mod name;
pub(crate) mod rpc;
pub(crate) mod text;

pub use self::insert::{addevent, addname, mark_a, mark_b, mark_c, mark_d, Named};
pub(crate) use self::insert::{event as insert_event, name as insert_name};
pub use self::name::{dequeue, enqueue, lock_acquired, lock_released, lock_try};
pub use self::rpc::{rpc_end, rpc_request, rpc_response, rpc_resume, span, Span};
pub use crate::state::{test, version};
