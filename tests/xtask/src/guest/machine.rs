// SPDX-License-Identifier: BSD-3-Clause
//! Starts the virtual machine: QEMU's arguments, and the pipes that lead out of it.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::pipe::pipe;
use tempfile::NamedTempFile;

use super::dump::Dump;
use super::initramfs::{self, Errand};
use super::{inside, Accelerator, Guest};
use crate::place;
use crate::progress::tied;

/// A disk of a guest is about as fast as one that turns, however fast the host's is.
const THROTTLE: &str = "throttling.iops-total=400,throttling.bps-total=50000000";

/// Features that QEMU emulates. Not page tables of five levels: an interrupt while the kernel patches itself for them
/// makes KASAN complain. Not ERMS: a kernel that has it copies and clears by the byte, which is eight times as slow
/// here.
const CPU: &str = "max,la57=off,erms=off";

/// A machine that runs. Dropping it ends it.
pub struct Machine {
    qemu: Child,
    /// Kept for as long as QEMU may read it.
    _initramfs: NamedTempFile,
    _disk: Option<NamedTempFile>,
    dump: Option<Dump>,
}

/// The reading ends of a machine's outputs.
pub struct Outputs {
    /// The kernel's messages.
    pub console: File,
    /// CMD's standard output.
    pub out: File,
    /// CMD's standard error.
    pub err: File,
    /// Reports of init.
    pub report: File,
    /// Messages of QEMU itself.
    pub qemu: std::process::ChildStderr,
}

impl Machine {
    /// Boots `guest`.
    pub fn start(guest: &Guest, errand: Errand) -> Result<(Self, Outputs)> {
        let mut initramfs = NamedTempFile::with_prefix("kutrace-").context("vm: initramfs")?;
        initramfs.write_all(&initramfs::build(guest, errand).context("vm: initramfs")?).context("vm: initramfs")?;
        let mut command = command_line(guest);
        command.arg("-initrd").arg(initramfs.path());
        if guest.second {
            keep_second(guest, initramfs.path()).context("vm: second kernel")?;
        }
        if let Some(inner) = &guest.inside {
            inside::keep(inner, &guest.share).context("vm: guest of the guest")?;
        }
        let disk = (guest.disk > 0).then(|| disk(guest.disk)).transpose()?;
        if let Some(disk) = &disk {
            command.arg("-drive").arg(format!("file={},if=virtio,format=raw,{THROTTLE}", option_value(disk.path())));
        }

        let console = Channel::open("console", &mut command)?;
        command.args(["-serial", "chardev:console"]);
        command.args(["-device", "virtio-serial-pci"]);
        let [out, err, report] = ["out", "err", "report"].map(|name| Channel::open(name, &mut command));
        let (out, err, report) = (out?, err?, report?);
        for (number, name) in [(1, "out"), (2, "err"), (3, "report")] {
            command.arg("-device").arg(format!("virtserialport,nr={number},chardev={name},name={name}"));
        }

        let dump = (!guest.dump.is_empty()).then(|| Dump::new(&guest.dump)).transpose()?;
        if let Some(dump) = &dump {
            command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", option_value(&dump.socket())));
        }

        // A group of its own: Ctrl-C reaches only xtask, which ends the machine and reports it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut qemu = command.spawn().context("vm: qemu-system-x86_64: cannot be started")?;
        let outputs = Outputs {
            console: console.reader,
            out: out.reader,
            err: err.reader,
            report: report.reader,
            qemu: qemu.stderr.take().context("vm: qemu: no stderr")?,
        };
        Ok((Self { qemu, _initramfs: initramfs, _disk: disk, dump }, outputs))
    }

    /// Writes the machine's memory, if that is requested; it stands still in that time.
    pub fn dump(&self) -> Result<()> {
        self.dump.as_ref().map_or(Ok(()), Dump::write)
    }

    /// CPU time of the host that the machine has taken so far.
    pub fn took(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.qemu.id())).unwrap_or_default();
        // The name in parentheses may have spaces; twelve fields are between it and the two times.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Returns whether the machine has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.qemu.try_wait().context("vm: qemu")?.is_some())
    }

    /// Ends the machine, if it has not ended, and waits until it has.
    pub fn end(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// A pipe from the machine to us. Its writing end is inherited by QEMU, which opens it by number.
struct Channel {
    reader: File,
    /// Closed on our side when this is dropped, after QEMU has it: then the reader ends when QEMU does.
    _writer: OwnedFd,
}

impl Channel {
    fn open(name: &str, command: &mut Command) -> Result<Self> {
        let (reader, writer) = pipe().with_context(|| format!("vm: {name}: no pipe"))?;
        command.arg("-chardev").arg(format!("file,id={name},path=/dev/fd/{}", writer.as_raw_fd()));
        Ok(Self { reader: File::from(reader), _writer: writer })
    }
}

/// An empty disk.
fn disk(bytes: u64) -> Result<NamedTempFile> {
    let disk = NamedTempFile::with_prefix("kutrace-").context("vm: disk")?;
    disk.as_file().set_len(bytes).context("vm: disk")?;
    Ok(disk)
}

/// Place of the files for its second kernel in the guest.
fn keep_second(guest: &Guest, initramfs: &Path) -> Result<()> {
    let folder = place::made(guest.share.join("second"))?;
    fs::copy(&guest.image, folder.join("kernel"))?;
    fs::copy(initramfs, folder.join("initramfs"))?;
    Ok(())
}

/// Everything of QEMU's command line that is not a pipe.
pub fn command_line(guest: &Guest) -> Command {
    let mut qemu = tied("qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35"]);
    qemu.args((!guest.reboot).then_some("-no-reboot"));
    qemu.args(accelerator_words(guest.accelerator));
    qemu.args(["-smp", &guest.cpus.to_string(), "-m", &guest.memory.to_string()]);
    qemu.arg("-kernel").arg(&guest.image);
    // An oops and a panic end the guest at once instead of leaving it half alive. A guest that has to wait for the
    // host's CPUs must neither distrust its clock for that (`tsc=unstable` still makes it) nor call it a stall. One
    // whose memory is requested stays unchanged. QEMU translates code again for each address at which it finds it: if a
    // program starts at another one each time, that takes half of all time. 256 terminals of an old kind take a tenth
    // of the boot.
    let panic = if guest.dump.is_empty() { -1 } else { 0 };
    let words = "console=ttyS0 loglevel=7 oops=panic tsc=reliable rcupdate.rcu_cpu_stall_timeout=60 \
        lapic_timer_hz=1000000000 norandmaps pty.legacy_count=0";
    let second = if guest.second { "crashkernel=224M" } else { "" };
    qemu.args(["-append", &format!("{words} panic={panic} {second} {}", guest.append)]);
    qemu.args(["-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]);
    let share = option_value(&guest.share);
    qemu.arg("-virtfs").arg(format!("local,path={share},mount_tag=share,security_model=none,multidevs=remap"));
    if let Some(table) = &guest.acpi_table {
        qemu.arg("-acpitable").arg(format!("file={}", option_value(table)));
    }
    for (n, (own, other)) in guest.cables.iter().enumerate() {
        let (local, remote) = (option_value(own), option_value(other));
        qemu.arg("-netdev")
            .arg(format!("dgram,id=cable{n},local.type=unix,local.path={local},remote.type=unix,remote.path={remote}"));
        let [a, b, c, ..] = address(own);
        qemu.arg("-device")
            .arg(format!("virtio-net-pci,netdev=cable{n},mac=52:54:00:{a:02x}:{b:02x}:{c:02x},romfile="));
    }
    if let Some(socket) = &guest.monitor {
        qemu.arg("-monitor").arg(format!("unix:{},server=on,wait=off", option_value(socket)));
    }
    qemu
}

/// The part of the address that distinguishes the network card at this end of a cable from others.
fn address(end: &Path) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    end.hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

/// A path inside an option of QEMU's, which ends at a comma.
fn option_value(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn accelerator_words(accelerator: Accelerator) -> Vec<String> {
    let icount = |shift: u8, sleep: &str| vec!["-icount".into(), format!("shift={shift},sleep={sleep}")];
    let (how, cpu, counted) = match accelerator {
        Accelerator::Kvm => ("kvm", "host", Vec::new()),
        Accelerator::Tcg => ("tcg,thread=multi", CPU, Vec::new()),
        Accelerator::Interleaved => ("tcg,thread=single", CPU, Vec::new()),
        Accelerator::Paced { shift } => ("tcg,thread=single", CPU, icount(shift, "on")),
        Accelerator::Counted => ("tcg,thread=single", "max", icount(0, "off")),
    };
    [["-accel", how, "-cpu", cpu].map(String::from).to_vec(), counted].concat()
}
