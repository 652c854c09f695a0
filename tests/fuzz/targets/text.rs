// SPDX-License-Identifier: BSD-3-Clause
//! Event text.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("text"), |input: &[u8]| kutrace_fuzz::run("text", input));
