// SPDX-License-Identifier: BSD-3-Clause
//! Event text of the original, where it is at hand, gives sound spans.

use std::path::Path;
use std::process::Command;

use postprocess::event::read::read;
use postprocess::span::{build, check};

#[test]
fn text_of_the_original_gives_spans_that_cover_all_time() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/upstream-traces");
    for stem in ["hw2019", "pipes"] {
        let packed = folder.join(format!("{stem}.events.xz"));
        let Some(text) = Command::new("xz").arg("-dc").arg(&packed).output().ok().filter(|o| o.status.success()) else {
            println!("skipped: {} is not at hand", packed.display());
            continue;
        };
        let events = read(&mut &text.stdout[..]).unwrap();
        assert_eq!(events.meta.quality, [""; 0]);
        let (spans, tally) = build(events);
        assert_eq!(check(&spans, &[], &tally), [""; 0]);
        assert!(spans.spans.len() > 20_000 && tally.late == 0, "{tally:?}");
    }
}
