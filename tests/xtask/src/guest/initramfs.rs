// SPDX-License-Identifier: BSD-3-Clause
//! Builds the guest's first file system: a static busybox, `init.sh`, and the job as two small shell files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result};

use super::cpio::Archive;
use super::Guest;
use crate::place;

const BUSYBOX: &str = "/bin/busybox";
/// Programs that init.sh calls; and a shell, for `sh`.
const APPLETS: &[&str] = &[
    "sh", "mount", "umount", "mkdir", "mkfifo", "ip", "hostname", "usleep", "sleep", "insmod", "chroot", "tee", "wc",
    "cat", "ln",
];
/// Folders of the host that a tmpfs of the guest covers.
const COVERED: &[&str] = &["/tmp", "/run", "/var/tmp", "/mnt", "/dev"];

/// Instructions for init.sh.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    /// Set everything up and run CMD.
    Command,
    /// Report at once: this kernel boots on this machine.
    Probe,
}

/// The archive for `guest`.
pub fn build(guest: &Guest, errand: Errand) -> Result<Vec<u8>> {
    let busybox = fs::read(BUSYBOX).with_context(|| BUSYBOX)?;
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "host", "root", "job", "modules"] {
        archive.folder(folder);
    }
    archive.console();
    archive.program("bin/busybox", &busybox);
    for applet in APPLETS {
        archive.link(&format!("bin/{applet}"), "busybox");
    }
    archive.program("init", include_bytes!("init.sh"));
    for module in &guest.first {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.program(&format!("modules/{name}"), &fs::read(module).with_context(|| module.display().to_string())?);
    }
    if let Some((module, _)) = &guest.early {
        archive.program("early.ko", &fs::read(module).with_context(|| module.display().to_string())?);
    }
    archive.program("job/settings", &settings(guest, errand));
    archive.program("job/command", &command(guest));
    Ok(archive.finish())
}

fn settings(guest: &Guest, errand: Errand) -> Vec<u8> {
    let module = guest.load.as_deref().unwrap_or(Path::new(""));
    let visible: Vec<String> = [place::checkout(), place::target()]
        .iter()
        .filter(|dir| COVERED.iter().any(|covered| dir.starts_with(covered)))
        .map(|dir| dir.display().to_string())
        .collect();
    let probe = if errand == Errand::Probe { "yes" } else { "" };
    let early = guest.early.as_ref().map_or("", |(_, parameters)| parameters);
    let mut text = Vec::new();
    for (name, value) in [
        ("MODULE", module.as_os_str()),
        ("VISIBLE", OsStr::new(&visible.join(" "))),
        ("PROBE", OsStr::new(probe)),
        ("EARLY", OsStr::new(early)),
    ] {
        assign(&mut text, name, value);
    }
    text
}

/// Shell text that sets CMD's environment and becomes CMD.
fn command(guest: &Guest) -> Vec<u8> {
    let mut text = b"cd /tmp\nunset OLDPWD\n".to_vec();
    for (name, value) in &guest.variables {
        text.extend_from_slice(b"export ");
        assign(&mut text, name, value);
    }
    text.extend_from_slice(b"exec");
    for word in &guest.command {
        text.push(b' ');
        text.extend(quoted(word));
    }
    text.push(b'\n');
    text
}

fn assign(text: &mut Vec<u8>, name: &str, value: &OsStr) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend(quoted(value));
    text.push(b'\n');
}

/// `word` as one word of the shell, with any content.
pub fn quoted(word: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn any_argument_comes_through_the_shell_unchanged() {
        let hard: &[&[u8]] = &[b"", b" a  b ", b"it's", b"$HOME `x` \\ \"", b"line\nline\n", b"\xff\x01", b"-e", b"*"];
        let mut script = b"printf '%s\\0'".to_vec();
        for word in hard {
            script.push(b' ');
            script.extend(quoted(OsStr::from_bytes(word)));
        }
        let shell = Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
        let words: Vec<&[u8]> = shell.stdout.split(|byte| *byte == 0).collect();
        assert_eq!(words[..hard.len()], *hard);
    }
}
