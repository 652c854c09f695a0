// SPDX-License-Identifier: BSD-3-Clause
// The network: messages of RPCs as sloped lines, from the wire at the top of the row down to the machine and back up,
// as long as their bytes take on the link; individual packets as ticks.

import { shownName } from "../data/format.js";
import { RX_EVENTS } from "../data/kind.js";
import { firstInLane, seekStart } from "../data/rows.js";
import { Kind } from "../data/tables.js";
import { Brush } from "./brush.js";
import { FONT } from "./palette.js";
/**
 * @import {Parts} from "./brush.js"
 * @import {Item, Spot} from "../view/view.js"
 */

/** Colours of incoming and outgoing traffic, visible on light and dark ground. */
export const RX_COLOR = "#e2483d";
export const TX_COLOR = "#1ba3b8";

export class Messages extends Brush {
  /**
   * @param {Parts} parts
   * @param {CanvasRenderingContext2D} context
   * @param {Spot[]} spots
   */
  constructor(parts, context, spots) {
    super(parts, context);
    this.spots = spots;
  }

  /** Draws the network traffic on one row. @param {Item} item */
  draw(item) {
    const { context: c } = this;
    const { store, view, focus, look: { palette } } = this;
    const { start, dur, kind, events, event } = store;
    const { messages } = item.group;
    const times = view.on(item);
    const end = messages.first[item.row + 1];
    let free = -Infinity;
    c.lineCap = "round";
    for (let k = firstInLane(messages, item.row, times.t0), next = k; k < end; k = next) {
      const i = messages.ids[k];
      if (start[i] >= times.t1) break;
      const x0 = times.x(start[i]);
      const x1 = times.x(start[i] + dur[i]);
      next = x1 - x0 >= 1 ? k + 1 : Math.max(k + 1, seekStart(start, messages.ids, k + 1, end, start[i] + 1 / view.scale));
      const incoming = RX_EVENTS.includes(events[event[i]]);
      c.strokeStyle = focus.shows(i) ? (incoming ? RX_COLOR : TX_COLOR) : palette.css.grey;
      if (kind[i] === Kind.MESSAGE) {
        this.message(i, item, x0, x1, incoming);
        if (x0 >= free) free = this.name(i, item, x0, x1, incoming);
      } else this.packet(i, item, x0, incoming);
    }
    c.lineCap = "butt";
  }

  /** @param {number} i @param {Item} item @param {number} x0 @param {number} x1 @param {boolean} incoming */
  message(i, item, x0, x1, incoming) {
    const { context: c } = this;
    const top = this.view.top(item) + 3;
    const bottom = top + item.h - 6;
    const [from, to] = incoming ? [top, bottom] : [bottom, top];
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(x0, from);
    c.lineTo(x1, to);
    c.stroke();
    const angle = Math.atan2(to - from, x1 - x0);
    c.fillStyle = c.strokeStyle;
    c.beginPath();
    c.moveTo(x1, to);
    c.lineTo(x1 - 7 * Math.cos(angle - 0.4), to - 7 * Math.sin(angle - 0.4));
    c.lineTo(x1 - 7 * Math.cos(angle + 0.4), to - 7 * Math.sin(angle + 0.4));
    c.fill();
    this.spots.push({ i, x0: x0 - 3, x1: x1 + 3, y0: top, y1: bottom });
  }

  /**
   * Draws a message's name on the free side of its line: above an incoming message, below an outgoing one. Returns the
   * position from which the next name has room.
   * @param {number} i
   * @param {Item} item
   * @param {number} x0
   * @param {number} x1
   * @param {boolean} incoming
   */
  name(i, item, x0, x1, incoming) {
    const { context: c } = this;
    const { store, view, look: { palette }, lettering, focus } = this;
    if (item.h < 18 || item.group.name !== "NET") return -Infinity;
    c.font = `10px ${FONT}`;
    const text = shownName(store.names[store.name[i]]);
    const x = Math.max(x0 + (x1 - x0) * Math.min(12 / item.h, 1), 0) + 6;
    c.fillStyle = focus.shows(i) ? palette.css.text : palette.css.dim;
    c.fillText(text, x, incoming ? view.top(item) + 7 : view.top(item) + item.h - 7);
    return x + 6 + lettering.widthOf(text, 410);
  }

  /** @param {number} i @param {Item} item @param {number} x @param {boolean} incoming */
  packet(i, item, x, incoming) {
    const { context: c } = this;
    const { view } = this;
    const y0 = incoming ? view.top(item) + item.h - 9 : view.top(item) + item.h * 0.55;
    c.lineWidth = 1.2;
    c.beginPath();
    c.moveTo(x, y0);
    c.lineTo(x, y0 + 7);
    c.stroke();
    this.spots.push({ i, x0: x - 2, x1: x + 2, y0: y0 - 1, y1: y0 + 8 });
  }
}
