// SPDX-License-Identifier: BSD-3-Clause
// The strips of a CPU's row, as pixels: samples of the program counter above its execution, the frequency below.
//
// A sample stands for the time since the one before it, and is coloured by function. The height of the frequency goes from
// the lowest to the highest in the trace, and its colour is red, yellow or green.

import { valueOf } from "../data/format.js";
import { firstInLane, seekStart } from "../data/rows.js";
import { MARKS_HEIGHT } from "../view/view.js";
import { pixel } from "./palette.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {Lane} from "../data/rows.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Drawn} from "./compose.js"
 * @import {Layers} from "./layers.js"
 * @import {Look} from "./look.js"
 */

/** Colours of functions, visible on light and dark ground. */
export const SAMPLE_COLORS = Object.freeze([
  "#5b8ff0", "#e0884b", "#4fae7a", "#c774c0", "#b0a03c", "#53a9c4", "#d0708a", "#8d7ae0", "#7fa848", "#c08a5c",
]);
/** Slow, medium, fast: the eighths of the range at which each begins. */
export const FREQ_COLORS = Object.freeze([[0, "#e0483e"], [1, "#e8b820"], [7, "#3da35d"]]);
/** Heights in CSS pixels. */
export const SAMPLES_HEIGHT = 14;
export const FREQ_HEIGHT = 8;

export class Strips {
  w = 1;
  ratio = 1;
  sample = new Uint32Array(1);
  freq = new Uint32Array(1);
  /** The height of the frequency, by pixel, in eighths. */
  eighths = new Uint8Array(1);

  /** @param {{store: Store, view: View, focus: Focus, layers: Layers, look: Look}} parts */
  constructor({ store, view, focus, layers, look }) {
    this.store = store;
    this.view = view;
    this.focus = focus;
    this.layers = layers;
    this.look = look;
    /** Samples with room for text. @type {Drawn[]} */
    this.roomy = [];
    this.samplePixels = SAMPLE_COLORS.map(pixel);
    /** Colours by name, -1 until first used. */
    this.shades = new Int8Array(store.names.length).fill(-1);
    this.freqPixels = FREQ_COLORS.flatMap(([from, color], k) =>
      Array(Number(FREQ_COLORS[k + 1]?.[0] ?? 8) - Number(from)).fill(pixel(String(color))));
  }

  begin() {
    this.roomy.length = 0;
  }

  /** @param {number} w @param {number} ratio */
  resize(w, ratio) {
    this.w = w;
    this.ratio = ratio;
    this.sample = new Uint32Array(w);
    this.freq = new Uint32Array(w);
    this.eighths = new Uint8Array(w);
  }

  /** Composes and copies the strips of a row. @param {Item} item @param {Uint32Array} empty @param {Uint32Array} pixels @param {number} h */
  copy(item, empty, pixels, h) {
    const { view } = this;
    const { ratio, w } = this;
    const clip = Math.min(Math.round((MARKS_HEIGHT + view.rowsSeen) * ratio), h);
    const start = Math.round(MARKS_HEIGHT * ratio);
    if (item.above > 0 && item.group.samples.ids.length > 0) {
      this.sample.set(empty);
      this.composeSamples(item);
      const y0 = Math.round((view.top(item) + 2) * ratio);
      const y1 = Math.round((view.top(item) + item.above - 1) * ratio);
      for (let y = Math.max(y0, start); y < Math.min(y1, clip); y++) pixels.set(this.sample, y * w);
    }
    if (item.below > 0) {
      this.eighths.fill(0);
      this.composeFreq(item);
      const y1 = Math.round((view.top(item) + item.h - 1) * ratio);
      const y0 = Math.round((view.top(item) + item.h - item.below) * ratio);
      for (let y = Math.max(y0, start); y < Math.min(y1, clip); y++) {
        const min = ((y1 - y) * 8) / (y1 - y0);
        for (let x = 0; x < w; x++) if (this.eighths[x] >= min) pixels[y * w + x] = this.freq[x];
      }
    }
  }

  /** @param {Item} item */
  composeSamples(item) {
    const { layers, focus, look: { palette } } = this;
    this.eachSeen(item.group.samples, item, (i, from, to) => {
      if (!layers.showsSample(i)) return;
      const a = Math.max(from, 0);
      const b = Math.min(to, this.w);
      this.sample.fill(focus.shows(i) ? this.samplePixels[this.shade(i)] : palette.grey, a, b);
      if (b - a < 3 * this.ratio) return;
      this.sample[b - 1] = palette.back;
      this.roomy.push({ i, x: a / this.ratio, w: (b - a) / this.ratio, item });
    });
  }

  /** The index of a sample's colour, by the name of its function. @param {number} i */
  shade(i) {
    const { name, names } = this.store;
    if (this.shades[name[i]] < 0) {
      let hash = 0;
      for (const c of names[name[i]]) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
      this.shades[name[i]] = hash % SAMPLE_COLORS.length;
    }
    return this.shades[name[i]];
  }

  /** @param {Item} item */
  composeFreq(item) {
    const { store, layers } = this;
    const { min, max } = layers.freqRange;
    this.eachSeen(item.group.freq, item, (i, from, to) => {
      const eighth = Math.min(Math.floor((8 * ((valueOf(store.arg[i]) ?? 0) - min)) / Math.max(max - min, 1)), 7);
      const a = Math.max(from, 0);
      const b = Math.min(to, this.w);
      this.eighths.fill(eighth + 1, a, b);
      this.freq.fill(this.freqPixels[eighth], a, b);
    });
  }

  /**
   * Calls `draw` with the visible spans of a row and the device pixels that they fill, once per pixel.
   * @param {Lane} lane
   * @param {Item} item
   * @param {(i: number, from: number, to: number) => void} draw
   */
  eachSeen(lane, item, draw) {
    const { store, view } = this;
    const { start, dur } = store;
    const { t0, t1 } = view.on(item);
    const scale = view.scale * this.ratio;
    const end = lane.first[item.row + 1];
    for (let k = firstInLane(lane, item.row, t0), next = k; k < end; k = next) {
      const i = lane.ids[k];
      if (start[i] >= t1) break;
      const from = Math.round((start[i] - t0) * scale);
      const to = Math.max(Math.round((start[i] + dur[i] - t0) * scale), from + 1);
      next = k + 1;
      if (to - from === 1) {
        next = Math.max(next, seekStart(start, lane.ids, next, end, t0 + (from + 0.5) / scale));
        if (next - 1 > k && dur[lane.ids[next - 1]] * scale >= 1) next--;
      }
      if (to > 0 && from < this.w) draw(i, from, to);
    }
  }
}
