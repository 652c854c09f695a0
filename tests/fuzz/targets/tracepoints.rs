// SPDX-License-Identifier: BSD-3-Clause
//! Text of the kernel's tracepoints, as others write it.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("tracepoints"), |input: &[u8]| kutrace_fuzz::run("tracepoints", input));
