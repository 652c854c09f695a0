// SPDX-License-Identifier: BSD-3-Clause
//! The page's program: the modules that `main.js` imports, and what they import, as scripts of one page.
//!
//! A page opened from `file://` can load no other file. So each module becomes a script element, without its imports,
//! exports and comments but with its line numbers, in the order in which modules run: each after those that it imports.
//! The scripts share one scope, so names at the top of modules must differ, and imports cannot rename.

use std::collections::HashMap;
use std::io;

/// A script: the path of its module below the folder of `main.js`, and its text.
pub type Script = (String, String);

/// Returns the scripts for the module `main`, which is the last of them. `read` returns the text of the module with a
/// path.
///
/// # Errors
/// `path:line: fact` of the first module that cannot be read or joined.
pub fn join(main: &str, read: impl Fn(&str) -> io::Result<String>) -> Result<Vec<Script>, String> {
    let mut joined = Joined { read, importing: Vec::new(), scripts: Vec::new(), definers: HashMap::new() };
    joined.add(main, "the page")?;
    Ok(joined.scripts)
}

struct Joined<Read> {
    read: Read,
    /// Modules whose imports are being followed, each imported by the one before.
    importing: Vec<String>,
    scripts: Vec<Script>,
    /// Place where each name at the top of a module is defined.
    definers: HashMap<String, String>,
}

impl<Read: Fn(&str) -> io::Result<String>> Joined<Read> {
    /// Adds a module after all its imports, unless it has been added; `importer` is the place that imports it.
    fn add(&mut self, path: &str, importer: &str) -> Result<(), String> {
        if self.scripts.iter().any(|(known, _)| known == path) {
            return Ok(());
        }
        if self.importing.iter().any(|other| other == path) {
            return Err(format!("{importer}: imports {path}, by which it is imported"));
        }
        let text = (self.read)(path).map_err(|error| format!("{importer}: imports {path}: {error}"))?;
        self.importing.push(path.into());
        let mut script = String::from("\"use strict\"; ");
        let mut lines = (1..).zip(text.lines());
        let mut within = false;
        while let Some((number, line)) = lines.next() {
            let at = |fact: &str| format!("{path}:{number}: {fact}");
            if line.starts_with("import ") {
                let mut statement = line.to_string();
                while !statement.ends_with(';') {
                    statement.push_str(lines.next().ok_or_else(|| at("import without an end"))?.1);
                    script.push('\n');
                }
                let from = imported(&statement).ok_or_else(|| at("not `import { NAME } from \"./PATH\";`"))?;
                self.add(&resolved(path, from), &format!("{path}:{number}"))?;
            } else if is_comment(line, &mut within) {
                // Comments, and the types in them, are for readers and checkers of the modules.
            } else {
                let own = line.strip_prefix("export ").unwrap_or(line);
                let name = defined(own);
                if own.len() < line.len() && name.is_none() {
                    return Err(at("exports something else than a function, a class, a const or a let"));
                }
                if let Some(other) = name.and_then(|name| self.definers.insert(name.into(), path.into())) {
                    return Err(at(&format!("{} is defined in {other}, too", name.unwrap_or_default())));
                }
                script.push_str(own);
            }
            script.push('\n');
        }
        self.importing.pop();
        self.scripts.push((path.into(), script));
        Ok(())
    }
}

/// True if a line is only a comment or part of one; `within` is true inside a comment. Licences stay.
fn is_comment(line: &str, within: &mut bool) -> bool {
    let text = line.trim();
    if *within || text.starts_with("/*") {
        let end = text.find("*/");
        *within = end.is_none();
        // Code may follow, as after the type of an expression in brackets.
        return end.is_none_or(|at| at + 2 == text.len());
    }
    text.starts_with("//") && !text.contains("SPDX-License-Identifier")
}

/// Returns the path of an import, if it imports plain names.
fn imported(statement: &str) -> Option<&str> {
    let (names, from) = statement.strip_prefix("import {")?.split_once("} from \"")?;
    let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let path = from.strip_suffix("\";")?;
    (names.split(',').all(|name| plain(name.trim())) && path.starts_with('.')).then_some(path)
}

/// Resolves a path that the module `from` imports against the folder of `main.js`.
fn resolved(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Returns the name that a line defines at the top of a module.
fn defined(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest =
        ["function ", "function* ", "class ", "const ", "let "].iter().find_map(|word| line.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(modules: &[(&str, &str)]) -> Result<Vec<Script>, String> {
        join("main.js", |path| {
            let module = modules.iter().find(|(name, _)| *name == path);
            module.map(|(_, text)| (*text).to_string()).ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    #[test]
    fn modules_run_after_those_that_they_import_and_keep_their_lines() {
        let scripts = joined(&[
            ("main.js", "// SPDX-License-Identifier: main\nimport { one } from \"./data/one.js\";\nimport {\n  two,\n} from \"./data/two.js\";\none(two);\n"),
            ("data/one.js", "import { two } from \"./two.js\";\nexport async function one() {}\nexport function* own() {}\n"),
            ("data/two.js", "import { three } from \"../three.js\";\n/** @import {Two} from \"./one.js\" */\nexport const two = three;\n"),
            ("three.js", "// What\n// it is.\n/**\n * A number.\n * @type {number}\n */\nexport let three = /** @type {any} */ (3); // three\n  /** @type {any} */ (three).x = 1;\n"),
        ]);
        let expected = [
            ("three.js", "\"use strict\"; \n\n\n\n\n\nlet three = /** @type {any} */ (3); // three\n  /** @type {any} */ (three).x = 1;\n"),
            ("data/two.js", "\"use strict\"; \n\nconst two = three;\n"),
            ("data/one.js", "\"use strict\"; \nasync function one() {}\nfunction* own() {}\n"),
            ("main.js", "\"use strict\"; // SPDX-License-Identifier: main\n\n\n\n\none(two);\n"),
        ];
        assert_eq!(scripts.unwrap(), expected.map(|(path, text)| (path.to_string(), text.to_string())));
    }

    #[test]
    fn what_cannot_be_joined_is_refused_with_its_place() {
        let refused = |a: &str, b: &str| {
            let main = "import { a } from \"./a.js\";\n";
            joined(&[("main.js", main), ("a.js", a), ("b.js", b)]).unwrap_err()
        };
        let import_b = "import { b } from \"./b.js\";\n";
        for (a, b, fact) in [
            ("import { c } from \"./c.js\";", "", "a.js:1: imports c.js: entity not found"),
            (import_b, "\nimport { a } from \"./a.js\";", "b.js:2: imports a.js, by which it is imported"),
            (import_b, "\n\nimport { a as c } from \"./c.js\";", "b.js:3: not `import { NAME } from \"./PATH\";`"),
            ("import * as b from \"./b.js\";", "", "a.js:1: not `import { NAME } from \"./PATH\";`"),
            ("import { b } from \"b\";", "", "a.js:1: not `import { NAME } from \"./PATH\";`"),
            ("import {\n  b,\n", "", "a.js:1: import without an end"),
            ("export default 1;", "", "a.js:1: exports something else than a function, a class, a const or a let"),
            (
                "const a = 1;\nexport { a };",
                "",
                "a.js:2: exports something else than a function, a class, a const or a let",
            ),
            ("import { b } from \"./b.js\";\nclass b {}", "export const b = 1;", "a.js:2: b is defined in b.js, too"),
        ] {
            assert_eq!(refused(a, b), fact);
        }
    }
}
