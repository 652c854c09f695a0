// SPDX-License-Identifier: BSD-3-Clause
//! The devices behind interrupt vectors, as far as the kernel tells.
//!
//! /proc/interrupts names Linux interrupt numbers; only debugfs (CONFIG_GENERIC_IRQ_DEBUGFS) knows the vector
//! each has now. Where it is missing, vectors stay unnamed. Nothing here fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where debugfs shows one file per interrupt.
pub const IRQ_DEBUG: &str = "/sys/kernel/debug/irq/irqs";

/// Name by vector and CPU: each CPU has vectors of its own. A vector of one CPU that several interrupts share has
/// all their names, `|` between.
pub fn vectors(interrupts: &str, irq_debug: &Path) -> BTreeMap<(u32, u32), String> {
    let mut names = BTreeMap::<(u32, u32), String>::new();
    for (irq, actions) in actions(interrupts) {
        let Ok(state) = fs::read_to_string(irq_debug.join(irq.to_string())) else { continue };
        let Some(vector) = field(&state, "Vector:").filter(|vector| (1..256).contains(vector)) else { continue };
        let Some(cpu) = field(&state, "Target:") else { continue };
        let name = names.entry((vector, cpu)).or_default();
        if !name.is_empty() {
            name.push('|');
        }
        name.push_str(actions);
    }
    names
}

/// The numbered lines of /proc/interrupts: interrupt, and the names of its handlers.
fn actions(interrupts: &str) -> impl Iterator<Item = (u32, &str)> {
    interrupts.lines().filter_map(|line| {
        let (irq, rest) = line.split_once(':')?;
        Some((irq.trim().parse().ok()?, handlers(rest)?))
    })
}

/// What follows the trigger (`5-edge`) of a line; else its last word.
fn handlers(line: &str) -> Option<&str> {
    for trigger in ["-edge", "-level", "-fasteoi"] {
        if let Some((_, rest)) = line.split_once(trigger) {
            let rest = rest.trim();
            return (!rest.is_empty()).then_some(rest);
        }
    }
    line.split_whitespace().next_back()
}

/// The number behind a word of an interrupt's debugfs file. Vector 0 means that none is assigned.
fn field(state: &str, word: &str) -> Option<u32> {
    state.lines().find_map(|line| line.trim().strip_prefix(word))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1
 25:          0          1  IO-APIC   6-edge      ACPI:Ged
 36:          0     184976 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 37:          0          0  IO-APIC  17-fasteoi   ehci_hcd:usb1, Some Device
 38:          0          0 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

    #[test]
    fn handlers_are_read_from_proc_interrupts() {
        let found: Vec<_> = actions(INTERRUPTS).collect();
        let expected =
            [(25, "ACPI:Ged"), (36, "virtio1-req.0"), (37, "ehci_hcd:usb1, Some Device"), (38, "virtio2-input.0")];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_vector_is_named_for_its_cpu_and_an_unassigned_one_is_not() {
        let debug = tempfile::tempdir().unwrap();
        for (irq, state) in [
            ("25", "handler:  handle_edge_irq\n     Vector:    33\n     Target:     1\n"),
            ("36", "     Vector:    33\n     Target:     0\n     Previous vector:    40\n"),
            ("37", "     Vector:     0\n     Target:     0\n"),
            ("38", "     Vector:    33\n     Target:     1\n"),
        ] {
            fs::write(debug.path().join(irq), state).unwrap();
        }
        let named = |cpu, name: &str| ((33, cpu), name.to_owned());
        let expected = BTreeMap::from([named(0, "virtio1-req.0"), named(1, "ACPI:Ged|virtio2-input.0")]);
        assert_eq!(vectors(INTERRUPTS, debug.path()), expected);
    }
}
