// SPDX-License-Identifier: BSD-3-Clause
//! Requests and the critical paths of their threads, as columns after those of the spans: the page adds up causes over
//! any of the requests, from what was computed once.
//!
//! Nearly every part ends where the next span of its CPU starts, and to say so takes few bytes.
//!
//! A page without requests has nothing of this, and a reader that does not know it finds the spans as before.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::pack::{self, Effort};
use crate::why::carry::{CauseText, Column, Requests};
use crate::why::rules::Rules;

/// Where a column lies in the data, as [`super::columns::Part`] says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    field: Column,
    rows: usize,
    width: usize,
    wide: usize,
    offset: usize,
    bytes: usize,
}

/// What the page's description of its data says of requests.
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
    /// Puts the columns of `requests` after `data`; what there is to say about them.
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
