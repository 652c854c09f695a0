// SPDX-License-Identifier: BSD-3-Clause
//! Packed frames, of events or of spans.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("frames"), |input: &[u8]| kutrace_fuzz::run("frames", input));
