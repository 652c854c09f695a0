// SPDX-License-Identifier: BSD-3-Clause
//! The answer in one sentence, before any table.

use super::compare::{Apart, Compared, Part};
use crate::readable::time;
use crate::time::Time;

/// Largest number of causes that are named.
pub const NAMED: usize = 3;
/// Least share of the time of a named cause, except for the first.
pub const SHARE_MIN: f64 = 0.1;

/// States how much longer slow requests take and why; or which of these causes take the time of all requests, if too
/// few were compared or nothing stands out.
pub fn sentence(all: &[Part], compared: Option<&Compared>) -> String {
    let of_all = || format!("the time of all goes to: {}", named(all.iter().map(|part| (part.share, &part.cause))));
    let Some(compared) = compared else { return format!("Too few to compare; {}.", of_all()) };
    if let Some(Apart { slow, excess, .. }) = compared.mostly() {
        return format!("The {} more, most of it since CPUs stood still.", take(*slow, *excess));
    }
    if compared.causes.is_empty() {
        return format!("Nothing stands out; {}.", of_all());
    }
    let causes = named(compared.causes.iter().map(|cause| (cause.share, &cause.cause)));
    let the = if compared.apart.is_some() { "Without the time in which CPUs stood still, the" } else { "The" };
    format!("{the} {} more: {causes}.", take(compared.slow.count, compared.excess))
}

fn take(slow: usize, excess: f64) -> String {
    let more = time(Time(excess as i64));
    match slow {
        1 => format!("slow one takes {more}"),
        slow => format!("{slow} slow ones take {more}"),
    }
}

/// Returns the first of these causes, with their shares.
fn named<'a>(causes: impl Iterator<Item = (f64, &'a String)>) -> String {
    let worth = |(n, (share, _)): &(usize, (f64, &String))| *n == 0 || *share >= SHARE_MIN;
    let told = causes.enumerate().take(NAMED).filter(worth);
    told.map(|(_, (share, cause))| format!("{:.0} % {cause}", share * 100.0)).collect::<Vec<_>>().join(", ")
}
