// SPDX-License-Identifier: BSD-3-Clause
// What draws fast, against what is simple: lists, trees and steps of durations against a look at every span.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { buildGroups, foldedThreads, foldsOf } from "../../postprocess/viewer/data/groups.js";
import { orderOf } from "../../postprocess/viewer/data/order.js";
import { GROUPINGS } from "../../postprocess/viewer/data/pivot.js";
import { Durations, minOfStep, Pivot, stepOf } from "../../postprocess/viewer/data/pivot.js";
import { IntervalIndex } from "../../postprocess/viewer/data/intervals.js";
import { firstInLane, indexByKind, indexByRow, laneOf, putInstantsFirst, runsIn, seekStart } from "../../postprocess/viewer/data/rows.js";
import { NOTHING, Search } from "../../postprocess/viewer/data/search.js";
import { roomOfBars } from "../../postprocess/viewer/draw/bars.js";
import { EVENT, Kind } from "../../postprocess/viewer/data/tables.js";
import { mostTime, Totals } from "../../postprocess/viewer/data/totals.js";
import { Summary, SummaryTree } from "../../postprocess/viewer/data/tree.js";
import { View } from "../../postprocess/viewer/view/view.js";
import { more, numbersFrom, storeOf } from "./support/store.mjs";

/** A search of nothing. */
const ALL = { shows: () => true, finds: () => true };

/** A row of spans that follow each other: idle, user, system call, interrupt. */
function rowOf(n, seed) {
  const number = numbersFrom(seed);
  const events = [[EVENT.USER, 0], [EVENT.USER + 5, 5], [EVENT.SYSCALL, 5], [EVENT.IRQ, 5]];
  let start = 0;
  return storeOf(Array.from({ length: n }, () => {
    const [event, pid] = events[number(events.length)];
    const span = { start, dur: number(100), event, pid, cpu: 0 };
    start += span.dur;
    return span;
  }));
}

test("a tree sums up any run of spans as one by one", () => {
  const store = rowOf(1500, 1);
  const ids = Uint32Array.from(store.kind, (_, i) => i);
  const tree = new SummaryTree(store, ids);
  const number = numbersFrom(2);
  for (let round = 0; round < 300; round++) {
    const from = number(store.n);
    const to = from + number(store.n - from + 1);
    const sums = { idle: 0, user: 0, kernel: 0 };
    for (let i = from; i < to; i++) {
      sums[store.kind[i] <= Kind.C_EXIT ? "idle" : store.kind[i] <= Kind.STALLED ? "user" : "kernel"] += store.dur[i];
    }
    const { idle, user, kernel, userSpan, kernelSpan } = tree.query(from, to, new Summary());
    assert.deepEqual({ idle, user, kernel }, sums, `${from}..${to}`);
    for (const [span, kind, time] of [[userSpan, Kind.USER, user], [kernelSpan, null, kernel]]) {
      assert.equal(span >= from && span < to, time > 0 || span >= 0, `${from}..${to}`);
      if (span >= 0 && kind !== null) assert.equal(store.kind[span], kind);
    }
  }
});

test("a tree finds the first span that starts at a time wherever the search begins and ends", () => {
  const store = rowOf(1500, 4);
  const ids = Uint32Array.from(store.kind, (_, i) => i);
  const tree = new SummaryTree(store, ids);
  const number = numbersFrom(6);
  const end = store.start.at(-1) + 200;
  for (let round = 0; round < 3000; round++) {
    const from = number(store.n);
    const to = from + number(store.n - from + 1);
    const time = round % 2 === 0 ? number(end) : store.start[number(store.n)];
    let wanted = from;
    while (wanted < to && store.start[wanted] < time) wanted++;
    assert.equal(tree.seek(from, to, time), wanted, `${from}..${to} at ${time}`);
  }
});

test("seeking finds the first span that starts at a time, and the first that ends after it", () => {
  const number = numbersFrom(3);
  const starts = Array.from({ length: 400 }, () => number(1000)).sort((a, b) => a - b);
  const store = storeOf(starts.map((start) => ({ start, dur: number(200), event: EVENT.WAIT_A, pid: 1 + number(3) })));
  const rows = Int32Array.from(store.pid);
  const lane = laneOf(store, indexByRow(store.pids.length, rows));
  const reach = new IntervalIndex(store, lane);
  for (let row = 0; row < store.pids.length; row++) {
    const [from, to] = [lane.first[row], lane.first[row + 1]];
    const all = Array.from({ length: to - from }, (_, k) => from + k);
    assert.deepEqual([...lane.ids.subarray(from, to)], [...rows.keys()].filter((i) => rows[i] === row));
    for (let time = -10; time < 1300; time += 7) {
      const starting = all.find((k) => store.start[lane.ids[k]] >= time) ?? to;
      assert.equal(seekStart(store.start, lane.ids, from, to, time), starting);
      const ends = (k) => store.start[lane.ids[k]] + store.dur[lane.ids[k]];
      assert.equal(firstInLane(lane, row, time), all.find((k) => ends(k) > time) ?? to);
      const min = number(150);
      assert.deepEqual(reach.find(from, to, time, min), all.filter((k) => ends(k) > time && store.dur[lane.ids[k]] >= min));
    }
  }
});

test("spans of no length come before longer ones that start with them, be they few or many", () => {
  const number = numbersFrom(8);
  for (const every of [3, 500]) {
    let time = 0;
    const spans = Array.from({ length: 4000 }, (_, k) => {
      const dur = k % every === 0 ? 0 : 1 + number(20);
      const span = { start: time, dur, event: EVENT.SYSCALL, pid: Math.floor(k / 100) % 2 };
      // One after the other, but that some of no length start with the one before.
      if (k % every !== every - 1) time += dur;
      return span;
    });
    const store = storeOf(spans.sort((a, b) => a.start - b.start || b.dur - a.dur));
    const index = indexByRow(2, Int32Array.from(store.pid));
    const before = index.ids.slice();
    putInstantsFirst(store, index);
    assert.notDeepEqual(index.ids, before);
    assert.deepEqual([...index.ids].sort((a, b) => a - b), [...before].sort((a, b) => a - b));
    for (let k = 1; k < store.n; k++) {
      const [one, next] = [index.ids[k - 1], index.ids[k]];
      if (k === index.first[1] || store.start[one] !== store.start[next]) continue;
      assert.ok(store.dur[one] === 0 || store.dur[next] > 0, `${every}: ${store.dur[one]} before ${store.dur[next]}`);
    }
  }
});

test("something runs on a row if any of its execution lies in a range, overlapping or not", () => {
  const number = numbersFrom(6);
  const spans = Array.from({ length: 60 }, (_, k) => ({ start: k * 20, dur: 1 + number(20), event: EVENT.SYSCALL, pid: number(3) }));
  for (const longer of [1, 5]) {
    const store = storeOf(spans.map((span) => ({ ...span, dur: span.dur * longer })));
    const index = indexByRow(3, Int32Array.from(store.pid));
    const exec = longer > 1 ? laneOf(store, index) : { ...index, maxEnd: null };
    for (let from = -50; from < 1400; from += 13) {
      for (const to of [from + 3, from + 50]) {
        for (let row = 0; row < 3; row++) {
          const runs = store.start.some((start, i) => store.pid[i] === row && start < to && start + store.dur[i] > from);
          assert.equal(runsIn(store, exec, row, from, to), runs, `row ${row}, ${from}..${to}`);
        }
      }
    }
  }
});

test("a span is on the rows of its CPU and its thread, and locks that overlap are on levels of their own", () => {
  const lock = (start, dur) => ({ start, dur, event: EVENT.LOCK_HELD, cpu: 1, pid: 7, arg: 9, name: "lock" });
  const store = storeOf([
    { start: 0, dur: 100, event: EVENT.USER + 7, cpu: 1, pid: 7, name: "a.7" }, lock(10, 50), lock(20, 10), lock(40, 5), lock(70, 10),
  ]);
  const groups = buildGroups(store, indexByKind(store));
  assert.deepEqual(groups.map(({ name, labels }) => [name, labels]), [["CPU", ["CPU 1"]], ["PID", ["a.7"]], ["RES", ["lock lock"]]]);
  const [cpus, threads] = groups;
  assert.deepEqual([cpus.rowOf(0), threads.rowOf(0)], [0, 0]);
  assert.deepEqual([...threads.bars.ids], [1, 2, 3, 4]);
  assert.deepEqual([[...threads.level], [...threads.levels]], [[0, 1, 1, 0], [2]]);
  assert.deepEqual([threads.from[0], threads.to[0]], [0, 100]);
});

test("a step holds its durations and no other, and is a 32nd of them wide at most", () => {
  const number = numbersFrom(4);
  for (let round = 0; round < 3000; round++) {
    const units = Math.floor(2 ** (number(4000) / 100));
    const step = stepOf(units);
    const [min, next] = [minOfStep(step), minOfStep(step + 1)];
    assert.ok(min <= units && units < next, `${units}: ${min}..${next}`);
    assert.ok(next - min === 1 || (next - min) * 32 <= units, `${units}: ${min}..${next}`);
  }
});

test("groups of spans add up to all, and quantiles are right to a 32nd", () => {
  const store = rowOf(1000, 5);
  const ids = Uint32Array.from(store.kind, (_, i) => i);
  const byKind = { column: store.event, of: Int32Array.from(store.events, (_, k) => k), size: store.events.length, text: String, find: () => "" };
  const { all, groups } = new Pivot(store, ids, [byKind]);
  const dur = [...store.dur].sort((a, b) => a - b);
  assert.equal(groups.reduce((sum, group) => sum + group.count, 0), 1000);
  assert.deepEqual([all.count, all.sum, all.shortest, all.longest], [1000, dur.reduce((a, b) => a + b), dur[0], dur[999]]);
  for (const part of [0.1, 0.5, 0.9, 0.99, 1]) {
    const exact = dur[Math.ceil(part * 1000) - 1];
    assert.ok(Math.abs(all.quantile(part) - exact) <= exact / 32 + 1, `${part}: ${all.quantile(part)}, not ${exact}`);
  }
  assert.equal(new Durations().count, 0);
});

test("a range holds the parts of spans inside it, by name, CPU, thread and wait", () => {
  const store = storeOf([
    { start: 0, dur: 100, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "a.7" },
    { start: 20, dur: 300, event: EVENT.WAIT_A + 3, pid: 8, name: "wait_disk" },
    { start: 100, dur: 40, event: EVENT.SYSCALL, cpu: 0, pid: 7, name: "read" },
    { start: 140, dur: 60, event: EVENT.USER, cpu: 0, pid: 0, name: "-idle-" },
  ]);
  const groups = buildGroups(store, indexByKind(store));
  const calls = wholeCalls(store);
  const totals = new Totals(store, groups, { ...ALL, calls }, 90, 150);
  const times = (sums, parts) => mostTime(sums).map((sum) => [sum.key, ...parts.map((part) => sum[part])]);
  const [a, wait, read, idle] = [...store.name];
  assert.deepEqual(times(totals.names, ["user", "kernel", "idle"]), [[read, 0, 40, 0], [a, 10, 0, 0], [idle, 0, 0, 10]]);
  assert.deepEqual(times(totals.cpus, ["user", "kernel", "idle"]), [[0, 10, 40, 10]]);
  assert.deepEqual(times(totals.threads, ["user", "kernel", "wait"]), [[8, 0, 0, 60], [7, 10, 40, 0]]);
  assert.deepEqual(times(totals.waits, ["wait", "count"]), [[wait, 60, 1]]);
  assert.deepEqual([totals.longest, totals.longestWaits].map((all) => all.map(({ i }) => i)), [[2, 0], [1]]);
  assert.deepEqual(times(new Totals(store, groups, { ...ALL, shows: (i) => i === 2, calls }, 90, 150).names, ["kernel"]), [[read, 40]]);
});

test("a range counts calls, however many pieces of them it has, and none that is over", () => {
  const call = (start, dur, pid, ret) => ({ start, dur, event: EVENT.SYSCALL, cpu: pid, pid, arg: 3, ret, name: "read" });
  const timer = (start, pid) => ({ start, dur: 10, event: EVENT.IRQ, cpu: pid, pid, name: "timer" });
  const store = storeOf([call(0, 50, 7, 1), call(60, 40, 7), call(90, 20, 8, 5), timer(100, 7), more(call(110, 20, 7)), timer(130, 7), more(call(140, 20, 7, 1)), call(160, 20, 7, 1)]);
  const groups = buildGroups(store, indexByKind(store));
  const search = new Search(store, { active: false });
  const counts = (from, to, pattern = "") => {
    search.find({ ...NOTHING, pattern });
    const { names } = new Totals(store, groups, search, from, to);
    return Object.fromEntries([...names.values()].map(({ key, count }) => [store.names[key], count]));
  };
  assert.deepEqual(counts(55, 155), { read: 2, timer: 2 });
  assert.deepEqual(counts(0, 200), { read: 4, timer: 2 });
  assert.deepEqual(counts(0, 200, "pid:8"), { read: 1 });
  // Their own time is what lies in the range of pieces, their total what lies there of them as wholes.
  const { names } = new Totals(store, groups, search, 65, 155);
  assert.deepEqual([...names.values()].map(({ kernel, whole }) => [kernel, whole]), [[20, 20]]);
  search.find(NOTHING);
  assert.deepEqual([...new Totals(store, groups, search, 65, 155).names.values()].map(({ kernel, whole }) => [kernel, whole]), [[35 + 20 + 20 + 15, 90 + 20], [20, 20]]);
  // One is interrupted all the while, but not over.
  assert.deepEqual(counts(100, 108), { read: 2, timer: 1 });
});

test("a range counts interrupts as wholes, also those of idle CPUs that are longer than it", () => {
  const on = (start, dur, event, name) => ({ start, dur, event, cpu: 0, pid: 0, name });
  const timer = (start, dur) => on(start, dur, EVENT.IRQ, "timer");
  const store = storeOf([on(0, 10, EVENT.USER, "-idle-"), timer(10, 20), on(30, 10, EVENT.SOFTIRQ, "BH:rcu"), more(timer(40, 20)), on(60, 10, EVENT.USER, "-idle-"), timer(70, 5)]);
  const groups = buildGroups(store, indexByKind(store));
  const of = (from, to) => {
    const { names, longest } = new Totals(store, groups, { ...ALL, calls: wholeCalls(store) }, from, to);
    const timers = [...names.values()].filter(({ key }) => store.names[key] === "timer").map(({ count, kernel }) => [count, kernel]);
    return [timers, longest.map(({ i, inside, length }) => [i, inside, length])];
  };
  assert.deepEqual(of(0, 100), [[[2, 45]], [[1, 50, 50], [2, 10, 10], [5, 5, 5]]]);
  assert.deepEqual(of(15, 55), [[[1, 30]], [[1, 40, 50], [2, 10, 10]]]);
});

test("the longest of a range are whole calls that ran in it, by their part inside", () => {
  const call = (start, dur, pid, ret) => ({ start, dur, event: EVENT.SYSCALL, cpu: 0, pid, arg: 3, ret, name: "read" });
  const user = (start, dur, pid) => ({ start, dur, event: EVENT.USER + pid, cpu: 0, pid, name: `a.${pid}` });
  // Of pid 5 two pieces, of pid 6 two that lie around all the rest, and user code that is longer than any piece.
  const store = storeOf([call(0, 10, 6), call(10, 10, 5), user(20, 30, 7), more(call(50, 5, 5, 1)), call(60, 10, 7, 2), more(call(90, 10, 6, 3))]);
  const groups = buildGroups(store, indexByKind(store));
  const longest = (from, to) => new Totals(store, groups, { ...ALL, calls: wholeCalls(store) }, from, to).longest.map(({ i, inside, length }) => [i, inside, length]);
  assert.deepEqual(longest(0, 100), [[0, 100, 100], [1, 45, 45], [2, 30, 30], [4, 10, 10]]);
  assert.deepEqual(longest(12, 65), [[1, 43, 45], [2, 30, 30], [4, 5, 10]], "what slept in a call all the while did not run in the range");
});

test("parts of a program lie above the row of its thread, stacked, and are no events there", () => {
  const store = storeOf([
    { start: 0, dur: 100, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "a.7" },
    { start: 10, dur: 80, event: EVENT.PROGRAM_BEGIN, pid: 7, name: "all" },
    { start: 20, dur: 30, event: EVENT.PROGRAM_BEGIN, pid: 7, name: "inner" },
    { start: 25, dur: 1, event: EVENT.PROGRAM_MARK, cpu: 0, pid: 7, name: "mark" },
    { start: 30, dur: 1, event: EVENT.RUNNABLE, cpu: 0, pid: 7, name: "runnable" },
  ]);
  const [, threads] = buildGroups(store, indexByKind(store));
  assert.deepEqual([[...threads.bars.ids], [...threads.level], [...threads.points.ids]], [[1, 2], [0, 1], [4]]);
  // With room for their names where the row is high enough; locks have none to show.
  assert.deepEqual([40, 28, 27, 0].map((room) => roomOfBars(threads, 0, room)), [28, 28, 12, 12]);
  const locks = storeOf([{ start: 10, dur: 80, event: EVENT.LOCK_HELD, pid: 7, name: "=lock" }]);
  const [, other] = buildGroups(locks, indexByKind(locks));
  assert.equal(roomOfBars(other, 0, 100), 7);
});

test("folded, each process has a row for its threads, and kernel threads have one together", () => {
  const store = storeOf([
    { start: 0, dur: 100, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "a.7" },
    { start: 10, dur: 50, event: EVENT.USER + 8, cpu: 1, pid: 8, name: "a.8" },
    { start: 20, dur: 9, event: EVENT.KERNEL + 3, cpu: 2, pid: 3, name: "kworker.3" },
    { start: 30, dur: 9, event: EVENT.KERNEL + 4, cpu: 2, pid: 4, name: "kworker.4" },
    { start: 40, dur: 9, event: EVENT.USER + 9, cpu: 2, pid: 9, name: "b.9" },
    { start: 49, dur: 30, event: EVENT.WAIT_A, pid: 9 },
    { start: 60, dur: 30, event: EVENT.WAIT_A, pid: 8 },
    { start: 79, dur: 5, event: EVENT.WAKEUP_ARC, cpu: 0, pid: 7, ret: 9 },
    { start: 80, dur: 5, event: EVENT.WAKEUP_ARC, cpu: 0, pid: 7, ret: 8 },
  ], { processes: { 8: 7 } });
  const [, threads] = buildGroups(store, indexByKind(store));
  const folded = foldedThreads(store, threads, "process");
  assert.deepEqual(folded.labels, ["a.7 (2)", "b.9", "kernel threads (2)"]);
  assert.deepEqual([[...folded.exec.first], [...folded.exec.ids]], [[0, 2, 3, 5], [0, 1, 4, 2, 3]]);
  // Waits of several threads would hide each other.
  assert.deepEqual([...folded.waits.ids], [5]);
  assert.deepEqual([7, 8].map((i) => [folded.rowOf(i), folded.targetRow(i)]), [[0, 1], [0, 0]]);
});

test("kernel threads alone can have one row together, and rows of several threads an order", () => {
  const user = (start, dur, pid) => ({ start, dur, event: EVENT.USER + pid, cpu: pid % 4, pid, name: `${pid === 9 ? "a" : "b"}.${pid}` });
  const kernel = (start, dur, pid) => ({ start, dur, event: EVENT.KERNEL + pid, cpu: pid % 4, pid, name: `kworker.${pid}` });
  const store = storeOf([user(0, 50, 7), kernel(5, 40, 3), user(10, 50, 8), user(40, 9, 9), kernel(45, 55, 4), user(60, 30, 7), user(110, 500, 9)], { processes: { 8: 7 } });
  const groups = buildGroups(store, indexByKind(store));
  const [, threads] = groups;
  const order = (fold, by, t0 = 0, t1 = 100) => {
    const folded = foldedThreads(store, threads, fold);
    return orderOf(store, folded, by, () => ({ t0, t1 }), threads).map((row) => folded.labels[row]);
  };
  assert.deepEqual(order("kernel threads", "number"), ["b.7", "b.8", "a.9", "kernel threads (2)"]);
  assert.deepEqual(order("kernel threads", "CPU time"), ["kernel threads (2)", "b.7", "b.8", "a.9"]);
  // What overlaps in a row, and reaches over an end of the range, counts with all its parts inside.
  assert.deepEqual(order("process", "CPU time"), ["b.7 (2)", "kernel threads (2)", "a.9"]);
  assert.deepEqual(order("process", "CPU time", 42, 44), ["b.7 (2)", "a.9", "kernel threads (2)"]);
  assert.deepEqual([order("process", "first run"), order("process", "name")], [["b.7 (2)", "kernel threads (2)", "a.9"], ["a.9", "b.7 (2)", "kernel threads (2)"]]);
  assert.deepEqual(foldsOf(store), ["kernel threads", "process"]);
  // Folded rows stand in that order in the picture.
  const view = new View(store, groups[0].exec);
  [view.width, view.height, view.orderedBy] = [1000, 700, "CPU time"];
  threads.hidden = true;
  groups.splice(2, 0, foldedThreads(store, threads, "kernel threads"));
  view.order(groups);
  view.layOut(groups);
  assert.deepEqual(view.items.filter((item) => item.group === groups[2] && item.row >= 0).map((item) => groups[2].labels[item.row]), ["a.9", "kernel threads (2)", "b.7", "b.8"]);
});

test("by control group, each has a row for its threads, as have those of which none is known", () => {
  const user = (start, pid) => ({ start, dur: 9, event: EVENT.USER + pid, cpu: 0, pid, name: `a.${pid}` });
  const web = { path: "/system.slice/web.service", short: "web.service", pids: [7] };
  const cgroups = [web, { path: "/x", short: "/x", pids: [9] }];
  const store = storeOf([user(0, 7), user(10, 8), user(20, 9), user(30, 5), user(40, 10), user(50, 4)], { cgroups, processes: { 8: 7, 9: 7, 10: 9 } });
  const [, threads] = buildGroups(store, indexByKind(store));
  const folded = foldedThreads(store, threads, "control group");
  assert.deepEqual([folded.name, folded.keys, folded.labels], ["CGROUP", [4, 7, 9], ["not known (2)", "web.service (2)", "/x (2)"]]);
  assert.deepEqual([...folded.exec.first, ...folded.exec.ids], [0, 2, 4, 6, 3, 5, 0, 1, 2, 4]);
  const groupings = GROUPINGS.find(([id]) => id === "cgroup")[2](store);
  const all = [...Array(groupings.size).keys()];
  assert.deepEqual([all.map(groupings.text), all.map(groupings.find)], [["not known", "web.service", "/x"], ["pid:4,5", "pid:7,8", "pid:9,10"]]);
});

test("parts that any thread may end lie on a row of their name, stacked where they overlap", () => {
  const store = storeOf([
    { start: 0, dur: 100, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "a.7" },
    { start: 10, dur: 80, event: EVENT.PROGRAM_ASYNC_BEGIN, pid: 7, arg: 1, name: "upload(id=1,size=3)" },
    { start: 20, dur: 30, event: EVENT.PROGRAM_ASYNC_BEGIN, pid: 7, arg: 2, name: "upload(id=2,size=4)" },
    { start: 95, dur: 5, event: EVENT.PROGRAM_ASYNC_BEGIN, pid: 7, arg: 3, name: "upload(id=1)" },
  ]);
  const parts = buildGroups(store, indexByKind(store)).find((group) => group.name === "RES");
  assert.deepEqual([parts.keys.length, [...parts.bars.ids], [...parts.level]], [1, [1, 2, 3], [0, 1, 0]]);
});

test("a task has a row with its life, its polls on whichever thread, and the times in which it waited for one", () => {
  const part = (start, dur, event, pid, name) => ({ start, dur, event: EVENT[event], pid, name });
  const store = storeOf([
    { start: 0, dur: 100, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "a.7" },
    part(10, 80, "PROGRAM_ASYNC_BEGIN", 7, "answer(id=1)"),
    part(11, 9, "PROGRAM_ASYNC_BEGIN", 7, "answer.ready(id=1)"),
    part(20, 10, "PROGRAM_BEGIN", 7, "answer(task=1)"),
    part(22, 60, "PROGRAM_ASYNC_BEGIN", 8, "answer(id=2)"),
    part(23, 10, "PROGRAM_BEGIN", 8, "answer(task=2)"),
    part(40, 10, "PROGRAM_BEGIN", 8, "answer(task=1)"),
    part(60, 10, "PROGRAM_BEGIN", 8, "other(task=1)"),
    part(70, 10, "PROGRAM_ASYNC_BEGIN", 8, "other.ready(id=1)"),
  ], { processes: { 8: 7 } });
  const rows = buildGroups(store, indexByKind(store)).find((group) => group.name === "RES");
  assert.deepEqual(rows.labels, ["task answer 1", "task answer 2", "task other 1"]);
  assert.deepEqual([[...rows.bars.ids], [...rows.bars.first]], [[1, 2, 3, 6, 4, 5, 8], [0, 4, 6, 7]]);
  assert.deepEqual([...rows.level], [0, 1, 1, 1, 0, 1, 0]);
});
