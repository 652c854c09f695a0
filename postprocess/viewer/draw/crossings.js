// SPDX-License-Identifier: BSD-3-Clause
// Draws packets from one machine to another: a sloped line from the CPU that sent it to the one that received it.

import { crossings } from "../data/crossings.js";
import { Kind } from "../data/tables.js";
import { TX_COLOR } from "./messages.js";
/**
 * @import {Crossed} from "../data/crossings.js"
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {View} from "../view/view.js"
 * @import {Look} from "./look.js"
 */

/** Maximum number of packets drawn; more would be a grey area. Beyond `CLEAR` they become transparent, no less opaque than `FAINTEST`. */
const MOST = 200;
const CLEAR = 100;
const FAINTEST = 0.3;
/** If a trace has more packets than this, those between machines are searched for after the page has opened. */
const AT_ONCE = 50_000;
/** The size of an arrow's head. */
const HEAD = 6;
const HEAD_ANGLE = 0.4;

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
    /** The ends of the lines drawn. @type {{x0: number, y0: number, x1: number, y1: number}[]} */
    this.drawn = [];
    /** @type {Crossed} */
    this.all = { sent: new Uint32Array(0), received: new Uint32Array(0) };
    /** The longest travel time: packets sent earlier than this before the view do not extend into it. */
    this.longest = 0;
    /** True if packets are still to be searched for. */
    this.isDue = store.counts.kind[Kind.PACKET] > AT_ONCE && (store.meta.machines ?? []).length > 0;
    if (!this.isDue) this.find();
  }

  /** Finds the packets. */
  find() {
    const { start } = this.store;
    this.isDue = false;
    this.all = crossings(this.store);
    const { sent, received } = this.all;
    this.longest = sent.reduce((longest, i, k) => Math.max(longest, start[received[k]] - start[i]), 0);
  }

  draw() {
    const { context: c, all: { sent, received }, cpus, view, focus, store: { start }, look: { palette } } = this;
    this.drawn = [];
    if (sent.length === 0 || !view.itemsOf.has(cpus)) return;
    const first = firstFrom(sent, (k) => start[sent[k]] >= view.t0 - this.longest);
    const end = firstFrom(sent, (k) => start[sent[k]] > view.t1);
    const step = Math.max(Math.ceil((end - first) / MOST), 1);
    c.lineWidth = 1.2;
    c.globalAlpha = Math.min(Math.max(CLEAR / Math.max((end - first) / step, 1), FAINTEST), 1);
    for (let k = first; k < end; k += step) {
      if (start[received[k]] < view.t0) continue;
      const from = view.placeOrStandIn(cpus, cpus.rowOf(sent[k]));
      const to = view.placeOrStandIn(cpus, cpus.rowOf(received[k]));
      if (!from || !to || from === to) continue;
      const line = { x0: view.x(start[sent[k]]), y0: view.middle(from), x1: view.x(start[received[k]]), y1: view.middle(to) };
      this.drawn.push(line);
      c.strokeStyle = c.fillStyle = focus.shows(sent[k]) ? TX_COLOR : palette.css.grey;
      this.arrow(line);
    }
    c.globalAlpha = 1;
  }

  /** Draws one arrow: a single path of hundreds of crossing lines would take twice as long. @param {{x0: number, y0: number, x1: number, y1: number}} line */
  arrow({ x0, y0, x1, y1 }) {
    const { context: c } = this;
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    c.stroke();
    const angle = Math.atan2(y1 - y0, x1 - x0);
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x1 - HEAD * Math.cos(angle - HEAD_ANGLE), y1 - HEAD * Math.sin(angle - HEAD_ANGLE));
    c.lineTo(x1 - HEAD * Math.cos(angle + HEAD_ANGLE), y1 - HEAD * Math.sin(angle + HEAD_ANGLE));
    c.fill();
  }
}

/** The first place that fulfils a monotonic condition. @param {{length: number}} list @param {(k: number) => boolean} holds */
function firstFrom({ length }, holds) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
