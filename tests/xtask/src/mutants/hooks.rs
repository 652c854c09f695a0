// SPDX-License-Identifier: BSD-3-Clause
//! The table of the hooks, and that it is about the hooks that there are.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{bail, Context, Result};

use super::table::{self, Entry, Kind};
use crate::kernel::schemata::Site;
use crate::kernel::series::Series;
use crate::place;

/// One entry for each hook, in the order of files and lines.
pub fn table() -> Result<Vec<Entry>> {
    table::read(Kind::Hook)
}

/// Fails unless the table has exactly these hooks, in this order: their numbers are those of the kernel.
pub fn check(sites: &[Site]) -> Result<()> {
    let wanted: Vec<String> = sites.iter().map(Site::to_string).collect();
    let found: Vec<String> = table()?.into_iter().map(|entry| entry.what).collect();
    if wanted != found {
        bail!("tests/mutants/hooks.txt: the hooks in their order are:\n{}", wanted.join("\n"));
    }
    Ok(())
}

/// Places of a series' hooks of the table, FILE FUNCTION CALL, in no order.
fn places(series: Series) -> Result<Vec<String>> {
    let mut places: Vec<String> = table()?.into_iter().map(|entry| entry.what).collect();
    if series == Series::USUAL {
        return Ok(places);
    }
    let path = place::checkout().join("tests/mutants").join(format!("{}.txt", series.name()));
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for pair in lines.chunks(2) {
        let [from, to] = pair else { bail!("{}: {}: and where?", path.display(), pair[0]) };
        let found = places.iter_mut().find(|place| place == from);
        *found.with_context(|| format!("{}: {from}: not in hooks.txt", path.display()))? = to.trim().to_owned();
    }
    Ok(places)
}

/// Fails unless a tree with the series has each hook in the function where the table has it.
pub fn check_places(series: Series, sites: &[Site]) -> Result<()> {
    let mut counts: BTreeMap<String, i32> = BTreeMap::new();
    places(series)?.into_iter().for_each(|place| *counts.entry(place).or_default() += 1);
    sites.iter().for_each(|site| *counts.entry(site.to_string()).or_default() -= 1);
    counts.retain(|_, count| *count != 0);
    match counts.is_empty() {
        true => Ok(()),
        false => {
            bail!("{}: hooks more (+) or less (-) often in tests/mutants than in the tree: {counts:#?}", series.name())
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::kernel::{files_in, schemata};
    use crate::mutants::table::Claims;

    /// File and call of every hook of the series, counted: one that a later patch removes is none.
    fn hooks_of_the_series(series: Series) -> BTreeMap<(String, String), i32> {
        let patches = files_in(&series.patches(), ".patch").unwrap();
        let hooked = schemata::hooked(&patches).unwrap();
        let (mut counts, mut function_is_ours) = (BTreeMap::new(), false);
        for patch in &patches {
            let mut file = "";
            let text = fs::read_to_string(patch).unwrap();
            for line in text.lines() {
                if let Some(name) = line.strip_prefix("+++ b/") {
                    file = name;
                } else if line.starts_with("@@") || line == "+}" {
                    function_is_ours = false;
                } else if line.starts_with("+static void kutrace_") || line.starts_with("+void kutrace_") {
                    function_is_ours = true;
                }
                let change = if line.starts_with('+') { 1 } else { -1 };
                let call = line.strip_prefix(['+', '-']).and_then(schemata::call).filter(|_| !function_is_ours);
                if let Some(call) = call.filter(|_| hooked.contains(file)) {
                    *counts.entry((file.to_owned(), call.to_owned())).or_default() += change;
                }
            }
        }
        counts.retain(|_, count| *count != 0);
        counts
    }

    #[test]
    fn every_hook_of_the_series_is_claimed_or_excused_and_no_claim_is_stale() {
        let mut counts = hooks_of_the_series(Series::USUAL);
        assert!(counts.values().sum::<i32>() > 90, "{counts:?}");
        for entry in table().unwrap() {
            let [file, _function, call] = entry.what.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{}: not FILE FUNCTION CALL", entry.what)
            };
            *counts.entry((file.to_owned(), call.to_owned())).or_default() -= 1;
        }
        counts.retain(|_, count| *count != 0);
        assert!(
            counts.is_empty(),
            "more (+) or less (-) often in the series than in tests/mutants/hooks.txt: {counts:?}"
        );
    }

    #[test]
    fn the_series_hook_the_same_places() {
        let mut counts = BTreeMap::new();
        for place in places(Series::V7).unwrap() {
            let [file, _function, call] = place.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{place}") };
            *counts.entry((file.to_owned(), call.to_owned())).or_default() += 1;
        }
        for (hook, times) in hooks_of_the_series(Series::V7) {
            *counts.entry(hook).or_default() -= times;
        }
        counts.retain(|_, count: &mut i32| *count != 0);
        assert!(counts.is_empty(), "more (+) or less (-) often in tests/mutants than in patches/v7.x: {counts:?}");
    }

    /// A file as the series change it.
    fn made(series: Series, file: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut git = std::process::Command::new("git");
        git.arg("apply").arg(format!("--include={file}")).args(files_in(&series.patches(), ".patch").unwrap());
        git.env("GIT_CEILING_DIRECTORIES", dir.path().parent().unwrap()).env_remove("GIT_DIR");
        assert!(git.current_dir(dir.path()).status().unwrap().success(), "{file}");
        fs::read_to_string(dir.path().join(file)).unwrap()
    }

    #[test]
    fn the_series_have_the_same_table_and_document() {
        for file in ["include/linux/kutrace.h", "kernel/kutrace/Kconfig", "Documentation/trace/kutrace.rst"] {
            assert!(made(Series::USUAL, file) == made(Series::V7, file), "{file}");
        }
    }

    #[test]
    fn only_a_kernel_for_several_cpus_can_have_the_hooks() {
        let text = made(Series::USUAL, "kernel/kutrace/Kconfig");
        let option = text.split("config ").find(|option| option.starts_with("KUTRACE\n")).expect("the option");
        let needs: Vec<&str> = option.lines().filter_map(|line| line.trim().strip_prefix("depends on ")).collect();
        assert!(needs.join(" && ").split(" && ").any(|need| need == "SMP"), "{option}");
        assert!(!text.contains("select "), "{text}");
    }

    #[test]
    fn every_claim_names_a_test_that_there_is() {
        let folder = place::checkout().join("tests/vm");
        for entry in table().unwrap() {
            let Claims::Tests(tests) = &entry.claims else { continue };
            for test in tests {
                let (module, name) = test.split_once("::").unwrap();
                let text = fs::read_to_string(folder.join(module).with_extension("rs")).unwrap();
                assert!(text.contains(&format!("#[test]\nfn {name}()")), "{}: {test}", entry.what);
            }
        }
    }
}
