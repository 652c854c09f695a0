// SPDX-License-Identifier: BSD-3-Clause
// Groups of spans: what was counted in them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { countsInstructions, GROUPINGS, Pivot } from "../../postprocess/viewer/data/pivot.js";
import { EVENT, FLAG } from "../../postprocess/viewer/data/tables.js";
import { storeOf } from "./support/store.mjs";

/** Instructions per cycle by name, of spans that have counted them by this code. */
function paces(flags) {
  const span = (start, dur, name, ipc) => ({ start, dur, name, ipc, cpu: 0, pid: 5, event: EVENT.SYSCALL });
  const wait = { start: 0, dur: 1000, name: "wait_disk", ipc: 0, pid: 5, event: EVENT.WAIT_A + 3 };
  // Codes 3 and 12 are 7 and 36 sixteenths.
  const store = storeOf([wait, span(0, 100, "read", 3), span(100, 300, "read", 12), span(400, 50, "write", 12)], { flags });
  const names = GROUPINGS.find(([id]) => id === "name")[2](store);
  const pivot = new Pivot(store, Uint32Array.from({ length: store.n }, (_, i) => i), [names]);
  const of = pivot.groups.map((group, at) => [names.texts[pivot.numberOf(at, 0)], group.pace]);
  return [countsInstructions(store), of, pivot.all.pace];
}

test("instructions per cycle of a group are those of all its time, where they were counted", () => {
  const read = (100 * 7 + 300 * 36) / 400 / 16;
  const all = (100 * 7 + 350 * 36) / 450 / 16;
  assert.deepEqual(paces(FLAG.IPC), [true, [["wait_disk", -1], ["read", read], ["write", 36 / 16]], all]);
  // Of misses, or of both in one code, nothing is summed up.
  for (const flags of [0, FLAG.LLC, FLAG.COUNTERS]) assert.deepEqual(paces(flags), [false, [["wait_disk", -1], ["read", -1], ["write", -1]], -1]);
});

test("threads of a process are one group, whose calls have the sum of their own time", () => {
  const call = (start, dur, pid, cpu, ret) => ({ start, dur, pid, cpu, ret, arg: 3, name: "read", event: EVENT.SYSCALL });
  // Thread 8 waits in its call, from 120 to 300.
  const spans = [call(0, 50, 7, 0, 1), call(50, 70, 8, 0), call(60, 30, 9, 1, 1), call(300, 10, 8, 0, 1)];
  const { store, own } = wholeCalls(storeOf(spans, { processes: { 8: 7 } }));
  const processes = GROUPINGS.find(([id]) => id === "process")[2](store);
  const pivot = new Pivot(store, Uint32Array.from({ length: store.n }, (_, i) => i), [processes], own);
  const of = pivot.groups.map((group, at) => {
    const number = pivot.numberOf(at, 0);
    return [processes.texts[number], processes.finds[number], group.count, group.sum, group.own];
  });
  assert.deepEqual(of, [["pid.7", "pid:7,8", 2, 310, 130], ["pid.9", "pid:9", 1, 30, 30]]);
  assert.equal(pivot.all.own, 160);
});
