// SPDX-License-Identifier: BSD-3-Clause
// What programs count: rows by process and name, and a line of steps on each.
import assert from "node:assert/strict";
import { test } from "node:test";

import { callText } from "../../postprocess/viewer/data/format.js";
import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { indexByKind, laneOfKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { amountOf, flagged, rangeOfValues } from "../../postprocess/viewer/data/values.js";
import { Steps } from "../../postprocess/viewer/draw/steps.js";
import { storeOf } from "./support/store.mjs";

const runs = (pid, name) => ({ start: 0, dur: 1000, event: EVENT.USER + pid, cpu: 0, pid, name });
const value = (start, pid, name, arg) => ({ start, dur: 1, event: EVENT.PROGRAM_VALUE, cpu: 0, pid, name, arg });

/** Threads 7 and 8 of process 7 and process 9 count; 7 marks, too. */
const store = storeOf([
  runs(7, "web.7"), runs(9, "db.9"), value(10, 7, "queued", 3), value(20, 8, "queued", 5), value(20, 9, "queued", -2),
  { start: 30, dur: 1, event: EVENT.PROGRAM_MARK, cpu: 0, pid: 7, name: "parsed" }, value(40, 7, "open", 0), value(60, 7, "queued", 1),
], { processes: { 8: 7 } });
const kinds = indexByKind(store);
const values = buildGroups(store, kinds).find(({ name }) => name === "VAL");

test("each process has a row for each name of its values", () => {
  assert.deepEqual(values.labels, ["queued web.7", "queued db.9", "open web.7"]);
  const { first, ids } = values.points;
  const on = values.labels.map((_, row) => [...ids.subarray(first[row], first[row + 1])].map((i) => [store.start[i], amountOf(store, i)]));
  assert.deepEqual(on, [[[10, 3], [20, 5], [60, 1]], [[20, -2]], [[40, 0]]]);
  assert.deepEqual(values.labels.map((_, row) => rangeOfValues(store, values, row)), [{ min: 0, max: 5 }, { min: -2, max: 0 }, { min: 0, max: 0 }]);
  const without = storeOf([runs(7, "web.7")]);
  assert.ok(!buildGroups(without, indexByKind(without)).some(({ name }) => name === "VAL"));
});

test("a value says how much it is, and has a row in place of a flag", () => {
  const marks = laneOfKind(store, kinds, Kind.MARK);
  assert.deepEqual([...marks.ids].map((i) => callText(store, i)), ["queued=3", "queued=5", "queued=-2", "parsed", "open=0", "queued=1"]);
  assert.deepEqual([...flagged(store, marks).ids].map((i) => callText(store, i)), ["parsed"]);
});

/** What is drawn of a row of values between two times, by a pixel a unit: the lines' ends, the texts, the spots. */
function drawn(row, t0, t1) {
  const lines = [];
  const texts = [];
  const context = {
    beginPath() {}, stroke() {},
    moveTo: (x, y) => lines.push([x, y]), lineTo: (x, y) => lines.push([x, y]), fillText: (text) => texts.push(text),
  };
  const times = { t0, t1, scale: 1, width: t1 - t0, x: (time) => time - t0 };
  const view = { top: () => 0, on: () => times, end: 100 };
  const spots = [];
  const look = { palette: { css: { users: ["#111", "#222"], grey: "#333" }, ink: (color) => color } };
  const steps = new Steps({ store, view, focus: { shows: () => true }, look, lettering: { fit: (text) => text } }, context, spots);
  steps.draw({ group: values, row, h: 58 });
  return { lines, texts, spots };
}

test("a value is drawn from where it was said to the next, as high as it is", () => {
  const { lines, texts, spots } = drawn(0, 0, 100);
  // From 0 at the bottom, 54, to 5 at the top, 4.
  assert.deepEqual(lines, [
    [10, 24], [10, 24], [10, 24], [20, 24],
    [20, 4], [20, 24], [20, 4], [60, 4],
    [60, 4], [60, 44], [60, 44], [100, 44],
  ]);
  assert.deepEqual(texts, ["5", "1"]);
  assert.deepEqual(spots.map(({ i, x0, x1 }) => [store.start[i], x0, x1]), [[10, 10, 20], [20, 20, 60], [60, 60, 100]]);
});

test("where no value is said in sight, the one before holds", () => {
  assert.deepEqual(drawn(0, 30, 50).lines, [[-5, 4], [-5, 4], [-5, 4], [25, 4]]);
});
