// SPDX-License-Identifier: BSD-3-Clause
//! What the tiers share: building raw traces.
