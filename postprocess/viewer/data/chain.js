// SPDX-License-Identifier: BSD-3-Clause
// Why did this run only now? The chain of wakeups that led to a span, followed back in time.
//
// A thread runs because something woke it. If that was another thread, in its own code or in a system call,
// the question moves on to what had woken that thread. The chain ends at an interrupt or a bottom half, which no thread caused; at a
// thread that ran since the beginning of the trace; or after CHAIN_MAX steps. The page's data name the cause of each wakeup.

import { endsChain, isIdle } from "./kind.js";
import { firstInRow, indexByRow, rowsOfEach, seekStart } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 * @import {Lane} from "./rows.js"
 */

/** Maximum number of steps to follow. */
const CHAIN_MAX = 100;

/**
 * One wakeup: `arc` is its span, `cause` the span that caused it (-1 if the trace does not show it), `wait` what the woken
 * thread had waited for until then (-1 if the trace does not show it).
 * @typedef {{arc: number, cause: number, wait: number}} Step
 */

export class Chains {
  /** @param {Store} store @param {Group[]} groups @param {Lane} wakeups */
  constructor(store, groups, wakeups) {
    const [cpus, threads] = groups;
    this.store = store;
    this.cpus = cpus;
    this.threads = threads;
    const { ids } = wakeups;
    /** Wakeups by the thread that they wake. */
    this.arcs = indexByRow(threads.keys.length, rowsOfEach(ids.length, (k) => threads.targetRow(ids[k])), ids);
  }

  /** The wakeups that led to a span, latest first; empty if nothing woke its thread. @param {number} i */
  leadingTo(i) {
    /** @type {Step[]} */
    const steps = [];
    let arc = this.firstArc(i);
    while (arc >= 0 && steps.length < CHAIN_MAX) {
      const cause = this.causeOf(arc);
      steps.push({ arc, cause, wait: this.waitBefore(arc) });
      if (cause < 0 || endsChain(this.store.kind[cause])) break;
      arc = this.arcBefore(this.threads.rowOf(cause), this.store.start[arc]);
    }
    return steps;
  }

  /** The span itself if it is a wakeup, else the wakeup that ended it if it is a wait or idle, else the last one before it. @param {number} i */
  firstArc(i) {
    const { start, dur, kind } = this.store;
    if (kind[i] === Kind.WAKEUP) return i;
    if (isIdle(kind[i])) return this.arcAfterIdle(i);
    // A wait ends 10 ns around the wakeup; the wait for a CPU ends when the thread runs.
    const time = kind[i] === Kind.WAIT ? start[i] + dur[i] : start[i];
    const row = this.threads.rowOf(i);
    if (kind[i] !== Kind.WAIT || row < 0) return this.arcBefore(row, time);
    const { first, ids } = this.arcs;
    const k = seekStart(start, ids, first[row], first[row + 1], time - 1);
    return k < first[row + 1] && start[ids[k]] <= time + 1 ? ids[k] : this.arcBefore(row, time);
  }

  /** The wakeup of the thread that ran after a CPU was idle; -1 if the CPU went idle again after mere interrupts, or if the thread was already waiting for this CPU. @param {number} i */
  arcAfterIdle(i) {
    const { start, dur, kind } = this.store;
    const { first, ids } = this.cpus.exec;
    const row = this.cpus.rowOf(i);
    if (row < 0) return -1;
    let k = firstInRow(this.store, this.cpus.exec, row, start[i]);
    while (k < first[row + 1] && (isIdle(kind[ids[k]]) || start[ids[k]] <= start[i])) k++;
    while (k < first[row + 1] && !isIdle(kind[ids[k]]) && this.threads.rowOf(ids[k]) < 0) k++;
    if (k === first[row + 1] || isIdle(kind[ids[k]])) return -1;
    const arc = this.arcBefore(this.threads.rowOf(ids[k]), start[ids[k]]);
    return arc >= 0 && start[arc] + dur[arc] > start[i] ? arc : -1;
  }

  /** The last wakeup of a thread that took effect by `time`, or -1. @param {number} row @param {number} time */
  arcBefore(row, time) {
    if (row < 0) return -1;
    const { start, dur } = this.store;
    const { first, ids } = this.arcs;
    let k = seekStart(start, ids, first[row], first[row + 1], time) - 1;
    while (k >= first[row] && start[ids[k]] + dur[ids[k]] > time) k--;
    return k >= first[row] ? ids[k] : -1;
  }

  /** The span that caused a wakeup; -1 if unknown. @param {number} arc */
  causeOf(arc) {
    const { start, dur, link } = this.store;
    const row = this.cpus.rowOf(arc);
    if (row < 0 || link[arc] === 0) return -1;
    const { first, ids } = this.cpus.exec;
    let back = link[arc];
    for (let k = seekStart(start, ids, first[row], first[row + 1], start[arc] + 1) - 1; k >= first[row]; k--) {
      if (dur[ids[k]] > 0 && --back === 0) return ids[k];
    }
    return -1;
  }

  /** The wait of the woken thread that a wakeup ended, or -1. @param {number} arc */
  waitBefore(arc) {
    const { start, dur } = this.store;
    const { waits } = this.threads;
    const row = this.threads.targetRow(arc);
    if (row < 0) return -1;
    const k = seekStart(start, waits.ids, waits.first[row], waits.first[row + 1], start[arc]) - 1;
    if (k < waits.first[row]) return -1;
    const i = waits.ids[k];
    return Math.abs(start[i] + dur[i] - start[arc]) <= 1 ? i : -1;
  }
}
