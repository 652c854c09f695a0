// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask`.
fn main() {}
