// SPDX-License-Identifier: BSD-3-Clause
//! The text about a virtual CPU: it is read as it was written, and no other text is read.

use kutrace_format::vcpu::{Scale, Vcpu};

#[test]
fn a_virtual_cpu_reads_as_it_was_written() {
    let scale = Scale { offset: -5_000, ratio: 3 << 31, bits: 32 };
    let vcpu = Vcpu { guest: "4711-12", number: 3, scale };
    assert_eq!(vcpu.to_string(), "4711-12/3:-5000:6442450944:32");
    assert_eq!(Vcpu::read(&vcpu.to_string()), Some(vcpu));
    // 1.5 times the host's counter, less 5000.
    assert_eq!(scale.host(10_000), 10_000);
    assert_eq!(Scale::by(-7).host(3), 10);
}

#[test]
fn what_is_no_virtual_cpu_is_none() {
    for text in ["", "a", "a/1", "a/1:2:3", "a/1:2:0:32", "a/1:2:3:49", "a/1:2:3:4:5", "a/x:2:3:4", "a/1:2:-3:4"] {
        assert_eq!(Vcpu::read(text), None, "{text}");
    }
}
