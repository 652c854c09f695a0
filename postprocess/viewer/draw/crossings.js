// SPDX-License-Identifier: BSD-3-Clause
// Packets from one machine to another: a sloped line from the CPU that sent it to the one that received it.

import { crossings } from "../data/crossings.js";
import { TX_COLOR } from "./messages.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {View} from "../view/view.js"
 * @import {Look} from "./look.js"
 */

/** At most this many are drawn; more would be a grey area. */
const MOST = 500;

export class Crossings {
  /**
   * @param {{store: Store, groups: Group[], view: View, focus: Focus, look: Look}} parts
   * @param {CanvasRenderingContext2D} context
   */
  constructor({ store, groups, view, focus, look }, context) {
    this.store = store;
    this.cpus = groups[0];
    this.view = view;
    this.focus = focus;
    this.look = look;
    this.context = context;
    this.all = crossings(store);
    const taken = this.all.map(({ sent, received }) => store.start[received] - store.start[sent]);
    /** The longest that any took, from which on none that began before reaches into the view. */
    this.longest = taken.reduce((longest, time) => Math.max(longest, time), 0);
  }

  draw() {
    const { context: c, all, cpus, view, focus, store: { start }, look: { palette } } = this;
    if (all.length === 0 || !view.itemsOf.has(cpus)) return;
    let next = firstFrom(all, (k) => start[all[k].sent] >= view.t0 - this.longest);
    const end = firstFrom(all, (k) => start[all[k].sent] > view.t1);
    const step = Math.max(Math.ceil((end - next) / MOST), 1);
    c.lineWidth = 1.2;
    for (; next < end; next += step) {
      const { sent, received } = all[next];
      if (start[received] < view.t0) continue;
      const from = view.placeOf(cpus, cpus.rowOf(sent));
      const to = view.placeOf(cpus, cpus.rowOf(received));
      if (!from || !to) continue;
      const [x0, x1] = [view.x(start[sent]), view.x(start[received])];
      const [y0, y1] = [view.middle(from), view.middle(to)];
      c.strokeStyle = focus.shows(sent) ? TX_COLOR : palette.css.grey;
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
      const angle = Math.atan2(y1 - y0, x1 - x0);
      c.fillStyle = c.strokeStyle;
      c.beginPath();
      c.moveTo(x1, y1);
      c.lineTo(x1 - 6 * Math.cos(angle - 0.4), y1 - 6 * Math.sin(angle - 0.4));
      c.lineTo(x1 - 6 * Math.cos(angle + 0.4), y1 - 6 * Math.sin(angle + 0.4));
      c.fill();
    }
  }
}

/** The first place from which on something holds. @param {readonly unknown[]} list @param {(k: number) => boolean} holds */
function firstFrom({ length }, holds) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
