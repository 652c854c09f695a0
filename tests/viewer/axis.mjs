// SPDX-License-Identifier: BSD-3-Clause
// The time axis: one clock for ticks, panel and tables, and labels that are short wherever they can be.
import assert from "node:assert/strict";
import { test } from "node:test";

import { parseDuration, secondsText } from "../../postprocess/viewer/data/format.js";
import { axisOf } from "../../postprocess/viewer/view/axis.js";
import { rangeOfTime } from "../../postprocess/viewer/view/seek.js";
import { numbersFrom } from "./support/store.mjs";

const BASE = "2026-01-02_13:23:00";
const axis = (t0, t1, more) => axisOf(BASE, { t0, t1, begin: 0, end: 90e8, width: 1000, relative: false, ...more });

test("what a tick says is the time that panel and tables say, and leads to its place from the search", () => {
  const number = numbersFrom(5);
  for (let round = 0; round < 300; round++) {
    const length = 10 ** (1 + number(9)) * (1 + number(9));
    const t0 = Math.min(number(80e8), 90e8 - length);
    const { baseText, ticks } = axis(t0, t0 + length);
    const [, base] = /^2026-01-02 13:23(?:, ([\d.]+) s)? \+$/.exec(baseText) ?? assert.fail(baseText);
    assert.ok(ticks.length > 1, `${t0} + ${length}`);
    let from = Number(base ?? 0) * 1e8;
    for (const { time, label } of ticks) {
      // The tick of a full second or the like says all of it, and those after it count from there.
      const isFull = / s$/.test(label) && !ticks.every((tick) => / s$/.test(tick.label));
      if (isFull) from = Math.round(parseFloat(label) * 1e8);
      const said = secondsText(Math.round(from) + (isFull ? 0 : parseDuration(label)));
      assert.equal(said, secondsText(Math.round(time)), `${label} after ${baseText}`);
      const range = rangeOfTime({ begin: 0, end: 90e8 }, BASE, said);
      assert.ok(range && Math.abs((range.from + range.to) / 2 - time) <= 1, said);
    }
  }
});

test("ticks count from a full second, and from another if there is one in sight", () => {
  const labels = (t0, t1) => axis(t0, t1).ticks.map(({ label }) => label);
  const { baseText, baseTitle } = axis(7e8 - 4.5, 7e8 + 5.5);
  assert.deepEqual([baseText, baseTitle], ["2026-01-02 13:23, 6.999999 s +", "2026-01-02 13:23:06.999999"]);
  assert.deepEqual(labels(7e8 - 4.5, 7e8 + 5.5), ["960 ns", "970 ns", "980 ns", "990 ns", "7 s", "10 ns", "20 ns", "30 ns", "40 ns", "50 ns"]);
  assert.deepEqual(labels(8e8 - 1e7, 8e8 + 1e7), ["900 ms", "920 ms", "940 ms", "960 ms", "980 ms", "8 s", "20 ms", "40 ms", "60 ms", "80 ms", "100 ms"]);
  // Of several, none stands out.
  assert.deepEqual(labels(8e8 + 0.1e5, 8e8 + 3.5e5), ["500 \u00b5s", "1000 \u00b5s", "1500 \u00b5s", "2000 \u00b5s", "2500 \u00b5s", "3000 \u00b5s", "3500 \u00b5s"]);
  // From 0 seconds, the base says none.
  assert.deepEqual([axis(0, 1.5e8).baseText.slice(-2), labels(9e7, 1.1e8)[5]], [" +", "1 s"]);
  const longest = (t0, t1) => Math.max(...labels(t0, t1).map((label) => label.length));
  assert.ok(longest(3e8 - 20, 3e8 + 100) <= 7 && longest(3e8 - 2e4, 3e8 + 1e5) <= 7);
});

test("an axis without a clock has seconds, and one of rows their starts", () => {
  assert.equal(axisOf("none", { t0: 7e8, t1: 7e8 + 1e5, begin: 0, width: 1000, relative: false }).baseText, "7 s +");
  assert.equal(axis(0, 100, { relative: true }).baseText, "Each row\u2019s start +");
  assert.equal(axis(5e8, 5e8 + 1e3, { relative: true, begin: 1e8 }).baseText, "Each row\u2019s start + 4 s +");
});
