// SPDX-License-Identifier: BSD-3-Clause
//! Writes the archive a kernel unpacks as its first file system: cpio in the "newc" form, as in the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst.

/// An archive under construction, in memory.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const CONSOLE: u32 = 0o020_600;

impl Archive {
    /// Adds a folder. Parents come first.
    pub fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK, (0, 0), target.as_bytes());
    }

    /// Adds /dev/console, which the kernel opens as the first process's standard streams.
    pub fn console(&mut self) {
        self.entry("dev/console", CONSOLE, (5, 1), &[]);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    /// One entry: 13 header fields of eight hexadecimal digits, the name with its NUL, the content, each padded to
    /// four.
    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file of the first file system is small");
        let name_size = u32::try_from(path.len() + 1).expect("a path is short");
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn every_part_is_aligned_and_the_trailer_is_last() {
        let mut archive = Archive::default();
        archive.program("a", b"12345");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..6], b"070701");
        // Header 110, name "a\0", 112 in all; then content 5, padded to 8.
        assert_eq!(&bytes[112..120], b"12345\0\0\0");
        assert!(bytes[120..].windows(10).any(|window| window == b"TRAILER!!!"));
    }

    #[test]
    fn the_cpio_program_reads_it() {
        let mut cpio = Command::new("cpio");
        let cpio = cpio.args(["-itv", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut cpio = cpio.expect("cpio runs: apt-get install cpio");
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.program("bin/sh", b"#!");
        archive.link("bin/ash", "sh");
        archive.console();
        cpio.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        let listing = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        for line in ["drwxr-xr-x", "-rwxr-xr-x", "bin/ash -> sh", "crw-------", "5,   1"] {
            assert!(listing.contains(line), "{line} in\n{listing}");
        }
    }
}
