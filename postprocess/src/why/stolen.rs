// SPDX-License-Identifier: BSD-3-Clause
//! Spans of execution of a CPU without the time its host took. If the host is not in the trace, stolen time lies over
//! these spans and between them.

use super::rows::Rows;
use super::timeline::end;
use crate::id::CpuId;
use crate::span::what::STALLED;
use crate::span::Span;

/// Time that the host took from each CPU: spans that do not overlap, by time.
#[derive(Debug, Default)]
pub struct Stolen(pub Vec<Vec<u32>>);

impl Stolen {
    /// Returns a span of execution in pieces, the stolen ones among them; the whole span if none of it was stolen.
    pub fn pieces<'a>(&'a self, rows: Rows<'a>, span: Span) -> impl Iterator<Item = Span> + use<'a> {
        let all = self.0.get(span.cpu.map_or(0, CpuId::index)).map_or(&[][..], |list| list);
        let first = all.partition_point(|&n| rows.end(n) <= span.start);
        let mut stolen =
            all[first..].iter().map(move |&n| rows.get(n)).take_while(move |s| s.start < end(&span)).peekable();
        let mut rest = Some(span);
        std::iter::from_fn(move || {
            let now = rest?;
            let to = end(&now);
            let (piece, until) = match stolen.peek() {
                None => (now, to),
                Some(next) if next.start > now.start => (now, next.start),
                Some(next) => {
                    (Span { what: STALLED, name: next.name, arg: 0, ret: 0, ipc: 0, ..now }, end(next).min(to))
                }
            };
            if stolen.peek().is_some_and(|next| end(next) <= until) {
                stolen.next();
            }
            rest = (until < to).then_some(Span { start: until, dur: to - until, ..now });
            Some(Span { dur: until - piece.start, ..piece })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::point::Point;
    use crate::span::what::{Activity, What};
    use crate::time::Time;
    use proptest::prelude::*;

    fn span(what: What, start: i64, dur: i64) -> Span {
        Span { start: Time(start), dur: Time(dur), cpu: Some(CpuId::new(0)), what, ..Span::default() }
    }

    proptest! {
        #[test]
        fn pieces_are_the_span_and_each_is_what_it_was_or_stolen(
            start in 0..60_i64,
            dur in 0..60_i64,
            lengths in proptest::collection::vec((0..20_i64, 1..20_i64), 0..6),
        ) {
            let mut at = 0;
            let steals: Vec<Span> = lengths.iter().map(|(gap, dur)| {
                at += gap + dur;
                span(What::Point(Point::Steal), at - dur, *dur)
            }).collect();
            let stolen = Stolen(vec![(0..steals.len() as u32).collect()]);
            let whole = span(What::Run(Activity::User(7)), start, dur);
            let pieces: Vec<Span> = stolen.pieces(Rows::Spans(&steals), whole).collect();
            let mut to = whole.start;
            for piece in &pieces {
                prop_assert_eq!(piece.start, to);
                to = end(piece);
                for moment in piece.start.0..to.0 {
                    let is_stolen = steals.iter().any(|s| (s.start.0..end(s).0).contains(&moment));
                    prop_assert_eq!(piece.what == STALLED, is_stolen, "{:?}", pieces);
                }
            }
            prop_assert_eq!(to, end(&whole));
            prop_assert!(dur == 0 || pieces.iter().all(|piece| piece.dur > Time::ZERO));
        }
    }
}
