// SPDX-License-Identifier: BSD-3-Clause
//! The modules of a crate use one another in one direction: no two are in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kutrace_tests::tree;

/// The crates' first files.
const CRATES: [&str; 10] = [
    "kernel-module/format/src/lib.rs",
    "kernel-module/recorder/src/lib.rs",
    "kernel-module/kutrace_main.rs",
    "kutrace-control/cli/src/lib.rs",
    "kutrace-control/kutrace/src/lib.rs",
    "kutrace-control/tracing/src/lib.rs",
    "kutrace-control/src/lib.rs",
    "postprocess/src/lib.rs",
    "postprocess/tools/src/lib.rs",
    "postprocess/parquet/src/lib.rs",
];

/// Modules by name, each with those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The text of a module without its comments and unit tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The modules that code names: after each `crate::`, one or several in braces.
fn named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| text.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let names = |rest: &str| match rest.strip_prefix('{').and_then(|rest| rest.split('}').next()) {
        Some(several) => several.split(',').map(word).collect(),
        None => vec![word(rest)],
    };
    code.split("crate::").skip(1).flat_map(names).collect()
}

/// The modules that a crate's first file declares, with their first files.
fn declared(first: &Path) -> Vec<(String, PathBuf)> {
    let (text, folder) = (fs::read_to_string(first).unwrap(), first.parent().unwrap());
    let mut path = None;
    let mut modules = Vec::new();
    for line in text.lines() {
        let said = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]"));
        path = said.map(ToString::to_string).or(path);
        let name =
            line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        if let Some(name) = name {
            let beside = folder.join(path.take().unwrap_or(format!("{name}.rs")));
            let file = if beside.exists() { beside } else { folder.join(name).join("mod.rs") };
            modules.push((name.to_string(), file));
        }
    }
    modules
}

/// The other modules that each module of a crate uses.
fn uses(first: &Path) -> Uses {
    let modules = declared(first);
    let names: BTreeSet<String> = modules.iter().map(|(name, _)| name.clone()).collect();
    let below = |file: &Path| match file.file_name().is_some_and(|name| name == "mod.rs") {
        true => file.parent().unwrap().to_owned(),
        false => file.with_extension(""),
    };
    let used = |(name, file): (String, PathBuf)| {
        let mut files = vec![file.clone()];
        files.extend(tree::files(&below(&file), &["tests.rs"]));
        let texts = files.iter().map(|file| code(&fs::read_to_string(file).unwrap()));
        let mut used: BTreeSet<String> = texts.flat_map(|text| named(&text)).filter(|to| names.contains(to)).collect();
        used.remove(&name);
        (name, used)
    };
    modules.into_iter().map(used).collect()
}

/// The modules that are left when those that use nothing that is left are taken away, again and again.
fn circles(mut uses: Uses) -> Uses {
    loop {
        let before = uses.len();
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.retain(|_, used| used.iter().any(|to| left.contains(to)));
        if uses.len() == before {
            return uses;
        }
    }
}

#[test]
fn modules_use_one_another_in_one_direction() {
    for first in CRATES {
        let uses = uses(&tree::root().join(first));
        assert!(uses.len() > 3, "{first}: only {} modules", uses.len());
        let circles = circles(uses);
        assert!(circles.is_empty(), "{first}: these use one another: {circles:#?}");
    }
}

/// Rooms of postprocess, each with the earlier ones that it must not know, since its input is enough.
const WALLS: [(&str, &[&str]); 6] = [
    ("event", &["frame"]),
    ("raw", &["frame", "perfetto"]),
    ("span", &["raw", "machine", "perfetto"]),
    ("why", &["raw", "machine", "source", "inspect", "frame", "perfetto"]),
    // A page is read where its columns are made, and one of the original's has its JSON: that is the source's.
    ("sink", &["raw", "machine", "inspect"]),
    ("inspect", &["frame", "perfetto"]),
];

#[test]
fn the_rooms_of_postprocess_know_only_those_before_them_and_not_all_of_these() {
    let first = tree::root().join("postprocess/src/lib.rs");
    let uses = uses(&first);
    let order: Vec<String> = declared(&first).into_iter().map(|(name, _)| name).collect();
    for (n, room) in order.iter().enumerate() {
        for used in &uses[room] {
            assert!(order[..n].contains(used), "{room} uses {used}, which comes after it");
            let walls = WALLS.iter().find(|(of, _)| of == room).map_or(&[][..], |(_, walls)| walls);
            assert!(!walls.contains(&used.as_str()), "{room} uses {used}");
        }
    }
    assert!(WALLS.iter().all(|(of, walls)| walls.iter().chain([of]).all(|room| uses.contains_key(*room))));
}

#[test]
fn a_circle_is_seen_and_what_leads_into_it() {
    let uses = |uses: &[(&str, &str)]| -> Uses {
        uses.iter().map(|(name, used)| ((*name).into(), named(&code(used)))).collect()
    };
    let line = uses(&[("a", "use crate::b::C;"), ("b", "use crate::{c, d::{E, F}};"), ("c", ""), ("d", "// crate::a")]);
    assert!(circles(line).is_empty());
    let round = uses(&[("a", "use crate::b;"), ("b", "crate::c::d()"), ("c", "use crate::{\n    b,\n};"), ("d", "")]);
    assert_eq!(circles(round).keys().collect::<Vec<_>>(), ["a", "b", "c"]);
}
