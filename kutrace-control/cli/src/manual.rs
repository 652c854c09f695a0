// SPDX-License-Identifier: BSD-3-Clause
//! A tool's manual page and completions, made from the definition of its command line.

use std::path::PathBuf;

use clap::{Arg, Command};
use clap_complete::{generate, Shell};
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;

const STATUS: [(&str, &str); 5] = [
    ("0", "Done."),
    ("1", "Failed; standard error names the place and the fact."),
    ("2", "Wrong usage."),
    ("3", "Done, but events were lost while recording, or data are damaged or missing."),
    ("130", "Ended by Ctrl-C or another signal, after saving all that could be saved."),
];

/// Files that a package installs for `command`, by path below `/usr/share` or the like: a page for the command and for
/// each of its visible subcommands, and completions for bash, zsh and fish.
pub fn files(mut command: Command) -> Vec<(PathBuf, Vec<u8>)> {
    command.build();
    let name = command.get_name().to_string();
    let mut files = vec![(page_path(&name), page(&command))];
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let full = format!("{name}-{}", sub.get_name());
        files.push((page_path(&full), page(&sub.clone().name(full))));
    }
    for (shell, path) in [
        (Shell::Bash, format!("bash-completion/completions/{name}")),
        (Shell::Zsh, format!("zsh/site-functions/_{name}")),
        (Shell::Fish, format!("fish/vendor_completions.d/{name}.fish")),
    ] {
        let mut text = Vec::new();
        generate(shell, &mut command, &name, &mut text);
        files.push((path.into(), text));
    }
    files
}

fn page_path(name: &str) -> PathBuf {
    format!("man/man1/{name}.1").into()
}

/// A page of section 1. The end of the help, after `Examples:`, is a section of its own.
fn page(command: &Command) -> Vec<u8> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = help.split_once("Examples:\n").unwrap_or((&help, ""));
    let man = Man::new(command.clone()).manual("KUtrace");
    let mut out = Vec::new();
    let mut render = || -> std::io::Result<()> {
        man.render_title(&mut out)?;
        man.render_name_section(&mut out)?;
        man.render_synopsis_section(&mut out)?;
        man.render_description_section(&mut out)?;
        if command.get_arguments().any(|arg: &Arg| !arg.is_hide_set()) {
            man.render_options_section(&mut out)?;
        }
        if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
            man.render_subcommands_section(&mut out)?;
        }
        sections(notes, examples).to_writer(&mut out)
    };
    // Writing to a vector cannot fail.
    let _ = render();
    out
}

fn sections(notes: &str, examples: &str) -> Roff {
    let mut roff = Roff::new();
    // A command with a different meaning of its status describes it in a line of its own.
    let own = notes.lines().find_map(|line| line.strip_prefix("Status: "));
    let status: Vec<(&str, &str)> = match own {
        Some(own) => own.split(", ").filter_map(|status| status.split_once(' ')).collect(),
        None => STATUS.to_vec(),
    };
    let told = |line: &&str| line.is_empty() || line.starts_with("Exit status") || line.starts_with("Status: ");
    let notes: Vec<&str> = notes.lines().filter(|line| !told(line)).collect();
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]).text([roman(notes.join(" "))]);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in status {
        roff.control("TP", []);
        roff.text([bold(status)]).text([roman(meaning)]);
    }
    roff.control("SH", ["ENVIRONMENT"]);
    roff.control("TP", []);
    roff.text([bold("NO_COLOR")]).text([roman("Disables colours if set.")]);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line.trim_start())]);
        }
        roff.control("fi", []);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("kutrace"), roman("(7), "), bold("kutrace-format"), roman("(5)")]);
    roff
}
