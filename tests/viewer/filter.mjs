// SPDX-License-Identifier: BSD-3-Clause
// Filters of the table's columns, and what is waited for as a way to group.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeAround } from "../../postprocess/viewer/data/around.js";
import { Filter } from "../../postprocess/viewer/data/filter.js";
import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { Pivot } from "../../postprocess/viewer/data/pivot.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { NOTHING, Search } from "../../postprocess/viewer/data/search.js";
import { EVENT, FLAG, Kind } from "../../postprocess/viewer/data/tables.js";
import { columnsOfSpans } from "../../postprocess/viewer/panel/columns.js";
import { keptOfGroups } from "../../postprocess/viewer/panel/filters.js";
import { Listing } from "../../postprocess/viewer/panel/listing.js";
import { more, numbersFrom, storeOf } from "./support/store.mjs";

const call = (start, dur, pid, arg, ret, cpu = 0) => ({ start, dur, pid, cpu, event: EVENT.SYSCALL, name: "read", arg, ret, ipc: ret === undefined ? 8 : 15 });
const fault = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.TRAP + 14, name: "page_fault", ipc: 4 });
const user = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.USER + pid, name: `a.${pid}` });
const wait = (start, dur, pid, letter) => ({ start, dur, pid, event: EVENT.WAIT_A + letter.charCodeAt(0) - 97, name: { c: "wait_cpu", d: "wait_disk", k: "wait_task" }[letter] });

/** A call that waited twice, one that did not, a fault in a call, and user code. */
const SPANS = [
  call(0, 10, 5, 3), wait(10, 60, 5, "d"), user(10, 5, 6), wait(70, 30, 5, "c"), more(call(100, 10, 5, 3, 7, 1)), user(110, 5, 5),
  call(115, 20, 6, 4, 2), call(140, 10, 6, 3), fault(150, 5, 6), wait(155, 40, 6, "k"), more(fault(195, 5, 6)), more(call(200, 10, 6, 3, -11)), user(210, 90, 6),
];

function listOf({ what = "all", pattern = "", filters = {}, by = ["", ""], flags = FLAG.IPC } = {}) {
  const store = storeOf(SPANS, { flags });
  const highlight = { active: false, version: 0, shows: () => true };
  const search = new Search(store, highlight);
  search.find({ ...NOTHING, pattern });
  return Object.assign(new Listing({ store, view: { t0: 0, t1: 1e6, relative: false }, highlight, search }), { what, by, filters: new Map(Object.entries(filters)) });
}

/** Starts of what is left. */
const startsOf = (asked) => {
  const list = listOf(asked);
  return [...list.collect()].map((i) => list.store.start[i]);
};

test("a filter is text, a part of numbers, or what is left of either", () => {
  const keeps = (typed, sort, values) => values.filter((value) => new Filter(typed, sort)[typeof value === "string" ? "keepsText" : "keepsNumber"](value));
  assert.deepEqual(keeps("Red", "text", ["redis", "bash", "a.red"]), ["redis", "a.red"]);
  assert.deepEqual(keeps("!red", "text", ["redis", "bash"]), ["bash"]);
  assert.deepEqual(keeps("=read(3)=1", "text", ["read(3)=1", "read(3)=12"]), ["read(3)=1"]);
  assert.deepEqual(keeps("=a|b", "text", ["a|b", "a"]), ["a|b"]);
  assert.deepEqual(keeps("!=bash", "text", ["bash", "bash.1"]), ["bash.1"]);
  assert.deepEqual(keeps("a|b", "text", ["a1", "1b", "c"]), ["a1", "1b"]);
  assert.deepEqual(keeps("0,2-3", "cpu", ["0", "1", "2", "3", "4", ""]), ["0", "2", "3"]);
  assert.deepEqual(keeps("!1", "cpu", ["0", "1", "11"]), ["0", "11"]);
  assert.deepEqual(keeps("=11", "cpu", ["1", "11"]), ["11"]);
  assert.deepEqual([keeps("> 5us", "duration", [499, 500, 501]), keeps(">=5us", "duration", [499, 500]), keeps("< 5us", "duration", [0, 499, 500])], [[501], [500], [0, 499]]);
  assert.deepEqual([keeps("5us..1ms", "duration", [499, 500, 1e5, 100001]), keeps("!5us..1ms", "duration", [499, 500, 1e5, 100001])], [[500, 1e5], [499, 100001]]);
  assert.deepEqual([keeps("> 41.25", "seconds", [4125e6, 4125e6 + 1]), keeps("41..42 s", "seconds", [41e8, 43e8])], [[4125e6 + 1], [41e8]]);
  // What did not run has no instructions per cycle.
  assert.deepEqual([keeps("< 1", "number", [-1, 0, 0.99, 1]), keeps("> 1", "number", [1, 1.01])], [[0, 0.99], [1.01]]);
  assert.deepEqual([keeps("> 1", "value", ["0", "2", "EAGAIN", ""]), keeps("eag", "value", ["EAGAIN", "1"])], [["2"], ["EAGAIN"]]);
  for (const [typed, sort] of [["5", "duration"], ["> x", "duration"], ["> ", "number"], ["one", "cpu"], ["1..", "seconds"], ["", "number"]]) {
    assert.ok(new Filter(typed, sort).isWrong, `${sort} ${typed}`);
  }
});

test("each column is filtered by what its cells say, of spans, of calls and of both", () => {
  assert.deepEqual(startsOf({ what: "calls" }), [0, 115, 140, 150]);
  for (const [filters, wanted] of [
    [{ Span: "read(3)" }, [0, 140]], [{ Span: "=7" }, []], [{ Span: "!page" }, [0, 115, 140]], [{ Returned: "> 2" }, [0]], [{ Returned: "EAGAIN" }, [140]],
    [{ Thread: "a.6" }, [115, 140, 150]], [{ Thread: "=a.5" }, [0]], [{ CPU: "!1" }, [0, 115, 140, 150]], [{ Start: "> 0.0000011" }, [115, 140, 150]],
    [{ Duration: "> 1us" }, [0]], [{ Duration: "!> 1us" }, [115, 140, 150]], [{ "Own time": "<= 200 ns" }, [0, 115, 140, 150]], [{ "Own time": "< 200 ns" }, [150]],
    [{ IPC: "> 1" }, [0, 115, 140]], [{ IPC: "0..1" }, [150]], [{ Reason: "disk" }, [0]], [{ Reason: "wait_task" }, [140, 150]], [{ Reason: "=no wait" }, [115]],
    [{ Span: "read", Duration: "< 1us" }, [115, 140]], [{ Woken: "x" }, [0, 115, 140, 150]], [{ Duration: "long" }, [0, 115, 140, 150]],
  ]) assert.deepEqual([filters, startsOf({ what: "calls", filters })], [filters, wanted]);
  // The same columns of pieces, and of calls beside other spans.
  assert.deepEqual(startsOf({ what: "kernel", filters: { Returned: "!" } }), []);
  assert.deepEqual(startsOf({ what: "kernel", filters: { IPC: "> 2" } }), [100, 115, 200]);
  assert.deepEqual(startsOf({ what: "all", filters: { IPC: "< 1" } }), [10, 110, 150, 195, 210], "waits have instructions per cycle");
  assert.deepEqual(startsOf({ pattern: "^read|^a", filters: { Returned: "7|EAGAIN" } }), [0, 140]);
  assert.deepEqual(startsOf({ pattern: "^read|^a", filters: { Span: "a." } }), [10, 110, 210]);
  assert.deepEqual(startsOf({ pattern: "^read|^a", filters: { Duration: "> 500 ns" } }), [0, 140, 210]);
  assert.deepEqual(startsOf({ pattern: "read|wait", filters: { Reason: "disk" } }), [0, 10]);
});

test("groups are filtered by what their columns come to", () => {
  const kept = (filters, by = ["name", ""]) => {
    const list = listOf({ what: "calls", by, filters });
    const groupings = list.chosen.map(([, grouping]) => grouping);
    const pivot = new Pivot(list.store, list.collect(), groupings, list.calls);
    const keeps = keptOfGroups(list);
    return pivot.groups.flatMap((group, at) => (keeps(group) ? [groupings.map((grouping, which) => grouping.text(pivot.numberOf(at, which))).join()] : []));
  };
  assert.deepEqual(kept({}), ["read", "page_fault"]);
  assert.deepEqual(kept({ "group Count": "> 1" }), ["read"]);
  assert.deepEqual([kept({ "group p99": "< 1us" }), kept({ "group IPC": "> 1" }), kept({ "group Count": "many" })], [["page_fault"], ["read"], ["read", "page_fault"]]);
  // Those of spans hold whatever they are grouped by.
  assert.deepEqual(kept({ Duration: "< 1us", Reason: "!no wait" }, ["name", "reason"]), ["read,another thread, or work (wait_task)", "page_fault,another thread, or work (wait_task)"]);
});

test("calls are grouped by the reason of their longest wait, as the call around them says", () => {
  const list = listOf({ what: "calls", by: ["reason", ""] });
  const [[title, grouping]] = list.chosen;
  const pivot = new Pivot(list.store, list.collect(), [grouping], list.calls);
  assert.equal(title, "Reason");
  assert.deepEqual(pivot.groups.map(({ count, sum }, at) => [grouping.text(pivot.numberOf(at, 0)), count, sum]), [
    ["a disk (wait_disk)", 1, 110], ["no wait", 1, 20], ["another thread, or work (wait_task)", 2, 70 + 50],
  ]);
  assert.deepEqual([0, 4, 11].map(grouping.find), ["", "", ""]);
  const [[, ofWaits]] = listOf({ what: "wait", by: ["reason", ""] }).chosen;
  assert.deepEqual([0, 4, 11].map(ofWaits.find), ["", "^wait_disk$", "^wait_task$"]);
  // Whatever threads do.
  const number = numbersFrom(7);
  const open = new Set();
  const spans = Array.from({ length: 4000 }, (_, k) => {
    const pid = 5 + number(3);
    const piece = [() => user(k * 10, 10, pid), () => fault(k * 10, 10, pid), () => wait(k * 10, 1 + number(9), pid, "cdk"[number(3)]), () => call(k * 10, 10, pid, 2)][Math.min(number(6), 3)]();
    if (piece.event >= EVENT.USER) open.delete(pid);
    if (piece.event !== EVENT.SYSCALL) return piece;
    const goesOn = open.has(pid) && number(3) > 0;
    open.add(pid);
    return goesOn ? more(piece) : piece;
  });
  const store = storeOf(spans);
  const highlight = { active: false, version: 0, shows: () => true };
  const many = new Listing({ store, view: { t0: 0, t1: 1e6, relative: false }, highlight, search: new Search(store, highlight) });
  Object.assign(many, { what: "calls", by: ["reason", ""] });
  const [[, { column, text }]] = many.chosen;
  const all = buildGroups(store, indexByKind(store));
  let waited = 0;
  for (const i of many.collect()) {
    const { from, to } = wholeAround(store, all, many.calls.first[i]);
    const waits = [...store.kind.keys()].filter((k) => store.kind[k] === Kind.WAIT && store.pid[k] === store.pid[many.calls.first[i]] && store.start[k] >= from && store.start[k] < to);
    const longest = Math.max(0, ...waits.map((k) => store.dur[k]));
    const wanted = waits.find((k) => store.dur[k] === longest);
    if (wanted === undefined) assert.equal(text(column[i]), "no wait");
    else assert.ok(text(column[i]).includes(store.names[store.name[wanted]]), `call ${i}: ${text(column[i])}`);
    waited += wanted === undefined ? 0 : 1;
  }
  assert.ok(waited > 50);
});

test("the address has the filters, and the table that it says", () => {
  const list = listOf({ what: "calls", filters: { Thread: "!redis", "group Sum": "> 1ms" } });
  const said = new URLSearchParams(list.address(true));
  assert.deepEqual([...said].filter(([key]) => key.startsWith("filter.")), [["filter.Thread", "!redis"], ["filter.group Sum", "> 1ms"]]);
  const other = listOf();
  assert.ok(other.take(said) && other.filtering);
  assert.deepEqual([...other.filters], [...list.filters]);
  assert.ok(other.take(new URLSearchParams("table=all")) && !other.filtering && other.filters.size === 0);
  assert.ok(columnsOfSpans({ list }).every(({ filtered }) => filtered));
});
