// SPDX-License-Identifier: BSD-3-Clause
//! Samples of programs have the names of functions, without a further tool, also of a program that has ended by the stop.

use std::collections::BTreeMap;
use std::fs;

use crate::guest::{self, Run};

/// Number of samples of user code by thread and name, in lines that rawtoevent wrote in the guest. Only those of a
/// program are selected.
fn samples(run: &Run, file: &str, program: &str) -> BTreeMap<(String, String), u32> {
    let text = fs::read_to_string(run.file(file)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    // A line that names something has fewer words.
    let lines = lines.filter_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [_, _, event, _, pid, .., name, _] => Some((event, pid, name)),
        _ => None,
    });
    let switches = lines.clone().filter(|(event, ..)| *event == "512");
    // A program may be sampled before anybody switches to it by its name, so the names come first.
    let threads: BTreeMap<&str, &str> =
        switches.filter_map(|(_, _, name)| name.rsplit_once('.').map(|(name, pid)| (pid, name))).collect();
    let mut samples = BTreeMap::new();
    for (_, pid, name) in lines.filter(|(event, ..)| *event == "640") {
        if threads.get(pid) == Some(&program) {
            *samples.entry((pid.to_string(), name.to_string())).or_default() += 1;
        }
    }
    samples
}

/// The threads of these samples, and of each name how many there are.
fn totals(samples: &BTreeMap<(String, String), u32>) -> (usize, BTreeMap<&str, u32>) {
    let threads: std::collections::BTreeSet<_> = samples.keys().map(|(pid, _)| pid).collect();
    let mut totals = BTreeMap::new();
    samples.iter().for_each(|((_, name), count)| *totals.entry(name.as_str()).or_default() += count);
    (threads.len(), totals)
}

fn is_address(name: &str) -> bool {
    name.strip_prefix("PC=").is_some_and(|text| text.len() >= 12 && text.bytes().all(|c| c.is_ascii_hexdigit()))
}

#[test]
fn a_sample_of_a_program_has_the_name_of_its_function() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $BIN/functions/{libturn.so,program,fixed,stripped} .
        for name in program stripped fixed; do
            kutrace_control record -o $name.raw -- ./$name 0.2
            rawtoevent $name.raw >$SHARE/$name.events 2>$SHARE/$name.said
        done
        kutrace_control record --stream -o stream.raw -- ./program 0.2
        rawtoevent stream.raw >$SHARE/stream.events
        kutrace_control record --no-symbols -o bare.raw -- ./program 0.2
        rawtoevent bare.raw >$SHARE/bare.events
        # What runs at the stop is known without a process that records, what has ended is not.
        kutrace_control go
        ./program 0.2
        ./program 30 & sleep 0.5
        kutrace_control stop both.raw
        kill %1
        rawtoevent both.raw >$SHARE/both.events
        # Another build of the same name names nothing.
        cp $BIN/functions/other program
        rawtoevent program.raw >$SHARE/other.events 2>$SHARE/other.said
        kutrace_control html program.raw -o $SHARE/page.html 2>$SHARE/html.said
        "#,
    );
    for file in ["program", "stream"] {
        let found = samples(&run, &format!("{file}.events"), "program");
        let (threads, named) = totals(&found);
        assert_eq!(threads, 2, "{found:?}");
        for name in ["PC=inner@outer", "PC=turn"] {
            let of_each: Vec<u32> = found.iter().filter(|((_, is), _)| is == name).map(|(_, n)| *n).collect();
            assert!(of_each.len() == 2 && of_each.iter().all(|n| *n > 10), "{file}: {name}: {found:?}");
        }
        assert!(named.keys().all(|name| !is_address(name)), "{file}: {named:?}");
    }
    let fixed = samples(&run, "fixed.events", "fixed");
    assert!(totals(&fixed).1.keys().any(|name| *name == "PC=inner@outer"), "no build id and no PIE: {fixed:?}");

    let stripped = samples(&run, "stripped.events", "stripped");
    let (_, named) = totals(&stripped);
    assert!(named.keys().any(|name| name.starts_with("PC=stripped+0x")) && named.contains_key("PC=turn"), "{named:?}");

    let bare = samples(&run, "bare.events", "program");
    assert!(bare.len() > 2 && bare.keys().all(|(_, name)| is_address(name)), "{bare:?}");

    let both = samples(&run, "both.events", "program");
    assert!(both.keys().any(|(_, name)| name == "PC=inner@outer"), "{both:?}");
    assert!(both.keys().any(|(_, name)| is_address(name)), "{both:?}");

    let other = samples(&run, "other.events", "program");
    let (_, named) = totals(&other);
    assert!(named.keys().any(|name| name.starts_with("PC=program+0x")) && named.contains_key("PC=turn"), "{named:?}");
    for said in ["other.said", "html.said"] {
        let said = fs::read_to_string(run.file(said)).unwrap();
        assert!(
            said.contains("not named by function in /tmp/program: it differs from the file that was traced"),
            "{said}"
        );
    }
    assert!(!fs::read_to_string(run.file("program.said")).unwrap().contains("not named"));
}
