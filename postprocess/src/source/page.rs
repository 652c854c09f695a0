// SPDX-License-Identifier: BSD-3-Clause
//! What a page's file has around its data, ours and the original's: by these marks it is recognized, read and lifted.

/// Where the description of the data begins; this and what follows ends at the next `<`.
pub const ABOUT: &str = "<script type=\"application/json\" id=\"ku-meta\"";
/// Where each chunk of the data begins.
pub const CHUNK: &str = "<script type=\"text/plain\" class=\"ku-data\">";
/// Where what was added to the page begins: notes, views.
pub const ADDED: &str = "<script type=\"application/json\" id=\"ku-added\"";
/// Between these comments, a page of the original has its JSON, in one line between apostrophes; nothing else follows
/// other.
pub const ORIGINAL: [&str; 2] = ["<!-- selfcontained1 -->", "<!-- selfcontained2 -->"];

/// What a page with data has, ours and the original's.
pub const DATA: [&str; 2] = [ABOUT, ORIGINAL[0]];
/// How a page ends.
pub const END: &str = "</html>";
