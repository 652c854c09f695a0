// SPDX-License-Identifier: BSD-3-Clause
//! The OpenTelemetry trace and span that a thread works on.

#![forbid(unsafe_code)]

use crate::fields::Fields;
use crate::site::Site;
use crate::state;

static SITE: Site = Site::new("otel\0strace_id\0sspan_id");

/// Records that this thread now works on this span of this trace: a mark `otel(trace_id=...,span_id=...)`, in base 16
/// as in OpenTelemetry, by which the request is found in both.
pub fn trace_id(trace: u128, span: u64) -> bool {
    state::is_on() && SITE.mark_as_typed(&Fields::new().display(Hex::<32>(trace)).display(Hex::<16>(span.into())))
}

/// A number in exactly `DIGITS` digits.
struct Hex<const DIGITS: usize>(u128);

impl<const DIGITS: usize> std::fmt::Display for Hex<DIGITS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_as_opentelemetry_does() {
        assert_eq!(
            Hex::<32>(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736).to_string(),
            "4bf92f3577b34da6a3ce929d0e0e4736"
        );
        assert_eq!(Hex::<16>(0xf0).to_string(), "00000000000000f0");
        assert!(!trace_id(1, 2) || state::is_on());
    }
}
