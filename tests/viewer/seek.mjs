// SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";

import { rangeOfTime, timeOfRange } from "../../postprocess/viewer/view/seek.js";

const BASE = "2026-01-02_03:59:00";
/** A trace from 30 to 90 s after its base minute. */
const VIEW = { begin: 30e8, end: 90e8 };
const range = (text) => rangeOfTime(VIEW, BASE, text);

test("seconds and times of day lead to five units of their last digit around them", () => {
  assert.deepEqual(range("41.25"), { from: 41.2e8, to: 41.3e8 });
  assert.deepEqual(range("41. s"), { from: 36e8, to: 46e8 });
  assert.deepEqual(range("03:59:41.25"), range("41.25"));
  assert.deepEqual(range("59:41.25"), range("41.25"));
  assert.deepEqual(range("2026-01-02 03:59:41.25"), range("41.25"));
});

test("a minute of the next hour is after the end of this one", () => {
  assert.deepEqual(range("00:01.0"), { from: 60.5e8, to: 61.5e8 });
  assert.deepEqual(range("04:00:01.0"), range("00:01.0"));
});

test("a sign widens or narrows by a step of 1, 2, 5", () => {
  const half = (text) => Math.round((range(text).to - range(text).from) / 2);
  assert.deepEqual(["41.25-", "41.25", "41.25+", "41.25++", "41.25+++"].map(half), [2e6, 5e6, 1e7, 2e7, 5e7]);
});

test("what is not a time, or is not in the trace, leads nowhere", () => {
  for (const text of ["", "41", "read", "91.0", "29.0", "2026-01-03 03:59:41.25", "x41.25"]) assert.equal(range(text), null, text);
});

test("what is said of a range leads back near it", () => {
  for (const width of [10, 1234, 5e5, 3e8, 2e9]) {
    const [t0, t1] = [50e8 - width / 2, 50e8 + width / 2];
    const { from, to } = range(timeOfRange({ t0, t1 }));
    assert.ok(from <= 50e8 && to >= 50e8 && (to - from) / width >= 0.1 && (to - from) / width <= 10, `${width}: ${to - from}`);
  }
});
