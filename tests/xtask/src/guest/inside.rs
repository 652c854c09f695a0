// SPDX-License-Identifier: BSD-3-Clause
//! A guest of the guest: its kernel and files, and a script that boots it, in the folder `inside` of the share.
//!
//! The script's CMD runs as any guest's does: `bash /mnt/share/inside/job.sh`, with the module loaded, the root of the
//! host of both and the same share. The script ends when CMD does, with its status, output and messages. The messages
//! of the kernel are in `inside/console`. The first guest needs /dev/kvm.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::initramfs::{self, Errand};
use super::machine::command_line;
use super::{Accelerator, Guest};
use crate::place;

/// The folder, as the first guest sees it.
const FOLDER: &str = "/mnt/share/inside";

/// Parts from which [`keep`] makes a guest's guest: a kernel, words for its command line, the modules its first file
/// system loads, the recorder, and the environment of CMD.
pub fn guest(
    image: PathBuf,
    append: &str,
    first: Vec<PathBuf>,
    load: PathBuf,
    variables: Vec<(&'static str, OsString)>,
) -> Guest {
    Guest {
        image,
        first,
        accelerator: Accelerator::Kvm,
        cpus: 2,
        memory: 512,
        // A character of the console leaves the guest, and emulated that takes long.
        append: format!("loglevel=4 {append}"),
        acpi_table: None,
        monitor: None,
        console: None,
        dump: Vec::new(),
        second: false,
        reboot: false,
        inside: None,
        cables: Vec::new(),
        disk: 0,
        share: "/mnt/share".into(),
        load: Some(load),
        early: None,
        variables,
        command: ["bash", "/mnt/share/inside/job.sh"].map(OsString::from).to_vec(),
        timeout: std::time::Duration::MAX,
    }
}

/// Writes the guest's guest's files to the share, and the script.
pub fn keep(guest: &Guest, share: &Path) -> Result<()> {
    let folder = place::made(share.join("inside"))?;
    fs::copy(&guest.image, folder.join("kernel"))?;
    fs::write(folder.join("initramfs"), initramfs::build(guest, Errand::Command)?)?;
    let script = folder.join("run");
    fs::write(&script, text(guest)).with_context(|| script.display().to_string())?;
    fs::set_permissions(&script, Permissions::from_mode(0o755)).context("script")
}

/// The script.
fn text(guest: &Guest) -> Vec<u8> {
    let image = format!("{FOLDER}/kernel").into();
    let mut qemu = command_line(&Guest { image, ..guest.clone() });
    // In QEMU's emulation of SVM the firmware does not come back from system management mode.
    qemu.args(["-machine", "smm=off"]);
    qemu.arg("-initrd").arg(format!("{FOLDER}/initramfs"));
    qemu.args(["-device", "virtio-serial-pci"]);
    for (number, name) in ["console", "out", "err", "report"].into_iter().enumerate() {
        qemu.arg("-chardev").arg(format!("file,id={name},path={FOLDER}/{name}"));
        match number {
            0 => qemu.args(["-serial", "chardev:console"]),
            number => qemu.arg("-device").arg(format!("virtserialport,nr={number},chardev={name},name={name}")),
        };
    }
    let mut words = initramfs::quoted(qemu.get_program());
    for word in qemu.get_args() {
        words.push(b' ');
        words.extend(initramfs::quoted(word));
    }
    [include_bytes!("inside_head.sh").as_slice(), words.as_slice(), include_bytes!("inside_tail.sh").as_slice()]
        .concat()
}
