// SPDX-License-Identifier: BSD-3-Clause
// Where rows stand, and that they stay there while others hide and come.
import assert from "node:assert/strict";
import { test } from "node:test";

import { buildGroups } from "../../postprocess/viewer/data/groups.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { View } from "../../postprocess/viewer/view/view.js";
import { numbersFrom, storeOf } from "./support/store.mjs";

/** A view, 700 pixels high, of CPUs and of threads that take turns on them: all there all the time, one running per CPU. */
function viewOf(cpus, threads) {
  const number = numbersFrom(7);
  const spans = [];
  for (let turn = 0; turn < 100; turn++) {
    for (let cpu = 0; cpu < cpus; cpu++) {
      const pid = 100 + number(threads);
      spans.push({ start: turn * 100, dur: 100, event: EVENT.USER + pid, cpu, pid });
    }
  }
  for (let k = 0; k < threads; k++) spans.push({ start: 0, dur: 10_000, event: EVENT.WAIT_A + 13, pid: 100 + k });
  const store = storeOf(spans.toSorted((a, b) => a.start - b.start));
  const groups = buildGroups(store, indexByKind(store));
  const view = new View(store, groups[0].exec);
  view.width = 1000;
  view.height = 700;
  view.onlyRunning = true;
  view.layOut(groups);
  return { view, groups };
}

const heightsOf = (view, group) => view.itemsOf.get(group).filter(Boolean).map(({ h }) => h);

test("the row under the pointer keeps its place while other rows hide and come, and stays itself", () => {
  for (const threads of [6, 60]) {
    const { view, groups } = viewOf(2, threads);
    groups[1].collapsed = false;
    view.layOut(groups);
    for (const y of [60, 250, 400, 600]) {
      view.pointerY = -1;
      view.showWhole();
      view.freshen(groups);
      view.scrollTo(0);
      view.pointerY = y;
      const { group, row, h } = view.itemAt(y);
      const part = (y - view.top(view.itemAt(y))) / h;
      const counts = new Set();
      for (const factor of [3, 3, 3, 3, 3, 1 / 9, 1 / 27]) {
        view.zoom(factor, 777);
        view.freshen(groups);
        const now = view.itemAt(y);
        assert.deepEqual([now.group.name, now.row], [group.name, row]);
        assert.ok(Math.abs(view.top(now) + part * now.h - y) <= 3, `${threads} threads, at ${y}: ${view.top(now)}, ${now.h}`);
        counts.add(view.rowsOf.get(groups[1]).length);
      }
      assert.ok(counts.size > 2, "the same rows are there always");
    }
  }
});

test("rows that kept their place scroll back, and no further away", () => {
  const { view, groups } = viewOf(2, 60);
  groups[1].collapsed = false;
  view.layOut(groups);
  view.pointerY = 600;
  view.zoom(200, 500);
  view.freshen(groups);
  const { scroll } = view;
  assert.ok(scroll < 0, `room above the rows is needed: ${scroll}`);
  view.scrollRows(-50);
  assert.equal(view.scroll, scroll);
  view.scrollRows(20);
  assert.equal(view.scroll, scroll + 20);
  view.pointerY = -1;
  view.showWhole();
  view.freshen(groups);
  assert.equal(view.scroll, 0, "without a pointer the room stays");
});

test("rows grow where there is room for more, but push none out of sight", () => {
  const { view, groups } = viewOf(2, 30);
  groups[1].collapsed = false;
  view.layOut(groups);
  const before = view.itemsOf.get(groups[1]).find(Boolean).h;
  view.pointerY = 400;
  view.show(4_010, 4_190);
  view.freshen(groups);
  const { h } = view.itemsOf.get(groups[1]).find(Boolean);
  assert.ok(h > before, `${before}, then ${h}`);
  assert.ok(view.scroll <= 0 && view.rowsHeight - view.scroll <= view.rowsSeen, `${view.rowsHeight} from ${-view.scroll} of ${view.rowsSeen}`);
});

test("CPUs have the same height with many threads and few in sight, and with none as far as three fifths do", () => {
  for (const cpus of [2, 4, 8, 16, 64]) {
    const { view, groups } = viewOf(cpus, 100);
    const [closed] = heightsOf(view, groups[0]);
    groups[1].collapsed = false;
    const open = Math.max(Math.min(closed, Math.floor(((view.rowsSeen - 44) * 0.6) / cpus)), 18);
    for (const range of [[0, 10_000], [4_010, 4_090]]) {
      view.show(...range);
      view.layOut(groups);
      assert.deepEqual(heightsOf(view, groups[0]), Array(cpus).fill(open), `${cpus} CPUs`);
    }
  }
});

test("kernel threads hide where only programs are asked for, but for highlighted ones", () => {
  const spans = [[1, EVENT.USER + 1], [2, EVENT.KERNEL + 2], [3, EVENT.SYSCALL], [4, EVENT.SCHED]];
  spans.push([3, EVENT.USER + 3], [4, EVENT.KERNEL + 4], [5, EVENT.IRQ]);
  const store = storeOf(spans.map(([pid, event], k) => ({ start: k * 100, dur: 100, event, cpu: 0, pid })));
  const groups = buildGroups(store, indexByKind(store));
  const view = new View(store, groups[0].exec);
  const threads = groups[1];
  threads.collapsed = false;
  const seen = () => view.wantedRows(threads).map((row) => threads.keys[row]);
  assert.deepEqual(seen(), [1, 2, 3, 4, 5]);
  view.onlyPrograms = true;
  assert.deepEqual(seen(), [1, 3, 5]);
  threads.lit[threads.rowOfKey.get(2)] = 1;
  assert.deepEqual(seen(), [1, 2, 3, 5]);
});
