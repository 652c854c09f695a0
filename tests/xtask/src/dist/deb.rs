// SPDX-License-Identifier: BSD-3-Clause
//! One Debian package, by Debian's own tools: its tree, its control files, and both in one archive.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};

use super::{folder, quietly, read, template, write, Sources};
use crate::man::listing;
use crate::{place, progress};

/// Files that a package may have in addition to those it installs.
const CONTROL: &[&str] = &["postinst", "prerm", "postrm", "shlibs", "triggers"];

/// First bytes of programs and shared libraries.
const ELF: &[u8] = b"\x7fELF";

/// Builds `package` in `work` and leaves it in `out`.
pub fn build(package: &str, sources: &Sources, date: &str, work: &Path, out: &Path) -> Result<()> {
    let root = place::made(work.join(package))?;
    install(package, sources, &root).with_context(|| format!("dist: {package}"))?;
    finish(&root)?;
    control(package, work, &root)?;
    let mut archive = Command::new("dpkg-deb");
    archive.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(out).env("SOURCE_DATE_EPOCH", date);
    quietly(&mut archive)
}

/// Copies the files of the package's list, makes its links, and adds its overrides and the files of every package.
fn install(package: &str, sources: &Sources, root: &Path) -> Result<()> {
    for line in template(&format!("{package}.install"))?.lines() {
        let (named, to) = line.split_once(' ').with_context(|| format!("{line}: no folder"))?;
        let to = place::made(root.join(to.trim_start()))?;
        for from in matching(&sources.path(named))? {
            copy(&from, &to.join(from.file_name().unwrap_or_default()))?;
        }
    }
    let links = folder().join(format!("{package}.links"));
    for line in if links.exists() { read(&links)? } else { String::new() }.lines() {
        let (target, link) = line.split_once(' ').with_context(|| format!("{line}: no link"))?;
        symlink(target, root.join(link.trim_start())).with_context(|| line.to_owned())?;
    }
    let overrides = format!("{package}.lintian-overrides");
    if folder().join(&overrides).exists() {
        let to = place::made(root.join("usr/share/lintian/overrides"))?.join(package);
        write(&to, template(&overrides)?.as_bytes())?;
    }
    let doc = place::made(root.join("usr/share/doc").join(package))?;
    copy(&folder().join("copyright"), &doc.join("copyright"))?;
    copy(&folder().join("changelog"), &doc.join("changelog"))
}

/// The files that a path names; its last part may have one `*`.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let name = pattern.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some((before, after)) = name.split_once('*') else { return Ok(vec![pattern.to_path_buf()]) };
    let mut found = listing(pattern.parent().unwrap_or(pattern))?;
    found.retain(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        path.is_file() && name.starts_with(before) && name.ends_with(after)
    });
    ensure!(!found.is_empty(), "{}: no such file", pattern.display());
    Ok(found)
}

/// Copies a file, or a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        let to = place::made(to.to_path_buf())?;
        return listing(from)?.iter().try_for_each(|path| copy(path, &to.join(path.file_name().unwrap_or_default())));
    }
    fs::copy(from, to).map(drop).with_context(|| format!("{}", from.display()))
}

/// All files below a folder that are no links, relative to it, in order.
fn files_in(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for path in listing(&folder)? {
            match fs::symlink_metadata(&path)?.file_type() {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() => files.push(path.strip_prefix(root)?.to_path_buf()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Takes out of programs and libraries what only debuggers read, compresses what policy wants compressed, and gives
/// every file and folder its mode.
fn finish(root: &Path) -> Result<()> {
    for file in files_in(root)? {
        let path = root.join(&file);
        let is_script = !file.starts_with("usr/share") && fs::read(&path)?.starts_with(b"#!");
        let program = is_script || file.starts_with("usr/bin");
        if program || file.starts_with("usr/lib") {
            strip(&path, program)?;
        }
        set_mode(&path, if program { 0o755 } else { 0o644 })?;
        let is_page = file.starts_with("usr/share/man");
        if is_page || ["changelog", "third-party"].iter().any(|name| file.ends_with(name)) {
            quietly(Command::new("gzip").args(["-9", "-n"]).arg(&path))?;
        }
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
            set_mode(folder, 0o755)?;
        }
    }
    Ok(())
}

/// Strips programs, shared and static libraries.
pub fn strip(path: &Path, program: bool) -> Result<()> {
    let mut strip = Command::new("strip");
    match fs::read(path).with_context(|| path.display().to_string())? {
        content if content.starts_with(ELF) && program => strip.arg("--strip-all"),
        content if content.starts_with(ELF) => strip.arg("--strip-unneeded"),
        content if content.starts_with(b"!<arch>\n") => {
            strip.args(["--strip-debug", "--enable-deterministic-archives"])
        }
        _ => return Ok(()),
    };
    quietly(strip.args(["--remove-section=.comment", "--remove-section=.note"]).arg(path))
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode)).with_context(|| path.display().to_string())
}

/// Writes the sums of a package's files; returns those.
pub fn sum(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_in(root)?;
    files.retain(|file| !file.starts_with("DEBIAN"));
    let mut sums = Command::new("md5sum");
    let sums = progress::output(sums.args(&files).current_dir(root))?;
    write(&root.join("DEBIAN/md5sums"), format!("{sums}\n").as_bytes())?;
    Ok(files)
}

/// Writes the folder `DEBIAN`: the package's description and dependencies, its scripts, and the sums of its files.
fn control(package: &str, work: &Path, root: &Path) -> Result<()> {
    let to = place::made(root.join("DEBIAN"))?;
    let files = sum(root)?;
    let settings = files.iter().filter(|file| file.starts_with("etc")).map(|file| format!("/{}\n", file.display()));
    let settings: String = settings.collect();
    if !settings.is_empty() {
        write(&to.join("conffiles"), settings.as_bytes())?;
    }
    for kind in CONTROL {
        let name = format!("{package}.{kind}");
        if folder().join(&name).exists() {
            write(&to.join(kind), template(&name)?.as_bytes())?;
        }
    }
    let needs = work.join(format!("{package}.substvars"));
    let paths = files.iter().map(|file| root.join(file));
    let linked = paths.filter(|path| fs::read(path).is_ok_and(|content| content.starts_with(ELF))).collect::<Vec<_>>();
    match linked.is_empty() {
        true => write(&needs, b"")?,
        false => quietly(debian("dpkg-shlibdeps").arg(format!("-T{}", needs.display())).args(linked))?,
    }
    let mut gencontrol = debian("dpkg-gencontrol");
    gencontrol.arg(format!("-p{package}")).arg(format!("-P{}", root.display()));
    gencontrol.arg(format!("-T{}", needs.display())).arg(format!("-f{}", work.join("files").display()));
    quietly(&mut gencontrol)?;
    for path in listing(&to)? {
        let is_script = fs::read(&path)?.starts_with(b"#!");
        set_mode(&path, if is_script { 0o755 } else { 0o644 })?;
    }
    set_mode(&to, 0o755)
}

/// A program of Debian's that reads `debian/`.
fn debian(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(place::checkout().join("tests/xtask"));
    command
}
