// SPDX-License-Identifier: BSD-3-Clause
//! Samples of the kernel have the names of functions, from the machine that was traced.

use std::fs;

use postprocess::event::number::PC_KERNEL;
use postprocess::span::sample::kernel::Symbols;

use crate::guest;
use crate::trace::Recording;

#[test]
fn a_sample_of_the_kernel_has_the_name_of_its_function() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cat /proc/kallsyms >$SHARE/kallsyms
        kutrace_control go
        dd if=/dev/zero of=/dev/null bs=16M count=60 status=none
        kutrace_control stop $SHARE/named.raw
        kutrace_control stop --no-symbols $SHARE/bare.raw
        echo 2 >/proc/sys/kernel/kptr_restrict
        kutrace_control stop $SHARE/hidden.raw
        "#,
    );
    let symbols = Symbols::parse(&fs::read_to_string(run.file("kallsyms")).unwrap()).unwrap();
    let read = |name: &str| Recording::read_whole(&run.file(name));
    let (named, bare, hidden) = (read("named.raw"), read("bare.raw"), read("hidden.raw"));
    let names = |trace: &Recording| -> Vec<String> {
        trace.of(PC_KERNEL).map(|e| trace.event_name(e).strip_prefix("PC=").unwrap().to_string()).collect()
    };
    let functions = names(&bare).into_iter().map(|address| {
        let address = u64::from_str_radix(&address, 16).unwrap();
        symbols.find(address).unwrap().to_string()
    });
    let functions: Vec<String> = functions.collect();
    assert!(functions.len() > 20, "{}", functions.len());
    assert_eq!(names(&named), functions);
    assert_eq!(names(&hidden), names(&bare));
}
