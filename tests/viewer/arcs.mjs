// SPDX-License-Identifier: BSD-3-Clause
// Arcs under the pointer.
import assert from "node:assert/strict";
import { test } from "node:test";

import { nearArc } from "../../postprocess/viewer/draw/arcs.js";

test("an arc that stays on its row is found on its curve", () => {
  const arc = { i: 0, x0: 100, y0: 50, x1: 300, y1: 50, cx: 200, cy: 10 };
  // The curve's top is halfway to its control point.
  assert.ok(nearArc(arc, 200, 30));
  assert.ok(!nearArc(arc, 200, 50));
  assert.ok(!nearArc(arc, 310, 50));
});

test("a wide arc is found everywhere along it", () => {
  const arc = { i: 0, x0: 0, y0: 0, x1: 2400, y1: 90, cx: 2400, cy: 0 };
  for (let k = 0; k <= 1000; k++) {
    const t = k / 1000;
    assert.ok(nearArc(arc, 2400 * (1 - (1 - t) ** 2), 90 * t ** 2), `at ${t}`);
  }
  assert.ok(!nearArc(arc, 1200, 45));
});
