// SPDX-License-Identifier: BSD-3-Clause
//! Requests and the critical paths of their threads, as columns after those of the spans. The page adds up causes over
//! any of the requests from data that was computed once.
//!
//! Nearly every part ends where the next span of its CPU starts, which takes few bytes to store.
//!
//! A page without requests has none of these columns, and a reader that does not know them still finds the spans.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::pack::{self, Effort};
use crate::why::carry::{CauseText, Column, Requests};
use crate::why::rules::Rules;

/// Location of a column in the data, as in [`super::columns::Part`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    field: Column,
    rows: usize,
    width: usize,
    wide: usize,
    offset: usize,
    bytes: usize,
}

/// Requests in the page's description of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    asked: String,
    #[serde(default)]
    unfinished: usize,
    causes: Vec<CauseText>,
    threads: BTreeMap<u32, String>,
    sides: Option<[Range<usize>; 2]>,
    #[serde(default)]
    apart: bool,
    #[serde(default)]
    rules: Rules,
    columns: Vec<Stored>,
}

impl Carried {
    /// Appends the columns of `requests` to `data` and returns their description.
    pub(super) fn after(data: &mut Vec<u8>, requests: &Requests) -> Carried {
        let packed = pack::on_all_cpus(&requests.columns, |values| pack::pack(values, Effort::Usual));
        let mut columns = Vec::new();
        for ((field, values), packed) in Column::ALL.into_iter().zip(&requests.columns).zip(packed) {
            let (offset, bytes) = (data.len(), packed.bytes.len());
            columns.push(Stored { field, rows: values.len(), width: packed.width, wide: packed.wide, offset, bytes });
            data.extend_from_slice(&packed.bytes);
        }
        let Requests { asked, unfinished, causes, threads, sides, apart, rules, .. } = requests.clone();
        Carried { asked, unfinished, causes, threads, sides, apart, rules, columns }
    }
}
