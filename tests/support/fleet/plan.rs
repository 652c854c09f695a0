// SPDX-License-Identifier: BSD-3-Clause
//! The hosts, and the differences of some of them.

use serde_json::{json, Value};

use crate::Random;

/// Kernels: before and after the change.
pub const KERNELS: [&str; 2] = ["6.12.73", "6.12.79"];
/// Interrupts of a device that only some hosts have, which make requests slow there.
pub const DEVICES: [&str; 3] = ["nvme0q3", "eth1-rx-2", "megasas7"];
/// One host of this many has a difference of each kind, but at least one.
const DIFFERS: usize = 8;

/// A host.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Duration of everything on it, in hundredths.
    pub pace: u64,
    /// The first day of the second kernel; nothing if it keeps the one it has.
    pub changed: Option<usize>,
    /// True if it has the second kernel from the first day on.
    pub is_new: bool,
    /// True if wakeups take longer with the second kernel.
    pub slow_wakeups: bool,
    /// The call that takes much longer, now and then, while its CPU is shared.
    pub slow_call: Option<String>,
    /// The interrupt that makes some requests slow.
    pub device: Option<&'static str>,
}

/// All hosts, each traced every day.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Days.
    pub days: usize,
    seed: u64,
}

impl Plan {
    /// A plan of as many traces, or a few more; `calls` may be slow.
    pub fn new(traces: usize, calls: &[String], seed: u64) -> Plan {
        let days = (traces * 2 / 5).isqrt().max(2);
        let mut random = from_seed(seed);
        let mut hosts: Vec<Host> = (0..traces.div_ceil(days)).map(|n| host(n, days, &mut random)).collect();
        let some = hosts.len().div_ceil(DIFFERS);
        let mut changed: Vec<usize> = (0..hosts.len()).filter(|&n| hosts[n].changed.is_some()).collect();
        take(&mut changed, some, &mut random).into_iter().for_each(|n| hosts[n].slow_wakeups = true);
        let all = || (0..hosts.len()).collect::<Vec<_>>();
        let (mut slow, mut devices) = (all(), all());
        for n in take(&mut slow, if calls.is_empty() { 0 } else { some }, &mut random) {
            hosts[n].slow_call = Some(calls[random.below(calls.len() as u64) as usize].clone());
        }
        for (n, device) in take(&mut devices, some, &mut random).into_iter().zip(DEVICES.into_iter().cycle()) {
            hosts[n].device = Some(device);
        }
        Plan { hosts, days, seed }
    }

    /// Number of traces.
    pub fn traces(&self) -> usize {
        self.hosts.len() * self.days
    }

    /// The host and the day of a trace, and the random numbers that are its own.
    pub fn of(&self, trace: usize) -> (&Host, usize, Random) {
        let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (trace as u64 + 1).rotate_left(29);
        (&self.hosts[trace / self.days], trace % self.days, from_seed(seed))
    }

    /// Expected findings of the queries: lists by their names, as the queries return them.
    pub fn planted(&self) -> Value {
        let of = |what: &dyn Fn(&Host) -> Option<Vec<String>>| self.hosts.iter().filter_map(what).collect::<Vec<_>>();
        json!({
            "shared": of(&|host| Some(vec![host.name.clone(), host.slow_call.clone()?])),
            "wakeups": of(&|host| host.slow_wakeups.then(|| vec![host.name.clone()])),
            "causes": of(&|host| Some(vec![host.name.clone(), host.device?.to_string()])),
        })
    }
}

impl Host {
    /// Its kernel on a day, as an index of [`KERNELS`].
    pub fn kernel(&self, day: usize) -> usize {
        (self.is_new || self.changed.is_some_and(|first| day >= first)).into()
    }
}

/// Random numbers; the first of them, which are similar to the seed, are skipped.
fn from_seed(seed: u64) -> Random {
    let mut random = Random(seed | 1);
    for _ in 0..99 {
        random.below(1);
    }
    random
}

/// A host; of three, two change their kernel, on a day that leaves some before and after.
fn host(n: usize, days: usize, random: &mut Random) -> Host {
    let changes = random.below(3) > 0 || n == 0;
    let quarter = days.div_ceil(4);
    let day = quarter + random.below((days - 2 * quarter) as u64 + 1) as usize;
    Host {
        name: format!("host-{n:03}"),
        pace: 85 + random.below(31),
        changed: changes.then_some(day),
        is_new: !changes && random.below(2) == 0,
        ..Host::default()
    }
}

/// Takes `some` of these, at random.
fn take(from: &mut Vec<usize>, some: usize, random: &mut Random) -> Vec<usize> {
    (0..some.min(from.len())).map(|_| from.swap_remove(random.below(from.len() as u64) as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_has_hosts_and_each_change_of_kernel_days_on_both_sides() {
        for (traces, seed) in [(1, 1), (8, 2), (100, 3), (1_000, 4)] {
            let plan = Plan::new(traces, &["read".to_string()], seed);
            assert!((traces..traces + plan.days).contains(&plan.traces()), "{traces}: {}", plan.traces());
            let planted = plan.planted();
            for kind in ["shared", "wakeups", "causes"] {
                assert!(planted[kind].as_array().is_some_and(|hosts| !hosts.is_empty()), "{traces}: {planted}");
            }
            for host in &plan.hosts {
                let of = |kernel| (0..plan.days).filter(|&day| host.kernel(day) == kernel).count();
                assert_eq!(host.changed.is_some(), of(0) > 0 && of(1) > 0, "{host:?}");
            }
        }
    }
}
