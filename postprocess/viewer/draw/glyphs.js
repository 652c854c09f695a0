// SPDX-License-Identifier: BSD-3-Clause
// The counters of a span, as a small dial at its lower left: instructions per cycle from 0 on the left to 3.5
// and more on the right, grey when slow, red when fast; and in orange the misses of the last-level cache, with a line
// below the span as long as the time they took.

import { isKernel } from "../data/kind.js";
import { FLAG } from "../data/tables.js";
import { INNER_PART, OUTER_PART } from "../view/view.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {View} from "../view/view.js"
 * @import {Drawn} from "./compose.js"
 * @import {Layers} from "./layers.js"
 */

/** Radius of a dial in CSS pixels. */
const DIAL = 7;
/** Minimum height of a span to have room for a dial next to its name. */
const DIAL_ROOM = 20;
/** Colours of needles, on the light face of a dial. */
const SLOW_COLOR = "#8a929c";
export const MIDDLE_COLOR = "#1c5fc4";
const FAST_COLOR = "#e03131";
export const MISS_COLOR = "#e8700a";
/** The approximate time of n misses in nanoseconds: the more there are, the more they overlap. @param {number} n */
const missNs = (n) => 100 * n ** 0.84;
/** The lowest codes for an IPC of a half and of two. */
const HALF_CODE = 4;
const TWO_CODE = 12;

export class Glyphs {
  /**
   * @param {{store: Store, view: View, focus: Focus, layers: Layers}} parts
   * @param {CanvasRenderingContext2D} context
   */
  constructor({ store, view, focus, layers }, context) {
    this.store = store;
    this.view = view;
    this.focus = focus;
    this.layers = layers;
    this.context = context;
    /** Number of dials drawn. */
    this.count = 0;
    this.ratio = 0;
    this.sheet = document.createElement("canvas");
  }

  /** Draws each dial once on a sheet to be copied from: those of IPC above those of misses. @param {number} ratio */
  prepare(ratio) {
    this.ratio = ratio;
    this.sheet.width = 16 * (2 * DIAL + 2) * ratio;
    this.sheet.height = 2 * (DIAL + 3) * ratio;
    const c = /** @type {CanvasRenderingContext2D} */ (this.sheet.getContext("2d"));
    c.scale(ratio, ratio);
    for (let code = 0; code < 16; code++) {
      dial(c, code * (2 * DIAL + 2) + DIAL + 1, DIAL + 1, code, ipcColor(code));
      dial(c, code * (2 * DIAL + 2) + DIAL + 1, 2 * DIAL + 4, code, MISS_COLOR);
    }
  }

  /** @param {Drawn[]} drawn @param {number} ratio device pixels per CSS pixel */
  draw(drawn, ratio) {
    const { store, layers, view, focus } = this;
    const counters = store.meta.flags & FLAG.COUNTERS;
    this.count = 0;
    if (counters === 0 || layers.stateOf("counters") === "off") return;
    if (ratio !== this.ratio) this.prepare(ratio);
    for (const { i, x, w, item } of drawn) {
      const kind = store.kind[i];
      if (!layers.showsCounters(kind) || !focus.shows(i)) continue;
      const part = isKernel(kind) ? OUTER_PART : INNER_PART;
      const bottom = view.middle(item) + view.bodyHeight(item) * part;
      if (view.bodyHeight(item) * part * 2 < DIAL_ROOM) continue;
      const code = store.ipc[i] & 15;
      // Two counters share a code, two bits each.
      const ipc = counters === FLAG.COUNTERS ? code & 12 : code;
      const misses = counters === FLAG.COUNTERS ? (code & 3) * 5 : code;
      let at = x + 2;
      if ((counters & FLAG.IPC) !== 0) at += this.put(ipc, 0, at, bottom);
      if ((counters & FLAG.LLC) !== 0 && at + 2 * DIAL < x + w) {
        this.put(misses, 1, at, bottom);
        this.missTime(counters === FLAG.COUNTERS ? [0, 8, 64, 512][code & 3] : misses === 0 ? 0 : 2 ** (misses + 1), x, w, bottom);
      }
    }
  }

  /** Copies a dial; returns its width. @param {number} code @param {number} line of the sheet @param {number} x @param {number} bottom */
  put(code, line, x, bottom) {
    const { context, ratio } = this;
    const w = 2 * DIAL + 2;
    const h = DIAL + 3;
    // A vector figure has no pixels to copy.
    if (!(context instanceof CanvasRenderingContext2D)) dial(context, x + DIAL + 1, bottom - 2, code, line === 0 ? ipcColor(code) : MISS_COLOR);
    else context.drawImage(this.sheet, code * w * ratio, line * h * ratio, w * ratio, h * ratio, x, bottom - h, w, h);
    this.count++;
    return w;
  }

  /** Draws a line as long as the time of this number of misses, within the span. @param {number} misses @param {number} x @param {number} w @param {number} bottom */
  missTime(misses, x, w, bottom) {
    const length = Math.min((missNs(misses) * this.view.scale) / 10, w);
    this.context.fillStyle = MISS_COLOR;
    if (length >= 1) this.context.fillRect(x, bottom, length, 2);
  }
}

/** @param {number} code */
const ipcColor = (code) => (code < HALF_CODE ? SLOW_COLOR : code < TWO_CODE ? MIDDLE_COLOR : FAST_COLOR);

/** Draws one dial: a half disc with a needle. @param {CanvasRenderingContext2D} c @param {number} x @param {number} y @param {number} code @param {string} color */
function dial(c, x, y, code, color) {
  c.fillStyle = "#ffffffe6";
  c.strokeStyle = "#00000055";
  c.lineWidth = 0.75;
  c.beginPath();
  c.arc(x, y, DIAL, Math.PI, 0);
  c.closePath();
  c.fill();
  c.stroke();
  const angle = Math.PI * (1 + (code + 0.5) / 16);
  const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
  c.fillStyle = color;
  c.beginPath();
  c.moveTo(x + dx * (DIAL - 0.5), y + dy * (DIAL - 0.5));
  c.lineTo(x - dy * 1.8, y + dx * 1.8);
  c.lineTo(x + dy * 1.8, y - dx * 1.8);
  c.fill();
}
