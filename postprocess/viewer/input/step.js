// SPDX-License-Identifier: BSD-3-Clause
// Steps from the selected span to its neighbours: before and after it on the same row, at the same time on the rows above and below.

import { spanText } from "../data/format.js";
import { firstInRow, seekStart } from "../data/rows.js";
import { byId } from "../dom.js";
/**
 * @import {Item} from "../view/view.js"
 * @import {App} from "../main.js"
 */

/** The row of the selected span, else the first visible row. @param {App} app @returns {Item | undefined} */
function rowOfSelected(app) {
  const { view, selected, groups, home } = app;
  const items = (home ? [home, ...groups] : groups).map((group) => view.itemsOf.get(group)?.[group.rowOf(selected)]);
  const rows = view.seen().filter((item) => item.row >= 0);
  const shown = items.find((item) => item && rows.includes(item)) ?? items.find((item) => item);
  return selected >= 0 && shown ? shown : rows[0];
}

/** Pins or unpins the row of the selected span. @param {App} app */
export function pinSelected(app) {
  const item = rowOfSelected(app);
  if (item && app.selected >= 0) app.pinRow(item.group, item.row);
}

/** Selects a span and scrolls it into view, no further than necessary. @param {App} app @param {number} i @param {Item} item */
function selectNear(app, i, item) {
  const { store, view } = app;
  const [start, end] = [store.start[i] - item.shift, store.start[i] + store.dur[i] - item.shift];
  if (end < view.t0 || start > view.t1) {
    const half = (view.t1 - view.t0) / 2;
    view.show(start - half, start + half);
  }
  view.reveal(item);
  app.select(i, item.group);
  byId("hover").textContent = spanText(store, i);
  app.viewChanged();
}

/** Selects the next or the previous span of the row; with none selected, the first visible one. @param {App} app @param {number} direction */
export function stepSpan(app, direction) {
  const { store, view, selected } = app;
  const item = rowOfSelected(app);
  if (!item) return;
  const { ids, first } = item.group.exec;
  const [from, to] = [first[item.row], first[item.row + 1]];
  if (selected < 0) {
    const k = firstInRow(store, item.group.exec, item.row, view.on(item).t0);
    if (k < to) selectNear(app, ids[k], item);
    return;
  }
  let k = seekStart(store.start, ids, from, to, store.start[selected]);
  while (k < to && ids[k] !== selected && store.start[ids[k]] === store.start[selected]) k++;
  // For a span that is not execution, such as a wait, the neighbours are the execution after and before it.
  const next = ids[k] === selected ? k + direction : direction > 0 ? k : k - 1;
  if (next >= from && next < to) selectNear(app, ids[next], item);
}

/** Selects the execution on the row above or below at the middle of the selected span. @param {App} app @param {number} direction */
export function stepRow(app, direction) {
  const { store, view, selected } = app;
  const item = rowOfSelected(app);
  const rows = view.items.filter((it) => it.row >= 0);
  const other = item && rows[rows.indexOf(item) + (selected < 0 ? 0 : direction)];
  if (!other) return;
  const time = (selected < 0 ? view.t0 : store.start[selected] + store.dur[selected] / 2 - item.shift) + other.shift;
  const { exec } = other.group;
  const k = Math.min(firstInRow(store, exec, other.row, time), exec.first[other.row + 1] - 1);
  if (k >= exec.first[other.row]) selectNear(app, exec.ids[k], other);
}
