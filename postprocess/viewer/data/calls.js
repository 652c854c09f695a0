// SPDX-License-Identifier: BSD-3-Clause
// System calls, faults, interrupts and bottom halves as wholes: each from the start of its first piece to the end of its last, whatever
// cut in and whatever the thread waited for. They are kept as spans are, so that whatever lists spans lists them. Which piece continues
// which call, `link` says: sink/page/links.rs.

import { countersOf } from "./counters.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/** Kinds of spans that are pieces of a whole. @param {number} kind */
export const isPiece = (kind) => kind >= Kind.SYSCALL && kind <= Kind.BH;

/**
 * Whole calls as spans: by span, one more than the number of the call that it is a piece of, 0 for none; the first piece of
 * each and its last; how long it ran on a CPU itself, the call's own time; what was counted meanwhile, as `Durations` has it.
 * @typedef {{store: Store, of: Uint32Array, first: Uint32Array, last: Uint32Array, own: Float64Array, work: Float64Array, misses: Float64Array}} Calls
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

/** Interrupts of a CPU that a piece may continue one of, as span/whole.rs has it. */
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
  // The call that began last of each row: of a thread its calls and its faults; of a CPU those of its idle loop, its bottom halves.
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
  // As durations of spans are kept, if they fit: loops over both stay fast.
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

/** How long each span is, of pieces their call. @param {Store} store @param {Calls} calls @returns {Column} */
export function lengthsOf({ n, dur, kind }, { of, store: { dur: whole } }) {
  const fit = dur instanceof Float64Array || whole instanceof Float64Array ? new Float64Array(n) : new Uint32Array(n);
  for (let i = 0; i < n; i++) fit[i] = isPiece(kind[i]) ? whole[of[i] - 1] : dur[i];
  return fit;
}

/** Spans of which the first piece of each call stands for all of it: its length, and what it returned. @param {Store} store @param {Calls} calls @param {Column} lengths @returns {Store} */
export function withWholes(store, { first, store: whole }, lengths) {
  const ret = store.ret.slice();
  for (let call = 0; call < whole.n; call++) ret[first[call]] = whole.ret[call];
  return { ...store, dur: lengths, ret };
}

/** What is told of a thing: one of its spans, its length, and which call it is, -1 if none. @typedef {(i: number, length: number, call: number) => void} Taker */

/**
 * Tells of each thing that some spans are: of a call, fault or interrupt once, as a whole, however many pieces of it are among them.
 * @param {Store} store
 * @param {() => Calls} whole all calls, which are not asked for if there is no piece of one
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
