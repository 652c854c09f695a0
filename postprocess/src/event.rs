// SPDX-License-Identifier: BSD-3-Clause
//! Placeholder while the stage is written.
