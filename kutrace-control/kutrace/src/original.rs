// SPDX-License-Identifier: BSD-3-Clause
//! The marks of the original KUtrace: labels of six characters, RPCs, locks and queues, by system call 1023.
//!
//! Each function records the time of the call on the CPU that makes it. A `bool` result is true if the record is in the
//! trace, and false while nothing is traced; it may be ignored. A lock, a queue and a named span become numbers of 16
//! bits, so two names may share one number; the recorder gets each name separately.
//!
//! New programs need this for marks that the crate's root does not have: the thread that waits for a lock, the RPC that
//! is in a queue, and the program's messages.

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
