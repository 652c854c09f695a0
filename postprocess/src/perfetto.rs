// SPDX-License-Identifier: BSD-3-Clause
//! Messages of Perfetto's schema that are both read and written, with the numbers that `perfetto_trace.proto` gives
//! their fields.

use prost::Message;

/// `CpuFrequencyFtraceEvent`, in kHz, and `CpuIdleFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct CpuValue {
    /// kHz, or the number of a state.
    #[prost(uint32, optional, tag = "1")]
    pub state: Option<u32>,
    /// CPU number.
    #[prost(uint32, optional, tag = "2")]
    pub cpu_id: Option<u32>,
}

/// The same moment on several clocks.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    /// One reading of each clock.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
}

/// A moment on a clock.
#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    /// Clock number.
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// The machine.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    /// Output of `uname`.
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
    /// The host.
    #[prost(string, optional, tag = "17")]
    pub machine_name: Option<String>,
}

/// The fields of `uname`.
#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    /// The system.
    #[prost(string, optional, tag = "1")]
    pub sysname: Option<String>,
    /// Release of the system.
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
}
