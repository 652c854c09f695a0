// SPDX-License-Identifier: BSD-3-Clause
// Groups of spans: what was counted in them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { GROUPINGS, Pivot } from "../../postprocess/viewer/data/pivot.js";
import { EVENT, FLAG } from "../../postprocess/viewer/data/tables.js";
import { more, numbersFrom, storeOf } from "./support/store.mjs";

/** By name, instructions per cycle and misses, of spans that have counted them by this code. */
function counted(flags) {
  const span = (start, dur, name, ipc) => ({ start, dur, name, ipc, cpu: 0, pid: 5, event: EVENT.SYSCALL });
  const wait = { start: 0, dur: 1000, name: "wait_disk", ipc: 0, pid: 5, event: EVENT.WAIT_A + 3 };
  // Codes 3 and 12 are 7 and 36 sixteenths, or 16 and 8192 misses and more; as two counters, 0 and 512, 2 and 0.
  const store = storeOf([wait, span(0, 100, "read", 3), span(100, 300, "read", 12), span(400, 50, "write", 12)], { flags });
  const names = GROUPINGS.find(([id]) => id === "name")[2](store);
  const pivot = new Pivot(store, Uint32Array.from({ length: store.n }, (_, i) => i), [names]);
  const of = pivot.groups.map(({ pace, misses }, at) => [names.text(pivot.numberOf(at, 0)), pace, misses]);
  return [of, [pivot.all.pace, pivot.all.misses]];
}

test("what was counted in a group is that of all its time", () => {
  const read = (100 * 7 + 300 * 36) / 400 / 16;
  const all = (100 * 7 + 350 * 36) / 450 / 16;
  assert.deepEqual(counted(0), [[["wait_disk", -1, 0], ["read", -1, 0], ["write", -1, 0]], [-1, 0]]);
  assert.deepEqual(counted(FLAG.IPC), [[["wait_disk", -1, 0], ["read", read, 0], ["write", 36 / 16, 0]], [all, 0]]);
  assert.deepEqual(counted(FLAG.LLC), [[["wait_disk", -1, 0], ["read", 0, 8208], ["write", 0, 8192]], [0, 16400]]);
  assert.deepEqual(counted(FLAG.COUNTERS), [[["wait_disk", -1, 0], ["read", 1.5, 512], ["write", 2, 0]], [(300 * 2 + 50 * 2) / 450, 512]]);
});

test("what was counted in a call is that of all its pieces", () => {
  const call = (start, dur, ipc, ret) => ({ start, dur, pid: 7, cpu: 0, ret, arg: 3, ipc, name: "read", event: EVENT.SYSCALL });
  const calls = wholeCalls(storeOf([call(0, 100, 3), more(call(300, 300, 12, 1)), call(700, 50, 12, 1)], { flags: FLAG.COUNTERS }));
  const [name] = GROUPINGS.map(([, , make]) => make(calls.store));
  const { groups } = new Pivot(calls.store, Uint32Array.of(0, 1), [name], calls);
  assert.deepEqual(groups.map(({ pace, misses, own }) => [pace, misses, own]), [[(350 * 2) / 450, 512, 450]]);
});

test("threads of a process are one group, whose calls have the sum of their own time", () => {
  const call = (start, dur, pid, cpu, ret) => ({ start, dur, pid, cpu, ret, arg: 3, name: "read", event: EVENT.SYSCALL });
  // Thread 8 waits in its call, from 120 to 300.
  const spans = [call(0, 50, 7, 0, 1), call(50, 70, 8, 0), call(60, 30, 9, 1, 1), more(call(300, 10, 8, 0, 1))];
  const calls = wholeCalls(storeOf(spans, { processes: { 8: 7 } }));
  const { store } = calls;
  const processes = GROUPINGS.find(([id]) => id === "process")[2](store);
  const pivot = new Pivot(store, Uint32Array.from({ length: store.n }, (_, i) => i), [processes], calls);
  const of = pivot.groups.map((group, at) => {
    const number = pivot.numberOf(at, 0);
    return [processes.text(number), processes.find(number), group.count, group.sum, group.own];
  });
  assert.deepEqual(of, [["pid.7", "pid:7,8", 2, 310, 130], ["pid.9", "pid:9", 1, 30, 30]]);
  assert.equal(pivot.all.own, 160);
});

test("a group comes to what its spans come to", () => {
  const number = numbersFrom(7);
  const spans = Array.from({ length: 20000 }, (_, k) => ({
    start: 10 * k, dur: 2 ** number(34) + number(100), name: `call${number(9)}`, cpu: number(4), pid: number(5), event: EVENT.SYSCALL,
  }));
  const store = storeOf(spans);
  const groupings = ["name", "cpu"].map((wanted) => GROUPINGS.find(([id]) => id === wanted)[2](store));
  // Not all spans, and not those at the beginning.
  const ids = Uint32Array.from({ length: 15000 }, (_, k) => 5000 + k);
  const same = ({ count, sum, shortest, longest, quantile }, durations, group) => {
    durations.sort((a, b) => a - b);
    const all = durations.reduce((total, dur) => total + dur, 0);
    assert.deepEqual([count, sum, shortest, longest], [durations.length, all, durations[0], durations.at(-1)]);
    for (const part of [0.5, 0.9, 0.99]) {
      const exact = durations[Math.ceil(part * durations.length) - 1];
      const found = quantile.call(group, part);
      assert.ok(Math.abs(found - exact) <= 0.016 * exact + 1, `${part}: ${found}, not ${exact}`);
    }
  };
  // In either order, as the one with more groups is the second or the first.
  for (const by of [groupings, groupings.toReversed()]) {
    const pivot = new Pivot(store, ids, by);
    assert.equal(pivot.groups.length, 9 * 4);
    // Some steps are counted first, as a table does for the lines that it shows.
    pivot.countSteps(pivot.groups.slice(3, 7));
    for (const [at, group] of pivot.groups.entries()) {
      const texts = by.map((grouping, which) => grouping.text(pivot.numberOf(at, which)));
      same(group, spans.slice(5000).filter(({ name, cpu }) => texts.includes(name) && texts.includes(`CPU ${cpu}`)).map(({ dur }) => dur), group);
    }
    same(pivot.all, spans.slice(5000).map(({ dur }) => dur), pivot.all);
  }
  const { all, groups } = new Pivot(store, ids, []);
  assert.equal(groups.length, 0);
  same(all, spans.slice(5000).map(({ dur }) => dur), all);
});

test("groups that are too many are one", () => {
  const spans = Array.from({ length: 20000 }, (_, k) => ({ start: 10 * k, dur: 1 + k, name: `call${k >> 1}`, cpu: k & 1, pid: 1, event: EVENT.SYSCALL }));
  const store = storeOf(spans);
  const by = ["name", "cpu"].map((wanted) => GROUPINGS.find(([id]) => id === wanted)[2](store));
  const pivot = new Pivot(store, Uint32Array.from(spans, (_, i) => i), by);
  assert.equal(pivot.groups.length, 16385);
  const [known, others] = pivot.groups.slice(-2);
  assert.deepEqual([known.count, known.shortest, by[0].text(pivot.numberOf(16383, 0))], [1, 16384, "call8191"]);
  const { count, sum, shortest, longest } = others;
  assert.deepEqual([count, shortest, longest, sum], [20000 - 16384, 16385, 20000, ((16385 + 20000) * (20000 - 16384)) / 2]);
  assert.deepEqual([0, 1].map((which) => pivot.numberOf(16384, which)), [-1, -1]);
});
