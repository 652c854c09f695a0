// SPDX-License-Identifier: BSD-3-Clause
// The whole call, fault or interrupt around one of its pieces, found on its row alone: whoever selects a span does not wait
// until all calls of a long trace are put together.

import { Interrupts, isPiece } from "./calls.js";
import { firstInLane, firstInRow } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 * @import {Exec} from "./rows.js"
 */

/** Spans of a row that are looked at on either side of one. */
const AROUND_MAX = 100_000;

/**
 * A call, fault or interrupt from its start to its end: its pieces; the time it ran on a CPU itself; by their names, the time of what
 * cut in, and of what it waited for.
 * @typedef {{pieces: number[], from: number, to: number, own: number, cut: Map<number, number>, waits: Map<number, number>}} Call
 */

/** Adds to the time of a name. @param {Map<number, number>} sums @param {number} name @param {number} time */
const addTime = (sums, name, time) => sums.set(name, (sums.get(name) ?? 0) + time);

/**
 * The whole that a span is a piece of, as `wholeCalls` puts it together; null if it is not a piece of one, or if too much was done in it.
 * @param {Store} store
 * @param {readonly Group[]} groups of CPUs and of threads
 * @param {number} i
 */
export function wholeAround(store, [cpus, threads], i) {
  if (!isPiece(store.kind[i])) return null;
  return store.kind[i] === Kind.IRQ ? interruptAround(store, cpus, i) : callAround(store, threads, i);
}

/** Where on its row a span of execution lies; -1 if on none. @param {Store} store @param {Exec} exec @param {number} row @param {number} i */
function placeOn(store, exec, row, i) {
  const { start } = store;
  const { ids, first } = exec;
  if (row < 0) return -1;
  let at = firstInRow(store, exec, row, start[i]);
  while (at < first[row + 1] && ids[at] !== i && start[ids[at]] <= start[i]) at++;
  return ids[at] === i ? at : -1;
}

/** @param {Store} store @param {number[]} pieces @param {Map<number, number>} cut @param {Map<number, number>} [waits] @returns {Call} */
function callOf({ start, dur }, pieces, cut, waits = new Map()) {
  pieces.sort((a, b) => a - b);
  const end = pieces[pieces.length - 1];
  return { pieces, from: start[pieces[0]], to: start[end] + dur[end], own: pieces.reduce((sum, piece) => sum + dur[piece], 0), cut, waits };
}

/**
 * The whole call or fault.
 * @param {Store} store
 * @param {Group} threads
 * @param {number} i
 * @returns {Call | null}
 */
export function callAround(store, threads, i) {
  const { dur, kind, event, arg, ret, name } = store;
  const row = threads.rowOf(i);
  const { ids, first } = threads.exec;
  const at = kind[i] === Kind.SYSCALL || kind[i] === Kind.TRAP ? placeOn(store, threads.exec, row, i) : -1;
  if (at < 0) return null;
  const pieces = [i];
  const cut = new Map();
  for (const by of [-1, 1]) {
    /** What cuts in counts once another piece follows. @type {number[]} */
    const between = [];
    for (let k = at, last = i; ;) {
      if (by > 0 && kind[i] === Kind.SYSCALL && ret[last] !== 0) break;
      k += by;
      if (k < first[row] || k >= first[row + 1]) break;
      if (Math.abs(k - at) > AROUND_MAX) return null;
      const other = ids[k];
      if (kind[other] === Kind.USER || (kind[i] === Kind.TRAP && kind[other] === Kind.SYSCALL)) break;
      if (kind[other] !== kind[i]) {
        between.push(other);
        continue;
      }
      if (event[other] !== event[i] || arg[other] !== arg[i] || (by < 0 && kind[i] === Kind.SYSCALL && ret[other] !== 0)) break;
      pieces.push(other);
      last = other;
      for (const one of between.splice(0)) addTime(cut, name[one], dur[one]);
    }
  }
  const call = callOf(store, pieces, cut);
  addWaits(store, threads, row, call);
  return call;
}

/** Adds what a thread waited for in a call. @param {Store} store @param {Group} threads @param {number} row @param {Call} call */
function addWaits({ start, dur, name }, { waits }, row, { from, to, waits: sums }) {
  for (let k = firstInLane(waits, row, from); k < waits.first[row + 1]; k++) {
    const wait = waits.ids[k];
    if (start[wait] >= to) break;
    addTime(sums, name[wait], Math.min(start[wait] + dur[wait], to) - Math.max(start[wait], from));
  }
}

/**
 * The whole interrupt.
 * @param {Store} store
 * @param {Group} cpus
 * @param {number} i
 * @returns {Call | null}
 */
export function interruptAround(store, cpus, i) {
  const { start, dur, kind, event, arg, name } = store;
  const row = cpus.rowOf(i);
  const { ids, first } = cpus.exec;
  const at = kind[i] === Kind.IRQ ? placeOn(store, cpus.exec, row, i) : -1;
  if (at < 0) return null;
  const isNested = (/** @type {number} */ k) => kind[ids[k]] === Kind.IRQ || kind[ids[k]] === Kind.BH;
  let from = at;
  while (from > first[row] && isNested(from - 1)) {
    if (at - --from > AROUND_MAX) return null;
  }
  const open = new Interrupts();
  /** Of each interrupt since the CPU did anything else, its pieces. @type {number[][]} */
  const all = [];
  let wanted = -1;
  for (let k = from; k < first[row + 1] && isNested(k) && k - at <= AROUND_MAX; k++) {
    const other = ids[k];
    if (kind[other] === Kind.BH) {
      open.ran = -1;
      continue;
    }
    const resumed = open.resumed((one) => event[all[one][0]] === event[other] && arg[all[one][0]] === arg[other], other);
    const one = resumed < 0 ? all.push([]) - 1 : resumed;
    all[one].push(other);
    open.run(one);
    if (other === i) wanted = one;
  }
  const pieces = all[wanted];
  const call = callOf(store, pieces, new Map());
  for (let k = from; k < first[row + 1] && start[ids[k]] < call.to; k++) {
    if (start[ids[k]] >= call.from && !pieces.includes(ids[k])) addTime(call.cut, name[ids[k]], dur[ids[k]]);
  }
  return call;
}

/**
 * What ran on its CPU when an interrupt or a fault came, underneath other interrupts and bottom halves; -1 if that is unknown.
 * @param {Store} store
 * @param {Group} cpus
 * @param {number} i its first piece
 */
export function interruptedBy(store, cpus, i) {
  const { kind, pid } = store;
  const row = cpus.rowOf(i);
  const { ids, first } = cpus.exec;
  let at = placeOn(store, cpus.exec, row, i) - 1;
  while (at >= first[row] && (kind[ids[at]] === Kind.IRQ || kind[ids[at]] === Kind.BH)) at--;
  return at < first[row] || pid[ids[at]] !== pid[i] ? -1 : ids[at];
}
