// SPDX-License-Identifier: BSD-3-Clause
//! Packed raw files of the original.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("original"), |input: &[u8]| kutrace_fuzz::run("original", input));
