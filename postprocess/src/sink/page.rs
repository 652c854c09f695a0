// SPDX-License-Identifier: BSD-3-Clause
//! The page: spans as compressed [`columns`] inside one HTML file that draws itself, forever, from `file://`.
//!
//! Invariants: the page asks the network for nothing (its content security policy forbids it); text from the trace
//! reaches the page only inside JSON with every `<` escaped, and the scripts only ever show it as text.

pub mod columns;
pub mod links;
pub mod requests;
mod pack;
mod about;
#[cfg(test)]
mod join;
mod render;
pub mod lift;

pub use lift::{lift, NotLifted};
pub use render::{render, render_with, Error, MAX_SPANS};
