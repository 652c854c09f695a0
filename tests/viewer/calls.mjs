// SPDX-License-Identifier: BSD-3-Clause
// Whole calls, faults and interrupts out of their pieces.
import assert from "node:assert/strict";
import { test } from "node:test";

import { interruptedBy, wholeAround } from "../../postprocess/viewer/data/around.js";
import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { callText } from "../../postprocess/viewer/data/format.js";
import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { Things } from "../../postprocess/viewer/data/things.js";
import { more, numbersFrom, storeOf } from "./support/store.mjs";

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
  const { count, pieces, calls, interrupts, halves, total, own, shortest, longest } = new Things(store, whole, Uint32Array.from(ids));
  return { count, pieces, calls, interrupts, halves, total, own, shortest, longest };
}
const callsOf = (spans) => wholesOf(spans, Kind.SYSCALL, Kind.TRAP);

test("a call has its pieces, what cut in and what it waited for in it, and its own time without that", () => {
  const spans = [call(0, 10, 5, 3), interrupt(10, 5, 5), more(call(15, 5, 5, 3)), user(20, 60, 6), more(call(80, 20, 5, 3, 7, 1)), user(100, 9, 5)];
  assert.deepEqual(callsOf(spans), [["read(3)=7", 0, 100, 35]]);
});

test("pieces of several threads and CPUs are each of the last call of its own", () => {
  const spans = [call(0, 10, 5, 3), call(10, 9, 6, 3, 4, 1), more(call(20, 10, 5, 3, 2)), call(30, 10, 5, 3, 1), fault(40, 5, 0), { ...fault(45, 5, 0), cpu: 1 }, more(fault(50, 5, 0))];
  assert.deepEqual(callsOf(spans), [["read(3)=2", 0, 30, 20], ["read(3)=4", 10, 9, 9], ["read(3)=1", 30, 10, 10], ["page_fault", 40, 15, 10], ["page_fault", 45, 5, 5]]);
});

test("pieces are counted as the calls they belong to, and these have their whole length", () => {
  const spans = [
    user(0, 9, 5), call(10, 10, 5, 3), fault(20, 4, 5), more(call(24, 6, 5, 3)), call(40, 5, 6, 3, 1, 1), more(call(50, 10, 5, 3, 2)), call(60, 3, 5, 3, 1), user(63, 1, 5),
  ];
  const store = storeOf(spans);
  const of = (...ids) => thingsOf(store, () => wholeCalls(store), ...ids);
  assert.deepEqual(of(0, 1, 2, 3, 4, 5, 6, 7), { count: 6, pieces: 6, calls: 4, interrupts: 0, halves: 0, total: 9 + 50 + 4 + 5 + 3 + 1, own: 26 + 4 + 5 + 3, shortest: 1, longest: 50 });
  // Any piece stands for its call, and for no other.
  for (const piece of [1, 3, 5]) assert.deepEqual(of(piece), { count: 1, pieces: 1, calls: 1, interrupts: 0, halves: 0, total: 50, own: 26, shortest: 50, longest: 50 });
  assert.deepEqual(of(3, 4, 5, 6), { count: 3, pieces: 4, calls: 3, interrupts: 0, halves: 0, total: 58, own: 34, shortest: 3, longest: 50 });
  assert.deepEqual(thingsOf(store, () => assert.fail("calls are put together for nothing"), 0, 7), { count: 2, pieces: 0, calls: 0, interrupts: 0, halves: 0, total: 10, own: 0, shortest: 1, longest: 9 });
  // What starts in a range: a call does so with its first piece, whichever of them are found.
  const starting = (ids, ...range) => Object.values(new Things(store, () => wholeCalls(store), Uint32Array.from(ids)).startingIn(...range));
  assert.deepEqual([starting([0, 3, 4, 7], 0, 20), starting([0, 3, 4, 7], 20, 99), starting([0, 3, 4, 7], 63, 63)], [[2, 59], [2, 6], [0, 0]]);
});

test("a fault in a call is one of its own, and the call continues after it", () => {
  const spans = [call(0, 10, 5, 3), fault(10, 4, 5), interrupt(14, 2, 5), more(fault(16, 4, 5)), more(call(20, 10, 5, 3, 2)), fault(40, 5, 5), user(50, 1, 5), fault(51, 5, 5)];
  assert.deepEqual(callsOf(spans), [["read(3)=2", 0, 30, 20], ["page_fault", 10, 10, 8], ["page_fault", 40, 5, 5], ["page_fault", 51, 5, 5]]);
});

test("the call around each of its pieces is that of the table, with what cut in and what it waited for", () => {
  const wait = { start: 20, dur: 60, pid: 5, event: EVENT.WAIT_A, name: "wait_cpu" };
  const spans = [call(0, 10, 5, 3), interrupt(10, 5, 5), more(call(15, 5, 5, 3)), wait, user(20, 60, 6), more(call(80, 20, 5, 3, 7, 1)), interrupt(100, 3, 5), user(103, 9, 5)];
  const store = storeOf(spans);
  const groups = buildGroups(store, indexByKind(store));
  for (const i of [0, 2, 5]) {
    const { waits, cut, ...rest } = wholeAround(store, groups, i);
    assert.deepEqual(rest, { pieces: [0, 2, 5], from: 0, to: 100, own: 35 });
    const named = (times) => [...times].map(([name, time]) => [store.names[name], time]);
    assert.deepEqual([named(cut), named(waits)], [[["timer", 5]], [["wait_cpu", 60]]]);
  }
  assert.deepEqual([3, 4, 7].map((i) => wholeAround(store, groups, i)), [null, null, null]);
  // Whatever threads do, by another way.
  const number = numbersFrom(3);
  const open = new Map();
  /** A piece of a call of this row: the first, or one more. */
  const piece = (row, span) => {
    const goesOn = open.has(row) && number(3) > 0;
    open.set(row, true);
    return goesOn ? more(span) : span;
  };
  // Interrupts that have begun since anything else ran.
  let begun = 0;
  const made = Array.from({ length: 2000 }, (_, k) => {
    const [pid, at] = [5 + number(3), k * 10];
    const sort = number(8);
    if (sort === 0) return number(2) === 0 ? piece("softirq", softirq(at, 10, pid)) : (begun++, interrupt(at, 10, pid));
    if (sort === 1) {
      const link = number(begun + 1);
      begun += link === 0 ? 1 : 0;
      return { ...interrupt(at, 10, pid), link };
    }
    begun = 0;
    open.delete("softirq");
    if (sort > 4) open.delete(`fault ${pid}`);
    if (sort > 6) open.delete(`call ${pid}`);
    return sort > 6 ? user(at, 10, pid) : sort > 4 ? piece(`call ${pid}`, call(at, 10, pid, 3)) : piece(`fault ${pid}`, fault(at, 10, pid));
  });
  const many = storeOf(made);
  const of = wholeCalls(many).of;
  assert.ok(new Set(of).size > 500);
  const all = buildGroups(many, indexByKind(many));
  const { store: whole, first, last, own } = wholeCalls(many);
  let pieces = 0;
  for (let k = 0; k < whole.n; k++) {
    assert.equal(of[first[k]] - 1, k);
    for (const i of [first[k], last[k]]) {
      const around = wholeAround(many, all, i);
      assert.deepEqual([around.pieces[0], around.pieces.at(-1), around.own, around.to - around.from], [first[k], last[k], own[k], whole.dur[k]], `span ${i}`);
      pieces = Math.max(pieces, around.pieces.length);
    }
  }
  assert.ok(pieces > 3 && whole.kinds.has(Kind.TRAP));
  const parted = [...first.keys()].filter((k) => whole.kind[k] === Kind.IRQ && first[k] !== last[k]);
  assert.ok(parted.length > 3, "no interrupt has pieces");
});

test("an interrupt or a bottom half has its pieces, what cut in, and what it interrupted", () => {
  const nmi = { ...interrupt(14, 2, 5), event: EVENT.IRQ + 2, name: "NMI" };
  const spans = [
    call(0, 10, 5, 3), interrupt(10, 4, 5), nmi, { ...interrupt(16, 3, 5), link: 2 }, softirq(19, 5, 5), interrupt(24, 6, 5), more(softirq(30, 4, 5)), more(call(34, 6, 5, 3, 2)),
    interrupt(40, 3, 5), interrupt(43, 3, 5), user(46, 4, 5), interrupt(50, 2, 5), user(52, 3, 5),
  ];
  assert.deepEqual(wholesOf(spans, Kind.IRQ), [["timer", 10, 9, 7], ["NMI", 14, 2, 2], ["timer", 24, 6, 6], ["timer", 40, 3, 3], ["timer", 43, 3, 3], ["timer", 50, 2, 2]]);
  assert.deepEqual(wholesOf(spans, Kind.BH), [["BH:rcu", 19, 15, 9]]);
  const store = storeOf(spans);
  const groups = buildGroups(store, indexByKind(store));
  const around = (i) => {
    const { cut, waits, ...rest } = wholeAround(store, groups, i);
    return [rest, [...cut].map(([name, time]) => [store.names[name], time]), waits.size];
  };
  for (const i of [1, 3]) assert.deepEqual(around(i), [{ pieces: [1, 3], from: 10, to: 19, own: 7 }, [["NMI", 2]], 0]);
  for (const i of [4, 6]) assert.deepEqual(around(i), [{ pieces: [4, 6], from: 19, to: 34, own: 9 }, [["timer", 6]], 0]);
  assert.deepEqual([8, 9].map((i) => wholeAround(store, groups, i).pieces), [[8], [9]]);
  assert.deepEqual([1, 2, 5, 8, 9, 11].map((i) => interruptedBy(store, groups[0], i)), [0, 0, 0, 7, 7, 10]);
  const { halves, ...things } = thingsOf(store, () => wholeCalls(store), 0, 1, 2, 3, 4, 5);
  assert.deepEqual([halves, things], [1, { count: 5, pieces: 6, calls: 1, interrupts: 3, total: 40 + 9 + 2 + 6 + 15, own: 16 + 7 + 2 + 6 + 9, shortest: 2, longest: 40 }]);
});
