// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Guests of KVM: the reason why a virtual CPU left its guest, and how one that was halted continued.
//!
//! ```text
//! GUEST_EXIT   31 entry failed | 17..16 instruction set: 1 VMX, 2 SVM | 15..0 reason, 0xffff not known
//! GUEST_WAKE    1 the guest has something to do | 0 the thread slept, else it only polled
//! ```
//!
//! Reasons are the processor's: VMX's basic exit reasons, SVM's exit codes, which fit in 16 bits.

/// Bit of a [`GUEST_WAKE`](super::event::GUEST_WAKE): the thread of the virtual CPU slept.
pub const WAKE_SLEPT: u32 = 1;
/// And: there is something for the guest to do; else KVM wanted the thread back.
pub const WAKE_HAS_WORK: u32 = 2;

/// Instruction set of [`GuestExit`]: Intel's.
pub const ISA_VMX: u32 = 1;
/// AMD's.
pub const ISA_SVM: u32 = 2;

/// The argument of a [`GUEST_EXIT`](super::event::GUEST_EXIT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestExit(pub u32);

impl GuestExit {
    /// The reason that is not known.
    pub const UNKNOWN: u32 = 0xffff;

    /// The instruction set that the reason's number belongs to.
    pub const fn isa(self) -> u32 {
        self.0 >> 16 & 3
    }

    /// The processor's number.
    pub const fn reason(self) -> u32 {
        self.0 & 0xffff
    }

    /// Returns whether nothing of the guest ran, because its state was refused.
    pub const fn entry_failed(self) -> bool {
        self.0 >> 31 != 0
    }

    /// Returns whether the guest had nothing to do.
    pub const fn is_halt(self) -> bool {
        matches!((self.isa(), self.reason(), self.entry_failed()), (ISA_VMX, 12, false) | (ISA_SVM, 0x78, false))
    }

    /// The reason's name; `None` for a number without a name here.
    pub fn name(self) -> Option<&'static str> {
        let names = match self.isa() {
            _ if self.entry_failed() => return Some("entry_failed"),
            _ if self.reason() == Self::UNKNOWN => return Some("unknown"),
            ISA_VMX => VMX,
            ISA_SVM => SVM,
            _ => return None,
        };
        let found = names.iter().find(|(first, last, _)| (*first..=*last).contains(&self.reason()));
        found.map(|(.., name)| *name)
    }
}

/// Reasons of Intel's processors: from, to, name.
const VMX: &[(u32, u32, &str)] = &[
    (0, 0, "exception"),
    (1, 1, "interrupt"),
    (2, 2, "triple_fault"),
    (3, 3, "init"),
    (4, 4, "sipi"),
    (7, 7, "interrupt_window"),
    (8, 8, "nmi_window"),
    (9, 9, "task_switch"),
    (10, 10, "cpuid"),
    (12, 12, "hlt"),
    (13, 13, "invd"),
    (14, 14, "invlpg"),
    (15, 15, "rdpmc"),
    (16, 16, "rdtsc"),
    (18, 18, "vmcall"),
    (19, 27, "vmx"),
    (28, 28, "cr"),
    (29, 29, "dr"),
    (30, 30, "io"),
    (31, 31, "rdmsr"),
    (32, 32, "wrmsr"),
    (36, 36, "mwait"),
    (37, 37, "monitor_trap"),
    (39, 39, "monitor"),
    (40, 40, "pause"),
    (41, 41, "machine_check"),
    (43, 43, "tpr"),
    (44, 44, "apic_access"),
    (45, 45, "eoi"),
    (46, 47, "descriptor_table"),
    (48, 48, "ept_violation"),
    (49, 49, "ept_misconfig"),
    (50, 50, "vmx"),
    (51, 51, "rdtscp"),
    (52, 52, "preemption_timer"),
    (53, 53, "vmx"),
    (54, 54, "wbinvd"),
    (55, 55, "xsetbv"),
    (56, 56, "apic_write"),
    (57, 57, "rdrand"),
    (58, 58, "invpcid"),
    (59, 59, "vmfunc"),
    (60, 60, "encls"),
    (61, 61, "rdseed"),
    (62, 62, "pml_full"),
    (63, 64, "xsaves"),
    (67, 67, "umwait"),
    (68, 68, "tpause"),
    (74, 74, "bus_lock"),
    (75, 75, "notify"),
];

/// Reasons of AMD's processors.
const SVM: &[(u32, u32, &str)] = &[
    (0x000, 0x01f, "cr"),
    (0x020, 0x03f, "dr"),
    (0x040, 0x05f, "exception"),
    (0x060, 0x060, "interrupt"),
    (0x061, 0x061, "nmi"),
    (0x062, 0x062, "smi"),
    (0x063, 0x063, "init"),
    (0x064, 0x064, "interrupt_window"),
    (0x065, 0x065, "cr"),
    (0x066, 0x06d, "descriptor_table"),
    (0x06e, 0x06e, "rdtsc"),
    (0x06f, 0x06f, "rdpmc"),
    (0x070, 0x070, "pushf"),
    (0x071, 0x071, "popf"),
    (0x072, 0x072, "cpuid"),
    (0x073, 0x073, "rsm"),
    (0x074, 0x074, "iret"),
    (0x075, 0x075, "int"),
    (0x076, 0x076, "invd"),
    (0x077, 0x077, "pause"),
    (0x078, 0x078, "hlt"),
    (0x079, 0x079, "invlpg"),
    (0x07a, 0x07a, "invlpga"),
    (0x07b, 0x07b, "io"),
    (0x07c, 0x07c, "msr"),
    (0x07d, 0x07d, "task_switch"),
    (0x07e, 0x07e, "ferr"),
    (0x07f, 0x07f, "shutdown"),
    (0x081, 0x081, "vmmcall"),
    (0x080, 0x086, "svm"),
    (0x087, 0x087, "rdtscp"),
    (0x088, 0x088, "icebp"),
    (0x089, 0x089, "wbinvd"),
    (0x08a, 0x08a, "monitor"),
    (0x08b, 0x08c, "mwait"),
    (0x08d, 0x08d, "xsetbv"),
    (0x08e, 0x08e, "rdpru"),
    (0x08f, 0x09f, "cr"),
    (0x0a2, 0x0a2, "invpcid"),
    (0x400, 0x400, "npf"),
    (0x401, 0x402, "avic"),
    (0x403, 0x403, "vmgexit"),
];
