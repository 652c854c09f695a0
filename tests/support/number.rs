// SPDX-License-Identifier: BSD-3-Clause
//! CPUs and threads of spans by their numbers.

use postprocess::id::{CpuId, Pid};
use postprocess::span::Span;

/// This CPU; none for a negative number.
pub fn on_cpu(number: impl TryInto<u32>) -> Option<CpuId> {
    number.try_into().ok().map(CpuId::new)
}

/// This thread; none for a negative number.
pub fn of_thread(number: impl TryInto<u32>) -> Option<Pid> {
    number.try_into().ok().map(Pid::new)
}

/// A span of CPU 0 and its idle thread, all else 0.
pub fn idle() -> Span {
    Span { cpu: on_cpu(0), pid: of_thread(0), ..Span::default() }
}
