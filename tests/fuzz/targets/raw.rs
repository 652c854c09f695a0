// SPDX-License-Identifier: BSD-3-Clause
//! Packed raw files of format 5.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("raw"), |input: &[u8]| kutrace_fuzz::run("raw", input));
