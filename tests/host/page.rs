// SPDX-License-Identifier: BSD-3-Clause
//! The page as text: names from a trace stay text, and nothing in it points outside.

use kutrace_tests::busy;
use postprocess::html::{self, NotLifted};
use postprocess::raw;
use postprocess::span::{build, Meta, Span, Spans};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--<script>'\"&{{7*7}}\u{2028}";

fn page_of(spans: &Spans) -> String {
    let mut page = Vec::new();
    html::render(spans, &mut page).unwrap();
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
    let span = Span { dur: 10, pid: 1, event: 0x10001, ..Span::default() };
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
    let json = page.split("id=\"ku-meta\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
    let meta: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(meta["names"][0], HOSTILE);
    assert_eq!(meta["quality"][0], HOSTILE);
}

#[test]
fn a_page_points_nowhere() {
    let page = page_of(&hostile());
    assert!(page.contains("default-src 'none'"));
    // The figures it saves name SVG's namespace, which nobody fetches, and parts of themselves.
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "").replace("url(#", "");
    for scheme in ["http:", "https:", "//cdn", "@import", "url("] {
        assert!(!page.contains(scheme), "{scheme}");
    }
}

#[test]
fn the_spans_lifted_out_of_a_page_are_those_it_was_made_of() {
    let real = build(raw::decode(&busy(2, 2_000, 11).bytes()).unwrap()).0;
    let meta = Meta { title: "a title".into(), ..real.meta };
    for spans in [hostile(), Spans { meta, ..real }] {
        let page = page_of(&spans);
        let lifted = html::lift(&page).unwrap();
        assert_eq!(lifted, spans);
        assert_eq!(page_of(&lifted), page);
    }
}

#[test]
fn what_is_no_whole_page_is_refused_with_the_reason() {
    let page = page_of(&hostile());
    let refused = |page: &str| html::lift(page).unwrap_err();
    assert_eq!(refused(""), NotLifted::NotAPage);
    assert_eq!(refused("<html>another</html>"), NotLifted::NotAPage);
    assert_eq!(refused(&page.replace("\"version\":1,", "\"version\":9,")), NotLifted::Newer(9));
    assert_eq!(refused(&page.replace("\"version\":", "\"version\":x")), NotLifted::Unreadable(None));
    let begin = "class=\"ku-data\">";
    assert_eq!(refused(&page.replace(begin, &format!("{begin}!"))), NotLifted::Unreadable(Some(0)));
    let (before, _) = page.split_once(begin).unwrap();
    assert!(matches!(refused(before), NotLifted::Damaged(_)));
}
