// SPDX-License-Identifier: BSD-3-Clause
// Lists of spans by row, each made by one counting sort, and searches by time in them.

import { isExecution } from "./kind.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/**
 * Spans by row: those of row r are ids[first[r]] to ids[first[r + 1] - 1], in order of time.
 * @typedef {{first: Uint32Array, ids: Uint32Array}} Index
 */

/**
 * An index of spans that may overlap; maxEnd[k] is the latest end among the spans of the row up to ids[k]. For
 * execution without overlaps it is null.
 * @typedef {Index & {maxEnd: Float64Array}} Lane
 * @typedef {Index & {maxEnd: Float64Array | null}} Exec
 */

/** The row of each item. `Int32Array.from` with a function takes five times as long. @param {number} n @param {(k: number) => number} rowOf */
export function rowsOfEach(n, rowOf) {
  const rows = new Int32Array(n);
  for (let k = 0; k < n; k++) rows[k] = rowOf(k);
  return rows;
}

/**
 * Sorts spans by row, keeping their order.
 * @param {number} rows
 * @param {Int32Array} rowOf row of each item, -1 to skip it
 * @param {Uint32Array} [ids] the items, if not all spans
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
 * Sorts execution by the row of its value in a column, keeping its order.
 * @param {number} rows
 * @param {Int32Array} rowOfValue row of each value of the column, -1 to skip it
 * @param {Column} column
 * @param {Uint32Array} count number of spans of execution, by value of the column
 * @param {Uint8Array} kind
 * @returns {Index}
 */
export function indexByColumn(rows, rowOfValue, column, count, kind) {
  const n = column.length;
  const first = new Uint32Array(rows + 1);
  for (let v = 0; v < rowOfValue.length; v++) if (rowOfValue[v] >= 0) first[rowOfValue[v] + 1] += count[v];
  for (let r = 0; r < rows; r++) first[r + 1] += first[r];
  const next = first.slice(0, rows);
  const ids = new Uint32Array(first[rows]);
  for (let i = 0; i < n; i++) {
    if (kind[i] > Kind.SCHED) continue;
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
export function laneOf({ start, dur }, index) {
  const { first, ids } = index;
  const maxEnd = new Float64Array(ids.length);
  for (let r = 0; r + 1 < first.length; r++) {
    let latest = -Infinity;
    for (let k = first[r]; k < first[r + 1]; k++) {
      const end = start[ids[k]] + dur[ids[k]];
      if (end > latest) latest = end;
      maxEnd[k] = latest;
    }
  }
  return { ...index, maxEnd };
}

/** Execution and waits of no length, by store. @type {WeakMap<Store, number[]>} */
const INSTANTS = new WeakMap();

/** Execution and waits of no length, in order; few traces have any. @param {Store} store */
function instantsOf(store) {
  const { dur, kind } = store;
  let instants = INSTANTS.get(store);
  if (!instants) {
    instants = [];
    for (let i = dur.indexOf(0); i >= 0; i = dur.indexOf(0, i + 1)) if (kind[i] <= Kind.WAIT) instants.push(i);
    INSTANTS.set(store, instants);
  }
  return instants;
}

/**
 * Puts a span of no length before a longer one with the same start, so that ends are in order, too.
 * @param {Store} store
 * @param {Index} index rows in the order of the spans' numbers
 */
export function putInstantsFirst(store, index) {
  const { start, dur } = store;
  const { first, ids } = index;
  const instants = instantsOf(store);
  if (instants.length === 0) return;
  // If there are few, search for each on every row; otherwise scan all spans.
  const few = instants.length * (first.length - 1) * 16 < ids.length;
  for (let r = 0; r + 1 < first.length; r++) {
    const move = (/** @type {number} */ k) => {
      const i = ids[k];
      let to = k;
      for (; to > first[r] && dur[ids[to - 1]] > 0 && start[ids[to - 1]] === start[i]; to--) ids[to] = ids[to - 1];
      ids[to] = i;
    };
    // Moves go to the left, so all places are found before the first move.
    if (few) instants.map((i) => placeOf(ids, first[r], first[r + 1], i)).filter((k) => k >= 0).forEach(move);
    else for (let k = first[r] + 1; k < first[r + 1]; k++) if (dur[ids[k]] === 0) move(k);
  }
}

/** The place of a number in a range of a sorted list, -1 if absent. @param {Uint32Array} list @param {number} from @param {number} to @param {number} wanted */
function placeOf(list, from, to, wanted) {
  let low = from;
  for (let high = to; low < high;) {
    const middle = (low + high) >>> 1;
    if (list[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low < to && list[low] === wanted ? low : -1;
}

/**
 * The first position from `from` on, below `to`, whose span starts at `time` or later. The search gallops: near positions are found first.
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
 * True if anything is executed on a row after `from` and before `to`.
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

/** All spans: execution by CPU and by thread, all others by kind. The index of the kind, CPU or thread is the row. @typedef {Index & {cpu: Index, pid: Index}} Kinds */

/** Allocates room for the given counts, of values that have a row; `next` is the place of the next span of each, -1 for none. @param {Uint32Array} count @param {(which: number) => boolean} hasRow */
function roomFor(count, hasRow) {
  const first = new Uint32Array(count.length + 1);
  for (let v = 0; v < count.length; v++) first[v + 1] = first[v] + (hasRow(v) ? count[v] : 0);
  return { first, ids: new Uint32Array(first[count.length]), next: Int32Array.from(count, (_, v) => (hasRow(v) ? first[v] : -1)) };
}

/**
 * Sorts all spans in one pass: the branch on execution is hard to predict and dominates the cost.
 * @param {Store} store
 * @returns {Kinds}
 */
export function indexByKind({ n, kind, cpu, cpus, pid, pids, counts }) {
  const others = roomFor(counts.kind, (k) => !isExecution(k));
  const ofCpus = roomFor(counts.cpu, (c) => cpus[c] >= 0);
  const ofThreads = roomFor(counts.pid, (p) => pids[p] > 0);
  for (let i = 0; i < n; i++) {
    const k = kind[i];
    if (k > Kind.SCHED) {
      others.ids[others.next[k]++] = i;
      continue;
    }
    const [c, p] = [cpu[i], pid[i]];
    if (ofCpus.next[c] >= 0) ofCpus.ids[ofCpus.next[c]++] = i;
    if (ofThreads.next[p] >= 0) ofThreads.ids[ofThreads.next[p]++] = i;
  }
  const index = (/** @type {Index} */ { first, ids }) => ({ first, ids });
  return { ...index(others), cpu: index(ofCpus), pid: index(ofThreads) };
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
