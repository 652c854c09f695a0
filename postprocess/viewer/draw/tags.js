// SPDX-License-Identifier: BSD-3-Clause
// Names above spans that have no room for them inside: for each thread where it first runs in the visible range, or for all spans,
// one per pixel, as long as they do not cover each other.

import { callText } from "../data/format.js";
import { isAbsent, isIdle } from "../data/kind.js";
import { firstInRow, seekStart } from "../data/rows.js";
import { Kind } from "../data/tables.js";
import { Summary } from "../data/tree.js";
import { wordOf } from "../data/words.js";
import { INNER_PART } from "../view/view.js";
import { NAME_ROOM } from "./compose.js";
import { FONT } from "./palette.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Layers} from "./layers.js"
 * @import {Lettering} from "./lettering.js"
 * @import {Look} from "./look.js"
 */

const TAG_SIZE = 10;
/** Pixels from one line of tags to the next, and maximum number of lines on a row. */
const TAG_LINE = 11;
const TAG_LINES = 3;

export class Tags {
  /**
   * @param {{store: Store, view: View, focus: Focus, layers: Layers, look: Look, lettering: Lettering}} parts
   * @param {CanvasRenderingContext2D} context
   */
  constructor({ store, view, focus, layers, look, lettering }, context) {
    this.store = store;
    this.view = view;
    this.focus = focus;
    this.layers = layers;
    this.look = look;
    this.lettering = lettering;
    this.context = context;
    /** Spans whose tags were drawn. @type {number[]} */
    this.drawn = [];
  }

  draw() {
    const { view, layers } = this;
    this.drawn = [];
    const state = layers.stateOf("names");
    if (state === "inside") return;
    this.context.font = `${TAG_SIZE}px ${FONT}`;
    for (const item of view.seen()) {
      // On the rows of threads, the label at the left already names the thread.
      if (item.row >= 0 && (state === "all" || item.group.name !== "PID")) this.row(item, state === "all");
    }
  }

  /** @param {Item} item @param {boolean} all */
  row(item, all) {
    const { store, view } = this;
    const times = view.on(item);
    const lines = Math.min(Math.floor((view.bodyHeight(item) * (0.5 - INNER_PART) + 6) / TAG_LINE), TAG_LINES);
    const free = new Float64Array(Math.max(lines, 1)).fill(-Infinity);
    /** @type {Set<number>} */
    const named = new Set();
    for (const i of this.eachPixel(item)) {
      const kind = store.kind[i];
      if (isIdle(kind) || (!all && (kind !== Kind.USER || named.has(store.pid[i])))) continue;
      const x = Math.max(times.x(store.start[i]), 0);
      if (all && store.dur[i] * view.scale >= NAME_ROOM) continue;
      if (this.tag(i, x, item, free)) named.add(store.pid[i]);
    }
  }

  /** The visible spans of a row; of those that share a pixel, one of the kernel and one of user code. @param {Item} item */
  *eachPixel(item) {
    const { store, view } = this;
    const { exec: { ids, first }, tree } = item.group;
    const { t0, t1 } = view.on(item);
    const summary = new Summary();
    const end = first[item.row + 1];
    for (let k = firstInRow(store, item.group.exec, item.row, t0); k < end && store.start[ids[k]] < t1;) {
      const next = Math.max(k + 1, seekStart(store.start, ids, k + 1, end, store.start[ids[k]] + 1 / view.scale));
      if (next === k + 1) yield ids[k];
      else {
        tree.query(k, next, summary);
        if (summary.userSpan >= 0) yield summary.userSpan;
        if (summary.kernelSpan >= 0) yield summary.kernelSpan;
      }
      k = next;
    }
  }

  /** Draws a tag on the first free line; false if none is free. @param {number} i @param {number} x @param {Item} item @param {Float64Array} free */
  tag(i, x, item, free) {
    const { context: c } = this;
    const { store, view, look: { palette }, focus, lettering } = this;
    const line = free.findIndex((from) => from <= x);
    if (line < 0) return false;
    const text = isAbsent(store.kind[i]) ? wordOf(store.names[store.name[i]]) : callText(store, i);
    const width = lettering.widthOf(text, TAG_SIZE);
    const left = Math.min(x, view.width - width - 4);
    free[line] = left + width + 8;
    const y = view.bodyTop(item) + 1 + line * TAG_LINE;
    c.fillStyle = focus.shows(i) ? palette.color(store, i) : palette.css.grey;
    c.fillRect(x, y, 1, view.middle(item) - y);
    c.globalAlpha = 0.85;
    c.fillStyle = palette.css.back;
    c.fillRect(left + 1, y, width + 4, TAG_LINE - 1);
    c.globalAlpha = 1;
    c.fillStyle = focus.shows(i) ? palette.css.text : palette.css.dim;
    c.fillText(text, left + 3, y + (TAG_LINE - 1) / 2 + 0.5);
    this.drawn.push(i);
    return true;
  }
}
