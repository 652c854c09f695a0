// SPDX-License-Identifier: BSD-3-Clause
// Which spans lie on which row: lists by row, made by one counting sort each.
"use strict";

/**
 * Spans by row: those of row r are ids[first[r]] to ids[first[r + 1] - 1], in order of time.
 * @typedef {{first: Uint32Array, ids: Uint32Array}} Index
 */

/**
 * An index of spans that may overlap; maxEnd[k] is the latest end among the spans of the row up to ids[k].
 * @typedef {Index & {maxEnd: Float64Array}} Lane
 */

/**
 * A group of rows of one sort. `exec` holds execution, `waits` what threads wait for, `points` events.
 * @typedef {{name: string, title: string, keys: number[], labels: string[], rowOfKey: Map<number, number>,
 *   rowOf: (i: number) => number, targetRow: (arc: number) => number, exec: Index, tree: SummaryTree, waits: Lane,
 *   points: Lane, collapsed: boolean}} Group
 */

/**
 * Sorts spans by row, keeping their order.
 * @param {number} rows
 * @param {Int32Array} rowOf row of each item, -1 to leave it out
 * @param {Uint32Array} [ids] the items, if they are not simply all spans
 * @returns {Index}
 */
function indexByRow(rows, rowOf, ids) {
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
 * Makes the lists of spans that may overlap searchable by time.
 * @param {Store} store
 * @param {Index} index
 * @returns {Lane}
 */
function laneOf(store, index) {
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

/**
 * Where a span of no length starts together with a longer one, puts it first: then ends are in order, too.
 * @param {Store} store
 * @param {Index} index
 */
function putInstantsFirst(store, index) {
  const { start, dur } = store;
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
function seekStart(start, ids, from, to, time) {
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
 * The first position of a row of execution that ends after `time`.
 * @param {Store} store
 * @param {Index} index
 * @param {number} row
 * @param {number} time
 */
function firstInRow(store, index, row, time) {
  const k = seekStart(store.start, index.ids, index.first[row], index.first[row + 1], time);
  if (k === index.first[row]) return k;
  const before = index.ids[k - 1];
  return store.start[before] + store.dur[before] > time ? k - 1 : k;
}

/**
 * The first position of a row of a lane that can end after `time`.
 * @param {Lane} lane
 * @param {number} row
 * @param {number} time
 */
function firstInLane(lane, row, time) {
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
function indexByKind(store) {
  const { n, kind } = store;
  const rowOf = new Int32Array(n);
  for (let i = 0; i < n; i++) rowOf[i] = kind[i] <= Kind.SCHED ? -1 : kind[i];
  return indexByRow(KIND_NAMES.length, rowOf);
}

/**
 * The spans of one kind as a lane of a single row.
 * @param {Store} store
 * @param {Index} kinds
 * @param {number} kind
 * @returns {Lane}
 */
function laneOfKind(store, kinds, kind) {
  const ids = kinds.ids.subarray(kinds.first[kind], kinds.first[kind + 1]);
  return laneOf(store, { first: Uint32Array.of(0, ids.length), ids });
}

/**
 * The groups of a trace: CPUs and threads.
 * @param {Store} store
 * @param {Index} kinds
 * @returns {Group[]}
 */
function buildGroups(store, kinds) {
  const { cpus, pids, cpu, pid, arg, ret } = store;
  const ofCpu = { name: "CPU", title: "CPUs", column: cpu, values: cpus, target: arg, collapsed: false };
  const ofPid = { name: "PID", title: "Threads", column: pid, values: pids, target: ret, collapsed: true };
  return [
    buildGroup(store, kinds, ofCpu, (n) => n >= 0, (n) => `CPU ${n}`),
    buildGroup(store, kinds, ofPid, (n) => n > 0, (n) => threadText(store, n)),
  ];
}

/**
 * A group with a row for each value that has execution or waits; `column` says which a span belongs to, `target` where
 * an arc ends.
 * @param {Store} store
 * @param {Index} kinds
 * @param {{name: string, title: string, column: Column, values: number[], target: Column, collapsed: boolean}} sort
 * @param {(key: number) => boolean} hasRow
 * @param {(key: number) => string} labelOf
 * @returns {Group}
 */
function buildGroup(store, kinds, sort, hasRow, labelOf) {
  const { n, kind } = store;
  const { column, values, target } = sort;
  const waits = kinds.ids.subarray(kinds.first[Kind.WAIT], kinds.first[Kind.WAIT + 1]);
  const points = kinds.ids.subarray(kinds.first[Kind.POINT], kinds.first[Kind.POINT + 1]);
  const used = new Uint8Array(values.length);
  for (let i = 0; i < n; i++) if (kind[i] <= Kind.SCHED) used[column[i]] = 1;
  for (const i of waits) used[column[i]] = 1;

  /** @type {number[]} */
  const keys = [];
  const rowOfValue = Int32Array.from(values, (key, v) => (used[v] === 1 && hasRow(key) ? keys.push(key) - 1 : -1));
  const rowOfKey = new Map(keys.map((key, row) => [key, row]));
  const rowOf = new Int32Array(n);
  for (let i = 0; i < n; i++) rowOf[i] = kind[i] <= Kind.SCHED ? rowOfValue[column[i]] : -1;
  const exec = indexByRow(keys.length, rowOf);
  putInstantsFirst(store, exec);
  const lane = (/** @type {Uint32Array} */ ids) => {
    const rows = new Int32Array(ids.length);
    for (let k = 0; k < ids.length; k++) rows[k] = rowOfValue[column[ids[k]]];
    return laneOf(store, indexByRow(keys.length, rows, ids));
  };
  return {
    name: sort.name, title: sort.title, collapsed: sort.collapsed, keys, labels: keys.map(labelOf), rowOfKey,
    rowOf: (i) => rowOfValue[column[i]],
    targetRow: (arc) => rowOfKey.get(target[arc]) ?? -1,
    exec,
    tree: new SummaryTree(store, exec.ids),
    waits: lane(waits),
    points: lane(points),
  };
}
