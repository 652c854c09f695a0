// SPDX-License-Identifier: BSD-3-Clause
//! Shift from the time of a machine to that of the first: a straight line, or several, one after the other.
//!
//! Invariant: later times never become earlier ones, and no time overflows.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Fractional bits of [`Piece::rate`] and [`Piece::fraction`].
pub const POINT: u32 = 56;
/// Times beyond this limit are held there.
const FAR: i128 = 1 << 61;

/// The shift from one clock to another: pieces, ordered by [`Piece::from`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shift(pub Vec<Piece>);

/// One line: `to = from + offset + ((t - from) * (1 + rate) ...`, see [`Piece::at`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Start of the piece in the machine's time; it holds up to the next piece, and the first one also before its
    /// start.
    pub from: Time,
    /// Offset at that time.
    pub offset: Time,
    /// Addition to the offset, in parts of 2^56 of a unit.
    pub fraction: i64,
    /// Addition for each unit after `from`, in parts of 2^56.
    pub rate: i64,
    /// Maximum error while the piece holds, if anything bounds it.
    pub within: Option<Time>,
}

impl Piece {
    /// The time of the other clock, by this line.
    pub fn at(&self, t: Time) -> Time {
        let since = i128::from(t.0) - i128::from(self.from.0);
        let added = (since * i128::from(self.rate) + i128::from(self.fraction)) >> POINT;
        Time((i128::from(t.0) + i128::from(self.offset.0) + added).clamp(-FAR, FAR) as i64)
    }
}

impl Shift {
    /// A constant shift by `offset`.
    pub fn by(offset: Time, within: Option<Time>) -> Shift {
        Shift(vec![Piece { offset, within, ..Piece::default() }])
    }

    /// The time of the other clock.
    #[inline]
    pub fn at(&self, t: Time) -> Time {
        let next = self.0.partition_point(|piece| piece.from <= t).max(1);
        let Some(piece) = self.0.get(next - 1) else { return t };
        let at = piece.at(t);
        match next.checked_sub(2).map(|before| &self.0[before]) {
            // A line may begin a little below the end of the one before it.
            Some(before) => at.max(before.at(piece.from)),
            None => at,
        }
    }

    /// The same with `offset` more.
    pub fn later(mut self, offset: Time) -> Shift {
        for piece in &mut self.0 {
            piece.offset = Time(piece.offset.0.saturating_add(offset.0));
        }
        self
    }

    /// Maximum error of a time, if anything bounds it: the worst of all pieces.
    pub fn within(&self) -> Option<Time> {
        self.0.iter().map(|piece| piece.within).try_fold(Time::ZERO, |worst, within| Some(worst.max(within?)))
    }
}

/// The first time in a range from which on a condition holds; the end of the range if it never does.
pub fn first_time(times: Range<i64>, holds: impl Fn(Time) -> bool) -> Time {
    let Range { start: mut low, end: mut high } = times;
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(Time(middle)) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Time(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_offset_and_a_rate_and_the_next_takes_over() {
        let first = Piece { from: Time(1000), offset: Time(50), rate: 1 << (POINT - 10), ..Piece::default() };
        let shift = Shift(vec![first, Piece { from: Time(5000), offset: Time(-100), ..Piece::default() }]);
        assert_eq!([0, 1000, 3048].map(|t| shift.at(Time(t)).0), [49, 1050, 3100]);
        // The second would go back to 4900; it waits at 5053 until it is there.
        assert_eq!([4999, 5000, 5001, 5153, 6000].map(|t| shift.at(Time(t)).0), [5052, 5053, 5053, 5053, 5900]);
        assert!((0..7000).map(|t| shift.at(Time(t))).is_sorted());
    }

    #[test]
    fn nothing_overflows_and_order_is_kept() {
        let worst = [i64::MIN, -1, 0, 1, i64::MAX];
        for (offset, rate) in worst.into_iter().flat_map(|o| worst.map(|r| (o, r))) {
            let piece = Piece { offset: Time(offset), rate: rate.max(0), fraction: i64::MIN, ..Piece::default() };
            let times = worst.map(|t| piece.at(Time(t)));
            assert!(times.is_sorted(), "{times:?}");
        }
    }
}
