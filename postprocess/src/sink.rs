// SPDX-License-Identifier: BSD-3-Clause
//! Sinks: outputs of the tools for spans: a [`page`], [`mod@json`], a [`mod@profile`], a [`summary`], and as [`track`]s
//! a trace of [`perfetto`]; for explained requests an [`answer`], and traces of OpenTelemetry ([`otlp`]).

pub mod page;
pub mod json;
pub mod profile;
pub mod summary;
pub mod track;
pub mod perfetto;
pub mod answer;
pub mod otlp;
