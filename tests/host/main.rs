// SPDX-License-Identifier: BSD-3-Clause
//! Host tier: no root, no kernel, no network.

use kutrace_format::abi;

use advance::ffi;
use kutrace_recorder::{budget as module_budget, call, claim, entry, lane};

mod recorder;
mod advance;
mod budget;
mod word;
mod packet;
mod programs;
mod user;
mod command;
mod decode;
mod reader;
mod counter;
mod damage;
mod fuzz;
mod text;
mod frame;
mod span;
mod stream;
mod stock;
mod rules;
mod faults;
mod guests;
mod hours;
mod golden;
mod original;
mod others;
mod perfetto;
mod upstream;
mod page;
mod viewer;
mod draw;
mod dump;
mod verdict;
mod summary;
mod cgroup;
mod why;
mod requests;
mod otlp;
mod causes;
mod diff;
mod schema;
mod companion;
mod samples;
mod numbers;
mod check;
mod cut;
mod values;
mod audit;
mod capability;
mod english;
mod layers;
mod machines;
