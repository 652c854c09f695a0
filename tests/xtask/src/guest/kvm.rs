// SPDX-License-Identifier: BSD-3-Clause
//! Chooses between the host's CPU and translation, by trying.
//!
//! The existence of /dev/kvm proves little: nested in some hypervisors it accepts a guest which then hangs. So our own
//! kernel is booted with it once; the result is kept in the cache under host kernel, QEMU and CPU.

use std::fs::OpenOptions;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{watch, Accelerator, Guest};
use crate::place::{self, Key};
use crate::progress;

/// A boot takes a fifth of it.
const LIMIT: Duration = Duration::from_secs(5);

/// The fastest accelerator that is seen to run `guest`'s kernel.
pub fn accelerator(guest: &Guest) -> Result<Accelerator> {
    if OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(Accelerator::Tcg);
    }
    let answer = place::made(place::cache()?.join("kvm"))?.join(host_key()?);
    match std::fs::read_to_string(&answer).as_deref() {
        Ok("works") => return Ok(Accelerator::Kvm),
        Ok("fails") => return Ok(Accelerator::Tcg),
        _ => {}
    }
    eprintln!("vm: trying KVM, for {} at most", progress::minutes(LIMIT));
    let works = watch::boots(&Guest { accelerator: Accelerator::Kvm, ..guest.clone() }, LIMIT)?;
    place::put_stamp(&answer, if works { "works" } else { "fails" })?;
    Ok(if works { Accelerator::Kvm } else { Accelerator::Tcg })
}

/// Key of the result.
fn host_key() -> Result<String> {
    let mut key = Key::default();
    let qemu = progress::output(Command::new("qemu-system-x86_64").arg("--version"))?;
    key.add("kernel", rustix::system::uname().release().to_bytes()).add("qemu", qemu.as_bytes());
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let cpu = cpuinfo.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    key.add("cpu", cpu.as_bytes());
    Ok(key.finish())
}
