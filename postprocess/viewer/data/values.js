// SPDX-License-Identifier: BSD-3-Clause
// Values that programs count: a row for each name in each process, on which a value holds until the next.

import { processOf, shownName, threadText, valueOf } from "./format.js";
import { VALUE } from "./kind.js";
import { indexByRow, laneOf } from "./rows.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group, Parts} from "./groups.js"
 * @import {Lane} from "./rows.js"
 */

/** The name of the group of these rows. */
export const VALUES = "VAL";
/** Maximum number of rows for the group to be open at first. */
const OPEN_MAX = 8;

/** True if a span is a value. @param {Store} store @param {number} i */
const isValue = ({ event, events }, i) => events[event[i]] === VALUE;

/**
 * The rows of values, in the order of the first value of each.
 * @param {Store} store
 * @param {Uint32Array} marks the marks, which include the values
 * @returns {Parts | null}
 */
export function valueParts(store, marks) {
  if (!store.events.includes(VALUE)) return null;
  const { name, names, pid, pids } = store;
  const keyOf = (/** @type {number} */ i) => `${processOf(store, pids[pid[i]])} ${name[i]}`;
  /** @type {Map<string, number>} */
  const rows = new Map();
  /** @type {string[]} */
  const labels = [];
  const points = marks.filter((i) => isValue(store, i));
  for (const i of points) {
    if (rows.has(keyOf(i))) continue;
    rows.set(keyOf(i), labels.push(`${shownName(names[name[i]])} ${threadText(store, processOf(store, pids[pid[i]]))}`) - 1);
  }
  const rowOf = (/** @type {number} */ i) => (isValue(store, i) ? rows.get(keyOf(i)) ?? -1 : -1);
  return { name: VALUES, title: "Values", keys: labels.map((_, row) => row), labels, rowOf, points, open: labels.length <= OPEN_MAX };
}

/** A lane of one row with the marks drawn as flags: all but values, which have rows. @param {Store} store @param {Lane} marks @returns {Lane} */
export function flagged(store, marks) {
  if (!store.events.includes(VALUE)) return marks;
  const ids = marks.ids.filter((i) => !isValue(store, i));
  return laneOf(store, indexByRow(1, new Int32Array(ids.length), ids));
}

/** The amount of a value. @param {Store} store @param {number} i */
export const amountOf = (store, i) => valueOf(store.arg[i]) ?? 0;

/** The range of the values of a row, which always includes 0. @param {Store} store @param {Group} group @param {number} row */
export function rangeOfValues(store, { points }, row) {
  const range = { min: 0, max: 0 };
  for (let k = points.first[row]; k < points.first[row + 1]; k++) {
    const amount = amountOf(store, points.ids[k]);
    range.min = Math.min(range.min, amount);
    range.max = Math.max(range.max, amount);
  }
  return range;
}
