// SPDX-License-Identifier: BSD-3-Clause
// The picture: the composed lines of every visible row, copied to the pixels that they fill. A row's execution is
// around the middle of its body; samples are above it, the frequency is below. A row that is too low for that
// has the colour of what runs, from edge to edge.

import { HEAT_MAX, INNER_PART, MARKS_HEIGHT, OUTER_PART } from "../view/view.js";
import { RowLines } from "./compose.js";
import { Strips } from "./strips.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {Axis} from "../view/axis.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Layers} from "./layers.js"
 * @import {Look} from "./look.js"
 */

/** Start and end of the stripes in the outer and in the inner zone. */
const OUTER_STRIPE = Object.freeze([0.32, 0.37]);
const INNER_STRIPE = Object.freeze([0.19, 0.23]);
/** Half the height in CSS pixels that names need: stripes stay outside of it. */
const NAME_HALF = 6;
/** Half heights in CSS pixels. */
const CORE_HALF = 2;
const LINE_HALF = 1;

export class Picture {
  /** Device pixels per CSS pixel. */
  ratio = 1;
  w = 1;
  h = 1;
  image = new ImageData(1, 1);
  pixels = new Uint32Array(1);
  /** Lines of an empty row of either background. */
  backLine = new Uint32Array(1);
  rowLine = new Uint32Array(1);

  /**
   * @param {{store: Store, view: View, focus: Focus, layers: Layers, look: Look}} parts
   * @param {HTMLCanvasElement} canvas
   */
  constructor({ store, view, focus, layers, look }, canvas) {
    this.view = view;
    this.look = look;
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.lines = new RowLines({ store, view, focus, look });
    this.strips = new Strips({ store, view, focus, layers, look });
  }

  /**
   * @param {number} width in CSS pixels
   * @param {number} height
   * @param {number} ratio device pixels per CSS pixel
   */
  resize(width, height, ratio) {
    this.ratio = ratio;
    this.w = Math.max(Math.round(width * ratio), 1);
    this.h = Math.max(Math.round(height * ratio), 1);
    this.canvas.width = this.w;
    this.canvas.height = this.h;
    this.image = this.context.createImageData(this.w, this.h);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.backLine = new Uint32Array(this.w);
    this.rowLine = new Uint32Array(this.w);
    this.lines.resize(this.w, ratio);
    this.strips.resize(this.w, ratio);
  }

  /** @param {Axis} axis */
  draw(axis) {
    const { view } = this;
    this.lines.begin();
    this.strips.begin();
    this.startLines(axis);
    for (let y = 0; y < this.h; y++) this.pixels.set(this.backLine, y * this.w);
    for (const item of view.seen()) {
      if (item.row < 0) continue;
      const empty = item.even ? this.rowLine : this.backLine;
      this.lines.compose(item, empty);
      this.copyZones(item, empty);
      this.strips.copy(item, empty, this.pixels, this.h);
    }
    this.context.putImageData(this.image, 0, 0);
  }

  /** Fills the lines of an empty row, with the grid. @param {Axis} axis */
  startLines(axis) {
    const { look, look: { palette }, view } = this;
    this.backLine.fill(palette.back);
    this.rowLine.fill(palette.row);
    if (look.parts.grid === "no") return;
    for (const { time } of axis.ticks) {
      const x = Math.round(view.x(time) * this.ratio);
      if (x >= 0 && x < this.w) this.backLine[x] = this.rowLine[x] = palette.grid;
    }
  }

  /**
   * Copies the composed lines to the zones of a row.
   * @param {Item} item
   * @param {Uint32Array} empty
   */
  copyZones(item, empty) {
    const { view } = this;
    const { ratio, lines } = this;
    const h = view.bodyHeight(item) * ratio;
    const middle = Math.round(view.middle(item) * ratio);
    const y0 = view.top(item) * ratio;
    const from = Math.max(Math.round(y0), Math.round(MARKS_HEIGHT * ratio));
    const to = Math.min(Math.round(y0 + item.h * ratio), Math.round((MARKS_HEIGHT + view.rowsSeen) * ratio));
    const last = Math.round(y0 + item.h * ratio) - Math.max(Math.round(ratio), 1);
    // Round, so that stripes are whole pixels high, wherever the row is.
    const [outerFrom, outerTo] = OUTER_STRIPE.map((part) => Math.round(part * h));
    const [innerFrom, innerTo] = INNER_STRIPE.map((part) => Math.round(part * h));
    const narrow = innerFrom < NAME_HALF * ratio;
    if (item.h < HEAT_MAX) {
      // Only execution, and a gap if there is room for one.
      const end = item.h > 3 ? Math.min(to, last) : to;
      for (let y = from; y < end; y++) this.pixels.set(lines.inner, y * this.w);
      for (let y = end; y < to; y++) this.pixels.set(empty, y * this.w);
      return;
    }
    for (let y = from; y < to; y++) {
      const away = Math.abs(y + 0.5 - middle);
      const line = away <= LINE_HALF * ratio ? lines.line
        : away <= CORE_HALF * ratio ? lines.core
        : away > innerFrom && away < innerTo && !narrow ? lines.innerStripe
        : away <= INNER_PART * h ? lines.inner
        : away > outerFrom && away < outerTo ? lines.outerStripe
        : away <= OUTER_PART * h ? lines.outer
        : y >= last ? lines.dots : empty;
      this.pixels.set(line, y * this.w);
    }
  }
}
