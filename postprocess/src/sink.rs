// SPDX-License-Identifier: BSD-3-Clause
//! Sinks: outputs of the span tools. Spans become a [`page`], [`mod@json`], a [`mod@profile`], a [`summary`] or, as
//! [`track`]s, a trace of [`perfetto`]; explained requests become an [`answer`] or traces of OpenTelemetry ([`otlp`]).

pub mod page;
pub mod json;
pub mod profile;
pub mod summary;
pub mod track;
pub mod perfetto;
pub mod answer;
pub mod otlp;
