// SPDX-License-Identifier: BSD-3-Clause
// In which order the rows of a group stand.

import { processOf } from "./format.js";
import { firstInRow, seekStart } from "./rows.js";
import { Summary } from "./tree.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 */

/** What rows can be ordered by: the number of each thread, its time on CPUs in sight, when it ran first, its name, its process. */
export const ORDERS = Object.freeze(["number", "CPU time", "first run", "name", "process"]);

/** A range of time. @typedef {{t0: number, t1: number}} Range */

/** Compares names as people do: in any case, `a.9` before `a.10`. */
const names = new Intl.Collator("en", { numeric: true });

/**
 * The rows of a group in an order, rows that are alike in that of their numbers: most time first, none last.
 * @param {Store} store
 * @param {Group} group of threads, or of several in each row
 * @param {string} by one of `ORDERS`
 * @param {(row: number) => Range} inSight what is in sight of a row
 * @param {Group} threads by themselves
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
 * The time that is executed on a row in a range, units of 10 ns; long runs with 24 bits.
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
