// SPDX-License-Identifier: BSD-3-Clause
//! Traces of Perfetto's.

#![no_main]

libfuzzer_sys::fuzz_target!(init: kutrace_fuzz::seed("perfetto"), |input: &[u8]| kutrace_fuzz::run("perfetto", input));
