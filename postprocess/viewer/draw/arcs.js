// SPDX-License-Identifier: BSD-3-Clause
// Arcs between rows: from the waker or sender to the thread or CPU that was woken or interrupted.

import { IntervalIndex } from "../data/intervals.js";
import { seekStart } from "../data/rows.js";
import { OUTER_PART } from "../view/view.js";
/**
 * @import {Step} from "../data/chain.js"
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {Lane} from "../data/rows.js"
 * @import {Item, Spot, View} from "../view/view.js"
 * @import {Look} from "./look.js"
 */

/** An arc drawn, from end to end, and the control point of its curve. @typedef {Spot & {cx: number, cy: number}} Arc */

/** Arcs narrower than this are skipped; of the others, at most this many are drawn, the longest. */
const ARC_MIN = 6;
const ARC_MAX = 250;

/** CSS pixels to either side of the picture in which arcs are still drawn. */
const ROOM_BESIDE = 16;

export class Arcs {
  /**
   * @param {{store: Store, groups: Group[], view: View, focus: Focus, look: Look}} parts
   * @param {Lane[]} lanes
   * @param {CanvasRenderingContext2D} context
   */
  constructor({ store, groups, view, focus, look }, lanes, context) {
    this.store = store;
    this.groups = groups;
    this.view = view;
    this.focus = focus;
    this.look = look;
    this.context = context;
    /** Arcs drawn. @type {Arc[]} */
    this.drawn = [];
    this.intervals = new Map(lanes.map((lane) => [lane, new IntervalIndex(store, lane)]));
  }

  /**
   * The longest arcs that intersect the view, at most ARC_MAX.
   * @param {Lane} lane
   */
  longest(lane) {
    const { store, view } = this;
    const { dur } = store;
    const end = seekStart(store.start, lane.ids, 0, lane.ids.length, view.t1);
    /** @type {number[]} */
    let found = [];
    for (let min = view.width; found.length < ARC_MAX && min > ARC_MIN / 2; min /= 2) {
      const wide = Math.max(min, ARC_MIN) / view.scale;
      found = this.intervals.get(lane)?.find(0, end, view.t0, wide).map((k) => lane.ids[k]) ?? [];
    }
    if (found.length > ARC_MAX) found.sort((a, b) => dur[b] - dur[a]).length = ARC_MAX;
    return found;
  }

  /**
   * Draws arcs of one sort, in all groups whose rows they connect.
   * @param {Lane} lane
   * @param {Group[]} groups
   * @param {string} color
   * @param {boolean} dashed
   */
  draw(lane, groups, color, dashed) {
    const { context: c } = this;
    const { view, focus, look: { palette } } = this;
    const found = this.longest(lane);
    for (const group of groups) {
      if (!view.itemsOf.has(group)) continue;
      for (const i of found) {
        const from = view.placeOf(group, group.rowOf(i));
        const to = view.placeOf(group, group.targetRow(i));
        c.fillStyle = focus.shows(i) ? color : palette.css.grey;
        if (to) this.arc(i, from ?? to, to, dashed);
      }
    }
  }

  /**
   * Draws the wakeups of a chain and, between two of them, the time from the woken thread's start until it wakes the next.
   * @param {Step[]} chain latest wakeup first
   */
  drawChain(chain) {
    const { context: c } = this;
    const { store, view, groups, look: { palette } } = this;
    c.fillStyle = palette.css.chain;
    for (const group of groups) {
      if (!view.itemsOf.has(group)) continue;
      chain.forEach(({ arc }, step) => {
        const from = view.placeOf(group, group.rowOf(arc));
        const to = view.placeOf(group, group.targetRow(arc));
        if (to) this.arc(arc, from ?? to, to, false, (item) => this.below(item));
        const before = chain[step + 1]?.arc;
        const ran = before === undefined ? undefined : view.placeOf(group, group.targetRow(before));
        if (!from || !ran) return;
        c.beginPath();
        c.moveTo(view.x(store.start[before] + store.dur[before]), this.below(ran));
        c.lineTo(view.x(store.start[arc]), this.below(from));
        for (const [width, color] of /** @type {[number, string][]} */ ([[6, palette.css.back], [3, palette.css.chain]])) {
          c.lineWidth = width;
          c.strokeStyle = color;
          c.stroke();
        }
      });
    }
  }

  /** The height of a chain's path on a row: below its spans, whose names stay legible. @param {Item} item */
  below(item) {
    const { view } = this;
    return view.middle(item) + view.bodyHeight(item) * OUTER_PART + 1;
  }

  /**
   * Draws one arc in the fill colour, with an outline that sets it off.
   * @param {number} i
   * @param {Item} from
   * @param {Item} to
   * @param {boolean} dashed
   * @param {(item: Item) => number} [heightOf] height of its ends on a row, the middle by default
   */
  arc(i, from, to, dashed, heightOf = (item) => this.view.middle(item)) {
    const { context: c } = this;
    const { store, view } = this;
    const x0 = view.x(store.start[i]);
    const x1 = view.x(store.start[i] + store.dur[i]);
    const y0 = heightOf(from);
    const y1 = heightOf(to);
    const same = y0 === y1;
    const cx = same ? (x0 + x1) / 2 : x1;
    const cy = same ? y0 - from.h * 0.9 : y0;
    // Draw the visible part only: dashes cost time by their number, even outside the canvas.
    const along = (/** @type {number} */ x) => {
      const part = x1 > x0 ? Math.min(Math.max((x - x0) / (x1 - x0), 0), 1) : Number(x > x0);
      return same ? part : 1 - Math.sqrt(1 - part);
    };
    const [s, t] = [along(-ROOM_BESIDE), along(view.width + ROOM_BESIDE)];
    c.beginPath();
    c.moveTo(blossom(s, s, x0, cx, x1), blossom(s, s, y0, cy, y1));
    c.quadraticCurveTo(blossom(s, t, x0, cx, x1), blossom(s, t, y0, cy, y1), blossom(t, t, x0, cx, x1), blossom(t, t, y0, cy, y1));
    c.setLineDash([]);
    c.strokeStyle = this.look.palette.css.back;
    c.lineWidth = 3;
    c.globalAlpha = 0.75;
    c.stroke();
    c.globalAlpha = 1;
    c.setLineDash(dashed ? [4, 3] : []);
    c.strokeStyle = c.fillStyle;
    c.lineWidth = 1.5;
    c.stroke();
    const angle = Math.atan2(y1 - cy, x1 - cx);
    c.setLineDash([]);
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x1 - 6 * Math.cos(angle - 0.4), y1 - 6 * Math.sin(angle - 0.4));
    c.lineTo(x1 - 6 * Math.cos(angle + 0.4), y1 - 6 * Math.sin(angle + 0.4));
    c.fill();
    this.drawn.push({ i, x0, y0, x1, y1, cx, cy });
  }
}

/**
 * A coordinate of a quadratic curve's point or, if `s` and `t` differ, of the control point of its part from one
 * to the other.
 * @param {number} s @param {number} t @param {number} p0 @param {number} p1 @param {number} p2
 */
const blossom = (s, t, p0, p1, p2) => (1 - s) * (1 - t) * p0 + ((1 - s) * t + s * (1 - t)) * p1 + s * t * p2;

/** True if a point is within 4 pixels of an arc, taken as straight pieces. @param {Arc} arc @param {number} x @param {number} y */
export function nearArc({ x0, y0, x1, y1, cx, cy }, x, y) {
  if (x < x0 - 4 || x > x1 + 4) return false;
  let [fromX, fromY] = [x0, y0];
  for (let step = 1; step <= 24; step++) {
    const t = step / 24;
    const [toX, toY] = [blossom(t, t, x0, cx, x1), blossom(t, t, y0, cy, y1)];
    const length = Math.hypot(toX - fromX, toY - fromY);
    const along = length > 0 ? Math.min(Math.max(((x - fromX) * (toX - fromX) + (y - fromY) * (toY - fromY)) / length ** 2, 0), 1) : 0;
    if (Math.hypot(fromX + along * (toX - fromX) - x, fromY + along * (toY - fromY) - y) <= 4) return true;
    [fromX, fromY] = [toX, toY];
  }
  return false;
}
