// SPDX-License-Identifier: BSD-3-Clause
// Finds those of many overlapping spans that are long enough to be seen, from the latest end and the greatest duration of
// blocks of 8, 64, 512 ... of them.
//
// Without this index, one span that lasts for the whole trace would make every frame examine all spans after it.

import { FAN, FAN_BITS } from "./tree.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Lane} from "./rows.js"
 */

export class IntervalIndex {
  /** @param {Store} store @param {Lane} lane */
  constructor(store, lane) {
    this.store = store;
    this.ids = lane.ids;
    /** @type {{end: Float64Array, dur: Float64Array}[]} */
    this.levels = [];
    const { start, dur } = store;
    for (let count = Math.ceil(lane.ids.length / FAN); count > 0; count = Math.ceil(count / FAN)) {
      const below = this.levels.at(-1);
      const level = { end: new Float64Array(count).fill(-Infinity), dur: new Float64Array(count).fill(-Infinity) };
      const n = below ? below.end.length : lane.ids.length;
      for (let k = 0; k < n; k++) {
        const i = lane.ids[k];
        const block = k >>> FAN_BITS;
        level.end[block] = Math.max(level.end[block], below ? below.end[k] : start[i] + dur[i]);
        level.dur[block] = Math.max(level.dur[block], below ? below.dur[k] : dur[i]);
      }
      this.levels.push(level);
      if (count === 1) break;
    }
  }

  /**
   * Positions from `from` to `to` (exclusive) of spans that last at least `min` and end after `time`, in order.
   * @param {number} from
   * @param {number} to
   * @param {number} time
   * @param {number} min
   * @returns {number[]}
   */
  find(from, to, time, min) {
    /** @type {number[]} */
    const found = [];
    const { start, dur } = this.store;
    const visit = (/** @type {number} */ level, /** @type {number} */ first, /** @type {number} */ last) => {
      for (let k = first; k < last; k++) {
        if (level === 0) {
          const i = this.ids[k];
          if (dur[i] >= min && start[i] + dur[i] > time) found.push(k);
          continue;
        }
        const { end, dur: longest } = this.levels[level - 1];
        if (longest[k] < min || end[k] <= time) continue;
        const shift = level * FAN_BITS;
        const below = (level - 1) * FAN_BITS;
        const low = Math.max(k << shift, from) >>> below;
        const high = Math.ceil(Math.min((k + 1) << shift, to) / 2 ** below);
        visit(level - 1, low, high);
      }
    };
    const top = this.levels.length;
    if (from < to) visit(top, from >>> (top * FAN_BITS), Math.ceil(to / 2 ** (top * FAN_BITS)));
    return found;
  }
}
