// SPDX-License-Identifier: BSD-3-Clause
// Whole calls and faults out of their pieces.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { callText } from "../../postprocess/viewer/data/format.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { storeOf } from "./support/store.mjs";

const user = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.USER + pid });
const call = (start, dur, pid, arg, ret, cpu = 0) => ({ start, dur, pid, cpu, event: EVENT.SYSCALL, name: "read", arg, ret });
const fault = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.TRAP + 14, name: "page_fault", arg: 0 });
const interrupt = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.IRQ, name: "timer" });

function callsOf(spans) {
  const { store, own } = wholeCalls(storeOf(spans.toSorted((a, b) => a.start - b.start)));
  return Array.from({ length: store.n }, (_, i) => [callText(store, i), store.start[i], store.dur[i], own[i]]);
}

test("a call has its pieces, what cut in and what it waited for in it, and its own time without that", () => {
  const spans = [call(0, 10, 5, 3), interrupt(10, 5, 5), call(15, 5, 5, 3), user(20, 60, 6), call(80, 20, 5, 3, 7, 1), user(100, 9, 5)];
  assert.deepEqual(callsOf(spans), [["read(3)=7", 0, 100, 35]]);
});

test("what returned, another call or user code ends a call, of its own thread only", () => {
  assert.deepEqual(callsOf([call(0, 10, 5, 3, 1), call(10, 10, 5, 3, 2)]).map(([text]) => text), ["read(3)=1", "read(3)=2"]);
  assert.deepEqual(callsOf([call(0, 10, 5, 3), call(10, 10, 5, 4, 2)]), [["read(3)...", 0, 10, 10], ["read(4)=2", 10, 10, 10]]);
  assert.deepEqual(callsOf([call(0, 10, 5, 3), user(10, 5, 5), call(20, 10, 5, 3, 2)]).length, 2);
  assert.deepEqual(callsOf([call(0, 10, 5, 3), call(10, 9, 6, 3, 4), call(20, 10, 5, 3, 2)]), [["read(3)=2", 0, 30, 20], ["read(3)=4", 10, 9, 9]]);
});

test("a fault in a call is one of its own, and the call continues after it", () => {
  const spans = [call(0, 10, 5, 3), fault(10, 4, 5), interrupt(14, 2, 5), fault(16, 4, 5), call(20, 10, 5, 3, 2), fault(40, 5, 5), user(50, 1, 5), fault(51, 5, 5)];
  assert.deepEqual(callsOf(spans), [["read(3)=2", 0, 30, 20], ["page_fault", 10, 10, 8], ["page_fault", 40, 5, 5], ["page_fault", 51, 5, 5]]);
});
