// SPDX-License-Identifier: BSD-3-Clause
//! Marks in a page's file around its data, ours and the original's: the page is recognized, read and lifted by them.

/// Start of the description of the data; the description, and each item after it, ends at the next `<`.
pub const ABOUT: &str = "<script type=\"application/json\" id=\"ku-meta\"";
/// Start of each chunk of the data.
pub const CHUNK: &str = "<script type=\"text/plain\" class=\"ku-data\">";
/// Start of additions to the page: notes, views.
pub const ADDED: &str = "<script type=\"application/json\" id=\"ku-added\"";
/// Between these comments, a page of the original has its JSON, in one line between apostrophes; the page's program
/// follows that line.
pub const ORIGINAL: [&str; 2] = ["<!-- selfcontained1 -->", "<!-- selfcontained2 -->"];

/// Marks of a page with data, ours and the original's.
pub const DATA: [&str; 2] = [ABOUT, ORIGINAL[0]];
/// End of a page.
pub const END: &str = "</html>";
