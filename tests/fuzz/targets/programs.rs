// SPDX-License-Identifier: BSD-3-Clause
//! A program's own memory as input.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("programs"), |input: &[u8]| kutrace_fuzz::run("programs", input));
