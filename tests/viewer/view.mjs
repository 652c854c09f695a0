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
    const share = ((view.rowsSeen - 44) * 0.6) / cpus;
    const step = share < 10 ? share : Math.min(closed, Math.floor(share));
    const open = Array.from({ length: cpus }, (_, k) => Math.round((k + 1) * step) - Math.round(k * step));
    for (const range of [[0, 10_000], [4_010, 4_090]]) {
      view.show(...range);
      view.layOut(groups);
      assert.deepEqual(heightsOf(view, groups[0]), open, `${cpus} CPUs`);
    }
  }
});

test("256 CPUs are in sight together, every few with a name, and grow by the wheel", () => {
  const { view, groups } = viewOf(256, 10);
  const shown = () => view.seen().filter((item) => item.row >= 0);
  // What a window of 1280 by 720 leaves, and more: all the room is used.
  for (const height of [400, 700]) {
    view.height = height;
    view.layOut(groups);
    assert.equal(shown().length, 256);
    const last = shown().at(-1);
    assert.equal(last.y + last.h, view.rowsSeen - 22, `${last.y} and ${last.h} of ${view.rowsSeen}`);
  }
  const rows = shown();
  const named = rows.filter((item) => item.named);
  assert.ok(named.every((item, k) => k === 0 || item.y - named[k - 1].y >= 14), named.map(({ y }) => y).join());
  assert.equal(named[0].row, 0);
  view.zoomRows(6, 300, groups);
  assert.ok(heightsOf(view, groups[0])[0] >= 6 * rows[0].h);
  const four = viewOf(4, 10).view.seen().filter((item) => item.row >= 0);
  assert.ok(four.every((item) => item.named));
});

test("there is room for threads beside few CPUs and not beside many", () => {
  for (const [cpus, threads, some, all] of [[4, 5, true, true], [4, 100, true, false], [16, 5, false, false]]) {
    const { view, groups } = viewOf(cpus, threads);
    const { left, fits } = view.roomFor(...groups);
    assert.deepEqual([left >= 6, fits], [some, all], `${cpus} CPUs, ${threads} threads`);
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

test("pinned rows stay above those that scroll, in sight whatever hides or closes", () => {
  const { view, groups } = viewOf(4, 60);
  const [cpus, threads] = groups;
  threads.collapsed = false;
  view.layOut(groups);
  view.pin(threads, 50);
  view.pin(cpus, 3);
  view.layOut(groups);
  const placesOf = () => view.seen().filter((item) => item.pinned).map((item) => [item.group.name, item.row, view.top(item)]);
  const [[, , first], [, , second]] = placesOf();
  assert.deepEqual(placesOf(), [["PID", 50, 18], ["CPU", 3, second]]);
  const above = view.rowsTop;
  for (const change of [() => view.scrollTo(150), () => view.show(4_010, 4_020), () => (threads.collapsed = true), () => view.scrollTo(0)]) {
    change();
    view.layOut(groups);
    assert.deepEqual(placesOf(), [["PID", 50, first], ["CPU", 3, second]]);
    const others = view.seen().filter((item) => !item.pinned);
    assert.ok(others.every((item) => view.top(item) >= above), "a row lies below the pinned ones");
    assert.ok(others.every((item) => item.group !== cpus || item.row !== 3), "a pinned row is there twice");
  }
  assert.equal(view.itemAt(first + 1).row, 50);
  assert.equal(view.itemAt(above + 30).pinned, false);
  view.pin(threads, 50);
  view.layOut(groups);
  assert.deepEqual(placesOf(), [["CPU", 3, 18]]);
  // However many are pinned, half of the room is left.
  for (let row = 0; row < 40; row++) view.pin(threads, row);
  view.layOut(groups);
  assert.ok(view.rowsRoom >= view.rowsSeen / 2 && placesOf().length === 41);
});
