// SPDX-License-Identifier: BSD-3-Clause
// Starting points for a user who knows nothing of a trace: its extremes, found in one pass on request.

import { recorderThreads } from "./recorder.js";
import { EVENT, Kind } from "./tables.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 */

/** Number of parts of the trace from which the busiest is chosen. */
const MOMENTS = 40;
/** Maximum number of requests to name. */
export const REQUESTS_MAX = 3;

/** A stretch of time, and the span at its start. @typedef {{i: number, from: number, to: number}} Stretch */

/**
 * Extremes of a trace: for each reason, the longest wait of a thread that runs user code, longest first; the longest
 * system call, from the start of its first piece to the end of its last; the longest requests; the longest time that
 * a CPU stood still, and how often CPUs did. The recorder's own waits and calls are left out.
 * @typedef {{waits: Stretch[], call: Stretch | null, requests: Stretch[], stall: Stretch | null, stalls: number}} Extremes
 */

/** @param {Stretch | null | undefined} best @param {number} from @param {number} to */
const isLonger = (best, from, to) => !best || to - from > best.to - best.from;

/** @param {Store} store @param {Calls} calls @returns {Extremes} */
export function extremesOf(store, calls) {
  const { n, start, dur, kind, pid, pids, event, events, rpc } = store;
  const runs = new Uint8Array(pids.length);
  const recorder = recorderThreads(store);
  for (let i = 0; i < n; i++) if (kind[i] === Kind.USER && pids[pid[i]] > 0 && recorder[pid[i]] === 0) runs[pid[i]] = 1;
  /** The requests in progress, by number. @type {Map<number, number>} */
  const served = new Map();
  /** The longest wait, by event. @type {Map<number, Stretch>} */
  const waits = new Map();
  /** @type {Extremes} */
  const found = { waits: [], call: null, requests: [], stall: null, stalls: 0 };
  for (let i = 0; i < n; i++) {
    const from = start[i];
    const to = from + dur[i];
    const thread = pid[i];
    switch (kind[i]) {
      case Kind.WAIT:
        if (runs[thread] && isLonger(waits.get(event[i]), from, to)) waits.set(event[i], { i, from, to });
        break;
      case Kind.STALLED:
        found.stalls++;
        if (isLonger(found.stall, from, to)) found.stall = { i, from, to };
        break;
      case Kind.RPC: {
        const id = rpc[i] & 0xffff;
        const begun = served.get(id);
        if (events[event[i]] === EVENT.RPC_REQUEST) served.set(id, i);
        else if (events[event[i]] === EVENT.RPC_RESPONSE && begun !== undefined) {
          served.delete(id);
          rankRequest(found.requests, { i: begun, from: start[begun], to: from });
        }
        break;
      }
    }
  }
  const { store: whole, first } = calls;
  for (let k = 0; k < whole.n; k++) {
    const from = whole.start[k];
    if (whole.kind[k] === Kind.SYSCALL && recorder[whole.pid[k]] === 0 && isLonger(found.call, from, from + whole.dur[k])) found.call = { i: first[k], from, to: from + whole.dur[k] };
  }
  found.waits = [...waits.values()].sort((a, b) => b.to - b.from - (a.to - a.from));
  return found;
}

/** Inserts a request among the longest, if it is one of them. @param {Stretch[]} requests @param {Stretch} request */
function rankRequest(requests, request) {
  let at = requests.length;
  while (at > 0 && isLonger(requests[at - 1], request.from, request.to)) at--;
  requests.splice(at, 0, request);
  requests.length = Math.min(requests.length, REQUESTS_MAX);
}

/**
 * The busiest run of columns that is a fortieth of the trace long.
 * @param {Float64Array} user parts of all CPUs' time, by column of the trace
 * @param {Float64Array} kernel
 * @returns {{from: number, to: number, part: number} | null} the range of columns, and the busy part of their time; null if nothing ran
 */
export function busiestOf(user, kernel) {
  const width = Math.max(Math.round(user.length / MOMENTS), 1);
  const sums = new Float64Array(user.length + 1);
  for (let k = 0; k < user.length; k++) sums[k + 1] = sums[k] + user[k] + kernel[k];
  let [at, max] = [-1, 0];
  for (let k = 0; k + width <= user.length; k++) {
    if (sums[k + width] - sums[k] <= max) continue;
    at = k;
    max = sums[k + width] - sums[k];
  }
  return at < 0 ? null : { from: at, to: at + width, part: max / width };
}
