// SPDX-License-Identifier: BSD-3-Clause
// Targets of wakeups and of interrupts to other CPUs, as columns by which spans are searched, grouped and sorted; made on
// first use.

import { valueOf, wokenBy } from "./format.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/** By span, the place of its target in `numbers`, the first of which is -1 for none. @typedef {{column: Column, numbers: number[]}} Targets */

/** @type {WeakMap<Store, Targets>} */
const THREADS = new WeakMap();
/** @type {WeakMap<Store, Targets>} */
const CPUS = new WeakMap();

/** The threads that spans wake. @param {Store} store @returns {Targets} */
export const targetThreads = (store) => targetsOf(store, THREADS, (i) => (store.kind[i] === Kind.WAKEUP ? wokenBy(store, i) : -1));

/** The CPUs that wakeups and interrupts are sent to. @param {Store} store @returns {Targets} */
export const targetCpus = (store) => targetsOf(store, CPUS, (i) => (store.kind[i] === Kind.WAKEUP || store.kind[i] === Kind.IPI ? valueOf(store.arg[i]) ?? -1 : -1));

/** @param {Store} store @param {WeakMap<Store, Targets>} made @param {(i: number) => number} targetOf @returns {Targets} */
function targetsOf(store, made, targetOf) {
  const before = made.get(store);
  if (before) return before;
  const { n, kind } = store;
  const numbers = [-1];
  const places = new Map([[-1, 0]]);
  let column = /** @type {Column} */ (new Uint16Array(n));
  for (let i = 0; i < n; i++) {
    if (kind[i] !== Kind.WAKEUP && kind[i] !== Kind.IPI) continue;
    const target = targetOf(i);
    let place = places.get(target);
    if (place === undefined) {
      places.set(target, (place = numbers.push(target) - 1));
      if (place === 1 << 16) column = new Uint32Array(column);
    }
    column[i] = place;
  }
  const targets = { column, numbers };
  made.set(store, targets);
  return targets;
}
