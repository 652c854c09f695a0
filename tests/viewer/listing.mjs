// SPDX-License-Identifier: BSD-3-Clause
// The table: whether spans or whole calls are listed, and its columns.
import assert from "node:assert/strict";
import { test } from "node:test";

import { durationText } from "../../postprocess/viewer/data/format.js";
import { GROUPINGS, Pivot } from "../../postprocess/viewer/data/pivot.js";
import { NOTHING, Search } from "../../postprocess/viewer/data/search.js";
import { EVENT, FLAG } from "../../postprocess/viewer/data/tables.js";
import { columnsOfSpans, groupColumns } from "../../postprocess/viewer/panel/columns.js";
import { Listing } from "../../postprocess/viewer/panel/listing.js";
import { more, storeOf } from "./support/store.mjs";

const call = (start, dur, ret, ipc = 0) => ({ start, dur, ret, ipc, cpu: 0, pid: 5, arg: 3, name: "read", event: EVENT.SYSCALL });
const interrupt = (start, dur) => ({ start, dur, cpu: 0, pid: 5, name: "timer", event: EVENT.IRQ });
const woken = (start, dur, pid, cpu) => ({ start, dur, cpu: 0, pid: 5, arg: cpu, ret: pid, name: "-wakeup-", event: EVENT.WAKEUP_ARC });

/** A list of what a query finds. */
function listOf(spans, { what = "all", pattern = "", flags = 0 } = {}) {
  const store = storeOf(spans, { flags });
  const highlight = { active: false, version: 0, shows: () => true };
  const search = new Search(store, highlight);
  search.find({ ...NOTHING, pattern });
  assert.equal(search.error, "");
  return Object.assign(new Listing({ store, view: { t0: 0, t1: 1e6, relative: false }, highlight, search }), { what });
}

const durationsOf = (list) => [...list.collect()].map((i) => list.store.dur[i]);
const PIECES = [call(0, 10), interrupt(10, 5), more(call(15, 20, 1)), call(40, 12, 2)];

test("where nothing but pieces of calls is listed, calls are", () => {
  for (const asked of [{ what: "syscall" }, { what: "calls", pattern: "read" }, { pattern: "kind:syscall" }, { pattern: "read" }]) {
    const list = listOf(PIECES, asked);
    assert.deepEqual(durationsOf(list), [35, 12], JSON.stringify(asked));
    assert.equal(list.thing, "call");
    list.by = ["name", ""];
    const { groups: [group] } = new Pivot(list.store, list.collect(), list.chosen.map(([, grouping]) => grouping), list.calls);
    assert.deepEqual([group.count, group.quantile(0.99), group.own], [2, 35, 42]);
  }
  assert.deepEqual(durationsOf(listOf(PIECES, { what: "irq" })), [5]);
  assert.equal(listOf(PIECES, { what: "irq" }).thing, "interrupt");
  assert.deepEqual(durationsOf(listOf(PIECES, { what: "fault" })), []);
  for (const asked of [{ what: "kernel" }, {}]) assert.deepEqual([durationsOf(listOf(PIECES, asked)), listOf(PIECES, asked).thing], [[10, 5, 20, 12], "span"]);
});

test("the line above the picture counts and adds up what the table does", () => {
  const user = { start: 60, dur: 30, cpu: 0, pid: 5, name: "a.5", event: EVENT.USER + 5 };
  for (const pattern of ["read", "=2", "timer", "read|timer", "read|a", "a", "kind:kernel", "nothing"]) {
    const list = listOf([...PIECES, user], { pattern });
    const { all } = new Pivot(list.store, list.collect(), [], list.calls, list.beside);
    const { things } = list.search;
    assert.deepEqual([things.count, things.total, things.shortest, things.longest], [all.count, all.sum, all.shortest, all.longest], pattern);
    if (list.calls) assert.equal(things.own, [...list.collect()].reduce((sum, call) => sum + list.calls.own[call], 0), pattern);
    if (all.count > 0) assert.ok(list.search.text(list.view).includes(`, total ${durationText(all.sum)}`), list.search.text(list.view));
  }
});

test("calls that are found beside other spans are wholes, too, with what was counted in them", () => {
  const user = { start: 60, dur: 30, ipc: 4, cpu: 0, pid: 5, name: "a.5", event: EVENT.USER + 5 };
  const pieces = [call(0, 10, undefined, 11), interrupt(10, 5), more(call(15, 20, 1, 4)), call(40, 12, 2, 4), user];
  const list = listOf(pieces, { pattern: "read|a", flags: FLAG.IPC });
  assert.deepEqual([list.thing, durationsOf(list), [...list.collect()]], ["span", [35, 12, 30], [0, 3, 4]]);
  const cells = (title) => [...list.collect()].map((i) => columnsOfSpans({ list }).find((column) => column.title === title).cell(i));
  assert.deepEqual([cells("Returned"), cells("Span"), cells("IPC")], [["1", "2", ""], ["read(3)=1", "read(3)=2", "a.5"], [((10 * 30 + 20 * 9) / 30 / 16).toFixed(2), "0.56", "1/2"]]);
  const { values } = columnsOfSpans({ list }).find(({ title }) => title === "IPC");
  assert.deepEqual([0, 3, 4].map((i) => values[i] * 16), [16, 9, 9]);
  list.by = ["name", ""];
  const { groups } = new Pivot(list.store, list.collect(), list.chosen.map(([, grouping]) => grouping), list.calls, list.beside);
  assert.deepEqual(groups.map(({ count, sum, counted, work }) => [count, sum, counted, work]), [[2, 47, 42, 10 * 30 + 32 * 9], [1, 30, 30, 30 * 9]]);
  // A part of the durations keeps what lies there.
  list.search.find({ ...NOTHING, pattern: "read|a", min: "300 ns" });
  assert.deepEqual(durationsOf(list), [35, 30]);
  assert.deepEqual(durationsOf(listOf(pieces, { pattern: "read|a", what: "kernel" })), [10, 20, 12]);
});

test("wakeups have a column and a grouping for the thread they wake, and for its CPU", () => {
  const spans = [woken(0, 10, 9, 1), woken(20, 30, 4_000_000, 0), woken(60, 5, 9, 0), call(70, 5, 1)];
  const list = listOf(spans, { what: "wakeup" });
  const columns = columnsOfSpans({ list });
  assert.deepEqual(columns.map(({ title }) => title), ["Span", "Thread", "CPU", "Start", "Duration", "Woken", "To CPU"]);
  const of = (title) => columns.find((column) => column.title === title);
  assert.deepEqual([...list.collect()].map((i) => [of("Woken").cell(i), of("To CPU").cell(i)]), [["pid.9", "1"], ["pid.4000000", "0"], ["pid.9", "0"]]);
  list.by = ["woken", "to"];
  const { groups } = new Pivot(list.store, list.collect(), list.chosen.map(([, grouping]) => grouping));
  assert.deepEqual(groups.map(({ count, sum }) => [count, sum]), [[1, 10], [1, 30], [1, 5]]);
  list.by = ["woken", ""];
  const [[, grouping]] = list.chosen;
  const byThread = new Pivot(list.store, list.collect(), [grouping]);
  assert.deepEqual(byThread.groups.map(({ count, sum }, at) => [grouping.text(byThread.numberOf(at, 0)), grouping.find(byThread.numberOf(at, 0)), count, sum]), [
    ["pid.9", "woken:9", 2, 15], ["pid.4000000", "woken:4000000", 1, 30],
  ]);
  // What is not a wakeup has none of it.
  assert.deepEqual(listOf(spans, { what: "syscall" }).offered.map(([id]) => id), GROUPINGS.map(([id]) => id).filter((id) => !["cgroup", "reason", "woken", "to"].includes(id)));
  const found = (pattern) => [...listOf(spans, { pattern }).search.ids];
  assert.deepEqual([found("woken:9"), found("woken:9 to:0"), found("to:0-"), found("woken:pid.4 to:0")], [[0, 2], [2], [0, 1, 2], [1]]);
  // In any order of the two.
  assert.deepEqual(found("to:0 woken:9 cpu:0 kind:wakeup"), [2]);
});

test("each counter has a column, of spans and of calls", () => {
  const spans = [call(0, 100, undefined, 0b1011), interrupt(100, 5), more(call(105, 300, 1, 0b0100))];
  const shown = (flags, what) => {
    const list = listOf(spans, { what, flags });
    const columns = columnsOfSpans({ list }).slice(what === "calls" ? 7 : 6);
    const ids = [...list.collect()].filter((i) => list.store.dur[i] !== 5);
    return [...columns.map(({ title, cell }) => [title, ...ids.map(cell)]), groupColumns(list).slice(what === "calls" ? 8 : 7).map(([title]) => title)];
  };
  assert.deepEqual(shown(0, "kernel"), [[]]);
  assert.deepEqual(shown(FLAG.IPC, "kernel"), [["IPC", "1.75", "1/2"], ["IPC"]]);
  assert.deepEqual(shown(FLAG.LLC, "kernel"), [["LLC misses", "4096+", "32+"], ["LLC misses"]]);
  assert.deepEqual(shown(FLAG.COUNTERS, "kernel"), [["IPC", "1+", "1/2+"], ["LLC misses", "512+", "0+"], ["IPC", "LLC misses"]]);
  assert.deepEqual(shown(FLAG.IPC, "calls"), [["IPC", "0.89"], ["IPC"]]);
  assert.deepEqual(shown(FLAG.COUNTERS, "calls"), [["IPC", "0.63+"], ["LLC misses", "512+"], ["IPC", "LLC misses"]]);
  // Each is sorted by what it counts alone.
  const list = listOf(spans, { what: "kernel", flags: FLAG.COUNTERS });
  const [ipc, misses] = columnsOfSpans({ list }).slice(6).map(({ values, ranks }) => [0, 2].map((i) => ranks()[values[i]]));
  assert.ok(ipc[0] > ipc[1] && misses[0] > misses[1]);
});

test("a list is collected once for as long as it is the same", () => {
  const list = listOf(PIECES, { pattern: "read|timer" });
  const [first, lengths] = [list.collect(), durationsOf(list)];
  assert.equal(list.collect(), first);
  for (const change of [() => (list.what = "irq"), () => list.search.find({ ...NOTHING, pattern: "timer" }), () => (list.view.t0 = 1e5), () => list.highlight.version++]) {
    const before = list.collect();
    change();
    assert.notEqual(list.collect(), before);
  }
  const again = listOf(PIECES, { pattern: "read|timer" });
  again.what = "irq";
  again.collect();
  again.what = "all";
  assert.deepEqual(durationsOf(again), lengths);
  list.forget();
  assert.equal(list.room.length, 0);
});
