// SPDX-License-Identifier: BSD-3-Clause
//! Groups: hosts and their guests, whose clocks follow from one another, so that they are placed as one.
//!
//! Invariant: every machine is in one group, and the first machine anchors the first of them.

use super::inside::{self, Fit};
use super::shift::Shift;
use crate::time::Time;

/// Machines that run in one another; or one alone.
#[derive(Clone, Debug)]
pub struct Group {
    /// The machine whose clock is the group's: the first of all machines, or else the outermost host.
    pub anchor: usize,
    /// All members, each with the shift from its time to the anchor's.
    pub members: Vec<(usize, Shift)>,
}

/// The groups, from the host of each machine.
pub fn groups(found: &[Option<Fit>]) -> Vec<Group> {
    let mut is_in = vec![false; found.len()];
    let mut groups = Vec::new();
    for anchor in 0..found.len() {
        if !is_in[anchor] && (anchor == 0 || found[anchor].is_none()) {
            let group = around(found, anchor);
            group.members.iter().for_each(|(member, _)| is_in[*member] = true);
            groups.push(group);
        }
    }
    groups
}

/// The group of an anchor: a machine next to a member is also a member.
fn around(found: &[Option<Fit>], anchor: usize) -> Group {
    let mut members = vec![(anchor, Shift::by(Time::ZERO, Some(Time::ZERO)))];
    let mut at = 0;
    while at < members.len() {
        let (here, shift) = members[at].clone();
        let up = found[here].iter().map(|fit| (fit.inside.host, inside::back(&fit.shift)));
        let down = found.iter().enumerate().filter_map(|(guest, fit)| Some((guest, fit.as_ref()?)));
        let down = down.filter(|(_, fit)| fit.inside.host == here).map(|(guest, fit)| (guest, fit.shift.clone()));
        let new: Vec<_> = up.chain(down).filter(|(n, _)| members.iter().all(|(member, _)| member != n)).collect();
        members.extend(new.into_iter().map(|(n, way)| (n, inside::through(&way, &shift))));
        at += 1;
    }
    Group { anchor, members }
}
