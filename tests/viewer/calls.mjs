// SPDX-License-Identifier: BSD-3-Clause
// Whole calls and faults out of their pieces.
import assert from "node:assert/strict";
import { test } from "node:test";

import { callAround, thingsAmong, wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { callText } from "../../postprocess/viewer/data/format.js";
import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { numbersFrom, storeOf } from "./support/store.mjs";

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

test("pieces are counted as the calls they belong to, and these have their whole length", () => {
  const spans = [
    user(0, 9, 5), call(10, 10, 5, 3), fault(20, 4, 5), call(24, 6, 5, 3), call(40, 5, 6, 3, 1, 1), call(50, 10, 5, 3, 2), call(60, 3, 5, 3, 1), user(63, 1, 5),
  ];
  const store = storeOf(spans);
  const of = (...ids) => thingsAmong(store, () => wholeCalls(store), Uint32Array.from(ids));
  assert.deepEqual(of(0, 1, 2, 3, 4, 5, 6, 7), { pieces: 6, calls: 4, shortest: 1, longest: 50 });
  // Any piece stands for its call, and for no other.
  for (const piece of [1, 3, 5]) assert.deepEqual(of(piece), { pieces: 1, calls: 1, shortest: 50, longest: 50 });
  assert.deepEqual(of(3, 4, 5, 6), { pieces: 4, calls: 3, shortest: 3, longest: 50 });
  assert.deepEqual(thingsAmong(store, () => assert.fail("calls are put together for nothing"), Uint32Array.of(0, 7)), { pieces: 0, calls: 0, shortest: 1, longest: 9 });
});

test("a fault in a call is one of its own, and the call continues after it", () => {
  const spans = [call(0, 10, 5, 3), fault(10, 4, 5), interrupt(14, 2, 5), fault(16, 4, 5), call(20, 10, 5, 3, 2), fault(40, 5, 5), user(50, 1, 5), fault(51, 5, 5)];
  assert.deepEqual(callsOf(spans), [["read(3)=2", 0, 30, 20], ["page_fault", 10, 10, 8], ["page_fault", 40, 5, 5], ["page_fault", 51, 5, 5]]);
});

test("the call around each of its pieces is that of the table, with what cut in and what it waited for", () => {
  const wait = { start: 20, dur: 60, pid: 5, event: EVENT.WAIT_A, name: "wait_cpu" };
  const spans = [call(0, 10, 5, 3), interrupt(10, 5, 5), call(15, 5, 5, 3), wait, user(20, 60, 6), call(80, 20, 5, 3, 7, 1), interrupt(100, 3, 5), user(103, 9, 5)];
  const store = storeOf(spans);
  const [, threads] = buildGroups(store, indexByKind(store));
  for (const i of [0, 2, 5]) {
    const { waits, ...rest } = callAround(store, threads, i);
    assert.deepEqual(rest, { pieces: [0, 2, 5], from: 0, to: 100, own: 35, cut: 5 });
    assert.deepEqual([...waits].map(([name, time]) => [store.names[name], time]), [["wait_cpu", 60]]);
  }
  assert.deepEqual([1, 3, 4, 7].map((i) => callAround(store, threads, i)), [null, null, null, null]);
  // Whatever threads do, by another way.
  const number = numbersFrom(3);
  const made = Array.from({ length: 2000 }, (_, k) => {
    const pid = 5 + number(3);
    const any = [() => user(k * 10, 10, pid), () => interrupt(k * 10, 10, pid), () => fault(k * 10, 10, pid), () => call(k * 10, 10, pid, number(2), number(3) === 0 ? 1 : undefined)];
    return any[Math.max(number(8) - 4, 0) === 0 ? 3 : number(4)]();
  });
  const many = storeOf(made);
  const [, rows] = buildGroups(many, indexByKind(many));
  const { store: whole, first, last, own } = wholeCalls(many);
  let pieces = 0;
  for (let k = 0; k < whole.n; k++) {
    for (const i of [first[k], last[k]]) {
      const around = callAround(many, rows, i);
      assert.deepEqual([around.pieces[0], around.pieces.at(-1), around.own, around.to - around.from], [first[k], last[k], own[k], whole.dur[k]], `span ${i}`);
      pieces = Math.max(pieces, around.pieces.length);
    }
  }
  assert.ok(pieces > 3 && whole.kinds.has(Kind.TRAP));
});
