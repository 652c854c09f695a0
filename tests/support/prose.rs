// SPDX-License-Identifier: BSD-3-Clause
//! The text of a file for readers: all of it, or the comments and strings of its code.
//!
//! The result has a line for each line of the file. Code, quotes and text in backquotes become `#`, the marks of
//! comments become spaces, so that a phrase is found even if a line ends within it.

use std::iter::Peekable;
use std::str::Chars;

/// Ways in which a kind of file separates prose from code.
#[derive(Clone, Copy, PartialEq)]
enum Syntax {
    /// All of it is prose, but for what backquotes and fences enclose.
    Text,
    /// `//`, `/* */`, `"`; `'` encloses a character.
    Rust,
    /// `//`, `/* */` and three kinds of quotes.
    Script,
    /// `#` up to the end of the line, `"` and `'`.
    Shell,
}

/// The prose of a file with this name; none if it is of a kind that holds no prose.
pub fn of(name: &str, text: &str) -> Option<String> {
    let syntax = match name.rsplit('.').next()? {
        "md" | "html" | "json" | "txt" | "1" | "5" | "7" => Syntax::Text,
        "rs" | "c" | "cc" | "h" | "asl" => Syntax::Rust,
        "js" | "mjs" | "css" => Syntax::Script,
        "py" | "sh" | "toml" | "config" | "rules" | "pl" | "run" | "Kbuild" | "Makefile" => Syntax::Shell,
        _ => return None,
    };
    let mut reader = Reader { rest: text.chars().peekable(), out: String::with_capacity(text.len()) };
    match syntax {
        Syntax::Text => reader.document(),
        _ => reader.code(syntax),
    }
    Some(reader.out)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl Reader<'_> {
    /// Takes `c` as something that is not prose.
    fn blank(&mut self, c: char) {
        self.out.push(if c.is_whitespace() { c } else { '#' });
    }

    /// Returns whether the next character is `c`, and takes it if so.
    fn take(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    fn document(&mut self) {
        let mut fenced = false;
        while self.rest.peek().is_some() {
            let fence = self.rest.clone().skip_while(|&c| c == ' ').take(3).eq("```".chars());
            fenced ^= fence;
            while let Some(c) = self.rest.next_if(|&c| c != '\n') {
                match c {
                    _ if fence || fenced => self.blank(c),
                    '`' => self.quoted_code(),
                    _ => self.out.push(c),
                }
            }
            self.out.extend(self.rest.next());
        }
    }

    /// The rest of quoted code, which ends with the line at the latest.
    fn quoted_code(&mut self) {
        self.out.push('#');
        while let Some(c) = self.rest.next_if(|&c| c != '\n') {
            self.blank(c);
            if c == '`' {
                break;
            }
        }
    }

    fn code(&mut self, syntax: Syntax) {
        while let Some(c) = self.rest.next() {
            match c {
                '#' if syntax == Syntax::Shell => self.line_comment(),
                '/' if syntax != Syntax::Shell && self.take('/') => {
                    self.out.push_str("  ");
                    self.line_comment();
                }
                '/' if syntax != Syntax::Shell && self.take('*') => {
                    self.out.push_str("  ");
                    self.block_comment();
                }
                'r' if syntax == Syntax::Rust => self.raw_string(),
                '"' => self.string(c, syntax == Syntax::Rust),
                '`' if syntax == Syntax::Script => self.string(c, true),
                '\'' if syntax == Syntax::Rust => self.character(),
                '\'' => self.string(c, false),
                _ => self.blank(c),
            }
        }
    }

    fn line_comment(&mut self) {
        while let Some(c) = self.rest.next_if(|&c| c != '\n') {
            match c {
                '/' | '!' | '*' | '#' if self.out.ends_with([' ', '\n']) => self.out.push(' '),
                '`' => self.quoted_code(),
                _ => self.out.push(c),
            }
        }
    }

    fn block_comment(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '*' if self.take('/') => return self.out.push_str("  "),
                '*' => self.out.push(' '),
                '`' => self.quoted_code(),
                _ => self.out.push(c),
            }
        }
    }

    /// A string up to `end`, or up to the end of the line unless it may have `lines`.
    fn string(&mut self, end: char, lines: bool) {
        self.out.push('#');
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => {
                    self.out.push(' ');
                    if let Some(c) = self.rest.next() {
                        self.out.push(if c == '\n' { c } else { ' ' });
                    }
                }
                '\n' if !lines => return self.out.push(c),
                '`' if end != '`' => self.out.push('#'),
                _ if c == end => return self.out.push('#'),
                _ => self.out.push(c),
            }
        }
    }

    /// A raw string whose `r` has been read, or just that letter.
    fn raw_string(&mut self) {
        let in_word = self.out.ends_with(|c: char| c == '_' || c.is_alphanumeric());
        let hashes = self.rest.clone().take_while(|&c| c == '#').count();
        if in_word || self.rest.clone().nth(hashes) != Some('"') {
            return self.out.push('#');
        }
        let end = format!("\"{}", "#".repeat(hashes));
        (0..hashes + 2).for_each(|_| self.out.push('#'));
        self.rest.by_ref().take(hashes + 1).for_each(drop);
        while let Some(c) = self.rest.next() {
            if c == '"' && self.rest.clone().take(hashes).eq(end[1..].chars()) {
                self.rest.by_ref().take(hashes).for_each(drop);
                self.out.push_str(&"#".repeat(hashes + 1));
                break;
            }
            self.out.push(c);
        }
    }

    /// A character, or the tick of a lifetime.
    fn character(&mut self) {
        self.out.push('#');
        let mut ahead = self.rest.clone();
        let escaped = ahead.next() == Some('\\');
        if escaped || ahead.next() == Some('\'') {
            while let Some(c) = self.rest.next() {
                self.blank(c);
                match c {
                    '\\' => drop(self.rest.next().map(|c| self.blank(c))),
                    '\'' => break,
                    _ => {}
                }
            }
        }
    }
}
