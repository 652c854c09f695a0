// SPDX-License-Identifier: BSD-3-Clause
//! Non-maskable interrupts, against the kernel's own count of them.

use kutrace_format::x86::trap;
use postprocess::event::number::{RETURN_BIT, TRAP};
use postprocess::id::CpuId;

use crate::guest;
use crate::trace::Recording;

const NMI: u32 = TRAP + trap::NMI;
const CPUS: u32 = 2;

#[test]
fn as_many_nmis_on_every_cpu_as_the_kernel_counted() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/edges .
        nmis() { awk -v at=$1 '$1 == "NMI:" { for (n = 0; n < 2; n++) print at n "=" $(n + 2) }' /proc/interrupts; }
        # The kernel answers each of these requests with an NMI on every other CPU, and with much text.
        dmesg --console-level 1
        nmis before
        kutrace_control go
        ./edges 2000000 & calls=$!
        stress-ng --quiet --switch 1 --fault 1 --timeout 100 & load=$!
        for n in $(seq 50); do echo l >/proc/sysrq-trigger; done
        kutrace_control stop $SHARE/t.raw
        kill $calls $load
        nmis after
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let recorded = |number, cpu| trace.of(number).filter(|e| e.cpu == CpuId::new(cpu)).count() as u64;
    let mut all = 0;
    for cpu in 0..CPUS {
        let counted = run.number(&format!("after{cpu}")) - run.number(&format!("before{cpu}"));
        assert_eq!((recorded(NMI, cpu), recorded(NMI | RETURN_BIT, cpu)), (counted, counted), "cpu {cpu}");
        all += counted;
    }
    assert!(all >= 50, "{all}");
}
