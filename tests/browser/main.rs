// SPDX-License-Identifier: BSD-3-Clause
//! Browser tier: the page in a headless Chromium, driven by `drive.mjs`, and once in Firefox, by `firefox.mjs`.
//!
//! Needs Debian's chromium-headless-shell, firefox-esr and nodejs with npm; playwright-core and typescript come once,
//! by the committed lock file, into the cache. The page of the demo is taken from KUTRACE_PAGE, or from
//! target/demo/t.html if that is there.

mod drive;
mod spans;
mod made;
mod search;
mod drawn;
mod real;
mod tools;
mod requests;
mod machines;
mod calls;
mod stock;
mod types;
