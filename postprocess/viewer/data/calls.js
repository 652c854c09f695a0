// SPDX-License-Identifier: BSD-3-Clause
// System calls and faults as wholes: each from the start of its first piece to the end of its last, whatever cut in and
// whatever the thread waited for. They are kept as spans are, so that whatever lists spans lists them.

import { firstInLane, firstInRow } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 */

/** Whole calls as spans: the first piece of each and its last; how long its thread was in it on a CPU, the call's own time. @typedef {{store: Store, first: Uint32Array, last: Uint32Array, own: Float64Array}} Calls */

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

/**
 * Puts the pieces of each call together. A call continues until a piece returns, or the thread does something else: runs
 * its own code or another call; a fault, until it does anything but that.
 * @param {Store} store
 * @returns {Calls}
 */
export function wholeCalls(store) {
  const { n, start, dur, kind, pid, pids, event, arg, ret } = store;
  const first = new Uint32Array(store.counts.kind[Kind.SYSCALL] + store.counts.kind[Kind.TRAP]);
  const last = new Uint32Array(first.length);
  const own = new Float64Array(first.length);
  /** The call and the fault that each thread is in, -1 for none. */
  const [inCall, inFault] = [new Int32Array(pids.length).fill(-1), new Int32Array(pids.length).fill(-1)];
  let count = 0;
  /** Adds a piece to what is open, or to a new one; which. @param {number} open @param {number} i */
  const add = (open, i) => {
    const one = open >= 0 && event[first[open]] === event[i] && arg[first[open]] === arg[i] ? open : count++;
    if (one !== open) first[one] = i;
    last[one] = i;
    own[one] += dur[i];
    return one;
  };
  for (let i = 0; i < n; i++) {
    const thread = pid[i];
    switch (kind[i]) {
      case Kind.USER:
        inCall[thread] = inFault[thread] = -1;
        break;
      case Kind.SYSCALL: {
        const one = add(inCall[thread], i);
        inCall[thread] = ret[i] === 0 ? one : -1;
        inFault[thread] = -1;
        break;
      }
      case Kind.TRAP:
        inFault[thread] = add(inFault[thread], i);
        break;
    }
  }
  const firsts = first.slice(0, count);
  const lasts = last.slice(0, count);
  const starts = taken(start, firsts);
  const durs = new Float64Array(count);
  for (let call = 0; call < count; call++) durs[call] = start[lasts[call]] + dur[lasts[call]] - starts[call];
  const kinds = taken(kind, firsts);
  return {
    first: firsts, last: lasts, own: own.slice(0, count),
    store: {
      ...store, n: count, start: starts, dur: durs,
      cpu: taken(store.cpu, firsts), pid: taken(pid, firsts), rpc: taken(store.rpc, firsts), event: taken(event, firsts), arg: taken(arg, firsts),
      ret: taken(ret, lasts), ipc: new Uint8Array(count), name: taken(store.name, firsts), kind: kinds,
      kinds: new Set(kinds),
    },
  };
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
