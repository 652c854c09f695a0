// SPDX-License-Identifier: BSD-3-Clause
//! The guests that this machine runs by KVM, from KVM's folder in debugfs: the thread of each virtual CPU, and the
//! relation of its counter to this machine's. Also detects whether this machine is a guest itself.
//!
//! Nothing here fails: a guest that ends while it is read is skipped.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use kutrace_format::vcpu::{Scale, Vcpu};

/// KVM's folder, at the usual mount point of debugfs.
pub const KVM: &str = "/sys/kernel/debug/kvm";

/// A virtual CPU: its thread, its number, and a text with the guest and the scale of the counter.
pub type Thread = (u32, u32, String);

/// The virtual CPUs of all guests.
pub fn all(kvm: &Path) -> Vec<Thread> {
    let mut threads = Vec::new();
    for guest in folders(kvm) {
        for (name, folder) in
            folders(&kvm.join(&guest)).into_iter().map(|name| (name.clone(), kvm.join(&guest).join(name)))
        {
            let Some(number) = name.strip_prefix("vcpu").and_then(|number| number.parse().ok()) else { continue };
            // A virtual CPU that has not run yet has no thread.
            let Some(thread) = value(&folder, "pid").filter(|&thread: &u32| thread > 0) else { continue };
            let Some(offset) = value(&folder, "tsc-offset") else { continue };
            // If the processor cannot scale, there are no files with the scale.
            let ratio = value(&folder, "tsc-scaling-ratio").filter(|&ratio: &u64| ratio > 0);
            let bits = value(&folder, "tsc-scaling-ratio-frac-bits");
            let scale = match (ratio, bits) {
                (Some(ratio), Some(bits)) => Scale { offset, ratio, bits },
                _ => Scale::by(offset),
            };
            threads.push((thread, number, Vcpu { guest: &guest, number, scale }.to_string()));
        }
    }
    threads
}

/// The hypervisor of this machine, if /proc/cpuinfo shows that there is one; the list of the kernel's clocks identifies
/// it.
pub fn hypervisor(cpuinfo: &str, clocks: &str) -> Option<&'static str> {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    flags.split_whitespace().find(|flag| *flag == "hypervisor")?;
    Some(if clocks.split_whitespace().any(|clock| clock == "kvm-clock") { "kvm" } else { "other" })
}

/// The names of the folders in a folder.
fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The number in a file.
fn value<T: FromStr>(folder: &Path, file: &str) -> Option<T> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_virtual_cpu_with_a_thread_is_told_with_its_counter() {
        let kvm = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = kvm.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        file("exits", "5\n");
        file("77-12/vcpu1/pid", "80\n");
        file("77-12/vcpu1/tsc-offset", "-9000\n");
        file("77-12/vcpu1/tsc-scaling-ratio", "4294967296\n");
        file("77-12/vcpu1/tsc-scaling-ratio-frac-bits", "32\n");
        file("77-12/vcpu2/pid", "0\n");
        file("77-12/vcpu2/tsc-offset", "-9000\n");
        file("90-3/vcpu0/pid", "91\n");
        file("90-3/vcpu0/tsc-offset", "4\n");
        let mut found = all(kvm.path());
        found.sort();
        let expected = [(80, 1, "77-12/1:-9000:4294967296:32"), (91, 0, "90-3/0:4:1:0")];
        assert_eq!(found, expected.map(|(thread, number, text)| (thread, number, text.to_string())));
        assert_eq!(all(Path::new("/nonexistent")), []);
    }

    #[test]
    fn a_guest_knows_of_what() {
        let cpuinfo = "processor\t: 0\nflags\t\t: fpu hypervisor lm\n";
        assert_eq!(hypervisor(cpuinfo, "kvm-clock tsc acpi_pm"), Some("kvm"));
        assert_eq!(hypervisor(cpuinfo, "tsc acpi_pm"), Some("other"));
        assert_eq!(hypervisor("flags\t\t: fpu lm\n", "kvm-clock"), None);
    }
}
