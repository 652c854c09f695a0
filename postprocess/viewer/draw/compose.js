// SPDX-License-Identifier: BSD-3-Clause
// Composes one row: its execution and waits as a few lines of pixels.
//
// A row looks the same on all lines of pixels in a zone, so each zone is composed as one line. From the edge of a
// row to its middle: `outer` is filled by kernel execution only, `inner` also by user execution, `core` also by waits,
// `line` also by idling. `outer` and `inner` each contain a stripe, `outerStripe` and `innerStripe`, which has its own
// colour in spans that are wide enough, to tell calls and threads of one colour apart.
// A span of at least one pixel is drawn as it is. Shorter spans are gathered pixel by pixel: each
// zone gets more colour the more time is in it, and a dot below the row marks them. Items that a line of pixels cannot
// show, names and curves, are collected for the overlay.

import { isAbsent, isKernel, MORSE, WAIT_A } from "../data/kind.js";
import { firstInLane, firstInRow, seekStart } from "../data/rows.js";
import { Kind } from "../data/tables.js";
import { Summary, SummaryTree } from "../data/tree.js";
import { mix } from "./palette.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Look} from "./look.js"
 * @import {Palette} from "./palette.js"
 */

/** The minimum colour, of 256, of a pixel with even the shortest activity. */
const MIN_COLOR = 28;
/** Length of a dash of low power in CSS pixels. */
const DASH = 5;
/** Minimum width in CSS pixels of spans that are collected for their names, and for their curves. */
export const NAME_ROOM = 22;
const CURVE_ROOM = 8;
/** Minimum width in CSS pixels of spans that have stripes. */
const STRIPE_ROOM = 4;
/** The share of a stripe's own colour, of 256: the rest is the colour of its span. */
const STRIPE_STRENGTH = 184;
/** The lines that a row is composed of. */
const ZONES = /** @type {const} */ (["outer", "outerStripe", "inner", "innerStripe", "core", "line", "dots"]);
/** A dot of Morse code in CSS pixels, and the number of letters at the end of a wait. */
export const MORSE_DOT = 2;
const MORSE_LETTERS = 3;

/** A span drawn on a row, in CSS pixels. @typedef {{i: number, x: number, w: number, item: Item}} Drawn */

export class RowLines {
  /** Device pixels in a line, and in a CSS pixel. */
  w = 1;
  ratio = 1;
  outer = new Uint32Array(1);
  outerStripe = new Uint32Array(1);
  inner = new Uint32Array(1);
  innerStripe = new Uint32Array(1);
  core = new Uint32Array(1);
  line = new Uint32Array(1);
  dots = new Uint32Array(1);

  /** @param {{store: Store, view: View, focus: Focus, look: Look}} parts */
  constructor({ store, view, focus, look }) {
    this.store = store;
    this.view = view;
    this.focus = focus;
    this.look = look;
    this.summary = new Summary();
    /** Spans with room for text. @type {Drawn[]} */
    this.roomy = [];
    /** Spans drawn as curves or hatched. @type {Drawn[]} */
    this.curves = [];
    /** True if only matches of the search, or spans on highlighted rows, keep their colour. */
    this.greys = false;
  }

  /** Begins a picture. */
  begin() {
    this.roomy.length = 0;
    this.curves.length = 0;
  }

  /** @param {number} w @param {number} ratio */
  resize(w, ratio) {
    this.w = w;
    this.ratio = ratio;
    for (const zone of ZONES) this[zone] = new Uint32Array(w);
  }

  /**
   * Composes a row; during a search or highlighting, first all in grey and then the matches in colour.
   * @param {Item} item
   * @param {Uint32Array} empty
   */
  compose(item, empty) {
    const { focus } = this;
    for (const zone of ZONES) this[zone].set(empty);
    this.greys = !focus.showsRow(item.group, item.row);
    this.composeWaits(item);
    this.composeExecution(item);
    if (this.greys) this.composeFound(item);
  }

  /** True if a span keeps its colour. @param {number} i */
  colors(i) {
    return !this.greys || this.focus.shows(i);
  }

  /** @param {Item} item */
  composeExecution(item) {
    const { store, view, look: { palette } } = this;
    const { start, dur } = store;
    const { group, row } = item;
    const { ids, first } = group.exec;
    const { t0, t1 } = view.on(item);
    const scale = view.scale * this.ratio;
    const end = first[row + 1];
    let drawn = -1;
    for (let k = firstInRow(store, group.exec, row, t0); k < end;) {
      const i = ids[k];
      if (start[i] >= t1) break;
      const x = (start[i] - t0) * scale;
      const w = dur[i] * scale;
      if (w >= 1) {
        this.exact(i, Math.round(x), Math.round(x + w), item);
        k++;
        continue;
      }
      const px = Math.max(Math.floor(x), drawn + 1);
      drawn = px;
      let next = group.tree.seek(k + 1, end, t0 + (px + 1) / scale);
      if (next - 1 > k && dur[ids[next - 1]] * scale >= 1) next--;
      next = SummaryTree.roundedEnd(k, next);
      group.tree.query(k, next, this.summary);
      this.gathered(px, scale, palette);
      k = next;
    }
  }

  /**
   * Draws one span between two device pixels.
   * @param {number} i
   * @param {number} from
   * @param {number} to
   * @param {Item} item
   */
  exact(i, from, to, item) {
    const { store, look: { palette } } = this;
    const kind = store.kind[i];
    const a = Math.max(from, 0);
    const b = Math.min(to, this.w);
    if (b <= a) return;
    const drawn = { i, x: a / this.ratio, w: (b - a) / this.ratio, item };
    if ((kind === Kind.C_EXIT || isAbsent(kind)) && drawn.w >= CURVE_ROOM) {
      this.curves.push(drawn);
      if (kind !== Kind.STALLED) return;
    }
    const color = this.colors(i) ? palette.pixelOf(store, i) : palette.grey;
    if (kind === Kind.LOW_POWER) this.dash(a, b, from, color);
    else this.line.fill(color, a, b);
    if (kind <= Kind.LOW_POWER) return;
    this.band(i, a, b, color);
    if (to - from >= STRIPE_ROOM * this.ratio) {
      if (color !== palette.grey) this.stripes(i, a, b, color);
      if (from >= 0) this.band(i, from, from + 1, mix(color, 0xff000000, 60));
    }
    if (drawn.w >= NAME_ROOM) this.roomy.push(drawn);
  }

  /** Fills the zones of a span that is not idle. @param {number} i @param {number} a @param {number} b @param {number} color */
  band(i, a, b, color) {
    this.line.fill(color, a, b);
    this.core.fill(color, a, b);
    this.inner.fill(color, a, b);
    this.innerStripe.fill(color, a, b);
    if (!isKernel(this.store.kind[i])) return;
    this.outer.fill(color, a, b);
    this.outerStripe.fill(color, a, b);
  }

  /** @param {number} i @param {number} a @param {number} b @param {number} color of the span */
  stripes(i, a, b, color) {
    const { store, look: { palette } } = this;
    const [outer, inner] = palette.stripesOf(store, i);
    if (outer !== 0) this.outerStripe.fill(mix(color, outer, STRIPE_STRENGTH), a, b);
    if (inner !== 0) this.innerStripe.fill(mix(color, inner, STRIPE_STRENGTH), a, b);
  }

  /** @param {number} a @param {number} b @param {number} from start of the dashes @param {number} color */
  dash(a, b, from, color) {
    const period = Math.max(Math.round(DASH * this.ratio), 2);
    const on = Math.ceil(period / 2);
    for (let x = from + Math.floor((a - from) / period) * period; x < b; x += period) {
      if (x + on > a) this.line.fill(color, Math.max(x, a), Math.min(x + on, b));
    }
  }

  /**
   * Draws this.summary into one pixel.
   * @param {number} px
   * @param {number} scale device pixels per unit of time
   * @param {Palette} palette
   */
  gathered(px, scale, palette) {
    if (px >= this.w) return;
    const grey = this.greys;
    const { store } = this;
    const { idle, user, kernel, userSpan, kernelSpan } = this.summary;
    if (idle > 0) this.line[px] = grey ? palette.grey : palette.pixels[Kind.IDLE][0];
    const strength = (/** @type {number} */ time) => {
      const part = Math.sqrt(Math.min(time * scale, 1));
      return Math.round(MIN_COLOR + part * (256 - MIN_COLOR));
    };
    let color = 0;
    if (userSpan >= 0) color = grey ? palette.grey : palette.pixelOf(store, userSpan);
    if (kernelSpan >= 0) {
      const kernelColor = grey ? palette.grey : palette.pixelOf(store, kernelSpan);
      this.outer[px] = this.outerStripe[px] = mix(this.outer[px], kernelColor, strength(kernel));
      color = userSpan < 0 ? kernelColor : mix(color, kernelColor, Math.round((256 * kernel) / (user + kernel || 1)));
    }
    if (color !== 0) {
      const inner = mix(this.inner[px], color, strength(user + kernel));
      this.inner[px] = this.innerStripe[px] = this.core[px] = inner;
      if (idle === 0) this.line[px] = inner;
    }
    if (px % 3 === 0) this.dots[px] = palette.dots;
  }

  /** @param {Item} item */
  composeWaits(item) {
    const { store, view, look: { palette } } = this;
    const { start, dur } = store;
    const { waits } = item.group;
    const { t0, t1 } = view.on(item);
    const scale = view.scale * this.ratio;
    const end = waits.first[item.row + 1];
    for (let k = firstInLane(waits, item.row, t0), next = k; k < end; k = next) {
      const i = waits.ids[k];
      if (start[i] >= t1) break;
      const from = Math.round((start[i] - t0) * scale);
      const to = Math.max(Math.round((start[i] + dur[i] - t0) * scale), from + 1);
      // Of short waits that begin in the same pixel, the first stands for all; a long one among them comes last.
      next = to - from > 1 ? k + 1 : Math.max(k + 1, seekStart(start, waits.ids, k + 1, end, t0 + (from + 0.5) / scale));
      if (next - 1 > k && dur[waits.ids[next - 1]] * scale >= 1) next--;
      const a = Math.max(from, 0);
      const b = Math.min(to, this.w);
      if (b <= a) continue;
      if (this.focus.sleeps(i)) this.line.fill(this.greys ? palette.grey : palette.dots, a, b);
      else this.wait(i, from, to, this.colors(i) ? palette.waitPixel(store, i) : palette.grey);
    }
  }

  /**
   * Draws a wait between two device pixels: a line that ends in the letter of its reason, in Morse code; bold throughout if
   * there is no room for the letter.
   * @param {number} i
   * @param {number} from
   * @param {number} to
   * @param {number} color
   */
  wait(i, from, to, color) {
    const { store } = this;
    const dot = Math.max(Math.round(MORSE_DOT * this.ratio), 1);
    const code = MORSE[store.events[store.event[i]] - WAIT_A];
    const strokes = morseStrokes(code);
    const letter = strokes.at(-1)?.end ?? 0;
    const letters = Math.min(Math.floor((to - from) / ((letter + 3) * dot)), MORSE_LETTERS);
    const fill = (/** @type {Uint32Array} */ zone, /** @type {number} */ a, /** @type {number} */ b) => {
      if (b > 0 && a < this.w) zone.fill(color, Math.max(a, 0), Math.min(b, this.w));
    };
    fill(this.line, from, to);
    if (letters === 0) fill(this.core, from, to);
    for (let k = 1; k <= letters; k++) {
      const at = to - k * (letter + 3) * dot;
      for (const stroke of strokes) fill(this.core, at + stroke.begin * dot, at + stroke.end * dot);
    }
  }

  /** Draws matches, each at least one CSS pixel wide. @param {Item} item */
  composeFound(item) {
    const { store, view, look: { palette }, focus } = this;
    const { start, dur, kind } = store;
    const lane = focus.laneOf(item.group);
    const { t0, t1 } = view.on(item);
    const scale = view.scale * this.ratio;
    const min = Math.max(Math.round(this.ratio), 1);
    const end = lane.first[item.row + 1];
    for (let k = firstInLane(lane, item.row, t0); k < end;) {
      const i = lane.ids[k];
      if (start[i] >= t1) break;
      const from = Math.round((start[i] - t0) * scale);
      const to = Math.max(Math.round((start[i] + dur[i] - t0) * scale), from + min);
      const a = Math.max(from, 0);
      const b = Math.min(to, this.w);
      if (b > a && kind[i] === Kind.WAIT) this.wait(i, from, to, palette.waitPixel(store, i));
      else if (b > a) {
        const color = palette.pixelOf(store, i);
        if (kind[i] <= Kind.LOW_POWER) this.line.fill(color, a, b);
        else this.band(i, a, b, color);
        if (kind[i] > Kind.LOW_POWER && b - a >= STRIPE_ROOM * this.ratio) this.stripes(i, a, b, color);
      }
      let next = k + 1;
      if (to - from <= min) {
        next = Math.max(next, seekStart(start, lane.ids, next, end, t0 + (from + 0.5) / scale));
        if (next - 1 > k && dur[lane.ids[next - 1]] * scale >= 1) next--;
      }
      k = next;
    }
  }
}

/** Strokes of each Morse code, in dots from its start. @type {Map<string, {begin: number, end: number}[]>} */
const MORSE_STROKES = new Map();

/** @param {string} code dots and dashes */
export function morseStrokes(code) {
  let strokes = MORSE_STROKES.get(code);
  if (!strokes) {
    let at = 0;
    strokes = [...code].map((sign) => {
      const begin = at;
      at += sign === "-" ? 4 : 2;
      return { begin, end: at - 1 };
    });
    MORSE_STROKES.set(code, strokes);
  }
  return strokes;
}
