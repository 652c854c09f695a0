// SPDX-License-Identifier: BSD-3-Clause
// Numbers the distinct texts of spans, so that a pattern is tried on each once: like names, whole calls such as
// `read(3)=EAGAIN` get numbers, once the search box is used.

import { counterTexts } from "./counters.js";
import { callText } from "./format.js";
import { isExecution, SYSCALL32 } from "./kind.js";
import { Kind, KIND_NAMES } from "./tables.js";
/** @import {Store} from "./decode.js" */

/** Maximum length of the beginning of a name or a text that a pattern is tried on. */
export const TEXT_MAX = 128;
/** Kinds whose text is more than their name; all execution may have counters in addition. */
const CALL_KINDS = new Set(/** @type {number[]} */ ([Kind.SYSCALL, Kind.FREQ, Kind.MESSAGE, Kind.LOST, Kind.TRAP, Kind.IRQ, Kind.BH, Kind.POINT]));
/** Spans numbered together; the table grows only between such blocks. */
const TEXTS_BLOCK = 1 << 12;

export class Texts {
  /** @param {Store} store @param {boolean} counters true if counters are part of the text */
  constructor(store, counters) {
    this.store = store;
    this.counters = counters;
    /** A span of each text. @type {number[]} */
    this.spans = [];
    /** By span, the number of its text. @type {Uint16Array | Uint32Array} */
    this.of = new Uint16Array(store.n);
    /** The count of spans that have their number. */
    this.count = 0;
    /** The number of each name that is a text by itself, -1 before it is met. */
    this.plain = new Int32Array(store.names.length).fill(-1);
    /**
     * A hash table of the components of texts, with places from `slotOf`: name, kind and counters in one, argument, returned
     * value, then the number; -1 if the slot is free.
     */
    this.slots = new Float64Array(16 * TEXTS_BLOCK).fill(-1);
  }

  /** Numbers the texts of the first spans. @param {number} count */
  number(count) {
    while (this.count < count) {
      const max = this.spans.length + TEXTS_BLOCK;
      if (max > 1 << 16 && this.of instanceof Uint16Array) this.of = new Uint32Array(this.of);
      if (8 * max > this.slots.length) this.slots = withTwiceTheRoom(this.slots);
      const to = Math.min(this.count + TEXTS_BLOCK, count);
      this.numberBlock(this.count, to);
      this.count = to;
    }
    if (count === this.store.n) this.slots = new Float64Array(0);
  }

  /** The text that a pattern is tried on. @param {number} i a span */
  text(i) {
    const { store, counters } = this;
    const call = callText(store, i).slice(0, TEXT_MAX);
    if (!counters || !isExecution(store.kind[i])) return call;
    return `${call} ${counterTexts(store, i).map(([what, value]) => `${what.slice(0, 3).toLowerCase()}=${value}`).join(" ")}`;
  }

  /** @param {number} from @param {number} to */
  numberBlock(from, to) {
    const { store: { kind, name, arg, ret, ipc, event, events }, counters, spans, of, plain, slots } = this;
    const isCall = Uint8Array.from(KIND_NAMES, (_, k) => (CALL_KINDS.has(k) || (counters && isExecution(k)) ? 1 : 0));
    const mask = slots.length / 4 - 1;
    for (let i = from; i < to; i++) {
      const which = name[i];
      if (isCall[kind[i]] === 0) {
        if (plain[which] < 0) plain[which] = spans.push(i) - 1;
        of[i] = plain[which];
        continue;
      }
      // Calls of 32-bit programs show returned addresses differently.
      const which32 = 2 * which + (events[event[i]] >= SYSCALL32 ? 1 : 0);
      const sort = (which32 * 32 + kind[i]) * 16 + (counters ? ipc[i] & 15 : 0);
      let at = slotOf(sort, arg[i], ret[i]) & mask;
      while (slots[4 * at] !== sort || slots[4 * at + 1] !== arg[i] || slots[4 * at + 2] !== ret[i]) {
        if (slots[4 * at] >= 0) {
          at = (at + 1) & mask;
          continue;
        }
        slots[4 * at] = sort;
        slots[4 * at + 1] = arg[i];
        slots[4 * at + 2] = ret[i];
        slots[4 * at + 3] = spans.push(i) - 1;
      }
      of[i] = slots[4 * at + 3];
    }
  }
}

/** The place in the table where the search for a text begins. @param {number} sort @param {number} arg @param {number} ret */
function slotOf(sort, arg, ret) {
  const mixed = Math.imul(sort, 0x9e3779b1) ^ Math.imul(arg, 0x85ebca6b) ^ Math.imul(ret, 0xc2b2ae35);
  return mixed ^ (mixed >>> 15);
}

/** A table of twice the size with the same texts. @param {Float64Array} slots */
function withTwiceTheRoom(slots) {
  const larger = new Float64Array(2 * slots.length).fill(-1);
  const mask = larger.length / 4 - 1;
  for (let from = 0; from < slots.length; from += 4) {
    if (slots[from] < 0) continue;
    let at = slotOf(slots[from], slots[from + 1], slots[from + 2]) & mask;
    while (larger[4 * at] >= 0) at = (at + 1) & mask;
    larger.set(slots.subarray(from, from + 4), 4 * at);
  }
  return larger;
}
