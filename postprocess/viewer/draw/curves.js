// SPDX-License-Identifier: BSD-3-Clause
// Strokes over execution: a sine wave while a CPU leaves a low-power state, hatching where nothing is known or done, red where a CPU stood still, and white
// hatching for the time that recording itself took, once that is wide enough to be visible.

import { isAbsent } from "../data/kind.js";
import { firstInRow } from "../data/rows.js";
import { Kind, KIND_NAMES } from "../data/tables.js";
import { INNER_PART, OUTER_PART } from "../view/view.js";
import { Brush } from "./brush.js";
import { FONT } from "./palette.js";
/**
 * @import {Parts} from "./brush.js"
 * @import {Store} from "../data/decode.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Drawn} from "./compose.js"
 */

/** Half height and length of a wave in CSS pixels. */
const WAVE_HEIGHT = 5;
const WAVE_LENGTH = 12;
/** Minimum width in pixels of an entry's recording time to be drawn. */
const OVERHEAD_MIN = 2;

export class Curves extends Brush {
  /**
   * @param {Parts} parts
   * @param {CanvasRenderingContext2D} context
   */
  constructor(parts, context) {
    super(parts, context);
    /** Number of entries whose recording time is drawn. */
    this.overheads = 0;
  }

  /** @param {Drawn[]} drawn the spans drawn as curves or hatched */
  draw(drawn) {
    const { view, store, focus, look: { palette } } = this;
    for (const { i, x, w, item } of drawn) {
      const color = focus.shows(i) ? palette.color(store, i) : palette.css.grey;
      if (store.kind[i] === Kind.C_EXIT) this.wave(x, w, view.middle(item), color);
      else if (store.kind[i] === Kind.STALLED) this.hatch(x, ...this.bodyOf(item, w), focus.shows(i) ? palette.css.cexit : palette.css.dim, 5, 1.2);
      else this.absent(x, w, item, KIND_NAMES[store.kind[i]]);
    }
    this.overheads = 0;
    if (store.meta.entryNs * view.scale >= 10 * OVERHEAD_MIN) this.overhead();
  }

  /** @param {number} x @param {number} w @param {number} y @param {string} color */
  wave(x, w, y, color) {
    const { context: c } = this;
    c.strokeStyle = color;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x, y);
    for (let at = 1; at <= w; at++) c.lineTo(x + at, y - WAVE_HEIGHT * Math.sin((2 * Math.PI * at) / WAVE_LENGTH));
    c.stroke();
  }

  /** The top of a row's spans, the given width, and their height. @param {Item} item @param {number} w @returns {[number, number, number]} */
  bodyOf(item, w) {
    const { view } = this;
    const h = view.bodyHeight(item) * INNER_PART * 2;
    return [view.middle(item) - h / 2, w, h];
  }

  /** @param {number} x @param {number} room @param {Item} item @param {string} name */
  absent(x, room, item, name) {
    const { context: c } = this;
    const { look: { palette }, lettering } = this;
    const [y, w, h] = this.bodyOf(item, room);
    if (name === KIND_NAMES[Kind.OFFLINE]) this.frame(x, y, w, h, palette.css.dim);
    else this.hatch(x, y, w, h, palette.css.dim, 7, 1);
    c.font = `11px ${FONT}`;
    const text = lettering.fit(name, w - 12, 11);
    if (text === "") return;
    const width = lettering.widthOf(text, 411);
    c.fillStyle = palette.css.back;
    c.fillRect(x + w / 2 - width / 2 - 4, y + h / 2 - 7, width + 8, 14);
    c.fillStyle = palette.css.dim;
    c.fillText(text, x + w / 2 - width / 2, y + h / 2 + 0.5);
  }

  /** Draws a dashed outline: the CPU is known to have done nothing. @param {number} x @param {number} y @param {number} w @param {number} h @param {string} color */
  frame(x, y, w, h, color) {
    const { context: c } = this;
    const left = Math.max(x, -2);
    c.strokeStyle = color;
    c.lineWidth = 1;
    c.setLineDash([4, 3]);
    c.strokeRect(left, y + 0.5, Math.min(x + w, this.view.width + 2) - left, h - 1);
    c.setLineDash([]);
  }

  /** Hatches the time that recording the start of each visible span took. */
  overhead() {
    const { view, store } = this;
    const w = (store.meta.entryNs / 10) * view.scale;
    for (const item of view.seen()) {
      if (item.row < 0 || item.group.name === "NET" || item.group.name === "RES") continue;
      const { exec } = item.group;
      const h = view.bodyHeight(item) * OUTER_PART * 2;
      const y = view.middle(item) - h / 2;
      const times = view.on(item);
      const first = firstInRow(store, exec, item.row, times.t0);
      for (let k = first; k < exec.first[item.row + 1] && store.start[exec.ids[k]] < times.t1; k++) {
        const kind = store.kind[exec.ids[k]];
        if (isAbsent(kind) || kind === Kind.C_EXIT) continue;
        this.hatch(times.x(store.start[exec.ids[k]]), y, w, h, "#ffffffd0", 5, 1.6);
        this.overheads++;
      }
    }
  }

  /** Fills a rectangle with diagonals. @param {number} x @param {number} y @param {number} w @param {number} h @param {string} color @param {number} step @param {number} width */
  hatch(x, y, w, h, color, step, width) {
    const { context: c } = this;
    c.save();
    c.beginPath();
    c.rect(x, y, w, h);
    c.clip();
    c.strokeStyle = color;
    c.lineWidth = width;
    c.beginPath();
    const left = Math.max(x, 0) - h;
    const right = Math.min(x + w, this.view.width);
    for (let at = Math.floor(left / step) * step; at < right; at += step) {
      c.moveTo(at, y + h);
      c.lineTo(at + h, y);
    }
    c.stroke();
    c.restore();
  }
}

/**
 * The share of the CPUs' time that recording took: the cost of an entry times their number.
 * @param {Store} store
 * @param {View} view
 */
export function overheadText({ meta, cpus }, view) {
  const time = cpus.filter((n) => n >= 0).length * (view.end - view.begin);
  const part = (meta.entries * meta.entryNs) / 10 / time;
  return part > 0 && part < 1 ? `recording took about ${(100 * part).toPrecision(2)}%` : "";
}
