// SPDX-License-Identifier: BSD-3-Clause
// Spans as things: system calls, faults, interrupts and bottom halves count as wholes, regardless of how many of their pieces are among
// the spans, anything else by itself. Counts them, adds up their time, and finds the part of both that starts in a range of time.

import { isPiece } from "./calls.js";
import { seekStart } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 */

/** Durations added up per block, as a power of two. */
const SUM_BITS = 8;
const SUM_MASK = (1 << SUM_BITS) - 1;

/** Spans or calls in order of time. */
class Timed {
  /** @param {Store} store @param {Uint32Array} ids */
  constructor({ start, dur }, ids) {
    this.start = start;
    this.dur = dur;
    this.ids = ids;
    this.shortest = Infinity;
    this.longest = 0;
    this.total = 0;
    /** The total time of all items before each block. */
    this.sums = new Float64Array((ids.length >>> SUM_BITS) + 1);
    for (let k = 0; k < ids.length; k++) {
      const d = dur[ids[k]];
      if ((k & SUM_MASK) === 0) this.sums[k >>> SUM_BITS] = this.total;
      this.total += d;
      if (d < this.shortest) this.shortest = d;
      if (d > this.longest) this.longest = d;
    }
    if ((ids.length & SUM_MASK) === 0) this.sums[ids.length >>> SUM_BITS] = this.total;
  }

  /** The total time of the first `count` items. @param {number} count */
  timeOf(count) {
    let sum = this.sums[count >>> SUM_BITS];
    for (let k = (count >>> SUM_BITS) << SUM_BITS; k < count; k++) sum += this.dur[this.ids[k]];
    return sum;
  }

  /** The count and time of the items that start in a range. @param {number} t0 @param {number} t1 */
  startingIn(t0, t1) {
    const { ids, start } = this;
    const from = seekStart(start, ids, 0, ids.length, t0);
    const to = seekStart(start, ids, from, ids.length, t1);
    return { count: to - from, time: this.timeOf(to) - this.timeOf(from) };
  }
}

export class Things {
  /**
   * @param {Store} store
   * @param {() => Calls} whole returns all calls; not called if none of the spans is a piece
   * @param {Uint32Array} ids in order of time
   */
  constructor(store, whole, ids) {
    const { kind } = store;
    let others = 0;
    for (let k = 0; k < ids.length; k++) others += isPiece(kind[ids[k]]) ? 0 : 1;
    /** The number of spans that are pieces. */
    this.pieces = ids.length - others;
    const calls = this.pieces > 0 ? whole() : null;
    /** By call, 1 if any piece of it is among the spans. */
    this.found = new Uint8Array(calls?.store.n ?? 0);
    const alone = this.pieces > 0 ? new Uint32Array(others) : ids;
    if (calls) {
      const { of } = calls;
      let at = 0;
      for (let k = 0; k < ids.length; k++) {
        if (isPiece(kind[ids[k]])) this.found[of[ids[k]] - 1] = 1;
        else alone[at++] = ids[k];
      }
    }
    let wholes = 0;
    for (let call = 0; call < this.found.length; call++) wholes += this.found[call];
    const numbers = new Uint32Array(wholes);
    /** The numbers of interrupts and of bottom halves among the calls, and the time of all calls on a CPU. */
    this.interrupts = this.halves = this.own = 0;
    if (calls) for (let call = 0, at = 0; call < this.found.length; call++) {
      if (this.found[call] === 0) continue;
      numbers[at++] = call;
      this.own += calls.own[call];
      if (calls.store.kind[call] === Kind.IRQ) this.interrupts++;
      if (calls.store.kind[call] === Kind.BH) this.halves++;
    }
    /** The number of system calls and faults. */
    this.calls = wholes - this.interrupts - this.halves;
    this.parts = [new Timed(store, alone), new Timed(calls?.store ?? store, numbers)];
  }

  get count() {
    return this.parts[0].ids.length + this.parts[1].ids.length;
  }

  get total() {
    return this.parts[0].total + this.parts[1].total;
  }

  get shortest() {
    return Math.min(this.parts[0].shortest, this.parts[1].shortest);
  }

  get longest() {
    return Math.max(this.parts[0].longest, this.parts[1].longest);
  }

  /** The count and total time of the things that start in a range. @param {number} t0 @param {number} t1 */
  startingIn(t0, t1) {
    const [one, other] = this.parts.map((part) => part.startingIn(t0, t1));
    return { count: one.count + other.count, time: one.time + other.time };
  }
}
