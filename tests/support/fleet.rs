// SPDX-License-Identifier: BSD-3-Clause
//! A fleet of hosts, each traced once a day: the traces are a recorded one, varied, with differences planted that the
//! queries of samples/fleet must find.
//!
//! A variation is the recorded trace in another time: [`clock`] maps each moment of it, and since all CPUs have the one
//! clock, the order of events and their threads stay as recorded. [`plan`] selects the differences of each host,
//! [`vary`] makes the spans.

pub mod clock;
pub mod plan;
pub mod vary;

use std::collections::BTreeSet;

use serde_json::Value;

pub use plan::Plan;
pub use vary::Base;

/// Findings in the rows of an answer to a query of samples/fleet, named as in [`Plan::planted`].
pub fn found(question: &str, rows: &[Vec<Value>]) -> BTreeSet<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let finding = |row: &Vec<Value>| match question {
        "wakeups" => vec![text(&row[0])],
        "causes" => {
            let cause = text(&row[1]);
            let device = plan::DEVICES.into_iter().find(|device| cause.contains(device));
            vec![text(&row[0]), device.map_or(cause, ToString::to_string)]
        }
        _ => vec![text(&row[0]), text(&row[1])],
    };
    rows.iter().map(finding).collect()
}
