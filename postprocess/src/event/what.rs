// SPDX-License-Identifier: BSD-3-Clause
//! Kinds of events: the numbers of the text and of frames as one type.
//!
//! Invariant: every number has one value, which has that number.

use super::fact::Fact;
use super::number::{self, class, Class, NUMBERS, RETURN_BIT};
use super::point::Point;
use super::work::Work;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A fact.
    Fact(Fact),
    /// The CPU switches to the thread in the argument; with a duration, it already runs that thread.
    Switch,
    /// Work begins; with a duration, it ends after that.
    Call(Work),
    /// Work ends.
    Return(Work),
    /// Something happens at a point in time.
    Point(Point),
    /// Nothing was recorded on the CPU from here on, up to its next event.
    Lost,
    /// A number that no trace has.
    Other(u32),
}

impl Default for What {
    fn default() -> What {
        What::Other(0)
    }
}

/// Kinds of events by the numbers of event lines: a table, because every line is looked up.
static LOW: [What; NUMBERS as usize] = {
    let (mut low, mut event) = ([What::Lost; NUMBERS as usize], 0);
    while event < NUMBERS {
        low[event as usize] = What::of_low(event);
        event += 1;
    }
    low
};

impl What {
    /// Kind of an event with this number; for a fact only its number, as a [`Fact::Name`].
    #[inline]
    pub fn of(event: u32) -> What {
        match event {
            ..NUMBERS => LOW[event as usize],
            number::LOST => What::Lost,
            _ => What::Other(event),
        }
    }

    const fn of_low(event: u32) -> What {
        match class(event) {
            Class::Name => What::Fact(Fact::Name(event)),
            Class::Switch => What::Switch,
            Class::Point => What::Point(Point::of(event as i32)),
            Class::Call(_) => match Work::of(event) {
                Some(work) => What::Call(work),
                None => What::Other(event),
            },
            Class::Return(_) => match Work::of(event & !RETURN_BIT) {
                Some(work) => What::Return(work),
                None => What::Other(event),
            },
            Class::Lost => What::Lost,
            Class::Other => What::Other(event),
        }
    }

    /// Event number.
    #[inline]
    pub const fn number(self) -> u32 {
        match self {
            What::Fact(fact) => fact.number(),
            What::Other(number) => number,
            What::Switch => number::SWITCH,
            What::Call(work) => work.number(),
            What::Return(work) => work.return_number(),
            What::Point(point) => point.number() as u32,
            What::Lost => number::LOST,
        }
    }

    /// True if it happened and counts: every line of the text that is neither a fact nor a comment. A call that carries
    /// its return is one event. All tools count events by this.
    #[inline]
    pub const fn is_event(self) -> bool {
        !matches!(self, What::Fact(_))
    }

    /// The work that begins or ends.
    #[inline]
    pub const fn work(self) -> Option<Work> {
        match self {
            What::Call(work) | What::Return(work) => Some(work),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_gives_itself_back() {
        let high = [NUMBERS, number::USER, number::LOST, number::LOST + 1, u32::MAX];
        for event in (0..NUMBERS).chain(high) {
            assert_eq!(What::of(event).number(), event, "{:?}", What::of(event));
        }
    }

    #[test]
    fn an_event_takes_fifty_six_bytes() {
        assert_eq!(size_of::<crate::event::Event>(), 56);
    }

    #[test]
    fn the_class_of_a_number_is_that_of_what_it_says() {
        for event in 0..NUMBERS {
            let told = match What::of(event) {
                What::Fact(_) => Class::Name,
                What::Switch => Class::Switch,
                What::Call(work) => Class::Call(work.level()),
                What::Return(work) => Class::Return(work.level()),
                What::Point(_) => Class::Point,
                What::Lost => Class::Lost,
                What::Other(_) => Class::Other,
            };
            assert_eq!(told, class(event), "{event:x}");
        }
    }
}
