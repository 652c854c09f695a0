// SPDX-License-Identifier: BSD-3-Clause
// The groups of rows in a trace: CPUs, threads or processes, guests, RPCs, locks and queues, and the network.
//
// A span may be on rows of several groups: a system call is on those of its CPU, its thread and its RPC.

import { cgroupsOf, cpuText, processOf, shownName, threadText, valueOf, wokenBy } from "./format.js";
import { ASYNC_PART, isExecution, KERNEL_EVENTS, LOCK_HELD, PART, RESOURCE_EVENT } from "./kind.js";
import { IntervalIndex } from "./intervals.js";
import { machineOfThread, virtualCpus } from "./machines.js";
import { indexByColumn, indexByRow, laneOf, putInstantsFirst, rowsOfEach } from "./rows.js";
import { Kind } from "./tables.js";
import { partRows } from "./tasks.js";
import { headedSections, machineSections } from "./sections.js";
import { SummaryTree } from "./tree.js";
import { valueParts } from "./values.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 * @import {Exec, Index, Kinds, Lane} from "./rows.js"
 * @import {Section} from "./sections.js"
 */

/**
 * A group of rows of one sort. `exec` has execution, `waits` the waits of threads, `points` events, `bars` locks
 * and queues, stacked on levels where they overlap, `freq` and `samples` sampled values, `steals` time taken by the host, `messages` network
 * traffic. `from` and `to` bound the contents of each row. `roomAbove`, out of the pixels available, and `roomBelow` are pixels that a row
 * keeps free of execution. Rows with 1 in `named` have bars labelled with their names. `onlyLit` shows only highlighted rows, those with 1 in `lit`. A `hidden`
 * group is not shown at all: another group replaces it. `sections` are foldable parts of the group, in the order of their rows.
 * @typedef {{name: string, title: string, keys: number[], labels: string[], rowOfKey: Map<number, number>,
 *   rowOf: (i: number) => number, targetRow: (arc: number) => number, exec: Exec, tree: SummaryTree, waits: Lane,
 *   points: Lane, bars: Lane, barIntervals: IntervalIndex, level: Uint8Array, levels: Uint8Array, named: Uint8Array, freq: Lane, samples: Lane, steals: Lane,
 *   messages: Lane, from: Float64Array, to: Float64Array, roomAbove: (row: number, room: number) => number, roomBelow: number, hides: boolean,
 *   collapsed: boolean, hidden: boolean, onlyLit: boolean, lit: Uint8Array, litCount: number, sections: Section[]}} Group
 */

/**
 * The contents of a group; lists are of spans, and those absent are empty. Bars that are `isBase` are not stacked.
 * @typedef {{name: string, title: string, keys: number[], labels: string[], rowOf: (i: number) => number,
 *   rowOfKey?: Map<number, number>, target?: (i: number) => number, exec?: Index, overlaps?: boolean, waits?: Uint32Array, points?: Uint32Array,
 *   bars?: Uint32Array, freq?: Uint32Array, samples?: Uint32Array, steals?: Uint32Array, messages?: Uint32Array, isBase?: (i: number) => boolean,
 *   open?: boolean, sections?: Section[]}} Parts
 */

/** Maximum number of levels on which the bars of a row are stacked. */
const LEVELS_MAX = 6;
/** Sorts of resources that have rows. */
const RESOURCE_SORTS = Object.freeze([
  { kind: Kind.LOCK, name: "lock" }, { kind: Kind.QUEUE, name: "queue" }, { kind: Kind.POINT, name: "resource" },
]);

/**
 * The groups of a trace. The first two always exist, the others if they have rows.
 * @param {Store} store
 * @param {Kinds} kinds
 * @returns {Group[]}
 */
export function buildGroups(store, kinds) {
  const of = (/** @type {number[]} */ ...list) => joined(list.map((kind) => idsOfKind(kinds, kind)));
  const parts = [cpuParts(store, of, kinds.cpu), threadParts(store, of, kinds.pid), guestParts(store, of), rpcParts(store, of), resourceParts(store, of),
    valueParts(store, of(Kind.MARK)), networkParts(store, of)];
  return parts.flatMap((part) => (part ? [buildGroup(store, part)] : []));
}

/** The key of the row for all kernel threads. */
export const KERNEL_THREADS = 0;

/** The group that shows the threads now. @param {Group[]} groups */
export const threadsOf = (groups) => groups[groups[1].hidden ? 2 : 1];

/** True if each row of a group is that of a thread, or of several. @param {Group} group */
export const isOfThreads = (group) => group.name === "PID" || isFolded(group);

/** True if each row of a group is that of several threads. @param {Group | undefined} group */
export const isFolded = (group) => FOLDS.some(({ name }) => name === group?.name);

/**
 * Ways to fold rows of threads: each `by` gets one row, and all kernel threads together get one; `keys` returns for each row of threads the key
 * of the row that it becomes part of.
 * @type {readonly {by: string, name: string, title: string, keys: (store: Store, threads: Group) => number[],
 *   label: (store: Store) => (key: number) => string}[]}
 */
const FOLDS = Object.freeze([
  { by: "kernel threads", name: "KERN", title: "Threads", keys: kernelRows, label: threadLabels },
  { by: "process", name: "PROC", title: "Processes", keys: processRows, label: threadLabels },
  { by: "control group", name: "CGROUP", title: "Control groups", keys: cgroupRows, label: cgroupLabels },
  { by: "machine", name: "MACHINE", title: "Machines", keys: machineRows, label: machineLabels },
]);

/** The folds that a trace has data for. @param {Store} store */
export const foldsOf = ({ meta }) => FOLDS.map(({ by }) => by).filter((by) =>
  (by === "control group" ? meta.cgroups !== undefined : by !== "machine" || (meta.machines?.length ?? 0) > 1));

/** @param {Store} store */
function threadLabels(store) {
  return (/** @type {number} */ key) => (key === KERNEL_THREADS ? "kernel threads" : threadText(store, key));
}

/** The key of each row of threads: its own, but one for all kernel threads. @param {Store} store @param {Group} threads */
function kernelRows(store, threads) {
  const inKernel = kernelThreads(store, threads);
  return threads.keys.map((pid, row) => (inKernel[row] === 1 ? KERNEL_THREADS : pid));
}

/** The process of each row of threads. @param {Store} store @param {Group} threads */
function processRows(store, threads) {
  const inKernel = kernelThreads(store, threads);
  return threads.keys.map((pid, row) => (inKernel[row] === 1 ? KERNEL_THREADS : processOf(store, pid)));
}

/** The first thread in the control group of each row of threads. @param {Store} store @param {Group} threads */
function cgroupRows(store, { keys }) {
  return firstAlike(keys, cgroupsOf(store));
}

/** @param {Store} store */
function cgroupLabels(store) {
  const groupOf = cgroupsOf(store);
  return (/** @type {number} */ key) => shownName(groupOf(key)?.short ?? "not known");
}

/** The first thread on the machine of each row of threads. @param {Store} store @param {Group} threads */
function machineRows({ meta }, { keys }) {
  return firstAlike(keys, (pid) => machineOfThread(meta, pid));
}

/** @param {Store} store */
function machineLabels({ meta }) {
  return (/** @type {number} */ key) => shownName(machineOfThread(meta, key)?.name ?? "not known");
}

/** For each thread, the first thread with the same value of `of`. @param {number[]} pids @param {(pid: number) => unknown} of */
function firstAlike(pids, of) {
  /** @type {Map<unknown, number>} */
  const first = new Map();
  for (const pid of pids) if (!first.has(of(pid))) first.set(of(pid), pid);
  return pids.map((pid) => first.get(of(pid)) ?? pid);
}

/** The fold with this name, if any. @param {string} by */
export const foldOf = (by) => FOLDS.find((fold) => fold.by === by);

/**
 * The group that can replace that of threads: a row for each process and one for all kernel threads, or one
 * for each control group and the like, with the execution of their threads, which may overlap, and the waits if it is a single thread.
 * @param {Store} store
 * @param {Group} threads
 * @param {string} by the name of the fold
 * @returns {Group}
 */
export function foldedThreads(store, threads, by) {
  const { pid, pids, counts } = store;
  const fold = foldOf(by) ?? FOLDS[0];
  const keyOf = fold.keys(store, threads);
  const keys = [...new Set(keyOf)].sort((a, b) => (a || Infinity) - (b || Infinity));
  const places = new Map(keys.map((key, row) => [key, row]));
  const sizes = new Uint32Array(keys.length);
  const rowOfKey = new Map(places);
  threads.keys.forEach((number, k) => {
    const row = places.get(keyOf[k]) ?? -1;
    rowOfKey.set(number, row);
    sizes[row]++;
  });
  const rowOfValue = Int32Array.from(pids, (number) => (number > 0 ? rowOfKey.get(number) ?? -1 : -1));
  const rowOf = (/** @type {number} */ i) => rowOfValue[pid[i]];
  const inOrder = (/** @type {Index} */ { ids }) => ids.slice().sort();
  const label = fold.label(store);
  return buildGroup(store, {
    name: fold.name, title: fold.title, keys, labels: keys.map((key, row) => (sizes[row] > 1 ? `${label(key)} (${sizes[row]})` : label(key))),
    rowOf, rowOfKey, target: (i) => wokenBy(store, i), overlaps: true, open: true,
    exec: indexByColumn(keys.length, rowOfValue, pid, counts.pid, store.kind),
    waits: inOrder(threads.waits).filter((i) => sizes[rowOf(i)] === 1), points: inOrder(threads.points), bars: inOrder(threads.bars),
  });
}

/**
 * A mask with 1 for the rows of kernel threads, found from the first span on each row that is the thread's own code.
 * @param {Store} store
 * @param {Group} group
 */
export function kernelThreads({ event, events, kind }, { keys, exec: { first, ids } }) {
  return Uint8Array.from(keys, (_, row) => {
    const own = ids.subarray(first[row], first[row + 1]).find((i) => kind[i] === Kind.USER || events[event[i]] >= KERNEL_EVENTS);
    return own !== undefined && kind[own] !== Kind.USER ? 1 : 0;
  });
}

/** @typedef {(...kinds: number[]) => Uint32Array} IdsOf */

/** @param {Store} store @param {IdsOf} of @param {Index} execution by CPU @returns {Parts} */
function cpuParts(store, of, execution) {
  const { cpu, cpus, arg } = store;
  const samples = of(Kind.SAMPLE);
  const freq = of(Kind.FREQ);
  const { keys, rowOfValue, exec } = rowsOfColumn(execution, cpu, cpus, (n) => n >= 0, [samples, freq]);
  return {
    name: "CPU", title: "CPUs", keys, labels: keys.map((n) => cpuText(store, n)), rowOf: (i) => rowOfValue[cpu[i]],
    target: (i) => valueOf(arg[i]) ?? -1, exec, points: of(Kind.POINT, Kind.RPC), samples, freq, steals: of(Kind.STEAL),
    open: true, sections: machineSections(store.meta, keys),
  };
}

/** @param {Store} store @param {IdsOf} of @param {Index} execution by thread @returns {Parts} */
function threadParts(store, of, execution) {
  const { pid, pids } = store;
  const waits = of(Kind.WAIT);
  const isPart = (/** @type {number} */ i) => store.events[store.event[i]] === PART;
  const parts = store.events.includes(PART);
  const bars = parts ? of(Kind.LOCK, Kind.POINT).filter((i) => store.kind[i] === Kind.LOCK || isPart(i)) : of(Kind.LOCK);
  const points = of(Kind.POINT, Kind.RPC);
  const { keys, rowOfValue, exec } = rowsOfColumn(execution, pid, pids, (n) => n > 0, [waits, bars]);
  return {
    name: "PID", title: "Threads", keys, labels: keys.map((n) => threadText(store, n)), rowOf: (i) => rowOfValue[pid[i]],
    target: (i) => wokenBy(store, i), exec, waits, points: parts ? points.filter((i) => !isPart(i)) : points, bars,
    steals: of(Kind.STEAL).filter((i) => pids[pid[i]] > 0),
  };
}

/**
 * Two rows for each CPU of a guest: the host's thread that runs it, and underneath the guest's activity.
 * @param {Store} store
 * @param {IdsOf} of
 * @returns {Parts | null}
 */
function guestParts(store, of) {
  const { cpu, cpus, pid, pids, kind, meta } = store;
  const pairs = virtualCpus(meta).filter((pair) => cpus.includes(pair.cpu));
  if (pairs.length === 0) return null;
  const rowOfCpu = new Map(pairs.map((pair, n) => [pair.cpu, 2 * n + 1]));
  const rowOfThread = new Map(pairs.map(({ thread }, n) => [thread, 2 * n]));
  const byCpu = Int32Array.from(cpus, (number) => rowOfCpu.get(number) ?? -1);
  const byThread = Int32Array.from(pids, (number) => rowOfThread.get(number) ?? -1);
  const rowOf = (/** @type {number} */ i) => (byCpu[cpu[i]] >= 0 ? byCpu[cpu[i]] : byThread[pid[i]]);
  const rows = 2 * pairs.length;
  const labels = pairs.flatMap((pair) => [threadText(store, pair.thread), `\u2514 ${cpuText(store, pair.cpu)}`]);
  return {
    name: "GUEST", title: "Guests", keys: Array.from({ length: rows }, (_, row) => row), labels, rowOf, sections: headedSections(labels, 2),
    exec: indexByRow(rows, rowsOfEach(kind.length, (i) => (isExecution(kind[i]) ? rowOf(i) : -1))),
    waits: of(Kind.WAIT), points: of(Kind.POINT, Kind.RPC), open: true,
  };
}

/**
 * A row for each RPC, in the order of their starts, labelled with the longest name it was given. The work of several threads
 * for one RPC may overlap.
 * @param {Store} store
 * @param {IdsOf} of
 * @returns {Parts | null}
 */
function rpcParts(store, of) {
  const { n, rpc, kind, name, names } = store;
  const rowOfId = new Int32Array(0x10000).fill(-1);
  /** @type {number[]} */
  const keys = [];
  for (let i = 0; i < n; i++) {
    const id = rpc[i] > 0 ? rpc[i] & 0xffff : 0;
    if (id > 0 && rowOfId[id] < 0) rowOfId[id] = keys.push(id) - 1;
  }
  if (keys.length === 0) return null;
  const rowOf = (/** @type {number} */ i) => (rpc[i] > 0 ? rowOfId[rpc[i] & 0xffff] : -1);
  const exec = indexByRow(keys.length, rowsOfEach(n, (i) => (rpc[i] > 0 && isExecution(kind[i]) ? rowOf(i) : -1)));
  const labels = keys.map((id) => `rpc.${id}`);
  const named = new Uint8Array(keys.length);
  const points = of(Kind.RPC);
  for (const i of of(Kind.RPC, Kind.MESSAGE)) {
    const row = rowOf(i);
    if (row < 0 || (named[row] && names[name[i]].length <= labels[row].length)) continue;
    labels[row] = shownName(names[name[i]]);
    named[row] = 1;
  }
  return {
    name: "RPC", title: "RPCs", keys, labels, rowOf, exec,
    overlaps: true, points, bars: of(Kind.QUEUE), messages: of(Kind.MESSAGE),
  };
}

/**
 * A row for each lock, queue and resource that occurs, for each name of parts that any thread may end, and for each
 * task.
 * @param {Store} store
 * @param {IdsOf} of
 * @returns {Parts | null}
 */
function resourceParts(store, of) {
  const { kind, arg, name, names, event, events } = store;
  const parts = events.includes(ASYNC_PART) ? partRows(store, of(Kind.POINT)) : new Map();
  const bars = parts.size > 0 ? of(Kind.LOCK, Kind.QUEUE, Kind.POINT).filter((i) => kind[i] !== Kind.POINT || parts.has(i)) : of(Kind.LOCK, Kind.QUEUE);
  const points = of(Kind.POINT).filter((i) => events[event[i]] === RESOURCE_EVENT);
  /** Rows of parts by key. @type {Map<string, number>} */
  const keyed = new Map();
  /** Rows by argument. @type {Map<number, number>[]} */
  const rows = [];
  for (const sort of RESOURCE_SORTS) rows[sort.kind] = new Map();
  /** @type {string[]} */
  const labels = [];
  for (const list of [bars, points]) {
    for (const i of list) {
      const part = parts.get(i);
      if (part) {
        if (!keyed.has(part.key)) keyed.set(part.key, labels.push(part.label) - 1);
        continue;
      }
      const row = rows[kind[i]];
      if (row.has(arg[i])) continue;
      row.set(arg[i], labels.length);
      const sort = RESOURCE_SORTS.find((s) => s.kind === kind[i])?.name;
      labels.push(`${sort} ${shownName(names[name[i]]).replace(/^[=~]/, "")}`);
    }
  }
  if (labels.length === 0) return null;
  const has = (/** @type {number} */ i) => kind[i] !== Kind.POINT || events[event[i]] === RESOURCE_EVENT;
  const rowOf = (/** @type {number} */ i) => keyed.get(parts.get(i)?.key ?? "") ?? (has(i) ? rows[kind[i]]?.get(arg[i]) ?? -1 : -1);
  return {
    name: "RES", title: parts.size > 0 ? "Locks, queues, parts" : "Locks, queues", keys: labels.map((_, row) => row), labels,
    rowOf, bars, points, isBase: (i) => events[event[i]] === LOCK_HELD,
  };
}

/** One row for network traffic. @param {Store} store @param {IdsOf} of @returns {Parts | null} */
function networkParts({ kind }, of) {
  const messages = of(Kind.PACKET, Kind.MESSAGE);
  if (messages.length === 0) return null;
  const has = (/** @type {number} */ i) => kind[i] === Kind.PACKET || kind[i] === Kind.MESSAGE;
  return {
    name: "NET", title: "Network", keys: [0], labels: ["messages"], rowOf: (i) => (has(i) ? 0 : -1), messages, open: true,
  };
}

/**
 * Rows for those values of a column that occur in execution or in one of the lists, and the execution on each row.
 * @param {Index} execution by the place of the value, for those that have a row
 * @param {Column} column
 * @param {number[]} values
 * @param {(value: number) => boolean} hasRow
 * @param {Uint32Array[]} lists
 */
function rowsOfColumn({ first: firsts, ids }, column, values, hasRow, lists) {
  const used = Uint8Array.from(values, (_, v) => (firsts[v + 1] > firsts[v] ? 1 : 0));
  for (const list of lists) for (const i of list) used[column[i]] = 1;
  /** @type {number[]} */
  const keys = [];
  const rowOfValue = Int32Array.from(values, (key, v) => (used[v] === 1 && hasRow(key) ? keys.push(key) - 1 : -1));
  // Values without a row have no execution, so those with a row are already in the order of the rows.
  const first = new Uint32Array(keys.length + 1).fill(ids.length);
  for (let v = 0; v < values.length; v++) if (rowOfValue[v] >= 0) first[rowOfValue[v]] = firsts[v];
  return { keys, rowOfValue, exec: { first, ids } };
}

/** @param {Store} store @param {Parts} parts @returns {Group} */
function buildGroup(store, parts) {
  const { name, title, keys, labels, rowOf, target } = parts;
  const rows = keys.length;
  const rowOfKey = parts.rowOfKey ?? new Map(keys.map((key, row) => [key, row]));
  const lane = (/** @type {Uint32Array | undefined} */ ids = new Uint32Array(0)) =>
    laneOf(store, indexByRow(rows, rowsOfEach(ids.length, (k) => rowOf(ids[k])), ids));
  const index = parts.exec ?? indexByRow(rows, new Int32Array(0));
  putInstantsFirst(store, index);
  // Without overlaps the last span ends latest, so no list of ends is needed.
  const exec = parts.overlaps ? laneOf(store, index) : { ...index, maxEnd: null };
  const bars = lane(parts.bars);
  const group = {
    name, title, keys, labels, rowOfKey, rowOf,
    targetRow: (/** @type {number} */ arc) => (target ? rowOfKey.get(target(arc)) ?? -1 : -1),
    exec, waits: lane(parts.waits), points: lane(parts.points), bars,
    barIntervals: new IntervalIndex(store, bars), ...stack(store, bars, parts.isBase), freq: lane(parts.freq), samples: lane(parts.samples),
    steals: lane(parts.steals), messages: lane(parts.messages), roomAbove: () => 0, roomBelow: 0, hides: name !== "CPU", collapsed: !parts.open, hidden: false,
    onlyLit: false, lit: new Uint8Array(rows), litCount: 0, from: new Float64Array(rows), to: new Float64Array(rows),
    sections: parts.sections ?? [],
    // Built when the group is first drawn: the threads are collapsed while a page opens.
    get tree() {
      const value = new SummaryTree(store, exec.ids);
      Object.defineProperty(this, "tree", { value });
      return value;
    },
  };
  bound(store, group);
  return group;
}

/** Records the time range of the contents of each row of a group. @param {Store} store @param {Group} group */
function bound(store, group) {
  const { from, to } = group;
  from.fill(Infinity);
  to.fill(-Infinity);
  for (const { first, ids, maxEnd } of [group.exec, group.waits, group.points, group.bars, group.messages]) {
    for (let r = 0; r < from.length; r++) {
      const end = first[r + 1];
      if (first[r] === end) continue;
      const last = ids[end - 1];
      from[r] = Math.min(from[r], store.start[ids[first[r]]]);
      to[r] = Math.max(to[r], maxEnd ? maxEnd[end - 1] : store.start[last] + store.dur[last]);
    }
  }
}

/**
 * Gives each bar of a row the lowest free level; for each row, counts its levels and notes whether parts are among its bars.
 * @param {Store} store
 * @param {Lane} lane
 * @param {(i: number) => boolean} [isBase]
 */
function stack(store, lane, isBase) {
  const { start, dur, event, events } = store;
  const level = new Uint8Array(lane.ids.length);
  const levels = new Uint8Array(lane.first.length - 1);
  const named = new Uint8Array(levels.length);
  const ends = new Float64Array(LEVELS_MAX);
  for (let r = 0; r < levels.length; r++) {
    ends.fill(-Infinity);
    for (let k = lane.first[r]; k < lane.first[r + 1]; k++) {
      const i = lane.ids[k];
      if (isBase?.(i)) continue;
      if (events[event[i]] === PART) named[r] = 1;
      let at = 0;
      while (at < LEVELS_MAX - 1 && ends[at] > start[i]) at++;
      ends[at] = Math.max(ends[at], start[i] + dur[i]);
      level[k] = at;
      levels[r] = Math.max(levels[r], at + 1);
    }
  }
  return { level, levels, named };
}

/** The spans of one kind. @param {Index} kinds @param {number} kind */
const idsOfKind = (kinds, kind) => kinds.ids.subarray(kinds.first[kind], kinds.first[kind + 1]);

/** The spans of all lists, in the order of their starts. @param {Uint32Array[]} lists */
function joined(lists) {
  if (lists.length === 1) return lists[0];
  const out = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
  let at = 0;
  for (const list of lists) {
    out.set(list, at);
    at += list.length;
  }
  return out.sort();
}

/**
 * Moves a group to its next state: all its rows, only those highlighted if there are any, none.
 * @param {Group} group
 */
export function cycleGroup(group) {
  const part = !group.collapsed && !group.onlyLit && group.litCount > 0;
  group.collapsed = !group.collapsed && !part;
  group.onlyLit = part;
}
