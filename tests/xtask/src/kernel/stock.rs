// SPDX-License-Identifier: BSD-3-Clause
//! A kernel as Debian ships it: image, modules and headers, unpacked from its packages into the cache, once per release.
//!
//! Nothing is installed: apt only downloads, and dpkg unpacks into `stock/<release>/`. A release that is there is
//! complete, and never changes. A kernel of the next Debian comes with its compiler, make and C library, and its folder
//! is the root of the build, which is copied there and back.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::apt::Apt;
use crate::place;
use crate::progress::{self, tied};
use crate::toolchain::Toolchain;

/// The version of `--kernel stock`: that of the patched kernels.
pub const VERSION: &str = "6.12";
/// Modules that the guest's first file system needs, if they are not in the image.
const NEEDED: &[&str] = &["virtio_pci", "9pnet_virtio", "9p", "virtio_console"];

/// A kernel that is unpacked.
pub struct Stock {
    /// In the form of `uname -r`.
    pub release: String,
    root: PathBuf,
}

impl Stock {
    /// The newest release of `version` that apt offers, or if it offers none the newest that was unpacked before, or if
    /// there is none the newest of the next Debian. Apt, which takes two seconds, is called only if `is_known` is not
    /// set, or nothing was unpacked.
    pub fn ensure(version: &str, is_known: bool) -> Result<Self> {
        let home = place::made(place::cache()?.join("stock"))?;
        let _lock = place::lock(&home)?;
        let log = home.join("stock.log");
        let own = Apt::own();
        let kept = || -> Result<Option<String>> {
            let kept = fs::read_dir(&home)?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            Ok(newest(version, kept.collect()))
        };
        if let Some(release) = if is_known { kept()? } else { None } {
            return Self::unpacked(&home, &own, release);
        }
        if let Some(release) = newest(version, offered(&own, version)?) {
            return Self::unpacked(&home, &own, release);
        }
        if let Some(release) = kept()? {
            return Self::unpacked(&home, &own, release);
        }
        if rustix::process::geteuid().is_root() {
            for apt in [own, Apt::next(&home)?] {
                apt.update(&log)?;
                if let Some(release) = newest(version, offered(&apt, version)?) {
                    return Self::unpacked(&home, &apt, release);
                }
            }
            bail!("stock: {version}: apt knows no linux-image-{version}*-amd64");
        }
        bail!("stock: {version}: apt knows no such kernel\nhint: sudo apt-get update; to get one of the next Debian, be root")
    }

    fn unpacked(home: &Path, apt: &Apt, release: String) -> Result<Self> {
        let root = home.join(&release);
        if !root.exists() {
            let partial = home.join("partial");
            if partial.exists() {
                fs::remove_dir_all(&partial).context("stock: partial")?;
            }
            unpack(home, apt, &release, &place::made(partial.clone())?)?;
            complete(home, &partial, &root, &release)?;
            // Renamed into place: files that are there are complete.
            fs::rename(&partial, &root).with_context(|| root.display().to_string())?;
        }
        Ok(Self { release, root })
    }

    /// Folder of its unpacked packages: for modprobe, the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The bootable image.
    pub fn image(&self) -> PathBuf {
        self.root.join("vmlinuz")
    }

    /// The modules that the first file system loads, in this order.
    pub fn modules(&self) -> Result<Vec<PathBuf>> {
        super::files_in(&self.root.join("first"), ".ko")
    }

    /// Runs `make` with these words in `build`, a folder with sources of modules.
    pub fn make(&self, build: &Path, words: &[&str], log: &Path) -> Result<()> {
        let headers = format!("usr/src/linux-headers-{}", self.release);
        let step = "module: building";
        if !has_compiler(&self.root) {
            let mut make = Toolchain::plain("make");
            make.arg(format!("KDIR={}", self.root.join(headers).display())).args(words);
            return progress::run(step, make.current_dir(build), log);
        }
        // Its compiler and the programs of its headers need their own C library.
        let inside = self.root.join("build");
        let _lock = place::lock(&self.root)?;
        replace(build, &inside)?;
        let mut make = Toolchain::plain("unshare");
        make.arg(format!("--mount-proc={}/proc", self.root.display()));
        make.arg("chroot").arg(&self.root).args(["make", "-C", "/build"]).arg(format!("KDIR=/{headers}")).args(words);
        progress::run(step, &mut make, log)?;
        replace(&inside, build)
    }
}

/// Returns whether a kernel that is unpacked here came with the tools for building its modules.
fn has_compiler(root: &Path) -> bool {
    root.join("usr/bin/make").exists()
}

/// Makes of a folder a copy of another.
fn replace(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| to.display().to_string())?;
    }
    progress::output(Command::new("cp").arg("-a").arg(from).arg(to)).map(|_| ())
}

/// The releases for which apt offers an image: `6.12.117+deb12-amd64`.
fn offered(apt: &Apt, version: &str) -> Result<Vec<String>> {
    let names = apt.says(&["pkgnames", &format!("linux-image-{version}")])?;
    let names: Vec<&str> = names.lines().filter(|name| release(name, version).is_some()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let policy = apt.says(&[&["policy"][..], &names].concat())?;
    Ok(with_candidate(&policy).filter_map(|name| release(name, version)).map(str::to_owned).collect())
}

/// The release whose image, signed and for any machine, a package of this name has.
fn release<'a>(package: &'a str, version: &str) -> Option<&'a str> {
    let release = package.strip_prefix("linux-image-")?;
    let number = release.strip_suffix("-amd64")?.strip_prefix(version)?;
    let is_plain = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    (number.starts_with(['.', '+']) && number[1..].split('-').all(is_plain)).then_some(release)
}

/// The packages of `apt-cache policy` that can be installed.
fn with_candidate(policy: &str) -> impl Iterator<Item = &str> {
    let lines = policy.lines().zip(policy.lines().skip(2));
    let found = lines.filter(|(_, candidate)| {
        candidate.trim().strip_prefix("Candidate:").is_some_and(|version| version.trim() != "(none)")
    });
    found.filter_map(|(name, _)| name.strip_suffix(':'))
}

/// The newest of the releases of `version`.
fn newest(version: &str, releases: Vec<String>) -> Option<String> {
    let name = |release: &String| format!("linux-image-{release}");
    releases.into_iter().filter(|one| self::release(&name(one), version).is_some()).max_by(|a, b| order(a, b))
}

/// Returns the newer of two releases: their numbers count, in this order.
fn order(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|byte: char| !byte.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b))
}

/// Downloads the packages of a release and unpacks them; with a compiler, if this machine's is not for it.
fn unpack(home: &Path, apt: &Apt, release: &str, to: &Path) -> Result<()> {
    let log = home.join("stock.log");
    let (step, packages) = (format!("stock: downloading {release}"), place::made(to.join("packages"))?);
    apt.download(&closure(apt, release)?, &packages, &step, &log)?;
    if apt.is_next() {
        let step = format!("{step}'s compiler");
        apt.download_builders(&format!("linux-headers-{release}"), &packages, &step, &log)?;
        prepare(to)?;
    }
    for package in super::files_in(&packages, ".deb")? {
        let mut unpack = tied("dpkg");
        progress::run("stock: unpacking", unpack.arg("-x").arg(&package).arg(to), &log)?;
    }
    fs::remove_dir_all(&packages).with_context(|| packages.display().to_string())
}

/// Makes a folder one that programs can have for a root.
fn prepare(root: &Path) -> Result<()> {
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, root.join(name)).with_context(|| format!("stock: {name}"))
    };
    for name in ["bin", "sbin", "lib", "lib64"] {
        place::made(root.join("usr").join(name))?;
        link(&format!("usr/{name}"), name)?;
    }
    link("mawk", "usr/bin/awk")?;
    for dir in ["dev", "tmp"] {
        place::made(root.join(dir))?;
    }
    let null = root.join("dev/null");
    progress::output(Command::new("mknod").args(["-m", "666"]).arg(&null).args(["c", "1", "3"])).map(|_| ())
}

/// The image's and the headers' packages, and those of the same release that they depend on.
fn closure(apt: &Apt, release: &str) -> Result<Vec<String>> {
    let version = release.strip_suffix("-amd64").unwrap_or(release);
    let mut packages = vec![format!("linux-image-{release}"), format!("linux-headers-{release}")];
    let mut next = 0;
    while let Some(package) = packages.get(next) {
        let depends = apt.says(&["depends", package])?;
        for name in depends.lines().filter_map(|line| line.trim_start_matches([' ', '|']).strip_prefix("Depends: ")) {
            let is_of_release = name.contains(version) && !name.ends_with("-unsigned");
            // Until 6.12 the programs of the build are one package for all releases of a version.
            let is_part = name.starts_with("linux-kbuild-") || name.starts_with("linux-") && is_of_release;
            if is_part && !packages.iter().any(|known| known == name) {
                packages.push(name.to_owned());
            }
        }
        next += 1;
    }
    Ok(packages)
}

/// Turns the packages unpacked into `partial` into the files used from `root`.
fn complete(home: &Path, partial: &Path, root: &Path, release: &str) -> Result<()> {
    let log = home.join("stock.log");
    // Newer packages have everything below usr.
    if !partial.join("lib").exists() {
        std::os::unix::fs::symlink("usr/lib", partial.join("lib")).context("stock: lib")?;
    }
    let modules = partial.join("lib/modules").join(release);
    let images = [partial.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
    let image = images.iter().find(|path| path.exists()).with_context(|| format!("stock: {release}: no image"))?;
    fs::rename(image, partial.join("vmlinuz")).with_context(|| image.display().to_string())?;
    // The headers name each other by the place where they would be installed.
    if !has_compiler(partial) {
        let makefile = partial.join(format!("usr/src/linux-headers-{release}/Makefile"));
        let text = fs::read_to_string(&makefile).with_context(|| makefile.display().to_string())?;
        fs::write(&makefile, text.replace("/usr/src/", &format!("{}/usr/src/", root.display())))?;
    }

    let mut depmod = tied("depmod");
    progress::run("stock: looking at the modules", depmod.arg("-b").arg(partial).arg(release), &log)?;
    let first = place::made(partial.join("first"))?;
    for (module, number) in needed(partial, release)?.iter().zip(10..) {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        let (name, unpack) = match name.rsplit_once(".ko") {
            Some((name, ".xz")) => (name, "xz"),
            Some((name, ".zst")) => (name, "zstd"),
            _ => (name.trim_end_matches(".ko"), "cat"),
        };
        let mut command = Command::new(unpack);
        command.args(if unpack == "cat" { &[][..] } else { &["-dc"] }).arg(module);
        let output = command.output().with_context(|| format!("stock: {unpack}"))?;
        if !output.status.success() {
            bail!("stock: {unpack}: {}: {}", module.display(), output.status);
        }
        fs::write(first.join(format!("{number}-{name}.ko")), output.stdout)?;
    }
    Ok(())
}

/// The required modules, and those that they need, each after its own requirements.
fn needed(root: &Path, release: &str) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for name in NEEDED {
        let mut modprobe = Command::new("modprobe");
        modprobe.arg("-d").arg(root).args(["-S", release, "--show-depends", name]);
        for line in progress::output(&mut modprobe)?.lines() {
            let Some(path) = line.strip_prefix("insmod ").map(|path| PathBuf::from(path.trim())) else { continue };
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_packages_the_newest_signed_image_of_the_version_is_taken() {
        assert_eq!(release("linux-image-6.12.117+deb12-amd64", "6.12"), Some("6.12.117+deb12-amd64"));
        for other in ["6.12-amd64", "6.12.117+deb12-cloud-amd64", "6.12.117+deb12-amd64-unsigned", "6.1.0-56-amd64"] {
            assert_eq!(release(&format!("linux-image-{other}"), "6.12"), None, "{other}");
        }
        assert_eq!(release("linux-image-6.1.0-56-amd64", "6.1"), Some("6.1.0-56-amd64"));
        let releases = ["6.12.95+deb12-amd64", "6.12.117+deb12-amd64", "6.1.0-56-amd64"].map(str::to_owned).to_vec();
        assert_eq!(newest("6.12", releases.clone()).as_deref(), Some("6.12.117+deb12-amd64"));
        assert_eq!(newest("6.1", releases.clone()).as_deref(), Some("6.1.0-56-amd64"));
        assert_eq!(newest("5.10", releases), None);
    }

    #[test]
    fn a_package_without_a_candidate_is_not_offered() {
        let policy = "a:\n  Installed: (none)\n  Candidate: 6.12.117-1\n  Version table:\nb:\n  Installed: (none)\n  Candidate: (none)\n";
        assert_eq!(with_candidate(policy).collect::<Vec<_>>(), ["a"]);
    }
}
