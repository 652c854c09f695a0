// SPDX-License-Identifier: BSD-3-Clause
//! Activity of a guest's host while it does not run one of the guest's CPUs: the names of
//! [`Point::Stolen`](super::point::Point::Stolen), which spans keep.

/// Prefix of all these names.
const STOLEN: &str = "stolen:";
/// Argument of a [`Point::Stolen`](super::point::Point::Stolen) that counts although the guest's CPU is idle: the CPU
/// was to wake up.
pub const EVEN_IDLE: u32 = 1;

/// Activity of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead<'a> {
    /// It handles the reason for the exit from the guest.
    Handles(&'a str),
    /// It runs another thread.
    Runs(&'a str),
    /// Nothing: the thread that runs the guest's CPU sleeps, and no other has the CPU.
    Idles,
    /// Something else, reported by the guest alone.
    Unknown,
    /// It brings back the thread that runs the guest's CPU, because that CPU has something to do.
    Wakes,
}

impl Instead<'_> {
    /// The name.
    pub fn name(self) -> String {
        match self {
            Instead::Handles(reason) => format!("{STOLEN}exit_{reason}"),
            Instead::Runs(thread) => format!("{STOLEN}ran_{thread}"),
            Instead::Unknown => format!("{STOLEN}other"),
            Instead::Idles => format!("{STOLEN}idle"),
            Instead::Wakes => format!("{STOLEN}wakeup"),
        }
    }
}

/// Sentence for one of these names, to follow `the host`; `None` for any other name.
pub fn sentence(name: &str) -> Option<String> {
    let said = name.strip_prefix(STOLEN)?;
    Some(match (said, said.split_once('_')) {
        ("idle", _) => "waited in the call by which it runs the CPU".to_string(),
        ("other", _) => "ran something else instead of the CPU".to_string(),
        ("wakeup", _) => "had yet to wake the CPU up".to_string(),
        (_, Some(("exit", reason))) => format!("handled an exit of the CPU ({reason})"),
        (_, Some(("ran", thread))) => format!("ran {thread} instead of the CPU"),
        _ => "did not run the CPU".to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_sentence_of_its_own() {
        let all =
            [Instead::Handles("npf"), Instead::Runs("my_load.77"), Instead::Idles, Instead::Wakes, Instead::Unknown];
        let said = all.map(|instead| sentence(&instead.name()).unwrap());
        assert_eq!(said[..2], ["handled an exit of the CPU (npf)", "ran my_load.77 instead of the CPU"]);
        assert_ne!(said[2], said[3]);
        assert_eq!(sentence("-stalled-"), None);
    }
}
