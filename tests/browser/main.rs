// SPDX-License-Identifier: BSD-3-Clause
//! Browser tier: the page in a headless Chromium, driven by `drive.mjs`.
//!
//! Needs Debian's chromium-headless-shell and nodejs with npm; playwright-core and typescript come once, by the committed
//! lock file, into the cache. The page of the demo is taken from KUTRACE_PAGE, or from target/demo/t.html if that is there.

mod drive;
mod spans;
mod made;
mod drawn;
mod real;
mod tools;
mod types;
