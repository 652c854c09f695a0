// SPDX-License-Identifier: BSD-3-Clause
//! Builds the guest's kernel once per source, patches, config and compilers, in the cache outside of the checkout.
//!
//! Two things come out of a build: an image in `images/<key>/`, which never changes once it is there, and the work tree
//! it was built in, which modules are built against and which the next build changes. So an image may be booted at any
//! time; the tree may be used only under the lock of its folder and after `tree` has confirmed that it is at the
//! requested key. The kernels of a series with the hooks and without them share one tree, because from one series to
//! another, or from y to n, only a few files are compiled again. The distribution, the debug and the realtime kernel
//! have trees of their own, because their differences are in every file.

pub mod apt;
pub mod config;
pub mod fetched;
pub mod schemata;
pub mod series;
pub mod source;
pub mod stock;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use clap::ValueEnum;

use crate::mutants;
use crate::place::{self, Key};
use crate::progress;
use crate::toolchain::{Compiler, Toolchain};
use series::Series;

/// Counts changes of the recipe in this file, which are inputs of a build like any other.
const RECIPE: &[u8] = b"1";
/// Method of planting mutants, a part of their kernel's key like a patch.
const PLANTING: &[u8] = include_bytes!("kernel/schemata.rs");
/// Place of the image in a built tree.
const IMAGE: &str = "arch/x86/boot/bzImage";
/// A developer's own built tree, in place of the cached one.
const OVERRIDE: &str = "KUTRACE_KDIR";
/// The file next to a tree that names the sources it was built from.
const BUILT: &str = "tree.built";

/// The kernel to build.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Variant {
    /// As small as the guest can do with; with the series applied and CONFIG_KUTRACE=y.
    Small,
    /// The same with CONFIG_KUTRACE=n.
    SmallWithout,
    /// Configured like a distribution's, with CONFIG_KUTRACE=y.
    Distribution,
    /// The same with CONFIG_KUTRACE=n.
    DistributionWithout,
    /// The small one under KASAN, lockdep and their kin.
    Debug,
    /// The small one with CONFIG_PREEMPT_RT=y: interrupts and softirqs in threads, spinlocks that sleep.
    Realtime,
    /// The small one, in which `kutrace_mutant=N` skips one hook.
    Mutants,
    /// The same of the one configured like a distribution's.
    DistributionMutants,
}

impl Variant {
    /// The usual one, on which the demo and the tests run.
    pub const USUAL: Variant = Variant::Small;

    /// As it is called in messages.
    fn name(self) -> &'static str {
        match self {
            Variant::Small => "kernel",
            Variant::SmallWithout => "kernel without hooks",
            Variant::Distribution => "distribution kernel",
            Variant::DistributionWithout => "distribution kernel without hooks",
            Variant::Debug => "debug kernel",
            Variant::Realtime => "realtime kernel",
            Variant::Mutants => "kernel of mutants",
            Variant::DistributionMutants => "distribution kernel of mutants",
        }
    }

    /// Returns whether it has the additions of the series, and so can load the module.
    pub fn has_hooks(self) -> bool {
        !matches!(self, Variant::DistributionWithout | Variant::SmallWithout)
    }

    /// Name in the folders of those that share a work tree; empty for the usual ones.
    pub fn folder(self) -> &'static str {
        match self {
            Variant::Small | Variant::SmallWithout => "",
            Variant::Distribution | Variant::DistributionWithout => "distribution",
            Variant::Debug => "debug",
            Variant::Realtime => "realtime",
            Variant::Mutants => "mutants",
            Variant::DistributionMutants => "distribution-mutants",
        }
    }

    /// Returns whether hooks can be skipped.
    fn has_mutants(self) -> bool {
        matches!(self, Variant::Mutants | Variant::DistributionMutants)
    }

    /// Parts of its configuration; a later one has the last word.
    fn fragments(self) -> &'static [&'static str] {
        match self {
            Variant::Distribution | Variant::DistributionMutants => &["vm", "distribution", "kutrace"],
            Variant::DistributionWithout => &["vm", "distribution"],
            Variant::Small | Variant::Mutants => &["vm", "kutrace"],
            Variant::SmallWithout => &["vm"],
            Variant::Debug => &["vm", "kutrace", "debug"],
            Variant::Realtime => &["vm", "kutrace", "realtime"],
        }
    }
}

/// A kernel that is built here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// The patches, and so the version.
    pub series: Series,
    /// The configuration.
    pub variant: Variant,
}

impl Build {
    /// As it is called in messages.
    fn name(self) -> String {
        match self.series {
            Series::USUAL => self.variant.name().to_owned(),
            newer => format!("{} {}", newer.name(), self.variant.name()),
        }
    }

    /// The folder with its work tree, and what belongs to that.
    fn home(self) -> Result<PathBuf> {
        place::made(self.series.home()?.join(self.variant.folder()))
    }

    /// The kernel of which any hook can be skipped, for one with hooks: the table numbers those of the usual series.
    pub fn mutated(self) -> Option<Build> {
        let variant = match self.variant {
            Variant::Small | Variant::Mutants => Variant::Mutants,
            Variant::Distribution | Variant::DistributionMutants => Variant::DistributionMutants,
            _ => return None,
        };
        (self.series == Series::USUAL).then_some(Build { variant, ..self })
    }

    /// `VARIANT`, `SERIES` or `SERIES-VARIANT`.
    fn parse(text: &str) -> Option<Build> {
        let of = |name: &str| Variant::from_str(name, false).ok();
        let named = Series::ALL.into_iter().find_map(|series| Some((series, text.strip_prefix(series.name())?)));
        match named {
            None => Some(Build { series: Series::USUAL, variant: of(text)? }),
            Some((series, "")) => Some(Build { series, variant: Variant::USUAL }),
            Some((series, rest)) => Some(Build { series, variant: of(rest.strip_prefix('-')?)? }),
        }
    }
}

/// The kernel that a guest boots.
#[derive(Clone, PartialEq, Eq)]
pub enum Which {
    /// One that is built here.
    Built(Build),
    /// One that Debian ships, of this version.
    Stock(String),
}

impl Which {
    /// The value of `--kernel`.
    pub fn parse(text: &str) -> Result<Which, String> {
        match text.split_once('=').unwrap_or((text, stock::VERSION)) {
            ("stock", version) => Ok(Which::Stock(version.to_owned())),
            _ => Build::parse(text).map(Which::Built).ok_or_else(|| {
                let names = Variant::value_variants().iter().filter_map(|one| one.to_possible_value());
                let names: Vec<String> = names.map(|one| one.get_name().to_owned()).collect();
                let series = Series::ALL.map(Series::name).join(" or ");
                format!(
                    "possible values: {}, {series} or one of these and -VARIANT, stock, stock=VERSION",
                    names.join(", ")
                )
            }),
        }
    }
}

impl From<Variant> for Which {
    fn from(variant: Variant) -> Which {
        Which::Built(Build { series: Series::USUAL, variant })
    }
}

/// A kernel by its inputs, built or not.
pub struct Kernel {
    /// The project's kernel that it is.
    pub build: Build,
    patches: Vec<PathBuf>,
    fragments: Vec<PathBuf>,
    key: String,
    /// The developer's own tree.
    given: Option<PathBuf>,
}

/// Compiler of kernels and their modules: clang, which Rust needs, or the one of a developer's own tree.
pub fn compiler() -> Result<Compiler> {
    let Some(tree) = std::env::var_os(OVERRIDE).map(PathBuf::from) else { return Ok(Compiler::Clang) };
    let config = fs::read_to_string(tree.join(".config")).with_context(|| format!("{OVERRIDE}: {}", tree.display()))?;
    Ok(if config.lines().any(|line| line == "CONFIG_CC_IS_GCC=y") { Compiler::Gcc } else { Compiler::Clang })
}

impl Kernel {
    /// Reads the inputs and works out the key; builds nothing.
    pub fn new(build: Build, toolchain: &Toolchain) -> Result<Self> {
        let (dir, variant) = (build.series.patches(), build.variant);
        // Needs of the guest to run at all come first.
        let mut patches = files_in(&dir.join("vm"), ".patch")?;
        patches.extend(files_in(&dir, ".patch")?);
        let fragments: Vec<_> = variant.fragments().iter().map(|name| config::fragment(name)).collect();
        let given = std::env::var_os(OVERRIDE).map(PathBuf::from);
        let mut key = Key::default();
        key.add("recipe", RECIPE);
        toolchain.add_to(&mut key);
        match &given {
            Some(tree) => key.add("given", tree.as_os_str().as_encoded_bytes()).add_file("image", &tree.join(IMAGE))?,
            None => key.add("source", source::version(build.series)?.as_bytes()),
        };
        for path in patches.iter().chain(&fragments) {
            key.add_file(&path.file_name().unwrap_or_default().to_string_lossy(), path)?;
        }
        if variant.has_mutants() {
            key.add("mutants", PLANTING);
        }
        Ok(Self { build, patches, fragments, key: key.finish(), given })
    }

    /// Names this kernel among all others.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The bootable image, built if it is not in the cache.
    pub fn image(&self, toolchain: &Toolchain) -> Result<PathBuf> {
        let image = match &self.given {
            Some(tree) => return Ok(tree.join(IMAGE)),
            None => self.image_path()?,
        };
        if !image.exists() {
            let _lock = self.lock()?;
            self.tree(toolchain)?;
        }
        Ok(image)
    }

    /// Waits for other users of this kernel's tree.
    pub fn lock(&self) -> Result<File> {
        place::lock(&self.build.home()?)
    }

    /// The built tree, at this kernel's key. The caller holds [`Self::lock`] for as long as it uses the tree.
    pub fn tree(&self, toolchain: &Toolchain) -> Result<PathBuf> {
        if let Some(tree) = &self.given {
            return Ok(tree.clone());
        }
        let (series, home) = (self.build.series, self.build.home()?);
        let (tree, stamp) = (source::tree(series, &home), home.join(BUILT));
        if place::is_stamped(&stamp, &self.key) && self.image_path()?.exists() {
            return Ok(tree);
        }
        // An interrupted build leaves no stamp, so it is never taken for a finished one.
        place::put_stamp(&stamp, "")?;
        let name = &self.build.name();
        let log = home.join(format!("{}.log", name.replace(' ', "-")));
        source::ensure(series, &home)?;
        source::apply(&tree, &self.patches)?;
        // A patch can apply and still put a hook into the function next to the right one.
        mutants::hooks::check_places(series, &schemata::sites(&tree, &self.patches)?)?;
        if self.build.variant.has_mutants() {
            mutants::hooks::check(&schemata::plant(&tree, &self.patches)?)?;
        }
        config::write(name, &tree, &self.fragments, toolchain, &log)?;
        let mut make = toolchain.make();
        make.args(["bzImage", "modules"]).current_dir(&tree);
        progress::run(&format!("{name}: building"), &mut make, &log)?;
        self.keep_image(&tree)?;
        place::put_stamp(&stamp, &self.key)?;
        Ok(tree)
    }

    fn keep_image(&self, tree: &Path) -> Result<()> {
        let image = self.image_path()?;
        if image.exists() {
            return Ok(());
        }
        let dir = place::made(image.parent().context("an image is in a folder")?.to_path_buf())?;
        // Renamed into place: an image that exists is whole.
        let partial = dir.join("partial");
        fs::copy(tree.join(IMAGE), &partial).with_context(|| format!("{}: {IMAGE}", self.build.name()))?;
        fs::rename(&partial, &image).with_context(|| format!("{}", image.display()))
    }

    fn image_path(&self) -> Result<PathBuf> {
        Ok(place::cache()?.join("images").join(&self.key).join("bzImage"))
    }
}

/// The files of a folder whose names end in `suffix`, in the order of their names.
pub fn files_in(dir: &Path, suffix: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("{}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.to_string_lossy().ends_with(suffix));
    files.sort();
    if files.iter().any(|path| !path.is_file()) {
        bail!("{}: a *{suffix} is not a file", dir.display());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_named_by_series_variant_or_both() {
        let of = |series, variant| Some(Build { series, variant });
        assert!(Build::parse("small") == of(Series::V6_12, Variant::Small));
        assert!(Build::parse("distribution-without") == of(Series::V6_12, Variant::DistributionWithout));
        assert!(Build::parse("v6.12") == of(Series::V6_12, Variant::Small));
        assert!(Build::parse("v7.x") == of(Series::V7, Variant::Small));
        assert!(Build::parse("v7.x-debug") == of(Series::V7, Variant::Debug));
        for wrong in ["", "v7", "v7.x-", "v7.xdebug", "debug-v7.x", "v7.x-v7.x"] {
            assert!(Build::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn only_hooks_of_the_usual_series_can_be_left_out() {
        let mutated = |name| Build::parse(name).and_then(Build::mutated);
        assert!(mutated("small") == Build::parse("mutants"));
        assert!(mutated("v7.x").is_none() && mutated("debug").is_none());
    }
}
