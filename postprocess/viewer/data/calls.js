// SPDX-License-Identifier: BSD-3-Clause
// System calls and faults as wholes: each from the start of its first piece to the end of its last, whatever cut in and
// whatever the thread waited for. They are kept as spans are, so that whatever lists spans lists them.

import { Kind } from "./tables.js";
/** @import {Store} from "./decode.js" */

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
