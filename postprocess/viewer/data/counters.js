// SPDX-License-Identifier: BSD-3-Clause
// Counters over a span: its code is the step of one counter, or two bits each of two counters.

import { FLAG } from "./tables.js";
/** @import {Store} from "./decode.js" */

/** Steps of the IPC code: instructions per cycle, in words. */
const IPC_TEXT = Object.freeze([
  "0", "1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8", "1", "1.25", "1.5", "1.75", "2", "2.5", "3", "3.5+",
]);

/** Steps of the LLC code: last-level cache misses, in words. */
const LLC_TEXT = Object.freeze([
  "0", "1+", "8+", "16+", "32+", "64+", "128+", "256+", "512+", "1024+", "2048+", "4096+", "8192+", "16384+", "32768+",
  "65536+",
]);

/** The steps of both counters when they share a code, two bits each. */
const IPC_PAIR = Object.freeze(["0", "1/2", "1", "2"]);
const LLC_PAIR = Object.freeze(["0", "8", "64", "512"]);
/** Sixteenths of an instruction per cycle, by code: the middle of each step, as in postprocess/src/why/path.rs. */
const SIXTEENTHS = Object.freeze([1, 3, 5, 7, 9, 11, 13, 15, 18, 22, 26, 30, 36, 44, 52, 60]);

/**
 * The counters of a span, by the flags of the trace, as pairs of name and value. Two counters share one code, two
 * bits each.
 * @param {Store} store
 * @param {number} i
 * @returns {[string, string][]}
 */
export function counterTexts(store, i) {
  const code = store.ipc[i] & 15;
  switch (store.meta.flags & FLAG.COUNTERS) {
    case FLAG.IPC: return [["IPC", IPC_TEXT[code]]];
    case FLAG.LLC: return [["LLC misses", LLC_TEXT[code]]];
    case FLAG.COUNTERS: return [["IPC", `${IPC_PAIR[code >> 2]}+`], ["LLC misses", `${LLC_PAIR[code & 3]}+`]];
    default: return [];
  }
}

/**
 * The amount that each code of a trace adds to sums, null for a counter it does not have: sixteenths of an instruction per cycle,
 * and misses of the last-level cache. Misses are lower bounds, and so are instructions if both were counted.
 * @param {Store} store
 */
export function countersOf({ meta: { flags } }) {
  const codes = [...SIXTEENTHS.keys()];
  const isPair = (flags & FLAG.COUNTERS) === FLAG.COUNTERS;
  return {
    isPair,
    paces: (flags & FLAG.IPC) === 0 ? null : isPair ? codes.map((code) => [0, 8, 16, 32][code >> 2]) : SIXTEENTHS,
    misses: (flags & FLAG.LLC) === 0 ? null : codes.map((code) => parseInt(isPair ? LLC_PAIR[code & 3] : LLC_TEXT[code], 10)),
  };
}
