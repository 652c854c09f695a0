// SPDX-License-Identifier: BSD-3-Clause
// What "Start here" lists.
import assert from "node:assert/strict";
import { test } from "node:test";

import { wholeCalls } from "../../postprocess/viewer/data/calls.js";
import { busiestOf, extremesOf } from "../../postprocess/viewer/data/start.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { more, storeOf } from "./support/store.mjs";

const user = (start, dur, pid) => ({ start, dur, pid, cpu: 0, event: EVENT.USER + pid });
const call = (start, dur, pid, arg, ret) => ({ start, dur, pid, cpu: 0, event: EVENT.SYSCALL, arg, ret });
const wait = (start, dur, pid, letter) => ({ start, dur, pid, event: EVENT.WAIT_A + letter.charCodeAt(0) - 97 });
const rpc = (start, event, id) => ({ start, pid: 5, cpu: 0, event, rpc: id });
const extremes = (spans) => {
  const store = storeOf(spans.toSorted((a, b) => a.start - b.start));
  return extremesOf(store, wholeCalls(store));
};
const times = ({ from, to }) => [from, to];

test("a call lasts from its first piece to the one that returns", () => {
  const pieces = [call(0, 10, 5, 3), more(call(50, 10, 5, 3, 7)), call(100, 55, 5, 3, 7)];
  assert.deepEqual(extremes(pieces).call, { i: 0, from: 0, to: 60 });
});

test("pieces of different calls are not one", () => {
  assert.deepEqual(times(extremes([call(0, 10, 5, 3, 1), call(50, 20, 5, 3, 1)]).call), [50, 70]);
  const others = [call(0, 10, 5, 3), call(20, 5, 6, 3), more(call(50, 20, 5, 3, 1))];
  assert.deepEqual(times(extremes(others).call), [0, 70], "another thread's call ends it");
});

test("of each reason the longest wait of a thread that runs user code, longest first", () => {
  const spans = [wait(0, 30, 5, "d"), wait(40, 20, 5, "d"), wait(70, 90, 5, "l"), wait(0, 900, 6, "k"), wait(10, 800, 6, "d"), user(200, 1, 5)];
  assert.deepEqual(extremes(spans).waits.map(times), [[70, 160], [0, 30]]);
});

test("the recorder's own waits and calls are left out", () => {
  const own = 9;
  const named = { start: 0, dur: 5, pid: own, cpu: 1, event: EVENT.USER + own, name: `kutrace_control.${own}` };
  const found = extremes([named, { ...call(10, 900, own, 3, 1), cpu: 1 }, wait(920, 800, own, "d"), user(0, 2, 5), call(10, 20, 5, 3, 1), wait(40, 30, 5, "d")]);
  assert.deepEqual([times(found.call), found.waits.map(times)], [[10, 30], [[40, 70]]]);
});

test("requests last until their response, and the three longest are named", () => {
  const { RPC_REQUEST: begins, RPC_RESPONSE: ends } = EVENT;
  const spans = [
    rpc(0, begins, 1), rpc(5, begins, 2), rpc(9, ends, 9), rpc(15, ends, 2), rpc(50, ends, 1), rpc(60, begins, 1), rpc(90, ends, 1),
    rpc(100, begins, 3), rpc(101, ends, 3), rpc(110, begins, 4),
  ];
  assert.deepEqual(extremes(spans).requests.map(times), [[0, 50], [60, 90], [5, 15]]);
});

test("the longest time in which a CPU stood still, and how often", () => {
  const still = (start, dur) => ({ start, dur, cpu: 1, event: EVENT.STALLED, pid: 0 });
  const { stall, stalls } = extremes([still(0, 10), still(50, 30), still(100, 20)]);
  assert.deepEqual([times(stall), stalls], [[50, 80], 3]);
  assert.deepEqual(extremes([]), { waits: [], call: null, requests: [], stall: null, stalls: 0 });
});

test("the busiest moment is a fortieth of the trace", () => {
  const [ran, kernel] = [new Float64Array(400), new Float64Array(400)];
  assert.equal(busiestOf(ran, kernel), null);
  ran[20] = 1;
  ran.fill(0.5, 200, 210);
  kernel.fill(0.25, 202, 212);
  const { from, to, part } = busiestOf(ran, kernel);
  assert.deepEqual([from, to], [200, 210]);
  assert.ok(Math.abs(part - 0.7) < 1e-9, String(part));
});
