// SPDX-License-Identifier: BSD-3-Clause
// The order of rows, against a look at every span.
import assert from "node:assert/strict";
import { test } from "node:test";

import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { orderOf, timeIn } from "../../postprocess/viewer/data/order.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { View } from "../../postprocess/viewer/view/view.js";
import { numbersFrom, storeOf } from "./support/store.mjs";

const user = (start, dur, pid, name = "a") => ({ start, dur, event: EVENT.USER + pid, cpu: 0, pid, name: `${name}.${pid}` });
const wait = (start, dur, pid) => ({ start, dur, event: EVENT.WAIT_A + 3, pid });

function groupsOf(spans) {
  const store = storeOf(spans);
  const groups = buildGroups(store, indexByKind(store));
  groups[1].collapsed = false;
  return { store, groups, threads: groups[1] };
}

test("time on CPUs in a range is that of every span inside it", () => {
  const number = numbersFrom(8);
  const spans = [];
  for (let start = 0; start < 30_000;) {
    const dur = 1 + number(60);
    spans.push(user(start, dur, 5 + number(4)));
    start += dur + number(3);
  }
  const { store, threads } = groupsOf(spans);
  for (let round = 0; round < 200; round++) {
    const t0 = number(31_000) - 500;
    const t1 = t0 + 1 + number(round % 2 ? 100 : 20_000);
    for (const [row, key] of threads.keys.entries()) {
      const parts = spans.map(({ start, dur, pid }) => (pid === key ? Math.min(start + dur, t1) - Math.max(start, t0) : 0));
      const sum = parts.filter((part) => part > 0).reduce((a, b) => a + b, 0);
      assert.equal(timeIn(store, threads, row, { t0, t1 }), sum, `thread ${key}, ${t0}..${t1}`);
    }
  }
});

test("rows stand in the order asked for, and those that are alike by number", () => {
  const { store, threads } = groupsOf([
    wait(0, 90, 2), wait(0, 5, 30), user(10, 20, 9, "B"), user(30, 5, 30, "b"), user(40, 50, 4, "c"), user(90, 20, 9, "B"), user(110, 5, 7, "b"),
  ]);
  const by = (order, t0 = 0, t1 = 200) => orderOf(store, threads, order, () => ({ t0, t1 }), threads).map((row) => threads.keys[row]);
  assert.deepEqual(by("number"), [2, 4, 7, 9, 30]);
  assert.deepEqual(by("CPU time"), [4, 9, 7, 30, 2]);
  assert.deepEqual(by("CPU time", 25, 45), [4, 9, 30, 2, 7]);
  assert.deepEqual(by("first run"), [9, 30, 4, 7, 2], "one that never runs is the last");
  assert.deepEqual(by("name"), [7, 9, 30, 4, 2]);
  store.meta.processes = { 30: 4, 9: 2, 2: 7 };
  assert.deepEqual(by("process"), [9, 4, 30, 7, 2], "threads of a process follow its first, whatever their numbers");
});

test("threads keep their order while the range changes, until they are to be ordered anew", () => {
  const { store, groups, threads } = groupsOf([user(0, 100, 5), user(100, 50, 6), user(150, 10, 5)]);
  const view = new View(store, groups[0].exec);
  view.width = 1000;
  view.height = 700;
  view.orderedBy = "CPU time";
  const shown = () => {
    view.freshen(groups);
    return view.items.filter((item) => item.group === threads && item.row >= 0).map((item) => threads.keys[item.row]);
  };
  assert.equal(view.order(groups), true);
  assert.deepEqual(shown(), [5, 6]);
  view.show(110, 150);
  assert.deepEqual(shown(), [5, 6]);
  assert.equal(view.order(groups), true);
  assert.deepEqual(shown(), [6, 5]);
  assert.equal(view.order(groups), false);
  view.pointerY = view.top(view.itemsOf.get(threads)[0]) + 5;
  const { scroll } = view;
  view.showWhole();
  assert.equal(view.order(groups), true);
  assert.deepEqual(shown(), [5, 6]);
  assert.equal(threads.keys[view.itemAt(view.pointerY).row], 5, "the row under the pointer has moved");
  assert.notEqual(view.scroll, scroll);
});
