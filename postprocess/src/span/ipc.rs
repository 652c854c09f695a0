// SPDX-License-Identifier: BSD-3-Clause
//! The average of IPC codes: four bits that stand for instructions per cycle, in growing steps.

use crate::time::Time;

/// Minimum instructions per cycle of each code, in eighths. The last code reaches to 4.
const CODE_MIN: [i64; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32];

/// Instructions per cycle in sixteenths: the middle of a code's step.
pub const fn sixteenths(code: u8) -> i64 {
    let code = (code & 15) as usize;
    CODE_MIN[code] + CODE_MIN[code + 1]
}

/// The same for a class, the two high bits of a code.
pub const fn sixteenths_of_class(code: u8) -> i64 {
    let first = (code & 12) as usize;
    CODE_MIN[first] + CODE_MIN[first + 4]
}

/// Average of codes, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    /// Time multiplied by sixteenths of an instruction per cycle.
    weighted: i128,
    time: i128,
}

impl Mean {
    /// Adds this much time at `code`, which counts as the middle of its step.
    pub fn add(&mut self, code: u8, dur: Time) {
        self.weighted += i128::from(sixteenths(code)) * i128::from(dur.0);
        self.time += i128::from(dur.0);
    }

    /// Adds another average's time.
    pub fn merge(&mut self, other: &Mean) {
        self.weighted += other.weighted;
        self.time += other.time;
    }

    /// The code of the average; 0 for no time.
    pub fn code(&self) -> u8 {
        let reached = |min: i64| i128::from(2 * min) * self.time <= self.weighted;
        CODE_MIN[1..16].iter().take_while(|&&min| self.time > 0 && reached(min)).count() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_one_code_is_that_code() {
        for code in 0..16 {
            let mut mean = Mean::default();
            mean.add(code, Time(7));
            mean.add(code, Time(1));
            assert_eq!(mean.code(), code);
        }
        assert_eq!(Mean::default().code(), 0);
    }

    #[test]
    fn the_average_lies_between_by_time() {
        let mut mean = Mean::default();
        // A quarter of the time at 3.5 and more, the rest below 1/8: about 1.
        mean.add(15, Time(10));
        mean.add(0, Time(30));
        assert_eq!(mean.code(), 7);
    }
}
