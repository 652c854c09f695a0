// SPDX-License-Identifier: BSD-3-Clause
//! Spans as JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("json"), |input: &[u8]| kutrace_fuzz::run("json", input));
