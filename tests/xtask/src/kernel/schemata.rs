// SPDX-License-Identifier: BSD-3-Clause
//! The kernel of which every hook can be removed: each line that calls one checks first whether it is the one that
//! `kutrace_mutant=N` on the kernel's command line skips. So one build serves for the removal of any of them.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Places where the number of the hook to skip is declared, defined and set.
const DECLARED_IN: &str = "include/linux/kutrace.h";
const DECLARED_BEFORE: &str = "extern u8 kutrace_idle_hint;";
const DECLARATION: &str = "extern unsigned int kutrace_mutant;\n";
const DEFINED_IN: &str = "kernel/kutrace/kutrace.c";
const DEFINITION: &str = "
#include <linux/moduleparam.h>
unsigned int kutrace_mutant __ro_after_init;
EXPORT_SYMBOL_GPL(kutrace_mutant);
core_param(kutrace_mutant, kutrace_mutant, uint, 0444);
";

/// A line of the kernel that calls a hook.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Site {
    /// Relative to the tree.
    pub file: String,
    /// The function or macro that it is in.
    pub function: String,
    /// The call without the semicolon.
    pub call: String,
}

impl fmt::Display for Site {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} {} {}", self.file, self.function, self.call)
    }
}

/// Changes the tree with the series so that each hook can be skipped; the hooks by their numbers, the first is 1.
pub fn plant(tree: &Path, patches: &[PathBuf]) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    for file in hooked(patches)? {
        edit(tree, &file, |text| guard(&file, text, &mut sites))?;
    }
    let declared = format!("{DECLARATION}{DECLARED_BEFORE}");
    edit(tree, DECLARED_IN, |text| text.replacen(DECLARED_BEFORE, &declared, 1))?;
    edit(tree, DEFINED_IN, |text| format!("{text}{DEFINITION}"))?;
    Ok(sites)
}

/// The hooks of a tree with the series, which stays as it is.
pub fn sites(tree: &Path, patches: &[PathBuf]) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    for file in hooked(patches)? {
        let path = tree.join(&file);
        guard(&file, &fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?, &mut sites);
    }
    Ok(sites)
}

fn edit(tree: &Path, file: &str, change: impl FnOnce(&str) -> String) -> Result<()> {
    let path = tree.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    fs::write(&path, change(&text)).with_context(|| format!("{}", path.display()))
}

/// The files that the patches put hooks into, in the order of their names: the hooks themselves are elsewhere.
pub fn hooked(patches: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for patch in patches {
        let text = fs::read_to_string(patch).with_context(|| format!("{}", patch.display()))?;
        files.extend(text.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::to_owned));
    }
    files.retain(|file| !file.ends_with("/kutrace.h") && !file.starts_with("kernel/kutrace/"));
    files.retain(|file| file.ends_with(".c") || file.ends_with(".h"));
    files.retain(|file| !file.starts_with("tools/"));
    Ok(files)
}

/// The text of a file with every hook guarded.
fn guard(file: &str, text: &str, sites: &mut Vec<Site>) -> String {
    let (mut function, mut macro_name) = ("", "");
    let mut out = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("#define ") {
            macro_name = name_before_parenthesis(rest).unwrap_or(rest);
        } else if let Some(name) = begun(line) {
            function = name;
        }
        let place = if line.ends_with('\\') { macro_name } else { function };
        // Functions of the hooks' own record nothing by themselves.
        match call(line).filter(|_| !place.starts_with("kutrace_")) {
            Some(call) => {
                sites.push(Site { file: file.to_owned(), function: place.to_owned(), call: call.to_owned() });
                out.push_str(&guarded(line, sites.len()));
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// The call of a hook that a line consists of.
pub fn call(line: &str) -> Option<&str> {
    let code = line.strip_prefix('\t')?.trim().trim_end_matches('\\').trim_end();
    let call = code.split_once(" = ").map_or(code, |(_, call)| call);
    call.strip_suffix(';').filter(|call| call.starts_with("kutrace_") && call.contains('('))
}

/// The line with its hook skipped for one number. Its return value is then the unchanged variable if the hook is given
/// that, and no record otherwise.
fn guarded(line: &str, number: usize) -> String {
    let (indent, code) = line.split_at(line.len() - line.trim_start().len());
    match code.split_once(" = ") {
        Some((variable, call)) => {
            let is_given = call.split(['(', ',', ')']).skip(1).any(|argument| argument.trim() == variable);
            let other = if is_given { variable } else { "0" };
            format!("{indent}{variable} = kutrace_mutant == {number} ? {other} : {call}")
        }
        None => format!("{indent}if (kutrace_mutant != {number}) {code}"),
    }
}

/// The function that begins with this line, also by a macro whose argument names it.
fn begun(line: &str) -> Option<&str> {
    let name = name_before_parenthesis(line)?;
    if line.ends_with(';') || !line.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    match name.strip_prefix("DEFINE_") {
        Some(_) => line.split(['(', ',', ')']).nth(1),
        None => Some(name),
    }
}

fn name_before_parenthesis(line: &str) -> Option<&str> {
    let head = line.split_once('(')?.0;
    head.rsplit([' ', '\t', '*']).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_of_a_hook_asks_for_its_number() {
        let text = "\
#define DEFINE_IDTENTRY(func)\t\\
{\t\\
\tkutrace_trap(kutrace_vector_##func);\t\\
}
DEFINE_IDTENTRY_RAW(exc_page_fault)
{
\tif (user)
\t\tkutrace_trap(X86_TRAP_PF);
}
static bool do_call(struct pt_regs *regs,
\t\t    int nr)
{
\tunr = kutrace_syscall(regs, unr);
\ttold = kutrace_told(work);
\tti_work = kutrace_exit_work(ti_work);
}
void kutrace_record(int nr)
{
\tkutrace_inner(nr);
}
";
        let mut sites = Vec::new();
        let out = guard("a.h", text, &mut sites);
        let shown: Vec<String> = sites.iter().map(Site::to_string).collect();
        assert_eq!(
            shown,
            [
                "a.h DEFINE_IDTENTRY kutrace_trap(kutrace_vector_##func)",
                "a.h exc_page_fault kutrace_trap(X86_TRAP_PF)",
                "a.h do_call kutrace_syscall(regs, unr)",
                "a.h do_call kutrace_told(work)",
                "a.h do_call kutrace_exit_work(ti_work)",
            ]
        );
        for line in [
            "\tif (kutrace_mutant != 1) kutrace_trap(kutrace_vector_##func);\t\\\n",
            "\t\tif (kutrace_mutant != 2) kutrace_trap(X86_TRAP_PF);\n",
            "\tunr = kutrace_mutant == 3 ? unr : kutrace_syscall(regs, unr);\n",
            "\ttold = kutrace_mutant == 4 ? 0 : kutrace_told(work);\n",
            "\tti_work = kutrace_mutant == 5 ? ti_work : kutrace_exit_work(ti_work);\n",
            "\n\tkutrace_inner(nr);\n",
        ] {
            assert!(out.contains(line), "{line}{out}");
        }
    }
}
