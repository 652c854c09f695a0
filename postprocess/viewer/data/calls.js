// SPDX-License-Identifier: BSD-3-Clause
// System calls and faults as wholes: each from the start of its first piece to the end of its last, whatever cut in and
// whatever the thread waited for. They are kept as spans are, so that whatever lists spans lists them.

import { countersOf } from "./counters.js";
import { firstInLane, firstInRow } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 */

/**
 * Whole calls as spans: the first piece of each and its last; how long its thread was in it on a CPU, the call's own time;
 * what was counted meanwhile, as `Durations` has it.
 * @typedef {{store: Store, first: Uint32Array, last: Uint32Array, own: Float64Array, work: Float64Array, misses: Float64Array}} Calls
 */

/**
 * Copies the values at some places, by their width in bytes. One loop that met all sorts of arrays would be many
 * times slower.
 * @type {Record<number, (to: any, from: any, ids: Uint32Array) => void>}
 */
const COPIES = {
  1: (to, from, ids) => { for (let k = 0; k < ids.length; k++) to[k] = from[ids[k]]; },
  2: (to, from, ids) => { for (let k = 0; k < ids.length; k++) to[k] = from[ids[k]]; },
  4: (to, from, ids) => { for (let k = 0; k < ids.length; k++) to[k] = from[ids[k]]; },
  8: (to, from, ids) => { for (let k = 0; k < ids.length; k++) to[k] = from[ids[k]]; },
};
/** @type {Record<number, any>} */
const BITS = Object.freeze({ 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array });

/** The values of a column at some places. @param {any} column @param {Uint32Array} ids */
function taken(column, ids) {
  const out = new column.constructor(ids.length);
  const width = column.BYTES_PER_ELEMENT;
  const bitsOf = (/** @type {any} */ array) => new BITS[width](array.buffer, array.byteOffset, array.length);
  COPIES[width](bitsOf(out), bitsOf(column), ids);
  return out;
}

/** Spans whose calls are put together before whoever does so may rest: some ms. */
const TOGETHER = 1 << 19;

/** All calls at once. @param {Store} store @returns {Calls} */
export function wholeCalls(store) {
  const parts = callsInParts(store);
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
  }
}

/**
 * Puts the pieces of each call together, in steps of some ms. A call continues until a piece returns, or the thread does something else: runs
 * its own code or another call; a fault, until it does anything but that.
 * @param {Store} store
 * @returns {Generator<undefined, Calls>}
 */
export function* callsInParts(store) {
  const { n, start, dur, kind, pid, pids, event, arg, ret, ipc, counts } = store;
  const { paces, misses: missesOf } = countersOf(store);
  const pieces = counts.kind[Kind.SYSCALL] + counts.kind[Kind.TRAP];
  const [first, last] = [new Uint32Array(pieces), new Uint32Array(pieces)];
  const own = new Float64Array(pieces);
  const [work, misses] = [paces, missesOf].map((steps) => new Float64Array(steps ? pieces : 0));
  /** The call that each thread is in and its fault, -1 for none. */
  const inside = new Int32Array(2 * pids.length).fill(-1);
  let count = 0;
  for (let i = 0; i < n; i++) {
    if (i % TOGETHER === TOGETHER - 1) yield;
    const k = kind[i];
    if (k !== Kind.USER && k !== Kind.SYSCALL && k !== Kind.TRAP) continue;
    const call = 2 * pid[i];
    const fault = call + 1;
    if (k === Kind.USER) {
      inside[call] = inside[fault] = -1;
      continue;
    }
    let one = inside[k === Kind.TRAP ? fault : call];
    if (one < 0 || event[first[one]] !== event[i] || arg[first[one]] !== arg[i]) first[one = count++] = i;
    last[one] = i;
    own[one] += dur[i];
    if (paces) work[one] += dur[i] * paces[ipc[i] & 15];
    if (missesOf) misses[one] += missesOf[ipc[i] & 15];
    inside[fault] = k === Kind.TRAP ? one : -1;
    if (k === Kind.SYSCALL) inside[call] = ret[i] === 0 ? one : -1;
  }
  const [firsts, lasts] = [first.subarray(0, count), last.subarray(0, count)];
  yield;
  const starts = taken(start, firsts);
  const lengths = new Float64Array(count);
  let longest = 0;
  for (let call = 0; call < count; call++) {
    lengths[call] = start[lasts[call]] + dur[lasts[call]] - starts[call];
    if (lengths[call] > longest) longest = lengths[call];
  }
  // As durations of spans are kept, if they fit: loops over both stay fast.
  const durs = dur instanceof Uint32Array && longest < 2 ** 32 ? new Uint32Array(lengths) : lengths;
  yield;
  return {
    first: firsts, last: lasts, own: own.subarray(0, count), work: work.subarray(0, count), misses: misses.subarray(0, count),
    store: {
      ...store, n: count, start: starts, dur: durs,
      cpu: taken(store.cpu, firsts), pid: taken(pid, firsts), rpc: taken(store.rpc, firsts), event: taken(event, firsts), arg: taken(arg, firsts),
      ret: taken(ret, lasts), ipc: new Uint8Array(count), name: taken(store.name, firsts), kind: taken(kind, firsts),
      kinds: new Set([Kind.SYSCALL, Kind.TRAP].filter((k) => counts.kind[k] > 0)),
    },
  };
}

/** What is told of a thing: one of its spans, its length, and which call it is, -1 if none. @typedef {(i: number, length: number, call: number) => void} Taker */

/**
 * Tells of each thing that some spans are: of a call or fault once, as a whole, however many pieces of it are among them. Returns how many pieces are.
 * @param {Store} store
 * @param {() => Calls} whole all calls, which are not asked for if there is no piece of one
 * @param {Uint32Array} ids in order of time
 * @param {Taker} take
 */
export function eachThing({ kind, dur, pid, pids }, whole, ids, take) {
  /** By thread, the call and the fault that began last, and those that were told of last. */
  const [inside, told] = [new Int32Array(2 * pids.length).fill(-1), new Int32Array(2 * pids.length).fill(-1)];
  const placeOf = (/** @type {number} */ thread, /** @type {number} */ k) => 2 * thread + (k === Kind.TRAP ? 1 : 0);
  let [pieces, next] = [0, 0];
  /** @type {Calls | null} */
  let all = null;
  for (let k = 0; k < ids.length; k++) {
    const i = ids[k];
    if (kind[i] !== Kind.SYSCALL && kind[i] !== Kind.TRAP) {
      take(i, dur[i], -1);
      continue;
    }
    pieces++;
    const { first, store } = (all ??= whole());
    for (; next < store.n && first[next] <= i; next++) inside[placeOf(store.pid[next], store.kind[next])] = next;
    const place = placeOf(pid[i], kind[i]);
    const one = inside[place];
    if (told[place] === one) continue;
    told[place] = one;
    take(first[one], store.dur[one], one);
  }
  return pieces;
}

/** What some spans are: how many are pieces of calls or faults, of how many; the shortest and the longest, of these as wholes. @typedef {{pieces: number, calls: number, shortest: number, longest: number}} Things */

/** @param {Store} store @param {() => Calls} whole @param {Uint32Array} ids in order of time @returns {Things} */
export function thingsAmong(store, whole, ids) {
  let [calls, shortest, longest] = [0, Infinity, 0];
  const pieces = eachThing(store, whole, ids, (_, length, call) => {
    if (call >= 0) calls++;
    if (length < shortest) shortest = length;
    if (length > longest) longest = length;
  });
  return { pieces, calls, shortest, longest };
}

/** Spans of a thread that are looked at on either side of one. */
const AROUND_MAX = 100_000;

/**
 * A call or a fault from its start to its end: its pieces; the time its thread was in it on a CPU, the time of what cut in, and what it
 * waited for, by the name of the reason.
 * @typedef {{pieces: number[], from: number, to: number, own: number, cut: number, waits: Map<number, number>}} Call
 */

/**
 * The whole call that a span is a piece of, as `wholeCalls` puts it together; null if it is not a piece of one, or if the thread did too much in it.
 * @param {Store} store
 * @param {Group} threads
 * @param {number} i
 * @returns {Call | null}
 */
export function callAround(store, threads, i) {
  const { start, dur, kind, event, arg, ret, name } = store;
  const row = threads.rowOf(i);
  if ((kind[i] !== Kind.SYSCALL && kind[i] !== Kind.TRAP) || row < 0) return null;
  const { ids, first } = threads.exec;
  let at = firstInRow(store, threads.exec, row, start[i]);
  while (at < first[row + 1] && ids[at] !== i && start[ids[at]] <= start[i]) at++;
  if (ids[at] !== i) return null;
  const pieces = [i];
  let cut = 0;
  for (const by of [-1, 1]) {
    // What cuts in counts once another piece follows.
    let since = 0;
    for (let k = at, last = i; ;) {
      if (by > 0 && kind[i] === Kind.SYSCALL && ret[last] !== 0) break;
      k += by;
      if (k < first[row] || k >= first[row + 1]) break;
      if (Math.abs(k - at) > AROUND_MAX) return null;
      const other = ids[k];
      if (kind[other] === Kind.USER || (kind[i] === Kind.TRAP && kind[other] === Kind.SYSCALL)) break;
      if (kind[other] !== kind[i]) {
        since += dur[other];
        continue;
      }
      if (event[other] !== event[i] || arg[other] !== arg[i] || (by < 0 && kind[i] === Kind.SYSCALL && ret[other] !== 0)) break;
      pieces.push(other);
      last = other;
      cut += since;
      since = 0;
    }
  }
  pieces.sort((a, b) => a - b);
  const end = pieces[pieces.length - 1];
  const [from, to] = [start[pieces[0]], start[end] + dur[end]];
  const waits = new Map();
  for (let k = firstInLane(threads.waits, row, from); k < threads.waits.first[row + 1]; k++) {
    const wait = threads.waits.ids[k];
    if (start[wait] >= to) break;
    const time = Math.min(start[wait] + dur[wait], to) - Math.max(start[wait], from);
    waits.set(name[wait], (waits.get(name[wait]) ?? 0) + time);
  }
  return { pieces, from, to, own: pieces.reduce((sum, piece) => sum + dur[piece], 0), cut, waits };
}
