// SPDX-License-Identifier: BSD-3-Clause
// Lists of spans by row, made by one counting sort each, and how to find a time in them.

import { isExecution } from "./kind.js";
import { Kind, KIND_NAMES } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/**
 * Spans by row: those of row r are ids[first[r]] to ids[first[r + 1] - 1], in order of time.
 * @typedef {{first: Uint32Array, ids: Uint32Array}} Index
 */

/**
 * An index of spans that may overlap; maxEnd[k] is the latest end among the spans of the row up to ids[k]. A row of
 * execution has none where spans do not overlap.
 * @typedef {Index & {maxEnd: Float64Array}} Lane
 * @typedef {Index & {maxEnd: Float64Array | null}} Exec
 */

/**
 * Sorts spans by row, keeping their order.
 * @param {number} rows
 * @param {Int32Array} rowOf row of each item, -1 to leave it out
 * @param {Uint32Array} [ids] the items, if they are not simply all spans
 * @returns {Index}
 */
export function indexByRow(rows, rowOf, ids) {
  const first = new Uint32Array(rows + 1);
  const n = rowOf.length;
  for (let k = 0; k < n; k++) if (rowOf[k] >= 0) first[rowOf[k] + 1]++;
  for (let r = 0; r < rows; r++) first[r + 1] += first[r];
  const next = first.slice(0, rows);
  const out = new Uint32Array(first[rows]);
  for (let k = 0; k < n; k++) if (rowOf[k] >= 0) out[next[rowOf[k]]++] = ids ? ids[k] : k;
  return { first, ids: out };
}

/**
 * Sorts execution by the row that a column says, keeping its order; and in the same way any kinds by another column.
 * @param {number} rows
 * @param {Int32Array} rowOfValue row of each value of the column, -1 to leave it out
 * @param {Column} column
 * @param {Uint32Array} count spans to take, by value of the column
 * @param {Uint8Array} kind
 * @param {number} last the last kind that is taken
 * @returns {Index}
 */
export function indexByColumn(rows, rowOfValue, column, count, kind, last) {
  const n = column.length;
  const first = new Uint32Array(rows + 1);
  for (let v = 0; v < rowOfValue.length; v++) if (rowOfValue[v] >= 0) first[rowOfValue[v] + 1] += count[v];
  for (let r = 0; r < rows; r++) first[r + 1] += first[r];
  const next = first.slice(0, rows);
  const ids = new Uint32Array(first[rows]);
  for (let i = 0; i < n; i++) {
    if (kind[i] > last) continue;
    const row = rowOfValue[column[i]];
    if (row >= 0) ids[next[row]++] = i;
  }
  return { first, ids };
}

/**
 * Makes the lists of spans that may overlap searchable by time.
 * @param {Store} store
 * @param {Index} index
 * @returns {Lane}
 */
export function laneOf(store, index) {
  const maxEnd = new Float64Array(index.ids.length);
  for (let r = 0; r + 1 < index.first.length; r++) {
    let latest = -Infinity;
    for (let k = index.first[r]; k < index.first[r + 1]; k++) {
      const i = index.ids[k];
      latest = Math.max(latest, store.start[i] + store.dur[i]);
      maxEnd[k] = latest;
    }
  }
  return { ...index, maxEnd };
}

/** Whether there are spans of no length on rows, by what they were asked of. @type {WeakMap<Store, boolean>} */
const INSTANTS = new WeakMap();

/** Whether any execution, or any wait, has no length: few traces have one. @param {Store} store */
function hasInstants(store) {
  const { dur, kind } = store;
  let has = INSTANTS.get(store);
  if (has === undefined) {
    let i = dur.indexOf(0);
    while (i >= 0 && kind[i] > Kind.WAIT) i = dur.indexOf(0, i + 1);
    INSTANTS.set(store, (has = i >= 0));
  }
  return has;
}

/**
 * Where a span of no length starts together with a longer one, puts it first: then ends are in order, too.
 * @param {Store} store
 * @param {Index} index
 */
export function putInstantsFirst(store, index) {
  const { start, dur } = store;
  if (!hasInstants(store)) return;
  const { first, ids } = index;
  for (let r = 0; r + 1 < first.length; r++) {
    for (let k = first[r] + 1; k < first[r + 1]; k++) {
      const i = ids[k];
      if (dur[i] !== 0) continue;
      let to = k;
      for (; to > first[r] && dur[ids[to - 1]] > 0 && start[ids[to - 1]] === start[i]; to--) ids[to] = ids[to - 1];
      ids[to] = i;
    }
  }
}

/**
 * The first position from `from` on, below `to`, whose span starts at `time` or later; near positions are found first.
 * @param {Float64Array} start
 * @param {Uint32Array} ids
 * @param {number} from
 * @param {number} to
 * @param {number} time
 */
export function seekStart(start, ids, from, to, time) {
  let step = 1;
  let low = from;
  while (low + step <= to && start[ids[low + step - 1]] < time) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step - 1, to);
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (start[ids[mid]] < time) low = mid + 1;
    else high = mid;
  }
  return low;
}

/**
 * The first position of a row of execution that can end after `time`.
 * @param {Store} store
 * @param {Exec} index
 * @param {number} row
 * @param {number} time
 */
export function firstInRow(store, index, row, time) {
  if (index.maxEnd) return firstInLane(/** @type {Lane} */ (index), row, time);
  const k = seekStart(store.start, index.ids, index.first[row], index.first[row + 1], time);
  if (k === index.first[row]) return k;
  const before = index.ids[k - 1];
  return store.start[before] + store.dur[before] > time ? k - 1 : k;
}

/**
 * Whether anything is executed on a row after `from` and before `to`.
 * @param {Store} store
 * @param {Exec} index
 * @param {number} row
 * @param {number} from
 * @param {number} to
 */
export function runsIn(store, index, row, from, to) {
  const k = firstInRow(store, index, row, from);
  return k < index.first[row + 1] && store.start[index.ids[k]] < to;
}

/**
 * The first position of a row of a lane that can end after `time`.
 * @param {Lane} lane
 * @param {number} row
 * @param {number} time
 */
export function firstInLane(lane, row, time) {
  let low = lane.first[row];
  let high = lane.first[row + 1];
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (lane.maxEnd[mid] <= time) low = mid + 1;
    else high = mid;
  }
  return low;
}

/**
 * Spans that are not execution, by kind; the kind stands for the row.
 * @param {Store} store
 * @returns {Index}
 */
export function indexByKind({ kind, counts }) {
  const rowOfKind = Int32Array.from(KIND_NAMES, (_, k) => (isExecution(k) ? -1 : k));
  return indexByColumn(KIND_NAMES.length, rowOfKind, kind, counts.kind, kind, KIND_NAMES.length);
}

/**
 * The spans of one kind as a lane of a single row.
 * @param {Store} store
 * @param {Index} kinds
 * @param {number} kind
 * @returns {Lane}
 */
export function laneOfKind(store, kinds, kind) {
  const ids = kinds.ids.subarray(kinds.first[kind], kinds.first[kind + 1]);
  return laneOf(store, { first: Uint32Array.of(0, ids.length), ids });
}
