// SPDX-License-Identifier: BSD-3-Clause
// Spans in words.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeAround } from "../../postprocess/viewer/data/around.js";
import { Chains } from "../../postprocess/viewer/data/chain.js";
import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { indexByKind, laneOfKind } from "../../postprocess/viewer/data/rows.js";
import { causeText, sentenceOf, sentenceOfCall } from "../../postprocess/viewer/data/sentence.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { storeOf } from "./support/store.mjs";

const CALL = EVENT.SYSCALL + 1;
const spans = [
  { start: 0, dur: 300, event: EVENT.USER, cpu: 0, pid: 0, name: "-idle-" },
  { start: 0, dur: 100, event: EVENT.USER + 6, cpu: 1, pid: 6, name: "b.6" },
  { start: 10, dur: 150, event: EVENT.WAIT_A + 13, pid: 5, name: "wait_net" },
  { start: 100, dur: 80, event: CALL, cpu: 1, pid: 6, arg: 3, ret: 16, name: "write" },
  { start: 160, dur: 140, event: EVENT.WAKEUP_ARC, cpu: 1, pid: 6, arg: 0, ret: 5, name: "-wakeup-" },
  { start: 160, dur: 140, event: EVENT.WAIT_A + 2, pid: 5, name: "wait_cpu" },
  { start: 180, dur: 120, event: CALL, cpu: 1, pid: 6, arg: 3, name: "write" },
  { start: 300, dur: 70, event: EVENT.USER + 5, cpu: 0, pid: 5, name: "a.5" },
  { start: 370, dur: 30, event: EVENT.TRAP + 14, cpu: 0, pid: 5, name: "page_fault" },
  { start: 400, dur: 100, event: EVENT.STALLED, cpu: 0, pid: 5, name: "-stalled-" },
];

test("a span is told in a sentence, in words before numbers", () => {
  const store = storeOf(spans, { valueBits: 32, errors: {} });
  const kinds = indexByKind(store);
  const chains = new Chains(store, buildGroups(store, kinds), laneOfKind(store, kinds, Kind.WAKEUP));
  const said = spans.map((_, i) => sentenceOf(store, chains, i, true));
  assert.deepEqual(said, [
    "CPU 0 was idle for 3 \u00b5s.",
    "b.6 ran its own code for 1 \u00b5s on CPU 1.",
    "a.5 waited 1.5 \u00b5s for the network, until b.6 in write(3)=16 on CPU 1 woke it.",
    "b.6 was in write for 800 ns on CPU 1, which returned 16.",
    "a.5 was woken by b.6 in write(3)=16 on CPU 1 and ran 1.4 \u00b5s later.",
    "a.5 could run, but waited 1.4 \u00b5s for a CPU.",
    "b.6 was in write for 1.2 \u00b5s on CPU 1.",
    "a.5 ran its own code for 700 ns on CPU 0.",
    "The fault page_fault took 300 ns on CPU 0, while a.5 ran.",
    "CPU 0 stood still for 1 \u00b5s.",
  ]);
  assert.ok(!sentenceOf(store, chains, 8, false).includes("300 ns"), "a time that is not known is not said");
});

test("what the host took lies over the row of its CPU and of the thread that it was taken from", () => {
  const made = [
    { start: 0, dur: 300, event: EVENT.USER + 5, cpu: 0, pid: 5, name: "a.5" },
    { start: 40, dur: 200, event: EVENT.STEAL, cpu: 0, pid: 5, arg: 30, name: "stolen:other" },
    { start: 300, dur: 100, event: EVENT.USER, cpu: 0, pid: 0, name: "-idle-" },
    { start: 350, dur: 50, event: EVENT.STEAL, cpu: 0, pid: 0, name: "stolen:other" },
  ];
  const store = storeOf(made);
  const kinds = indexByKind(store);
  const groups = buildGroups(store, kinds);
  const chains = new Chains(store, groups, laneOfKind(store, kinds, Kind.WAKEUP));
  assert.deepEqual(groups.map(({ steals }) => [...steals.ids]), [[1, 3], [1]]);
  assert.equal(sentenceOf(store, chains, 1, true), "CPU 0 wanted to run, but its host ran something else for 2 \u00b5s, up to 300 ns earlier.");
  assert.deepEqual(groups.map(({ exec }) => exec.ids.length), [2, 1], "it is not what the CPU did");
});

test("what ended idle time is the wakeup of the thread that ran then, or nothing", () => {
  const idle = (start, dur, cpu) => ({ start, dur, cpu, event: EVENT.USER, pid: 0, name: "-idle-" });
  const interrupt = (start, cpu) => ({ start, dur: 5, cpu, event: EVENT.IRQ + 0xec, pid: 0, name: "timer" });
  const runs = (start, dur, cpu, pid) => ({ start, dur, cpu, pid, event: EVENT.USER + pid, name: `t.${pid}` });
  const woken = (start, dur, by, cpu, pid) => ({ start, dur, cpu: by, pid: 6, arg: cpu, ret: pid, event: EVENT.WAKEUP_ARC, name: "-wakeup-" });
  const made = [
    runs(0, 500, 1, 6), runs(0, 10, 2, 7), idle(0, 100, 0), interrupt(100, 0), idle(105, 95, 0), woken(150, 60, 1, 0, 5),
    { start: 200, dur: 5, cpu: 0, pid: 0, event: EVENT.IDLE_EXIT, name: "-c-exit-" }, interrupt(205, 0), runs(210, 50, 0, 5),
    // Thread 7 was woken long before, and comes over from another CPU.
    woken(215, 1, 1, 2, 7), runs(216, 100, 2, 7), idle(260, 140, 0), runs(400, 20, 0, 7), idle(420, 10, 0),
  ];
  const store = storeOf(made);
  const kinds = indexByKind(store);
  const chains = new Chains(store, buildGroups(store, kinds), laneOfKind(store, kinds, Kind.WAKEUP));
  const arcs = made.flatMap(({ event }, i) => (event === EVENT.USER || event === EVENT.IDLE_EXIT ? [chains.firstArc(i)] : []));
  assert.deepEqual(arcs, [-1, 5, 5, -1, -1]);
  assert.equal(causeText(store, 5, 4), "idle CPU 1");
  assert.deepEqual(chains.leadingTo(4).map(({ arc, cause }) => [arc, cause]), [[5, 0]]);
});

test("a whole call has its own length, its value, what it waited for and what cut in; what interrupts says what it interrupted", () => {
  const made = [
    { start: 0, dur: 10, event: CALL, cpu: 0, pid: 5, arg: 3, name: "read" },
    { start: 10, dur: 2, event: EVENT.IRQ + 0xec, cpu: 0, pid: 5, name: "timer" },
    { start: 12, dur: 3, event: EVENT.SOFTIRQ, cpu: 0, pid: 5, name: "BH:rcu" },
    { start: 15, dur: 1, event: EVENT.IRQ + 0xec, cpu: 0, pid: 5, name: "timer", link: 1 },
    { start: 16, dur: 4, event: EVENT.TRAP + 14, cpu: 0, pid: 5, name: "page_fault" },
    { start: 20, dur: 10, event: CALL, cpu: 0, pid: 5, arg: 3, name: "read", link: 1 },
    { start: 30, dur: 40, event: EVENT.WAIT_A + 3, pid: 5, name: "wait_disk" },
    { start: 30, dur: 30, event: EVENT.USER, cpu: 0, pid: 0, name: "-idle-" },
    { start: 60, dur: 5, event: EVENT.IRQ + 0xec, cpu: 0, pid: 0, name: "timer" },
    { start: 70, dur: 15, event: CALL, cpu: 1, pid: 5, arg: 3, ret: 7, name: "read", link: 1 },
    { start: 85, dur: 1, event: EVENT.IRQ + 0xec, cpu: 1, pid: 5, name: "timer" },
    { start: 86, dur: 9, event: EVENT.USER + 5, cpu: 1, pid: 5, name: "a.5" },
    { start: 95, dur: 9, event: EVENT.TRAP + 14, cpu: 1, pid: 5, name: "page_fault" },
  ];
  const store = storeOf(made);
  const kinds = indexByKind(store);
  const groups = buildGroups(store, kinds);
  const chains = new Chains(store, groups, laneOfKind(store, kinds, Kind.WAKEUP));
  const whole = (i) => sentenceOfCall(store, chains, wholeAround(store, groups, i));
  assert.equal(whole(0), "a.5 was in read for 850 ns from CPU 0 to CPU 1, which returned 7. Its own time was 350 ns; it waited 400 ns for a disk; page_fault cut in for 40 ns; timer cut in for 30 ns; BH:rcu cut in for 30 ns.");
  assert.equal(whole(3), "The interrupt timer took 60 ns on CPU 0, while a.5 was in read(3). Its own time was 30 ns; BH:rcu cut in for 30 ns.");
  const said = [0, 1, 4, 8, 10, 12].map((i) => sentenceOf(store, chains, i, true));
  assert.deepEqual(said, [
    "a.5 was in read for 100 ns of 850 ns on CPU 0.",
    "The interrupt timer took 20 ns of 60 ns on CPU 0, while a.5 was in read(3).",
    "The fault page_fault took 40 ns on CPU 0, while a.5 was in read(3).",
    "The interrupt timer took 50 ns on CPU 0, while it was idle.",
    "The interrupt timer took 10 ns on CPU 1, while a.5 ran.",
    "The fault page_fault took 90 ns on CPU 1, while a.5 ran.",
  ]);
});
