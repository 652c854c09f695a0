// SPDX-License-Identifier: BSD-3-Clause
//! Host tier: no root, no kernel, no network.

use kutrace_format::abi;

use advance::ffi;
use kutrace_recorder::{budget as module_budget, call, claim, entry, lane, owners};

mod recorder; // claims, interrupted at every step
mod owners_of_blocks; // the pool, interrupted at every step
mod advance; // the kernel's compare-exchange
mod budget; // how much programs may insert
mod word; // words, headers, names
mod packet; // packets of flows
mod programs; // what hostile programs leave in their memory
mod user; // system call 1023
mod command; // ioctls
mod decode; // raw files to events
mod reader; // docs/format.md is enough for a reader
mod counter; // counter bytes
mod damage; // damaged raw files
mod fuzz; // any input
mod text; // event text
mod frame; // frames
mod span; // events to spans, to be read
mod stream; // traces that were streamed
mod stock; // events from a kernel without hooks
mod rules; // one file for each rule of the state machine
mod faults; // the original's faults
mod guests; // a guest inside of its host
mod hours; // long traces, large pids
mod golden; // files to compare with
mod original; // the original's raw files
mod ftrace; // recordings in trace-cmd's own format
mod others; // texts of ftrace, trace-cmd, perf
mod perfetto; // Perfetto's traces
mod upstream; // the original's traces and its tools' output
mod page; // the page as text
mod viewer; // the page's modules under node
mod draw; // traces for Perfetto
mod dump; // words as text
mod verdict; // grades of raw traces
mod summary; // summaries
mod cgroup; // control groups
mod why; // causes of requests
mod waker; // whom wakeups are blamed on
mod requests; // requests in a page
mod otlp; // traces of OpenTelemetry
mod causes; // recorded traces with a planted cause
mod stories; // docs/stories.md and its traces
mod diff; // two traces
mod schema; // JSON and its schemas
mod companion; // spans to spans
mod samples; // samples/
mod numbers; // numbers of events in Rust and JavaScript
mod check; // the independent checker, and that it can fail
mod cut; // traces that begin, end or lose events anywhere
mod values; // arguments and return values
mod audit; // the kernel's own counts
mod capability; // limits of a source
mod english; // words of the documents
mod layers; // who uses whom
mod machines; // clocks of several machines
mod together; // hosts, guests and others together
