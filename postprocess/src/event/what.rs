// SPDX-License-Identifier: BSD-3-Clause
//! What an event says: the numbers of the text and of frames as one type.
//!
//! Invariant: every number is one value, and gives itself back.

use super::fact::Fact;
use super::number::{self, class, Class, NUMBERS, RETURN_BIT};
use super::point::Point;
use super::work::Work;

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Something is known.
    Fact(Fact),
    /// The CPU runs the thread in the argument; with a duration, it does already.
    Switch,
    /// Work begins; with a duration, it ends after that.
    Call(Work),
    /// Work ends.
    Return(Work),
    /// Something happens at a point in time.
    Point(Point),
    /// Nothing was recorded on the CPU from here on, up to its next event.
    Lost,
    /// Nothing that can be in a trace.
    Other(u32),
}

impl Default for What {
    fn default() -> What {
        What::Other(0)
    }
}

/// What the numbers of event lines say: a table, as every line is asked.
static LOW: [What; NUMBERS as usize] = {
    let (mut low, mut event) = ([What::Lost; NUMBERS as usize], 0);
    while event < NUMBERS {
        low[event as usize] = What::of_low(event);
        event += 1;
    }
    low
};

impl What {
    /// What an event of this number says; of a fact only of which kind it is, as a [`Fact::Name`].
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

    /// Its number.
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

    /// Whether it is one that happened, and that counts: every line of the text that is neither a fact nor a comment.
    /// A call that carries its return is one. All tools count events by this.
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
