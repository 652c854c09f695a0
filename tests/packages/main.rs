// SPDX-License-Identifier: BSD-3-Clause
//! Packages tier: what `cargo xtask dist` makes. Run by `cargo xtask test`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use kutrace_tests::tree;

/// Made once for all tests, in the long form with the tarball.
static MADE: LazyLock<Vec<PathBuf>> = LazyLock::new(|| made("target/dist", "022", &[], SHORT));
/// Options of all but the long form.
const SHORT: &[&str] = if cfg!(feature = "soak") { &[] } else { &["--packages-only"] };

/// The files that xtask makes in a folder, with a mask of modes, some variables in its environment, and options.
fn made(folder: &str, mask: &str, variables: &[(&str, &str)], options: &[&str]) -> Vec<PathBuf> {
    let xtask = std::env::var_os("KUTRACE_XTASK").expect("KUTRACE_XTASK: run this tier by `cargo xtask test`");
    let mut dist = Command::new("sh");
    dist.args(["-c", "umask $0; exec \"$@\"", mask]).arg(xtask).args(["dist", "--out", folder]).args(options);
    dist.current_dir(tree::root()).envs(variables.iter().copied());
    if !cfg!(feature = "night") {
        // Whatever else a package is does not depend on it, and at Debian's level it takes most of the time.
        dist.env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
    }
    let said = output(&mut dist).1;
    let folder = said.lines().find_map(|line| line.strip_prefix("xtask: dist: ")).expect("where they are");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Standard output and standard error of a program that must succeed.
fn output(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// The package of this name.
fn package(name: &str) -> &'static Path {
    let start = format!("{name}_");
    let named = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&start);
    MADE.iter().find(named).unwrap_or_else(|| panic!("no {name} in {:?}", *MADE))
}

/// A package's files and folders: mode, owner and path of each.
fn listing(name: &str) -> Vec<(String, String, String)> {
    let listed = output(Command::new("dpkg-deb").arg("--contents").arg(package(name))).0;
    let fields = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[0].to_owned(), words[1].to_owned(), words[5].trim_start_matches('.').to_owned())
    };
    listed.lines().map(fields).collect()
}

fn field(name: &str, field: &str) -> String {
    output(Command::new("dpkg-deb").arg("--field").arg(package(name)).arg(field)).0.trim().to_owned()
}

/// A folder with the package's files.
fn unpacked(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    output(Command::new("dpkg-deb").arg("--raw-extract").arg(package(name)).arg(folder.path()));
    folder
}

const ALL: [&str; 4] = ["kutrace", "kutrace-dkms", "libkutrace0", "libkutrace-dev"];

#[test]
fn everything_belongs_to_root_and_nobody_else_may_write() {
    for name in ALL {
        for (mode, owner, path) in listing(name) {
            let allowed = match path.strip_prefix("/usr/bin/") {
                _ if mode.starts_with('d') => "drwxr-xr-x",
                _ if mode.starts_with('l') => "lrwxrwxrwx",
                Some(_) => "-rwxr-xr-x",
                None if path.starts_with("/etc/kernel/") || path == "/usr/lib/kutrace/build-module" => "-rwxr-xr-x",
                None => "-rw-r--r--",
            };
            assert_eq!((mode.as_str(), owner.as_str()), (allowed, "root/root"), "{name}: {path}");
        }
    }
}

#[test]
fn each_package_has_what_it_is_for() {
    let has = |name: &str, wanted: &[&str]| {
        let paths: Vec<_> = listing(name).into_iter().map(|(_, _, path)| path).collect();
        for wanted in wanted {
            assert!(paths.iter().any(|path| path == wanted), "{name}: no {wanted} in {paths:#?}");
        }
        paths
    };
    let paths = has(
        "kutrace",
        &[
            "/usr/bin/kutrace_control",
            "/usr/lib/udev/rules.d/60-kutrace.rules",
            "/usr/lib/systemd/system/kutrace.service",
            "/usr/lib/systemd/system/kutrace-watch.service",
            "/usr/share/man/man7/kutrace.7.gz",
            "/usr/share/man/man5/kutrace-format.5.gz",
            "/usr/share/doc/kutrace/record.md",
        ],
    );
    let tools: Vec<_> =
        paths.iter().filter_map(|path| path.strip_prefix("/usr/bin/")).filter(|p| !p.is_empty()).collect();
    assert_eq!(tools.len(), 22, "{tools:?}");
    for tool in tools {
        for path in [
            format!("/usr/share/man/man1/{tool}.1.gz"),
            format!("/usr/share/bash-completion/completions/{tool}"),
            format!("/usr/share/zsh/vendor-completions/_{tool}"),
            format!("/usr/share/fish/vendor_completions.d/{tool}.fish"),
        ] {
            assert!(paths.contains(&path), "no {path}");
        }
    }
    let sources = concat!("/usr/src/kutrace-", env!("CARGO_PKG_VERSION"));
    let sources = ["dkms.conf", "Kbuild", "shim.c", "kutrace_main.rs", "stock/recorder.o_shipped"]
        .map(|file| format!("{sources}/{file}"));
    has("kutrace-dkms", &sources.each_ref().map(String::as_str));
    let folder = "/usr/lib/x86_64-linux-gnu";
    has("libkutrace0", &[&format!("{folder}/libkutrace.so.0")]);
    let library = [".so", ".a"].map(|end| format!("{folder}/libkutrace{end}"));
    has(
        "libkutrace-dev",
        &[
            &library[0],
            &library[1],
            &format!("{folder}/pkgconfig/kutrace.pc"),
            "/usr/include/kutrace.h",
            "/usr/include/kutrace.hpp",
            "/usr/include/kutrace_original.h",
            "/usr/lib/python3/dist-packages/kutrace.py",
            "/usr/share/kutrace/java/kutrace/Kutrace.java",
            "/usr/share/kutrace/java/kutrace_java.c",
            "/usr/share/kutrace/original/kutrace_lib.cc",
        ],
    );
}

#[test]
fn the_tools_need_the_c_library_and_what_the_scripts_call() {
    for name in ALL {
        assert_eq!(field(name, "Version"), env!("CARGO_PKG_VERSION"));
        let needs = field(name, "Depends");
        let mut needs: Vec<&str> = needs.split(", ").map(|need| need.split(' ').next().unwrap()).collect();
        needs.sort();
        let wanted: &[&str] = match name {
            "kutrace" => &["adduser", "libc6", "libcap2-bin", "libgcc-s1"],
            "kutrace-dkms" => &["dkms", "openssl"],
            "libkutrace0" => &["libc6", "libgcc-s1"],
            _ => &["libkutrace0"],
        };
        assert_eq!(needs, wanted, "{name}");
    }
}

#[test]
fn no_file_tells_where_it_was_built() {
    let home = std::env::var("HOME").unwrap();
    let places = [tree::root().to_str().unwrap().to_owned(), format!("{home}/.cargo"), format!("{home}/.rustup")];
    for name in ALL {
        let folder = unpacked(name);
        let mut files = tree::files(folder.path(), &[]);
        files.retain(|file| !file.is_symlink());
        assert!(files.len() > 5, "{name}: {files:?}");
        for file in files {
            let content = if file.extension().is_some_and(|end| end == "gz") {
                output(Command::new("zcat").arg(&file)).0.into_bytes()
            } else {
                fs::read(&file).unwrap()
            };
            for place in &places {
                let found = content.windows(place.len()).position(|found| found == place.as_bytes());
                assert_eq!(found, None, "{}: {place}", file.display());
            }
        }
    }
}

/// In another time zone, language and mask of modes, and at another time.
#[test]
fn the_same_sources_make_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("TZ", "Pacific/Apia"), ("LC_ALL", "C"), ("TMPDIR", "/var/tmp")];
    let again = made(folder.path().to_str().unwrap(), "077", &variables, SHORT);
    assert_eq!(again.len(), MADE.len());
    for (first, second) in MADE.iter().zip(&again) {
        assert!(fs::read(first).unwrap() == fs::read(second).unwrap(), "{} differs", first.display());
    }
}

/// Tests that take minutes, a network and the rights of root.
#[cfg(feature = "soak")]
mod long {
    use super::*;

    /// The names of the packages' files.
    fn packages() -> Vec<&'static Path> {
        ALL.iter().map(|name| package(name)).collect()
    }

    /// Runs a script of this folder with a fresh Debian of each kind, and the packages.
    fn in_each_debian(script: &str) {
        let lines =
            output(Command::new("apt-get").args(["indextargets", "--format", "$(REPO_URI)", "Codename: bookworm"])).0;
        let mirror = lines.lines().next().expect("apt knows where Debian is");
        for suite in ["bookworm", "trixie"] {
            let folder = tempfile::tempdir().unwrap();
            let mut command = Command::new(tree::root().join("tests/packages").join(script));
            command.args([suite, mirror]).arg(folder.path().join(suite)).args(packages());
            eprintln!("{}", output(&mut command).0);
        }
    }

    #[test]
    fn a_debian_is_as_before_when_the_packages_have_come_and_gone() {
        in_each_debian("install.sh");
    }

    #[test]
    fn a_debian_records_with_the_packages_alone_also_on_its_next_kernel() {
        in_each_debian("boot.sh");
    }

    /// The kernel that is configured like a distribution's, in a copy of the tree in which the VM's was built.
    #[test]
    fn the_package_of_a_kernel_has_the_module_inside() {
        let xtask = std::env::var_os("KUTRACE_XTASK").unwrap();
        output(Command::new(xtask).args(["vm", "--kernel", "distribution", "--", "true"]));
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
        let folder = tempfile::tempdir_in(tree::root().join("target")).unwrap();
        let copy = folder.path().join("linux");
        output(Command::new("cp").arg("-a").arg(cache.join("kutrace/distribution/linux-6.12")).arg(&copy));
        let files = made("target/dist-kernel", "022", &[], &["--packages-only", "--kernel", copy.to_str().unwrap()]);
        let named = |start: &str| {
            let is = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(start);
            files.iter().find(is).unwrap_or_else(|| panic!("no {start} in {files:?}"))
        };
        let headers = output(Command::new("dpkg-deb").arg("--contents").arg(named("linux-headers-"))).0;
        assert!(headers.contains("/Module.symvers"), "{headers}");
        let root = folder.path().join("root");
        output(Command::new("dpkg-deb").arg("--raw-extract").arg(named("linux-image-")).arg(&root));
        let modules = fs::read_dir(root.join("lib/modules")).unwrap().next().unwrap().unwrap();
        let release = modules.file_name().into_string().unwrap();
        assert!(root.join(format!("boot/vmlinuz-{release}")).exists(), "{release}");
        let known = fs::read_to_string(modules.path().join("modules.dep")).unwrap();
        assert!(known.contains("updates/kutrace.ko:"), "{known}");
        let module = modules.path().join("updates/kutrace.ko");
        let made_for = output(Command::new("modinfo").args(["-F", "vermagic"]).arg(module)).0;
        assert_eq!(made_for.split_whitespace().next(), Some(&*release));
        output(Command::new("md5sum").args(["--quiet", "--check", "DEBIAN/md5sums"]).current_dir(&root));
    }

    fn home() -> PathBuf {
        std::env::var_os("HOME").expect("HOME").into()
    }

    #[test]
    fn lintian_finds_no_error() {
        output(Command::new("lintian").args(["--fail-on", "error"]).args(packages()));
    }

    #[test]
    fn the_static_tools_run_where_nothing_else_is() {
        let tarball = MADE.iter().find(|path| path.extension().is_some_and(|end| end == "xz")).expect("the tarball");
        let root = tempfile::tempdir().unwrap();
        output(Command::new("tar").args(["--strip-components=1", "-xf"]).arg(tarball).arg("-C").arg(root.path()));
        fs::copy(tree::root().join("samples/disk.trace"), root.path().join("disk.trace")).unwrap();
        let inside = |words: &[&str]| output(Command::new("chroot").arg(root.path()).args(words)).0;
        fs::write(root.path().join("disk.events"), inside(&["/bin/rawtoevent", "/disk.trace"])).unwrap();
        fs::write(root.path().join("disk.json"), inside(&["/bin/eventtospan", "/disk.events"])).unwrap();
        assert!(inside(&["/bin/spantohtml", "/disk.json"]).contains("</html>"));
        assert!(inside(&["/bin/kutrace_control", "summary", "/disk.trace"]).contains("events"));
    }

    /// Built from nothing, in another folder: a day's difference in the date of each file does not show either.
    #[test]
    fn another_checkout_makes_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let clone = folder.path().join("a checkout elsewhere");
        output(Command::new("git").args(["clone", "--quiet"]).arg(tree::root()).arg(&clone));
        let mut dist = Command::new("cargo");
        dist.args(["xtask", "dist"]).current_dir(&clone).env_remove("CARGO_TARGET_DIR");
        output(&mut dist);
        for first in MADE.iter() {
            let second = clone.join("target/dist").join(first.file_name().unwrap());
            assert!(fs::read(first).unwrap() == fs::read(&second).unwrap(), "{} differs", first.display());
        }
    }
}
