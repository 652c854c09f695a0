// SPDX-License-Identifier: BSD-3-Clause
// Time that the host took from a CPU, as far as the CPU itself knows when: hatching over its activity at that time.

import { firstInLane } from "../data/rows.js";
import { HEAT_MAX } from "../view/view.js";
import { Brush } from "./brush.js";
/**
 * @import {Item, Spot} from "../view/view.js"
 * @import {Parts} from "./brush.js"
 * @import {Curves} from "./curves.js"
 */

/** Half the height of the hatching, as a part of a row's body: less than that of user code, so that the span underneath is visible above and below. */
const STOLEN_PART = 0.18;

export class Steals extends Brush {
  /** @param {Parts} parts @param {CanvasRenderingContext2D} context @param {Curves} curves @param {Spot[]} spots */
  constructor(parts, context, curves, spots) {
    super(parts, context);
    this.curves = curves;
    this.spots = spots;
  }

  /** Draws the stolen times of one row; of several in one pixel, only the first. @param {Item} item */
  draw(item) {
    const { store, view, focus, look: { palette } } = this;
    const { steals } = item.group;
    // A row of a map has room for execution only.
    if (steals.ids.length === 0 || item.h < HEAT_MAX) return;
    const times = view.on(item);
    const h = view.bodyHeight(item) * STOLEN_PART * 2;
    const y = view.middle(item) - h / 2;
    let drawn = -1;
    for (let k = firstInLane(steals, item.row, times.t0); k < steals.first[item.row + 1]; k++) {
      const i = steals.ids[k];
      if (store.start[i] >= times.t1) break;
      const x = times.x(store.start[i]);
      const end = times.x(store.start[i] + store.dur[i]);
      if (end <= drawn) continue;
      const w = Math.max(end - x, 1);
      drawn = x + w;
      const color = focus.shows(i) ? palette.css.stalled : palette.css.grey;
      this.context.fillStyle = `${color}b0`;
      this.context.fillRect(x, y, w, h);
      this.curves.hatch(x, y, w, h, focus.shows(i) ? palette.css.cexit : palette.css.dim, 5, 1.2);
      this.spots.push({ i, x0: x - 1, x1: x + w + 1, y0: y, y1: y + h });
    }
  }

  /** True if there is any between two positions on a row. @param {Item} item @param {number} x0 @param {number} x1 */
  isBetween(item, x0, x1) {
    const { store, view } = this;
    const { steals } = item.group;
    const times = view.on(item);
    const k = firstInLane(steals, item.row, times.time(x0));
    return k < steals.first[item.row + 1] && times.x(store.start[steals.ids[k]]) < x1;
  }
}
