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
 * A group of rows of one sort. `exec` holds execution, `waits` what threads wait for, `points` marks and events.
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
 * The groups of a trace: CPUs and threads.
 * @param {Store} store
 * @returns {Group[]}
 */
function buildGroups(store) {
  const { cpus, pids, cpu, pid, arg, ret } = store;
  return [
    buildGroup(store, "CPU", "CPUs", cpu, cpus, (n) => n >= 0, (n) => `CPU ${n}`, arg),
    buildGroup(store, "PID", "Threads", pid, pids, (n) => n > 0, (n) => threadText(store, n), ret),
  ];
}

/**
 * @param {Store} store
 * @param {string} name
 * @param {string} title
 * @param {Column} column what decides on the row
 * @param {number[]} values what the column's numbers stand for
 * @param {(key: number) => boolean} hasRow
 * @param {(key: number) => string} labelOf
 * @param {Column} target column that says where an arc ends
 * @returns {Group}
 */
function buildGroup(store, name, title, column, values, hasRow, labelOf, target) {
  const { n, kind } = store;
  const used = new Uint8Array(values.length);
  for (let i = 0; i < n; i++) if (kind[i] <= Kind.WAIT) used[column[i]] = 1;
  const keys = [];
  const rowOfValue = new Int32Array(values.length).fill(-1);
  for (const [v, key] of values.entries()) {
    if (used[v] === 0 || !hasRow(key)) continue;
    rowOfValue[v] = keys.length;
    keys.push(key);
  }
  const rowOfKey = new Map(keys.map((key, row) => [key, row]));
  /** @param {(kind: number) => boolean} wanted */
  const index = (wanted) => {
    const isWanted = Uint8Array.from(KIND_NAMES, (_, k) => (wanted(k) ? 1 : 0));
    const rowOf = new Int32Array(n);
    for (let i = 0; i < n; i++) rowOf[i] = isWanted[kind[i]] === 1 ? rowOfValue[column[i]] : -1;
    return indexByRow(keys.length, rowOf);
  };
  const exec = index(isExecution);
  putInstantsFirst(store, exec);
  return {
    name, title, keys, labels: keys.map(labelOf), rowOfKey,
    rowOf: (i) => rowOfValue[column[i]],
    targetRow: (arc) => rowOfKey.get(target[arc]) ?? -1,
    exec,
    tree: new SummaryTree(store, exec.ids),
    waits: laneOf(store, index((k) => k === Kind.WAIT)),
    points: laneOf(store, index((k) => k === Kind.MARK || k === Kind.POINT)),
    collapsed: name !== "CPU",
  };
}

/**
 * All spans of one kind as a lane of a single row.
 * @param {Store} store
 * @param {number} wanted
 */
function laneOfKind(store, wanted) {
  const rowOf = new Int32Array(store.n);
  for (let i = 0; i < store.n; i++) rowOf[i] = store.kind[i] === wanted ? 0 : -1;
  return laneOf(store, indexByRow(1, rowOf));
}
