// SPDX-License-Identifier: BSD-3-Clause
//! Frames instead of text between the tools.

use kutrace_tests::busy;

use super::*;

#[test]
fn frames_go_wherever_text_goes() {
    let raw = busy(2, 500, 4).bytes();
    let (text, events) = (run(RAWTOEVENT, &[], &raw), run(RAWTOEVENT, &["--binary"], &raw));
    assert_eq!((code(&events), stderr(&events)), (0, stderr(&text)));
    assert!(events.stdout.starts_with(b"KUevent3") && 2 * events.stdout.len() < text.stdout.len());
    let json = run(EVENTTOSPAN, &[], &text.stdout).stdout;
    assert!(run(EVENTTOSPAN, &[], &events.stdout).stdout == json);
    let spans = run(EVENTTOSPAN, &["--binary"], &events.stdout).stdout;
    assert!(spans.starts_with(b"KUspans2") && 2 * spans.len() < json.len());
    for (tool, args) in FILTERS {
        let of_text = run(tool, args, &json);
        assert!(run(tool, args, &spans).stdout == of_text.stdout, "{tool}");
        let framed = run(tool, &[args, &["--binary"]].concat(), &spans);
        assert!(framed.stdout.starts_with(b"KUspans2"), "{tool}");
        assert!(run(SPANTOTRIM, &["0"], &framed.stdout).stdout == run(SPANTOTRIM, &["0"], &of_text.stdout).stdout);
    }
    let page = run(SPANTOHTML, &[], &spans);
    assert!(run(HTMLTOSPAN, &["--binary"], &page.stdout).stdout.starts_with(b"KUspans2"));
    assert_eq!(code(&page), 0);
}

#[test]
fn frames_that_are_cut_or_of_another_version_are_said_to_be() {
    let mut events = run(RAWTOEVENT, &["--binary"], &busy(2, 500, 4).bytes()).stdout;
    let cut = run(EVENTTOSPAN, &["--binary"], &events[..events.len() - 5]);
    assert_eq!(code(&cut), 3);
    assert!(stderr(&cut).contains("the frames end before their end mark"), "{}", stderr(&cut));
    let page = run(SPANTOHTML, &[], &cut.stdout);
    assert_eq!(code(&page), 3, "the damage is passed on");
    assert!(stderr(&page).contains("the frames end before their end mark"), "{}", stderr(&page));
    events[7] = b'9';
    let newer = run(EVENTTOSPAN, &[], &events);
    let said = "eventtospan: stdin: byte 7: frames of a version not known\n";
    assert_eq!((code(&newer), stderr(&newer).as_str()), (1, said));
}
