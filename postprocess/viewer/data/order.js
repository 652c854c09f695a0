// SPDX-License-Identifier: BSD-3-Clause
// The order of the rows of a group.

import { processOf } from "./format.js";
import { firstInRow, seekStart } from "./rows.js";
import { Summary } from "./tree.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 */

/** Orders of rows: the number of each thread, its CPU time in the visible range, its first run, its name, its process. */
export const ORDERS = Object.freeze(["number", "CPU time", "first run", "name", "process"]);

/** A range of time. @typedef {{t0: number, t1: number}} Range */

/** Compares names naturally: ignoring case, with `a.9` before `a.10`. */
const names = new Intl.Collator("en", { numeric: true });

/**
 * The rows of a group in an order, ties by their numbers: most time first, rows without any last.
 * @param {Store} store
 * @param {Group} group of threads, or of several in each row
 * @param {string} by one of `ORDERS`
 * @param {(row: number) => Range} inSight the visible range of a row
 * @param {Group} threads the group with one row per thread
 * @returns {number[]}
 */
export function orderOf(store, group, by, inSight, threads) {
  const { keys, labels, exec: { first, ids } } = group;
  const rows = [...keys.keys()];
  const ascending = (/** @type {number[]} */ values) => rows.sort((a, b) => values[a] - values[b]);
  if (by === "CPU time") {
    const times = rows.map(() => 0);
    for (const [k, pid] of threads.keys.entries()) {
      const row = group.rowOfKey.get(pid) ?? -1;
      if (row >= 0) times[row] -= timeIn(store, threads, k, inSight(row));
    }
    return ascending(times);
  }
  if (by === "first run") return ascending(rows.map((row) => (first[row] < first[row + 1] ? store.start[ids[first[row]]] : Number.MAX_VALUE)));
  if (by === "process") return ascending(keys.map((pid) => (pid === 0 ? Number.MAX_VALUE : 2 * processOf(store, pid) + Number(processOf(store, pid) !== pid))));
  if (by === "name") return rows.sort((a, b) => names.compare(labels[a], labels[b]));
  return rows;
}

/**
 * The time executed on a row in a range, in units of 10 ns; long runs have a precision of 24 bits.
 * @param {Store} store
 * @param {Group} group whose execution does not overlap
 * @param {number} row
 * @param {Range} range
 */
export function timeIn(store, { exec, tree }, row, { t0, t1 }) {
  const { start, dur } = store;
  const from = firstInRow(store, exec, row, t0);
  const to = seekStart(start, exec.ids, from, exec.first[row + 1], t1);
  if (from === to) return 0;
  const { user, kernel } = tree.query(from, to, new Summary());
  const [first, last] = [exec.ids[from], exec.ids[to - 1]];
  return user + kernel - Math.max(t0 - start[first], 0) - Math.max(start[last] + dur[last] - t1, 0);
}
