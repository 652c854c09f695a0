// SPDX-License-Identifier: BSD-3-Clause
// The picture: every row's execution and waits, written as pixels.
//
// A row looks the same on all lines of pixels in a zone, so it is composed as a few single lines, which are then
// copied. From the edge of a row to its middle: `outer` is reached by kernel execution only, `inner` also by user
// execution, `core` also by waits, `line` by idling. A span of one pixel and more is drawn as it is. Shorter spans are
// gathered pixel by pixel: each zone gets as much colour as there is time in it, and a dot below the row says so.
"use strict";

/** Parts of a row's height, from its middle, that the zones reach. */
const OUTER_PART = 0.42;
const INNER_PART = 0.27;
/** Half heights in CSS pixels. */
const CORE_HALF = 1.5;
const LINE_HALF = 0.5;
/** The least colour, of 256, that a pixel shows for the shortest moment of activity. */
const LEAST_COLOR = 28;
/** Dashes of low power in CSS pixels. */
const DASH = 5;

class Picture {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.summary = new Summary();
    /** Spans with room for text, found while drawing. @type {{i: number, x: number, w: number, item: Item}[]} */
    this.roomy = [];
    this.resize(1, 1, 1);
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
    const line = () => new Uint32Array(this.w);
    this.backLine = line();
    this.rowLine = line();
    this.outer = line();
    this.inner = line();
    this.core = line();
    this.line = line();
    this.dots = line();
  }

  /** @param {App} app */
  draw(app) {
    const { view, palette } = app;
    this.app = app;
    this.roomy.length = 0;
    this.startLines(app.axis);
    this.fill(0, this.h, this.backLine);
    const top = Math.round(MARKS_HEIGHT * this.ratio);
    const bottom = Math.round((MARKS_HEIGHT + view.rowsSeen) * this.ratio);
    for (const item of view.seen()) {
      if (item.row < 0) continue;
      const y0 = view.top(item) * this.ratio;
      this.backing = item.row % 2 === 0 ? palette.row : palette.back;
      const empty = item.row % 2 === 0 ? this.rowLine : this.backLine;
      for (const line of [this.outer, this.inner, this.core, this.line, this.dots]) line.set(empty);
      if (app.search.active) this.composeMatches(item);
      else this.composeRow(item);
      this.copyZones(y0, item.h * this.ratio, top, bottom, empty);
    }
    this.context.putImageData(this.image, 0, 0);
  }

  /** Lines of an empty row, with the grid. @param {Axis} axis */
  startLines(axis) {
    const { view, palette } = this.app;
    this.backLine.fill(palette.back);
    this.rowLine.fill(palette.row);
    for (const { time } of axis.ticks) {
      const x = Math.round(view.x(time) * this.ratio);
      if (x >= 0 && x < this.w) this.backLine[x] = this.rowLine[x] = palette.grid;
    }
  }

  /** @param {Item} item */
  composeRow(item) {
    this.composeWaits(item);
    this.composeExecution(item, null);
  }

  /** Everything grey, then what matches in colour. @param {Item} item */
  composeMatches(item) {
    this.composeWaits(item);
    this.composeExecution(item, this.app.search.hits);
    this.composeFound(item);
  }

  /**
   * @param {Item} item
   * @param {Uint8Array | null} hits by name: what keeps its colour; nothing if all do
   */
  composeExecution(item, hits) {
    const { store, view, palette } = this.app;
    const { start, dur, name } = store;
    const { group, row } = item;
    const { ids, first } = group.exec;
    const { t0, t1 } = view;
    const scale = view.scale * this.ratio;
    const end = first[row + 1];
    for (let k = firstInRow(store, group.exec, row, t0); k < end;) {
      const i = ids[k];
      if (start[i] >= t1) break;
      const x = (start[i] - t0) * scale;
      const w = dur[i] * scale;
      if (w >= 1) {
        this.exact(i, Math.round(x), Math.round(x + w), hits === null || hits[name[i]] === 1, item);
        k++;
        continue;
      }
      const px = Math.max(Math.floor(x), 0);
      let next = seekStart(start, ids, k + 1, end, t0 + (px + 1) / scale);
      if (next - 1 > k && dur[ids[next - 1]] * scale >= 1) next--;
      group.tree.query(k, next, this.summary);
      this.gathered(px, scale, hits !== null, palette);
      k = next;
    }
  }

  /**
   * Draws one span between two device pixels.
   * @param {number} i
   * @param {number} from
   * @param {number} to
   * @param {boolean} colored
   * @param {Item} item
   */
  exact(i, from, to, colored, item) {
    const { store, palette } = this.app;
    const kind = store.kind[i];
    const a = Math.max(from, 0);
    const b = Math.min(to, this.w);
    if (b <= a) return;
    const color = colored ? palette.pixelOf(store, i) : palette.grey;
    if (kind === Kind.LOW_POWER) this.dash(a, b, from, color);
    else this.line.fill(color, a, b);
    if (kind <= Kind.LOW_POWER) return;
    this.core.fill(color, a, b);
    this.inner.fill(color, a, b);
    if (isKernel(kind)) this.outer.fill(color, a, b);
    if (to - from >= 4 * this.ratio && from >= 0) this.edge(from, kind, color);
    if (b - a >= 22 * this.ratio) this.roomy.push({ i, x: a / this.ratio, w: (b - a) / this.ratio, item });
  }

  /** A darker first pixel, so that neighbours can be told apart. @param {number} x @param {number} kind @param {number} color */
  edge(x, kind, color) {
    const shade = mix(color, 0xff000000, 60);
    this.line[x] = this.core[x] = this.inner[x] = shade;
    if (isKernel(kind)) this.outer[x] = shade;
  }

  /** @param {number} a @param {number} b @param {number} from where the dashes begin @param {number} color */
  dash(a, b, from, color) {
    const period = Math.max(Math.round(DASH * this.ratio), 2);
    const on = Math.ceil(period / 2);
    for (let x = from + Math.floor((a - from) / period) * period; x < b; x += period) {
      this.line.fill(color, Math.max(x, a), Math.min(x + on, b));
    }
  }

  /**
   * Draws what this.summary says into one pixel.
   * @param {number} px
   * @param {number} scale device pixels per unit of time
   * @param {boolean} grey
   * @param {Palette} palette
   */
  gathered(px, scale, grey, palette) {
    if (px >= this.w) return;
    const { store } = this.app;
    const { idle, user, kernel, userSpan, kernelSpan } = this.summary;
    if (idle > 0) this.line[px] = grey ? palette.grey : palette.pixels[Kind.IDLE][0];
    const strength = (/** @type {number} */ time) => {
      const part = Math.sqrt(Math.min(time * scale, 1));
      return Math.round(LEAST_COLOR + part * (256 - LEAST_COLOR));
    };
    let color = 0;
    if (userSpan >= 0) color = grey ? palette.grey : palette.pixelOf(store, userSpan);
    if (kernelSpan >= 0) {
      const kernelColor = grey ? palette.grey : palette.pixelOf(store, kernelSpan);
      this.outer[px] = mix(this.outer[px], kernelColor, strength(kernel));
      color = userSpan < 0 ? kernelColor : mix(color, kernelColor, Math.round((256 * kernel) / (user + kernel || 1)));
    }
    if (color !== 0) {
      const inner = mix(this.inner[px], color, strength(user + kernel));
      this.inner[px] = this.core[px] = inner;
      if (idle === 0) this.line[px] = inner;
    }
    if (px % 3 === 0) this.dots[px] = palette.dots;
  }

  /** @param {Item} item */
  composeWaits(item) {
    const { store, view, palette, search } = this.app;
    const { start, dur, name } = store;
    const { waits } = item.group;
    const { t0, t1 } = view;
    const scale = view.scale * this.ratio;
    const end = waits.first[item.row + 1];
    for (let k = firstInLane(waits, item.row, t0), next = k; k < end; k = next) {
      const i = waits.ids[k];
      if (start[i] >= t1) break;
      const from = Math.round((start[i] - t0) * scale);
      const to = Math.max(Math.round((start[i] + dur[i] - t0) * scale), from + 1);
      // Of short ones that begin in the same pixel, the first stands for all; a long one among them comes last.
      next = to - from > 1 ? k + 1 : Math.max(k + 1, seekStart(start, waits.ids, k + 1, end, t0 + (from + 0.5) / scale));
      if (next - 1 > k && dur[waits.ids[next - 1]] * scale >= 1) next--;
      const a = Math.max(from, 0);
      const b = Math.min(to, this.w);
      if (b <= a) continue;
      const colored = !search.active || search.hits[name[i]] === 1;
      const color = colored ? palette.waitPixels[store.events[store.event[i]] - WAIT_A] : palette.grey;
      this.core.fill(color, a, b);
      this.line.fill(color, a, b);
    }
  }

  /** Matches, each at least one CSS pixel wide. @param {Item} item */
  composeFound(item) {
    const { store, view, palette, search } = this.app;
    const { start, dur, kind } = store;
    const lane = search.laneOf(item.group);
    const { t0, t1 } = view;
    const scale = view.scale * this.ratio;
    const least = Math.max(Math.round(this.ratio), 1);
    const end = lane.first[item.row + 1];
    for (let k = firstInLane(lane, item.row, t0); k < end;) {
      const i = lane.ids[k];
      if (start[i] >= t1) break;
      const from = Math.round((start[i] - t0) * scale);
      const to = Math.max(Math.round((start[i] + dur[i] - t0) * scale), from + least);
      const a = Math.max(from, 0);
      const b = Math.min(to, this.w);
      if (b > a && isExecution(kind[i])) {
        const color = palette.pixelOf(store, i);
        this.line.fill(color, a, b);
        if (kind[i] > Kind.LOW_POWER) {
          this.core.fill(color, a, b);
          this.inner.fill(color, a, b);
        }
        if (isKernel(kind[i])) this.outer.fill(color, a, b);
      }
      k = to - from > least ? k + 1 : Math.max(k + 1, seekStart(start, lane.ids, k + 1, end, t0 + (from + 0.5) / scale));
    }
  }

  /**
   * Copies the composed lines to the zones of a row.
   * @param {number} y0 upper edge in device pixels
   * @param {number} h
   * @param {number} top first line that may be written
   * @param {number} bottom first line that may not
   * @param {Uint32Array} empty
   */
  copyZones(y0, h, top, bottom, empty) {
    const middle = y0 + h / 2;
    const from = Math.max(Math.round(y0), top);
    const to = Math.min(Math.round(y0 + h), bottom);
    const last = Math.round(y0 + h) - Math.max(Math.round(this.ratio), 1);
    for (let y = from; y < to; y++) {
      const away = Math.abs(y + 0.5 - middle);
      const line = away <= LINE_HALF * this.ratio ? this.line
        : away <= CORE_HALF * this.ratio ? this.core
        : away <= INNER_PART * h ? this.inner
        : away <= OUTER_PART * h ? this.outer
        : y >= last ? this.dots : empty;
      this.pixels.set(line, y * this.w);
    }
  }

  /** @param {number} from @param {number} to @param {Uint32Array} line */
  fill(from, to, line) {
    for (let y = from; y < to; y++) this.pixels.set(line, y * this.w);
  }
}
