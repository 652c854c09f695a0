// SPDX-License-Identifier: BSD-3-Clause
// The reason of a wait, as a column by which spans and whole calls are grouped and filtered: a wait has its own reason, a call that of its
// longest wait.

import { WAIT_A } from "./kind.js";
import { Kind } from "./tables.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 */

/** A reason for each letter, and none. */
export const REASONS_MAX = 27;

/** The reasons, by call. @type {WeakMap<Calls, Uint8Array>} */
const REASONS = new WeakMap();

/** The place of a wait's letter in the alphabet plus one. @param {Store} store @param {number} i */
const reasonOfWait = ({ event, events }, i) => events[event[i]] - WAIT_A + 1;

/** The call or fault that each thread is in, and the longest wait of each since the last piece. */
class Inside {
  /** @param {number} threads @param {Uint8Array} reasons by call, to be filled in */
  constructor(threads, reasons) {
    this.reasons = reasons;
    this.longest = new Float64Array(reasons.length);
    /** By thread, the number of the call it is in plus one, 0 for none. */
    this.call = new Uint32Array(threads);
    this.reason = new Uint8Array(threads);
    this.waited = new Float64Array(threads);
  }

  /** @param {number} thread @param {number} reason @param {number} time */
  wait(thread, reason, time) {
    if (this.call[thread] === 0 || time <= this.waited[thread]) return;
    this.reason[thread] = reason;
    this.waited[thread] = time;
  }

  /** A thread continues in a call: its wait since the last piece belongs to that call, if it is the same. @param {number} thread @param {number} call 0 for none */
  enter(thread, call) {
    const waited = this.waited[thread];
    if (call > 0 && call === this.call[thread] && waited > this.longest[call - 1]) {
      this.longest[call - 1] = waited;
      this.reasons[call - 1] = this.reason[thread];
    }
    this.call[thread] = call;
    this.waited[thread] = 0;
  }
}

/** The reasons of calls, and of faults in them: a wait belongs to both. @param {Store} store @param {Calls} calls */
function reasonsOfCalls(store, calls) {
  const known = REASONS.get(calls);
  if (known) return known;
  const { n, kind, pid, pids, dur } = store;
  const reasons = new Uint8Array(calls.store.n);
  const [inCall, inFault] = [new Inside(pids.length, reasons), new Inside(pids.length, reasons)];
  for (let i = 0; i < n; i++) {
    const k = kind[i];
    if (k === Kind.USER || k === Kind.SYSCALL) inCall.enter(pid[i], calls.of[i]);
    if (k === Kind.USER || k === Kind.SYSCALL || k === Kind.TRAP) inFault.enter(pid[i], k === Kind.TRAP ? calls.of[i] : 0);
    if (k !== Kind.WAIT) continue;
    inCall.wait(pid[i], reasonOfWait(store, i), dur[i]);
    inFault.wait(pid[i], reasonOfWait(store, i), dur[i]);
  }
  REASONS.set(calls, reasons);
  return reasons;
}

/**
 * The reasons of the listed items: of calls, or of spans with calls among them by their first pieces; 0 for none.
 * @param {Store} spans
 * @param {Calls | null} calls
 * @param {Calls | null} beside
 */
export function reasonsOf(spans, calls, beside) {
  if (calls) return reasonsOfCalls(spans, calls);
  const { n, kind } = spans;
  const reasons = new Uint8Array(n);
  for (let i = 0; i < n; i++) if (kind[i] === Kind.WAIT) reasons[i] = reasonOfWait(spans, i);
  if (beside) reasonsOfCalls(spans, beside).forEach((reason, call) => (reasons[beside.first[call]] = reason));
  return reasons;
}
