// SPDX-License-Identifier: BSD-3-Clause
//! Reads a page, ours or the original's, back into the spans it shows.

use std::fmt;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;

use serde_json::Value;

use super::about::{About, VERSION};
use super::columns::{self, Damage, Form};
use super::render::checksum;
use crate::source;
use crate::source::page::{ABOUT, ADDED, CHUNK, END, ORIGINAL};
use crate::span::Spans;

/// Reason why no spans could be lifted out of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotLifted {
    /// Not a page that [`super::render`] or the original's `makeself` made.
    NotAPage,
    /// A page with data of this version, which is newer than this program.
    Newer(u32),
    /// The page's description of its data, or one of its chunks, counted from 0, cannot be read.
    Unreadable(Option<usize>),
    /// More than one page.
    Several,
    /// A column is damaged or missing.
    Damaged(Damage),
}

impl fmt::Display for NotLifted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPage => f.write_str("not a page of KUtrace"),
            Self::Several => f.write_str("another page follows: one at a time"),
            Self::Newer(version) => write!(f, "the page's data have version {version}, newer than this program"),
            Self::Unreadable(None) => f.write_str("the page's description of its data cannot be read"),
            Self::Unreadable(Some(chunk)) => write!(f, "chunk {chunk} of the page's data cannot be read"),
            Self::Damaged(d) => write!(f, "group {}, column {:?} of the page's data is damaged", d.group, d.field),
        }
    }
}

impl std::error::Error for NotLifted {}

/// Lifts the spans out of a page; notes in their quality if anything but blanks follows the page.
///
/// # Errors
/// If `page` is not a page with whole data.
pub fn lift(page: &str) -> Result<Spans, NotLifted> {
    let mut spans = lift_first(page)?;
    if page.rsplit_once(END).is_some_and(|(_, behind)| !behind.trim_ascii().is_empty()) {
        spans.meta.quality.push("something follows the end of the page; skipped".into());
    }
    Ok(spans)
}

fn lift_first(page: &str) -> Result<Spans, NotLifted> {
    let Some((_, rest)) = page.split_once(ABOUT) else { return of_original(page) };
    let (text, data) = rest.split_once('<').ok_or(NotLifted::Unreadable(None))?;
    if data.contains(ABOUT) {
        return Err(NotLifted::Several);
    }
    let (sum, text) = text.split_once('>').ok_or(NotLifted::Unreadable(None))?;
    let about: About = serde_json::from_str(text).map_err(|_| NotLifted::Unreadable(None))?;
    if about.version > VERSION {
        return Err(NotLifted::Newer(about.version));
    }
    let form = if sum.is_empty() && about.version == 1 { Form::Bare } else { Form::Checked };
    if form == Form::Checked && sum != checksum(text) {
        return Err(NotLifted::Unreadable(None));
    }
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3);
    for (number, rest) in data.split(CHUNK).skip(1).enumerate() {
        let chunk = rest.split('<').next().unwrap_or_default();
        STANDARD.decode_vec(chunk, &mut bytes).map_err(|_| NotLifted::Unreadable(Some(number)))?;
    }
    let spans = columns::decode(&about.layout, &bytes, form).map_err(NotLifted::Damaged)?;
    let mut meta = about.meta();
    match added(data, form) {
        Some(added) => meta.added = added,
        None => meta.quality.push("the notes and views in the page are damaged; skipped".into()),
    }
    Ok(Spans { meta, names: about.names.into_owned(), spans })
}

/// Returns what was added to a page, null for nothing; `None` if it is damaged.
fn added(page: &str, form: Form) -> Option<Value> {
    let Some((_, rest)) = page.split_once(ADDED) else { return (form == Form::Bare).then_some(Value::Null) };
    let (sum, text) = rest.split_once('<')?.0.split_once('>')?;
    if form == Form::Checked && sum != checksum(text) {
        return None;
    }
    // Older pages have an empty object for nothing.
    serde_json::from_str(text).ok().map(|added| if added == serde_json::json!({}) { Value::Null } else { added })
}

fn of_original(page: &str) -> Result<Spans, NotLifted> {
    let between = page.split_once(ORIGINAL[0]).and_then(|(_, rest)| Some(rest.split_once(ORIGINAL[1])?.0));
    if page.matches(ORIGINAL[0]).count() > 1 {
        return Err(NotLifted::Several);
    }
    // The text is one line; the program of the page follows it.
    let begun = between.ok_or(NotLifted::NotAPage)?.split_once('\'');
    let quoted = begun.and_then(|(_, rest)| rest.lines().next()?.rsplit_once('\''));
    let (text, _) = quoted.ok_or(NotLifted::Unreadable(None))?;
    source::json::read(&mut lines(text).as_bytes()).map_err(|_| NotLifted::Unreadable(None))
}

/// Restores the lines of a JSON whose line ends have become blanks: keys are indented by a blank, spans are not.
fn lines(text: &str) -> String {
    let text = text.replace(",  \"", ",\n \"").replace(" \"events\" : [ ", "\n\"events\" : [\n");
    text.replace("{  \"", "{\n \"").replace("], ", "],\n").replace("] ]", "]\n]")
}
