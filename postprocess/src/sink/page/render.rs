// SPDX-License-Identifier: BSD-3-Clause
//! The file: the template filled with what the trace says about itself, its columns, the styles and the scripts.

use std::fmt;
use std::io::{self, Write};

use askama::Template;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde::Serialize;

use super::about::{About, CHUNK_BYTES};
use super::columns;
use super::links::links;
use super::requests::Carried;
use crate::span::{Meta, Spans};
use crate::why::carry::Requests;

/// Spans a browser can still open; beyond them the trace must be trimmed.
pub const MAX_SPANS: usize = 20_000_000;

// The viewer, `SCRIPTS`: made by build.rs, see join.rs.
include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// Why there is no page.
#[derive(Debug)]
pub enum Error {
    /// More spans than a browser can open.
    TooMany(usize),
    /// Writing the page failed.
    Write(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(n) => {
                writeln!(f, "{n} spans, and a page can hold {MAX_SPANS}")?;
                f.write_str("hint: spantotrim START STOP keeps a range of seconds, spantospan 10 merges what is below 10 \u{b5}s")
            }
            Self::Write(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// Writes the page that shows `spans`, and no requests.
///
/// # Errors
/// More than [`MAX_SPANS`] spans, or whatever error `out` returns.
pub fn render(spans: &Spans, out: &mut impl Write) -> Result<(), Error> {
    render_with(spans, None, out)
}

/// Writes the page that shows `spans` and, if there are any, requests.
///
/// # Errors
/// More than [`MAX_SPANS`] spans, or whatever error `out` returns.
pub fn render_with(spans: &Spans, requests: Option<&Requests>, out: &mut impl Write) -> Result<(), Error> {
    has_room(spans.spans.len())?;
    let (layout, mut data) = columns::encode(&spans.spans, &links(spans));
    let carried = requests.map(|requests| Carried::after(&mut data, requests));
    let title = &title_of(&spans.meta);
    // What main.js imports first stands first in the page.
    let mut scripts: Vec<String> =
        SCRIPTS.iter().map(|(name, text)| format!("\n{text}//# sourceURL={name}\n")).collect();
    let guard = scripts.remove(0);
    let page = Page {
        title,
        guard,
        meta: escaped_json(&About::new(spans, title, &layout, carried)),
        chunks: data.chunks(CHUNK_BYTES).map(|c| STANDARD.encode(c)).collect(),
        style: concat!("\n", include_str!("../../../viewer/style.css")),
        scripts,
        added: escaped_json(&spans.meta.added),
    };
    page.write_into(out).map_err(Error::Write)
}

/// What the page is called, in tabs, bookmarks and files made from it: its title, else where and when it was recorded.
fn title_of(meta: &Meta) -> String {
    if !meta.title.is_empty() {
        return meta.title.clone();
    }
    // The base minute, as 2026-01-02_03:04:05.
    let minute = meta.tracebase.get(..16).unwrap_or_default().replace('_', " ");
    match (meta.host.as_str(), minute.as_str()) {
        ("", "") => "KUtrace".into(),
        ("", when) => format!("KUtrace, {when}"),
        (host, "") => host.into(),
        (host, when) => format!("{host}, {when}"),
    }
}

/// Whether a page can hold this many spans.
fn has_room(spans: usize) -> Result<(), Error> {
    if spans > MAX_SPANS {
        return Err(Error::TooMany(spans));
    }
    Ok(())
}

/// The template's holes. Only `title` is escaped by the template; the others are not text of HTML.
#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    guard: String,
    meta: String,
    chunks: Vec<String>,
    style: &'static str,
    /// The program, as the elements of the page hold it, each with its name at the end.
    scripts: Vec<String>,
    added: String,
}

/// The attribute by which an element of text is checked: ` data-crc32="..."`.
pub fn checksum(text: &str) -> String {
    format!(" data-crc32=\"{:08x}\"", crc32fast::hash(text.as_bytes()))
}

/// JSON that holds no `<`, so that nothing in it can end its script element or open a comment.
fn escaped_json(value: &impl Serialize) -> String {
    // Numbers, strings and lists of them always serialize.
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::span::wait::Reason;

    #[test]
    fn a_page_without_a_title_is_called_after_where_and_when_it_was_recorded() {
        let meta = |title: &str, host: &str, tracebase: &str| Meta {
            title: title.into(),
            host: host.into(),
            tracebase: tracebase.into(),
            ..Meta::default()
        };
        assert_eq!(title_of(&meta("slow", "box", "2026-01-02_03:04:00")), "slow");
        assert_eq!(title_of(&meta("", "box", "2026-01-02_03:04:00")), "box, 2026-01-02 03:04");
        assert_eq!(title_of(&meta("", "", "2026-01-02_03:04:00")), "KUtrace, 2026-01-02 03:04");
        assert_eq!(title_of(&meta("", "", "")), "KUtrace");
    }

    #[test]
    fn too_many_spans_are_refused_with_what_to_do_about_it() {
        assert!(has_room(MAX_SPANS).is_ok());
        let said = has_room(MAX_SPANS + 1).unwrap_err().to_string();
        for word in ["20000001 spans", "20000000", "\nhint: ", "spantotrim", "spantospan"] {
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn the_page_has_words_for_every_reason_to_wait() {
        let (_, waits) =
            include_str!("../../../viewer/data/kind.js").split_once("const WAITS = Object.freeze([").unwrap();
        let waits = waits.split("]);").next().unwrap().split("[\"").skip(1);
        let named: Vec<String> = waits.map(|wait| wait.split('"').step_by(2).take(2).collect()).collect();
        let reasons = Reason::ALL.iter().map(|&reason| format!("{}{}", char::from(reason.letter()), reason.name()));
        assert_eq!(named, reasons.collect::<Vec<_>>());
    }

    #[test]
    fn the_documents_have_a_line_for_every_reason_to_wait() {
        let manual = include_str!("../../../../docs/viewer.md");
        let page = include_str!("../../../../docs/man/kutrace.7");
        for &reason in Reason::ALL {
            let (letter, name) = (char::from(reason.letter()), reason.name());
            assert!(manual.contains(&format!("\n| `{letter}` | `{name}` | ")), "docs/viewer.md: {name}");
            assert!(page.contains(&format!("\n{letter}  {name}\t")), "docs/man/kutrace.7: {name}");
        }
    }

    #[test]
    fn every_module_is_in_the_page_and_the_guard_is_first() {
        let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/viewer"))];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match path.extension() {
                    None => folders.push(path),
                    Some(ending) if ending == "js" => files.push(path),
                    Some(_) => {}
                }
            }
        }
        for file in &files {
            assert!(
                SCRIPTS.iter().any(|(path, _)| file.ends_with(path)),
                "main.js imports it nowhere: {}",
                file.display()
            );
        }
        assert_eq!(files.len(), SCRIPTS.len());
        assert_eq!(SCRIPTS[0].0, "guard.js");
    }

    #[test]
    fn no_script_or_style_ends_its_own_element() {
        for (name, text) in SCRIPTS.into_iter().chain([("style.css", include_str!("../../../viewer/style.css"))]) {
            let lower = text.to_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("</style") && !lower.contains("<!--"), "{name}");
        }
    }
}
