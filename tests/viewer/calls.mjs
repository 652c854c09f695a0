// SPDX-License-Identifier: BSD-3-Clause
// Whole calls, faults and interrupts out of their pieces.
import assert from "node:assert/strict";
import { test } from "node:test";

import { callAround, interruptAround, interruptedBy, wholeAround } from "../../postprocess/viewer/data/around.js";
import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { callText } from "../../postprocess/viewer/data/format.js";
import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { Things } from "../../postprocess/viewer/data/things.js";
import { numbersFrom, storeOf } from "./support/store.mjs";

const user = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.USER + pid });
const call = (start, dur, pid, arg, ret, cpu = 0) => ({ start, dur, pid, cpu, event: EVENT.SYSCALL, name: "read", arg, ret });
const fault = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.TRAP + 14, name: "page_fault", arg: 0 });
const interrupt = (start, dur, pid, name = "timer") => ({ start, dur, pid, cpu: 0, event: EVENT.IRQ + (name === "timer" ? 0 : 7), name });
const softirq = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.SOFTIRQ, name: "BH:rcu" });

/** The wholes of some kinds. */
function wholesOf(spans, ...kinds) {
  const { store, own } = wholeCalls(storeOf(spans.toSorted((a, b) => a.start - b.start)));
  return [...store.kind.keys()].filter((i) => kinds.includes(store.kind[i])).map((i) => [callText(store, i), store.start[i], store.dur[i], own[i]]);
}
/** What some spans are. */
function thingsOf(store, whole, ...ids) {
  const { count, pieces, calls, interrupts, total, own, shortest, longest } = new Things(store, whole, Uint32Array.from(ids));
  return { count, pieces, calls, interrupts, total, own, shortest, longest };
}
const callsOf = (spans) => wholesOf(spans, Kind.SYSCALL, Kind.TRAP);

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
  const of = (...ids) => thingsOf(store, () => wholeCalls(store), ...ids);
  assert.deepEqual(of(0, 1, 2, 3, 4, 5, 6, 7), { count: 6, pieces: 6, calls: 4, interrupts: 0, total: 9 + 50 + 4 + 5 + 3 + 1, own: 26 + 4 + 5 + 3, shortest: 1, longest: 50 });
  // Any piece stands for its call, and for no other.
  for (const piece of [1, 3, 5]) assert.deepEqual(of(piece), { count: 1, pieces: 1, calls: 1, interrupts: 0, total: 50, own: 26, shortest: 50, longest: 50 });
  assert.deepEqual(of(3, 4, 5, 6), { count: 3, pieces: 4, calls: 3, interrupts: 0, total: 58, own: 34, shortest: 3, longest: 50 });
  assert.deepEqual(thingsOf(store, () => assert.fail("calls are put together for nothing"), 0, 7), { count: 2, pieces: 0, calls: 0, interrupts: 0, total: 10, own: 0, shortest: 1, longest: 9 });
  // What starts in a range: a call does so with its first piece, whichever of them are found.
  const starting = (ids, ...range) => Object.values(new Things(store, () => wholeCalls(store), Uint32Array.from(ids)).startingIn(...range));
  assert.deepEqual([starting([0, 3, 4, 7], 0, 20), starting([0, 3, 4, 7], 20, 99), starting([0, 3, 4, 7], 63, 63)], [[2, 59], [2, 6], [0, 0]]);
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
    const { waits, cut, ...rest } = callAround(store, threads, i);
    assert.deepEqual(rest, { pieces: [0, 2, 5], from: 0, to: 100, own: 35 });
    const named = (times) => [...times].map(([name, time]) => [store.names[name], time]);
    assert.deepEqual([named(cut), named(waits)], [[["timer", 5]], [["wait_cpu", 60]]]);
  }
  assert.deepEqual([1, 3, 4, 7].map((i) => callAround(store, threads, i)), [null, null, null, null]);
  // Whatever threads do, by another way.
  const number = numbersFrom(3);
  const made = Array.from({ length: 2000 }, (_, k) => {
    const pid = 5 + number(3);
    const any = [() => user(k * 10, 10, pid), () => interrupt(k * 10, 10, pid), () => fault(k * 10, 10, pid), () => call(k * 10, 10, pid, number(2), number(3) === 0 ? 1 : undefined)];
    if (number(4) === 0) return [() => softirq(k * 10, 10, pid), () => interrupt(k * 10, 10, pid, "disk")][number(2)]();
    return any[Math.max(number(8) - 4, 0) === 0 ? 3 : number(4)]();
  });
  const many = storeOf(made);
  const groups = buildGroups(many, indexByKind(many));
  const { store: whole, of, first, last, own } = wholeCalls(many);
  let pieces = 0;
  for (let k = 0; k < whole.n; k++) {
    assert.equal(of[first[k]] - 1, k);
    for (const i of [first[k], last[k]]) {
      const around = wholeAround(many, groups, i);
      assert.deepEqual([around.pieces[0], around.pieces.at(-1), around.own, around.to - around.from], [first[k], last[k], own[k], whole.dur[k]], `span ${i}`);
      pieces = Math.max(pieces, around.pieces.length);
    }
  }
  assert.ok(pieces > 3 && whole.kinds.has(Kind.TRAP));
  const parted = [...first.keys()].filter((k) => whole.kind[k] === Kind.IRQ && first[k] !== last[k]);
  assert.ok(parted.length > 3, "no interrupt has pieces");
});

test("an interrupt continues after bottom halves and other interrupts, and says what it interrupted", () => {
  const spans = [
    call(0, 10, 5, 3), interrupt(10, 4, 5), interrupt(14, 2, 5, "disk"), interrupt(16, 3, 5), softirq(19, 5, 5), interrupt(24, 6, 5), call(30, 10, 5, 3, 2),
    // Twice the same at once are two, and so are those between which anything else ran.
    interrupt(40, 3, 5), interrupt(43, 3, 5), user(46, 4, 5), interrupt(50, 2, 5), user(52, 3, 5),
  ];
  assert.deepEqual(wholesOf(spans, Kind.IRQ), [["timer", 10, 20, 13], ["disk", 14, 2, 2], ["timer", 40, 3, 3], ["timer", 43, 3, 3], ["timer", 50, 2, 2]]);
  const store = storeOf(spans);
  const [cpus] = buildGroups(store, indexByKind(store));
  for (const i of [1, 3, 5]) {
    const { cut, waits, ...rest } = interruptAround(store, cpus, i);
    assert.deepEqual(rest, { pieces: [1, 3, 5], from: 10, to: 30, own: 13 });
    assert.deepEqual([[...cut].map(([name, time]) => [store.names[name], time]), waits.size], [[["disk", 2], ["BH:rcu", 5]], 0]);
  }
  assert.deepEqual([7, 8].map((i) => interruptAround(store, cpus, i).pieces), [[7], [8]]);
  assert.deepEqual([1, 2, 5, 7, 8, 10].map((i) => interruptedBy(store, cpus, i)), [0, 0, 0, 6, 6, 9]);
  assert.deepEqual(thingsOf(store, () => wholeCalls(store), 0, 1, 2, 3, 4, 5), { count: 4, pieces: 5, calls: 1, interrupts: 2, total: 40 + 20 + 2 + 5, own: 20 + 13 + 2, shortest: 2, longest: 40 });
});
