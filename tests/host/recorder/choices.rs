// SPDX-License-Identifier: BSD-3-Clause
//! A path of choices through one run, and the step to the next path: depth-first, each path exactly once.

/// The choices of a run: first those given, then always 0.
#[derive(Debug, Default)]
pub struct Choices {
    path: Vec<(u8, u8)>,
    at: usize,
}

impl Choices {
    /// Chooses a number below `options`.
    pub fn choose(&mut self, options: u8) -> u8 {
        if self.at == self.path.len() {
            self.path.push((0, options));
        }
        let (chosen, of) = self.path[self.at];
        assert_eq!(of, options, "a run does not repeat itself");
        self.at += 1;
        chosen
    }

    /// Continues to the next path; false when all have been run.
    pub fn next_run(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, options)) = self.path.pop() {
            if chosen + 1 < options {
                self.path.push((chosen + 1, options));
                return true;
            }
        }
        false
    }

    /// The choices made, in order.
    pub fn path(&self) -> Vec<u8> {
        self.path.iter().map(|(chosen, _)| *chosen).collect()
    }
}
