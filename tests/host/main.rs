// SPDX-License-Identifier: BSD-3-Clause
//! Host tier: no root, no kernel, no network.

mod word;
mod page;
