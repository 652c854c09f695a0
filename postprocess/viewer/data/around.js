// SPDX-License-Identifier: BSD-3-Clause
// Finds the whole call, fault, interrupt or bottom half around one of its pieces from that piece's row alone, so that selecting a span
// does not wait until all calls of a long trace are put together.

import { isPiece } from "./calls.js";
import { staysOnCpu } from "./kind.js";
import { firstInLane, firstInRow } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 * @import {Exec} from "./rows.js"
 */

/** Maximum number of spans of a row to examine on either side of a span. */
const AROUND_MAX = 100_000;

/**
 * A call, fault or interrupt from its start to its end: its pieces, its own time on a CPU, and, by name, the time of what cut in
 * and of what it waited for.
 * @typedef {{pieces: number[], from: number, to: number, own: number, cut: Map<number, number>, waits: Map<number, number>}} Call
 */

/** Adds to a name's time. @param {Map<number, number>} sums @param {number} name @param {number} time */
const addTime = (sums, name, time) => sums.set(name, (sums.get(name) ?? 0) + time);

/**
 * The whole that a span is a piece of, the same as from `wholeCalls`; null if the span is not a piece, or if the whole has too many spans.
 * @param {Store} store
 * @param {readonly Group[]} groups of CPUs and of threads
 * @param {number} i
 * @returns {Call | null}
 */
export function wholeAround(store, [cpus, threads], i) {
  const { start, dur, kind, name } = store;
  if (!isPiece(kind[i])) return null;
  const group = staysOnCpu(kind[i]) || threads.rowOf(i) < 0 ? cpus : threads;
  const row = group.rowOf(i);
  const at = placeOn(store, group.exec, row, i);
  const places = at < 0 ? null : placesAround(store, group.exec, row, at);
  if (!places) return null;
  const { ids } = group.exec;
  const pieces = places.map((k) => ids[k]);
  const [from, last] = [start[pieces[0]], pieces[pieces.length - 1]];
  const call = { pieces, from, to: start[last] + dur[last], own: pieces.reduce((sum, piece) => sum + dur[piece], 0), cut: new Map(), waits: new Map() };
  for (let k = places[0], p = 0; k < places[places.length - 1]; k++) {
    if (k === places[p]) p++;
    else addTime(call.cut, name[ids[k]], dur[ids[k]]);
  }
  if (group === threads) addWaits(store, threads, row, call);
  return call;
}

/**
 * The places of a call's pieces on its row, found from one of them; null if they are too far apart.
 * @param {Store} store
 * @param {Exec} exec
 * @param {number} row
 * @param {number} at
 */
function placesAround({ kind, link }, { ids, first }, row, at) {
  const own = kind[ids[at]];
  const ends = (/** @type {number} */ k) => {
    if (staysOnCpu(own)) return !staysOnCpu(k) && k !== Kind.STALLED;
    return k <= Kind.USER || k === Kind.LOST || (own === Kind.TRAP && k === Kind.SYSCALL);
  };
  let from = at;
  for (let back = link[ids[at]]; back > 0;) {
    if (--from < first[row] || ends(kind[ids[from]])) return [at];
    if (at - from > AROUND_MAX) return null;
    if (kind[ids[from]] === own && link[ids[from]] === 0) back--;
  }
  const pieces = [];
  // Calls of this kind begun since, including this one.
  let begun = 0;
  for (let k = from; k < first[row + 1] && !ends(kind[ids[k]]); k++) {
    if (k - at > AROUND_MAX) return null;
    if (kind[ids[k]] !== own) continue;
    const back = link[ids[k]];
    if (back === 0 && ++begun > 1 && own !== Kind.IRQ) break;
    if (back === 0 ? begun === 1 : back === begun) pieces.push(k);
  }
  return pieces;
}

/** The place of a span of execution on its row; -1 if it is not on one. @param {Store} store @param {Exec} exec @param {number} row @param {number} i */
function placeOn(store, exec, row, i) {
  const { start } = store;
  const { ids, first } = exec;
  if (row < 0) return -1;
  let at = firstInRow(store, exec, row, start[i]);
  while (at < first[row + 1] && ids[at] !== i && start[ids[at]] <= start[i]) at++;
  return ids[at] === i ? at : -1;
}

/** Adds a thread's waits within a call. @param {Store} store @param {Group} threads @param {number} row @param {Call} call */
function addWaits({ start, dur, name }, { waits }, row, { from, to, waits: sums }) {
  for (let k = firstInLane(waits, row, from); k < waits.first[row + 1]; k++) {
    const wait = waits.ids[k];
    if (start[wait] >= to) break;
    addTime(sums, name[wait], Math.min(start[wait] + dur[wait], to) - Math.max(start[wait], from));
  }
}

/**
 * The span that ran on its CPU when an interrupt or a fault came, underneath other interrupts and bottom halves; -1 if unknown.
 * @param {Store} store
 * @param {Group} cpus
 * @param {number} i its first piece
 */
export function interruptedBy(store, cpus, i) {
  const { kind, pid } = store;
  const row = cpus.rowOf(i);
  const { ids, first } = cpus.exec;
  let at = placeOn(store, cpus.exec, row, i) - 1;
  while (at >= first[row] && staysOnCpu(kind[ids[at]])) at--;
  return at < first[row] || pid[ids[at]] !== pid[i] ? -1 : ids[at];
}
