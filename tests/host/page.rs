// SPDX-License-Identifier: BSD-3-Clause
//! The page as text: names from a trace stay text, and nothing in it points outside.

use kutrace_tests::number::{idle, of_thread};
use kutrace_tests::{busy, Random};
use postprocess::event::number::user;
use postprocess::id::Pid;
use postprocess::sink;
use postprocess::sink::page::{self, NotLifted};
use postprocess::source;
use postprocess::span::what::What;
use postprocess::span::{build, Meta, Span, Spans};
use postprocess::time::Time;
use serde_json::Value;

use crate::upstream::reference;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--<script>'\"&{{7*7}}\u{2028}";

fn page_of(spans: &Spans) -> String {
    let mut page = Vec::new();
    page::render(spans, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

fn hostile() -> Spans {
    let meta = Meta {
        title: HOSTILE.into(),
        host: HOSTILE.into(),
        kernel: HOSTILE.into(),
        cpu_model: HOSTILE.into(),
        tracebase: HOSTILE.into(),
        quality: vec![HOSTILE.into()],
        ..Meta::default()
    };
    let span = Span { dur: Time(10), pid: of_thread(1), what: What::of(user(Pid::new(1)) as i32), ..idle() };
    Spans { meta, names: vec![HOSTILE.into()], spans: vec![span] }
}

#[test]
fn a_hostile_name_adds_no_markup() {
    let tame = page_of(&Spans { names: vec!["tame".into()], ..Spans::default() });
    let page = page_of(&hostile());
    assert!(!page.contains("<img"), "an element came from a name");
    assert!(!page.contains("</script><img"));
    assert_eq!(page.matches("<!--").count(), 0);
    let scripts = |page: &str| (page.matches("<script").count(), page.matches("</script").count());
    let (opened, closed) = scripts(&page);
    assert_eq!(opened, closed);
    assert_eq!(opened, scripts(&tame).0 + 1, "one data chunk more than a page without spans, nothing else");
}

#[test]
fn a_hostile_name_reads_back_from_the_page_as_it_was() {
    let page = page_of(&hostile());
    let element = page.split("id=\"ku-meta\"").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
    let meta: serde_json::Value = serde_json::from_str(element.split_once('>').unwrap().1).unwrap();
    assert_eq!(meta["names"][0], HOSTILE);
    assert_eq!(meta["quality"][0], HOSTILE);
}

#[test]
fn a_page_points_nowhere() {
    let page = page_of(&hostile());
    assert!(page.contains("default-src 'none'"));
    // The figures it saves name SVG's namespace, which is never fetched, and parts of themselves.
    let page = page.replace("\"http://www.w3.org/2000/svg\"", "").replace("url(#", "");
    for scheme in ["http:", "https:", "//cdn", "@import", "url("] {
        assert!(!page.contains(scheme), "{scheme}");
    }
}

#[test]
fn the_spans_lifted_out_of_a_page_are_those_it_was_made_of() {
    let real = build(source::decode(&busy(2, 2_000, 11).bytes()).unwrap()).0;
    let meta = Meta { title: "a title".into(), ..real.meta };
    for spans in [hostile(), Spans { meta, ..real }] {
        let page = page_of(&spans);
        let lifted = page::lift(&page).unwrap();
        assert_eq!(lifted, spans);
        assert_eq!(page_of(&lifted), page);
    }
}

/// The data of a page of the first version. It must stay readable.
#[test]
fn the_first_pages_can_still_be_lifted() {
    assert_eq!(page::lift(include_str!("../golden/page1.html")).unwrap(), hostile());
}

/// A page as the original's `makeself` makes it: line ends of the JSON become blanks, apostrophes stay.
fn original_page(json: &str) -> String {
    let text = json.replace('\n', " ");
    let data =
        format!("<script>\nvar myString = '{text}';\ndata = JSON.parse(myString); newdata2_resize(data);\nlet after = 'x';\n</script>");
    format!("<html>\n<!-- selfcontained0 -->\n<script>let d3 = 'x';</script>\n<!-- selfcontained1 -->\n{data}\n<!-- selfcontained2 -->\n<p>it's</p>\n</html>\n")
}

#[test]
fn a_page_of_the_original_is_lifted_too() {
    let text = "  {\n \"Comment\" : \"V2 with IPC field\",\n \"axisLabelX\" : \"Time (sec)\",\n \"flags\" : 131,\n \"mbit_sec\" : 1000,\n \
        \"title\" : \"it's a title\",\n \"tracebase\" : \"2019-03-14_13:22:00\",\n \"version\" : 3,\n\"events\" : [\n\
        [  1.00000000,   0.00000010, 0, 7, 0, 65543, 0, 0, 0, \"x';alert(1)//.7\"],\n\
        [ 41.14144557,   0.00000136, 2, 0, 0, 1516, 0, 0, 2, \"local_timer_vector\"],\n\
        [999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n]}\n";
    let spans = source::json::read(&mut text.as_bytes()).unwrap();
    assert_eq!((spans.spans.len(), spans.meta.title.as_str(), spans.meta.quality.len()), (2, "it's a title", 0));
    assert_eq!(page::lift(&original_page(text)).unwrap(), spans);
    assert_eq!(page::lift(&original_page(text).replace('\'', "\"")), Err(NotLifted::Unreadable(None)));
    let real = String::from_utf8(reference("pipes.json").unwrap()).unwrap();
    assert_eq!(page::lift(&original_page(&real)).unwrap(), source::json::read(&mut real.as_bytes()).unwrap());
}

/// As `makeself` and the viewer of the original take our JSON: its lines in one, between the apostrophes of a script,
/// then parsed. What that viewer reads is there, in the types it expects; and nothing that the original's own JSON has
/// is missing.
#[test]
fn our_json_has_what_the_viewer_of_the_original_reads() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/pipeline.trace");
    let real = build(source::decode(&std::fs::read(sample).unwrap()).unwrap()).0;
    let meta = Meta { title: "it's a title".into(), ..real.meta.clone() };
    let mut text = Vec::new();
    sink::json::write(&Spans { meta, ..real }, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().replace('\n', " ");
    assert!(!text.contains('\''), "the script ends early");
    // A string of a script takes its own escapes out first.
    let parsed: Value = serde_json::from_str(&text.replace("\\u0027", "'")).unwrap();
    for key in ["Comment", "axisLabelX", "axisLabelY", "shortUnitsX", "title", "tracebase"] {
        assert!(parsed[key].is_string(), "{key}");
    }
    for key in ["flags", "mbit_sec", "randomid", "shortMulX", "thousandsX"] {
        assert!(parsed[key].is_number(), "{key}");
    }
    assert_eq!((&parsed["version"], &parsed["title"]), (&3.into(), &"it's a title".into()));
    let events = parsed["events"].as_array().unwrap();
    let start = |event: &Value| event[0].as_f64().unwrap();
    for pair in events.windows(2) {
        assert!(start(&pair[0]) <= start(&pair[1]), "{pair:?}");
        let [columns @ .., name] = pair[0].as_array().unwrap().as_slice() else { panic!("{pair:?}") };
        // Of null its viewer makes 0.
        let number = |(n, value): (usize, &Value)| value.is_number() || value.is_null() && matches!(n, 6 | 7);
        assert!(columns.len() == 9 && columns.iter().enumerate().all(number) && name.is_string(), "{pair:?}");
    }
    assert_eq!(events.last().unwrap(), &serde_json::json!([999.0, 0.0, 0, 0, 0, 0, events.len() - 1, 0, 0, ""]));
    let theirs: Value = serde_json::from_slice(&reference("pipes.json").unwrap()).unwrap();
    for (key, value) in theirs.as_object().unwrap() {
        assert_eq!(std::mem::discriminant(&parsed[key]), std::mem::discriminant(value), "{key}");
    }
}

/// One bit of a character of a page changed: the spans are refused, or the same, or another fault is reported.
#[test]
fn no_changed_character_of_a_page_gives_other_spans_unsaid() {
    let mut spans = build(source::decode(&busy(1, 60, 3).bytes()).unwrap()).0;
    spans.meta.title = "busy".into();
    let page = page_of(&spans);
    let [meta, data] = ["id=\"ku-meta\"", "class=\"ku-data\""].map(|text| page.find(text).unwrap());
    let about = page[meta..].find("</script>").unwrap();
    let parts = [0..page.len(), meta - 40..meta + about + 10, data - 40..page.len()];
    let mut random = Random(23);
    let mut refused = 0;
    for part in parts.iter().cycle().take(300) {
        let at = part.start + random.below(part.len() as u64) as usize;
        let mut bytes = page.clone().into_bytes();
        bytes[at] ^= 1 << random.below(7);
        let changed = String::from_utf8_lossy(&bytes);
        match page::lift(&changed) {
            Err(_) => refused += 1,
            Ok(lifted) if lifted.meta.quality == spans.meta.quality => {
                assert_eq!(lifted, spans, "character {at}: {:?}", &changed[at.saturating_sub(30)..][..40]);
            }
            Ok(lifted) => assert_eq!((lifted.names, lifted.spans), (spans.names.clone(), spans.spans.clone())),
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn what_is_no_whole_page_is_refused_with_the_reason() {
    let page = page_of(&hostile());
    let refused = |page: &str| page::lift(page).unwrap_err();
    assert_eq!(refused(""), NotLifted::NotAPage);
    assert_eq!(refused("<html>another</html>"), NotLifted::NotAPage);
    assert_eq!(refused(&page.replace("\"version\":2,", "\"version\":9,")), NotLifted::Newer(9));
    assert_eq!(refused(&page.replace("\"version\":", "\"version\":x")), NotLifted::Unreadable(None));
    let begin = "class=\"ku-data\">";
    assert_eq!(refused(&page.replace(begin, &format!("{begin}!"))), NotLifted::Unreadable(Some(0)));
    let (before, _) = page.split_once(begin).unwrap();
    assert!(matches!(refused(before), NotLifted::Damaged(_)));
    let said = |page: &str| page::lift(page).unwrap().meta.quality.len();
    assert_eq!([said(&format!("{page}\n ")) + 1, said(&format!("{page}{{}}"))], [said(&page) + 1; 2]);
}
