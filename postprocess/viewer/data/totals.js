// SPDX-License-Identifier: BSD-3-Clause
// Totals of a range of time: time by name, CPU and thread, and the longest spans; of all spans, or of those found by the search.
//
// A span that extends beyond an end of the range counts with its part inside. Execution is taken from the rows of the
// CPUs and waits from those of the threads, so the cost is that of the spans in the range, regardless of the length of the trace.

import { isPiece } from "./calls.js";
import { isAbsent, isIdle, isKernel, staysOnCpu } from "./kind.js";
import { firstInLane, firstInRow, runsIn } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 * @import {Index} from "./rows.js"
 */

/** Maximum number of rows of each table. */
const TOTALS_MAX = 20;

/**
 * Time by activity, units of 10 ns, and how often: spans count singly, but calls, faults, interrupts and bottom halves as wholes; `whole` is how long these were in progress in the range, and for others the time they took; `key` is a name's index, a CPU, or a thread.
 * @typedef {{key: number, count: number, user: number, kernel: number, idle: number, stalled: number, absent: number, wait: number, whole: number}} Sum
 */

/** One of the longest: a span, or a call, fault or interrupt as a whole, number `k` in the store `of`; `i` is the span to go to, `inside` the part of its length within the range. @typedef {{of: Store, k: number, i: number, inside: number, length: number}} Long */

/** @param {Sum} sum */
export const allTime = (sum) => sum.user + sum.kernel + sum.idle + sum.stalled + sum.absent + sum.wait;

/** The sum that a span counts in: absent is time when a CPU was offline, or of which nothing is known. @param {number} kind */
function partOf(kind) {
  if (kind === Kind.WAIT) return "wait";
  if (isIdle(kind)) return "idle";
  if (isKernel(kind)) return "kernel";
  return kind === Kind.STALLED ? "stalled" : isAbsent(kind) ? "absent" : "user";
}

export class Totals {
  /** @type {Map<number, Sum>} */
  names = new Map();
  /** @type {Map<number, Sum>} */
  cpus = new Map();
  /** @type {Map<number, Sum>} */
  threads = new Map();
  /** Names of the calls, faults, interrupts and bottom halves of which pieces are in the range. @type {Set<number>} */
  pieces = new Set();
  /** Waits by the name of their reason. @type {Map<number, Sum>} */
  waits = new Map();
  /** The longest execution, longest first. @type {Long[]} */
  longest = [];
  /** The longest waits. @type {Long[]} */
  longestWaits = [];

  /**
   * @param {Store} store
   * @param {Group[]} groups
   * @param {{shows: (i: number) => boolean, finds: (call: number) => boolean, calls: Calls}} search
   * @param {number} from
   * @param {number} to
   * @param {(i: number) => boolean} leavesOut true for what counts for its CPU alone
   */
  constructor(store, [cpus, threads], search, from, to, leavesOut = () => false) {
    this.store = store;
    this.search = search;
    this.leavesOut = leavesOut;
    this.from = from;
    this.to = to;
    cpus.keys.forEach((_, row) => this.addRow(cpus.exec, row, firstInRow(store, cpus.exec, row, from)));
    threads.keys.forEach((_, row) => this.addRow(threads.waits, row, firstInLane(threads.waits, row, from)));
    if (this.pieces.size > 0) this.addCalls(search.calls, threads);
  }

  /** Counts the calls of which pieces were found, and ranks those that ran in the range. @param {Calls} calls @param {Group} threads */
  addCalls({ store, first }, threads) {
    const { n, start, dur, name, kind } = store;
    const { names, pieces, search, from, to } = this;
    for (const key of pieces) Object.assign(/** @type {Sum} */ (names.get(key)), { count: 0, whole: 0 });
    for (let call = 0; call < n && start[call] < to; call++) {
      if (start[call] + dur[call] <= from || !pieces.has(name[call]) || !search.finds(call) || this.leavesOut(first[call])) continue;
      const sum = /** @type {Sum} */ (names.get(name[call]));
      sum.count++;
      sum.whole += this.inside(store, call);
      const begunOrEnded = start[call] >= from || start[call] + dur[call] <= to;
      // An interrupt or bottom half never leaves its CPU, so it is in progress throughout the range except while interrupted itself.
      if (begunOrEnded || staysOnCpu(kind[call]) || runsIn(this.store, threads.exec, threads.rowOf(first[call]), from, to)) this.rank(this.longest, store, call, first[call]);
    }
  }

  /** @param {Index} index @param {number} row @param {number} first position of the first span that can reach the range */
  addRow(index, row, first) {
    const { start, dur } = this.store;
    for (let k = first; k < index.first[row + 1] && start[index.ids[k]] < this.to; k++) {
      const i = index.ids[k];
      if (start[i] + dur[i] > this.from && this.search.shows(i)) this.add(i);
    }
  }

  /** @param {number} i */
  add(i) {
    const { kind, name, cpu, cpus, pid, pids } = this.store;
    const time = this.inside(this.store, i);
    const part = partOf(kind[i]);
    if (part !== "wait") this.count(this.cpus, cpus[cpu[i]], part, time);
    if (this.leavesOut(i)) return;
    this.count(part === "wait" ? this.waits : this.names, name[i], part, time);
    if (isPiece(kind[i])) this.pieces.add(name[i]);
    if (part !== "idle" && pids[pid[i]] > 0) this.count(this.threads, pids[pid[i]], part, time);
    if (part !== "idle" && !isPiece(kind[i])) this.rank(part === "wait" ? this.longestWaits : this.longest, this.store, i, i);
  }

  /** The part of a span's or call's time within the range. @param {Store} of @param {number} k */
  inside({ start, dur }, k) {
    return Math.min(start[k] + dur[k], this.to) - Math.max(start[k], this.from);
  }

  /** Inserts a span or call among those with most time within the range, if it is one of them. @param {Long[]} longest @param {Store} of @param {number} k @param {number} i */
  rank(longest, of, k, i) {
    const inside = this.inside(of, k);
    let at = longest.length;
    while (at > 0 && longest[at - 1].inside < inside) at--;
    if (at === TOTALS_MAX) return;
    longest.splice(at, 0, { of, k, i, inside, length: of.dur[k] });
    if (longest.length > TOTALS_MAX) longest.pop();
  }

  /** @param {Map<number, Sum>} sums @param {number} key @param {ReturnType<typeof partOf>} part @param {number} time */
  count(sums, key, part, time) {
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { key, count: 0, user: 0, kernel: 0, idle: 0, stalled: 0, absent: 0, wait: 0, whole: 0 }));
    sum.count++;
    sum[part] += time;
    sum.whole += time;
  }
}

/** The sums with most time, largest first. @param {Map<number, Sum>} sums */
export const mostTime = (sums) => [...sums.values()].sort((a, b) => allTime(b) - allTime(a)).slice(0, TOTALS_MAX);
