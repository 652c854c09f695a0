// SPDX-License-Identifier: BSD-3-Clause
// System calls, faults, interrupts and bottom halves as wholes: each from the start of its first piece to the end of its last, regardless
// of interruptions and waits in between. Wholes are stored like spans, so any code that lists spans can list them. `link` records which
// call a piece continues: see sink/page/links.rs.

import { countersOf } from "./counters.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/** True for kinds whose spans are pieces of a whole. @param {number} kind */
export const isPiece = (kind) => kind >= Kind.SYSCALL && kind <= Kind.BH;

/**
 * Whole calls as spans. `of` has for each span the number of its call plus one, 0 for none. By call: its first and last
 * piece, its own time (on a CPU itself), and the counters over that time, as in `Durations`.
 * @typedef {{store: Store, of: Uint32Array, first: Uint32Array, last: Uint32Array, own: Float64Array, work: Float64Array, misses: Float64Array}} Calls
 */

/**
 * Copies the values at the given places, by element width in bytes. A single loop over arrays of all types would be many
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

/** The values of a column at the given places. @param {any} column @param {Uint32Array} ids */
function taken(column, ids) {
  const out = new column.constructor(ids.length);
  const width = column.BYTES_PER_ELEMENT;
  const bitsOf = (/** @type {any} */ array) => new BITS[width](array.buffer, array.byteOffset, array.length);
  COPIES[width](bitsOf(out), bitsOf(column), ids);
  return out;
}

/** Spans processed before the caller may pause: some ms. */
const TOGETHER = 1 << 19;

/** All calls, in one go. @param {Store} store @returns {Calls} */
export function wholeCalls(store) {
  const parts = callsInParts(store);
  for (;;) {
    const { done, value } = parts.next();
    if (done) return value;
  }
}

/** Recent interrupts of a CPU that a piece may continue, as in span/whole.rs. */
const INTERRUPTS_MAX = 16;

/**
 * Puts the pieces of each call together, in steps of some ms.
 * @param {Store} store
 * @returns {Generator<undefined, Calls>}
 */
export function* callsInParts(store) {
  const { n, start, dur, cpu, cpus, kind, pid, pids, event, arg, ret, ipc, link, counts } = store;
  const { paces, misses: missesOf } = countersOf(store);
  const kinds = [Kind.SYSCALL, Kind.TRAP, Kind.IRQ, Kind.BH].filter((k) => counts.kind[k] > 0);
  const pieces = kinds.reduce((sum, k) => sum + counts.kind[k], 0);
  const [first, last] = [new Uint32Array(pieces), new Uint32Array(pieces)];
  const of = new Uint32Array(n);
  const own = new Float64Array(pieces);
  const [work, misses] = [paces, missesOf].map((steps) => new Float64Array(steps ? pieces : 0));
  // The call that began last on each row: for a thread, its system calls and its faults; for a CPU, those of its idle loop, and its bottom halves.
  const ofThreads = 2 * pids.length;
  const began = new Int32Array(ofThreads + 3 * cpus.length).fill(-1);
  const isThread = pids.map((number) => number > 0);
  const interrupts = new Int32Array(cpus.length * INTERRUPTS_MAX).fill(-1);
  const interruptsOf = new Uint32Array(cpus.length);
  let count = 0;
  for (let i = 0; i < n; i++) {
    if (i % TOGETHER === TOGETHER - 1) yield;
    const k = kind[i];
    if (!isPiece(k)) continue;
    let one = -1;
    if (k === Kind.IRQ) {
      const row = cpu[i] * INTERRUPTS_MAX;
      if (link[i] > 0) one = interrupts[row + (interruptsOf[cpu[i]] - link[i]) % INTERRUPTS_MAX];
      else interrupts[row + interruptsOf[cpu[i]]++ % INTERRUPTS_MAX] = count;
    } else {
      const row = k === Kind.BH ? ofThreads + 3 * cpu[i] + 2 : (isThread[pid[i]] ? 2 * pid[i] : ofThreads + 3 * cpu[i]) + (k === Kind.TRAP ? 1 : 0);
      if (link[i] > 0) one = began[row];
      else began[row] = count;
    }
    if (one < 0) first[one = count++] = i;
    last[one] = i;
    of[i] = one + 1;
    own[one] += dur[i];
    if (paces) work[one] += dur[i] * paces[ipc[i] & 15];
    if (missesOf) misses[one] += missesOf[ipc[i] & 15];
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
  // The same type as the durations of spans, if they fit, keeps loops over both fast.
  const durs = dur instanceof Uint32Array && longest < 2 ** 32 ? new Uint32Array(lengths) : lengths;
  yield;
  return {
    of, first: firsts, last: lasts, own: own.subarray(0, count), work: work.subarray(0, count), misses: misses.subarray(0, count),
    store: {
      ...store, n: count, start: starts, dur: durs,
      cpu: taken(store.cpu, firsts), pid: taken(pid, firsts), rpc: taken(store.rpc, firsts), event: taken(event, firsts), arg: taken(arg, firsts),
      ret: taken(ret, lasts), ipc: new Uint8Array(count), name: taken(store.name, firsts), link: new Uint8Array(count), kind: taken(kind, firsts),
      kinds: new Set(kinds),
    },
  };
}

/** The length of each span; for a piece, that of its call. @param {Store} store @param {Calls} calls @returns {Column} */
export function lengthsOf({ n, dur, kind }, { of, store: { dur: whole } }) {
  const fit = dur instanceof Float64Array || whole instanceof Float64Array ? new Float64Array(n) : new Uint32Array(n);
  for (let i = 0; i < n; i++) fit[i] = isPiece(kind[i]) ? whole[of[i] - 1] : dur[i];
  return fit;
}

/** The spans, with the first piece of each call standing for the whole: it has the call's length and returned value. @param {Store} store @param {Calls} calls @param {Column} lengths @returns {Store} */
export function withWholes(store, { first, store: whole }, lengths) {
  const ret = store.ret.slice();
  for (let call = 0; call < whole.n; call++) ret[first[call]] = whole.ret[call];
  return { ...store, dur: lengths, ret };
}

/** Receives a thing: one of its spans, its length, and the number of its call, -1 if none. @typedef {(i: number, length: number, call: number) => void} Taker */

/**
 * Reports each thing among some spans: a call, fault or interrupt once, as a whole, regardless of how many of its pieces are among them.
 * @param {Store} store
 * @param {() => Calls} whole returns all calls; not called if none of the spans is a piece
 * @param {Uint32Array} ids
 * @param {Taker} take
 */
export function eachThing({ kind, dur }, whole, ids, take) {
  /** @type {Calls | null} */
  let all = null;
  let told = new Uint8Array(0);
  for (let k = 0; k < ids.length; k++) {
    const i = ids[k];
    if (!isPiece(kind[i])) {
      take(i, dur[i], -1);
      continue;
    }
    if (!all) {
      all = whole();
      told = new Uint8Array(all.store.n);
    }
    const one = all.of[i] - 1;
    if (told[one] === 1) continue;
    told[one] = 1;
    take(all.first[one], all.store.dur[one], one);
  }
}
