// SPDX-License-Identifier: BSD-3-Clause
//! Control of the recorder.
