// SPDX-License-Identifier: BSD-3-Clause
// Values counted by a program, as a line of steps: its height is that of the value, in the range of the row's values and 0.

import { seekStart } from "../data/rows.js";
import { amountOf, rangeOfValues, VALUES } from "../data/values.js";
import { Brush } from "./brush.js";
import { FONT } from "./palette.js";
/**
 * @import {Parts} from "./brush.js"
 * @import {Group} from "../data/groups.js"
 * @import {Item, Spot} from "../view/view.js"
 */

/** Pixels of a row kept free above and below the line. */
const EDGE = 4;
/** Minimum width of a step, and height of its row, in pixels, for its value to be written next to it. */
const TEXT_MIN = 24;
const TEXT_ROW = 26;
/** Maximum number of values in one pixel, from the first on, that are examined for the smallest and the largest. */
const PIXEL_MAX = 64;

export class Steps extends Brush {
  /**
   * @param {Parts} parts
   * @param {CanvasRenderingContext2D} context
   * @param {Spot[]} spots
   */
  constructor(parts, context, spots) {
    super(parts, context);
    this.spots = spots;
    /** Ranges of values by row, once drawn. @type {WeakMap<Group, {min: number, max: number}[]>} */
    this.ranges = new WeakMap();
  }

  /** Draws the line of one row. @param {Item} item */
  draw(item) {
    const { context: c } = this;
    const { view, store: { start }, focus, look: { palette } } = this;
    if (item.group.name !== VALUES) return;
    const { ids, first } = item.group.points;
    const [begin, end] = [first[item.row], first[item.row + 1]];
    const times = view.on(item);
    const yOf = this.heights(item);
    c.lineWidth = 1.5;
    // The last value before the visible time holds at its start.
    let before = -1;
    for (let k = Math.max(seekStart(start, ids, begin, end, times.t0) - 1, begin), next = k; k < end && start[ids[k]] < times.t1; k = next) {
      next = seekStart(start, ids, k + 1, end, start[ids[k]] + 0.5 / times.scale);
      const i = ids[next - 1];
      const x0 = Math.max(times.x(start[ids[k]]), -5);
      const x1 = Math.min(times.x(next < end ? start[ids[next]] : view.end), times.width + 5);
      const pixel = Array.from(ids.subarray(k, Math.min(next, k + PIXEL_MAX)), yOf);
      if (before >= 0) pixel.push(before);
      before = yOf(i);
      pixel.push(before);
      c.strokeStyle = focus.shows(i) ? this.colorOf(i) : palette.css.grey;
      c.beginPath();
      c.moveTo(x0, Math.min(...pixel));
      c.lineTo(x0, Math.max(...pixel));
      c.moveTo(x0, before);
      c.lineTo(Math.max(x1, x0), before);
      c.stroke();
      this.spots.push({ i, x0, x1: Math.max(x1, x0 + 1), y0: view.top(item), y1: view.top(item) + item.h });
      if (x1 - x0 >= TEXT_MIN && item.h >= TEXT_ROW) this.text(i, item, x0, x1, before);
    }
  }

  /** Returns a function for the y position of a value of a row. @param {Item} item @returns {(i: number) => number} */
  heights(item) {
    const { view, store } = this;
    const { group, row, h } = item;
    const ranges = this.ranges.get(group) ?? [];
    this.ranges.set(group, ranges);
    const { min, max } = (ranges[row] ??= rangeOfValues(store, group, row));
    const bottom = view.top(item) + h - EDGE;
    const scale = (h - 2 * EDGE) / (max - min || 1);
    return (i) => bottom - (amountOf(store, i) - min) * scale;
  }

  /** Writes a value next to its step: above it, or below if there is no room. @param {number} i @param {Item} item @param {number} x0 @param {number} x1 @param {number} y */
  text(i, item, x0, x1, y) {
    const { context: c } = this;
    const { view, lettering, look: { palette } } = this;
    c.font = `10px ${FONT}`;
    const x = Math.max(x0, 0) + 4;
    const shown = lettering.fit(String(amountOf(this.store, i)), x1 - x - 4, 10);
    if (shown === "") return;
    c.fillStyle = palette.ink(this.colorOf(i));
    c.fillText(shown, x, y - 8 < view.top(item) + 5 ? y + 8 : y - 7);
  }

  /** The colour of a value, by name. @param {number} i */
  colorOf(i) {
    const { users } = this.look.palette.css;
    return users[this.store.name[i] % users.length];
  }
}
