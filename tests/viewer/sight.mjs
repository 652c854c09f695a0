// SPDX-License-Identifier: BSD-3-Clause
// What the legend takes for in sight.
import assert from "node:assert/strict";
import { test } from "node:test";

import { sightOf } from "../../postprocess/viewer/data/sight.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { storeOf } from "./support/store.mjs";

const store = storeOf([
  { start: 0, dur: 100, cpu: 0, pid: 5, event: EVENT.USER + 5 }, { start: 100, dur: 100, cpu: 0, pid: 5, event: EVENT.SYSCALL },
  { start: 150, dur: 100, cpu: 1, pid: 6, event: EVENT.USER + 6 }, { start: 180, dur: 9, cpu: 0, pid: 5, event: EVENT.WAKEUP_ARC },
]);
const cpus = { rowOf: (i) => store.cpus[store.cpu[i]] };
const sight = (t0, t1, rows, drawn = new Map([[Kind.WAKEUP, false]]), hides = () => false) =>
  [...sightOf(store, { t0, t1, relative: false, seen: () => rows.map((row) => ({ group: cpus, row })) }, hides, drawn).kinds].sort();

test("what is in the range, on the rows in sight", () => {
  assert.deepEqual(sight(10, 50, [-1, 0, 1]), [Kind.USER]);
  assert.deepEqual(sight(110, 140, [0, 1]), [Kind.SYSCALL]);
  assert.deepEqual(sight(110, 160, [0]), [Kind.SYSCALL]);
  assert.deepEqual(sight(110, 160, [0, 1]), [Kind.SYSCALL, Kind.USER].sort());
  assert.deepEqual(sight(110, 160, []), []);
});

test("arcs while they are drawn; nothing that has lost its look", () => {
  assert.deepEqual(sight(181, 185, [0], new Map([[Kind.WAKEUP, true]])), [Kind.SYSCALL, Kind.WAKEUP].sort());
  assert.deepEqual(sight(110, 140, [0], undefined, (i) => store.kind[i] === Kind.SYSCALL), []);
});
