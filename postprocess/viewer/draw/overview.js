// SPDX-License-Identifier: BSD-3-Clause
// The strip above the picture: the load of all CPUs over the whole trace, the visible range, the places of matches or of slow requests.

import { isAbsent, isIdle, isKernel } from "../data/kind.js";
import { seekStart } from "../data/rows.js";
import { Kind } from "../data/tables.js";
import { Summary } from "../data/tree.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Search} from "../data/search.js"
 * @import {View} from "../view/view.js"
 * @import {Look} from "./look.js"
 */

/** Heights in CSS pixels: of the bars, and of the matches below them. */
const BARS_HEIGHT = 30;
const MATCHES_HEIGHT = 7;
/** Maximum number of cells, rows times columns, to sum up: with many CPUs, columns are wider. */
const CELLS_MAX = 40000;
/** The minimum width of the visible range. */
const WINDOW_MIN = 3;

/**
 * The times in which a CPU did nothing, or nothing is known of it: spans by row, in order. There are few.
 * @param {Store} store
 * @param {Group} cpus
 */
function absentOf({ kind, kinds }, cpus) {
  /** @type {number[][]} */
  const absent = cpus.keys.map(() => []);
  for (const one of [Kind.LOST, Kind.OFFLINE, Kind.STALLED]) {
    if (!kinds.has(one)) continue;
    for (let i = kind.indexOf(one); i >= 0; i = kind.indexOf(one, i + 1)) absent[cpus.rowOf(i)]?.push(i);
  }
  for (const spans of absent) spans.sort((a, b) => a - b);
  return absent;
}

export class Overview {
  /**
   * @param {{store: Store, groups: Group[], view: View, search: Search, look: Look}} parts
   * @param {HTMLCanvasElement} canvas
   * @param {() => ArrayLike<number>} starts of the requests that the panel compares, in order
   */
  constructor({ store, groups, view, search, look }, canvas, starts) {
    this.starts = starts;
    this.store = store;
    this.groups = groups;
    this.view = view;
    this.search = search;
    this.look = look;
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.ratio = 1;
    this.width = 1;
    /** Shares of all CPUs' time, by column. */
    this.user = new Float64Array(0);
    this.kernel = new Float64Array(0);
    /** The absent times of each CPU, once needed. @type {number[][] | null} */
    this.absent = null;
    /** The bars as last drawn, and their inputs. */
    this.kept = { canvas: document.createElement("canvas"), user: this.user, width: 0, ratio: 0, palette: look.palette };
  }

  get begin() {
    return this.view.begin;
  }

  get length() {
    return Math.max(this.view.end - this.view.begin, 1);
  }

  /** @param {number} width in CSS pixels @param {number} ratio */
  resize(width, ratio) {
    this.width = Math.max(width, 1);
    this.ratio = ratio;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round((BARS_HEIGHT + MATCHES_HEIGHT) * ratio);
    const cpus = this.groups[0];
    const columns = Math.max(Math.min(Math.round(this.width), Math.floor(CELLS_MAX / Math.max(cpus.keys.length, 1))), 100);
    if (columns !== this.user.length) this.sumUp(cpus, columns);
  }

  /** @param {Group} cpus @param {number} columns */
  sumUp(cpus, columns) {
    this.user = new Float64Array(columns);
    this.kernel = new Float64Array(columns);
    for (let row = 0; row < cpus.keys.length; row++) this.addRow(cpus, row, columns);
    const all = (this.length / columns) * Math.max(cpus.keys.length, 1);
    for (let column = 0; column < columns; column++) {
      this.user[column] /= all;
      this.kernel[column] /= all;
    }
  }

  /** @param {Group} cpus @param {number} row @param {number} columns */
  addRow(cpus, row, columns) {
    const { start, dur, kind } = this.store;
    this.absent ??= absentOf(this.store, cpus);
    const absent = this.absent[row];
    let away = 0;
    const { exec: { ids, first }, tree } = cpus;
    const { begin } = this;
    const step = this.length / columns;
    const sum = new Summary();
    const end = first[row + 1];
    for (let k = first[row]; k < end;) {
      const i = ids[k];
      const at = (start[i] - begin) / step;
      let column = Math.min(Math.floor(at), columns - 1);
      if (dur[i] < step) {
        const next = Math.max(seekStart(start, ids, k + 1, end, begin + (column + 1) * step), k + 1);
        const last = next - 1 > k && dur[ids[next - 1]] >= step ? next - 1 : next;
        tree.query(k, last, sum);
        this.user[column] += sum.user;
        // Trees count absent times as user code.
        const until = last < end ? start[ids[last]] : Infinity;
        for (; away < absent.length && start[absent[away]] < until; away++) this.user[column] -= dur[absent[away]];
        this.kernel[column] += sum.kernel;
        k = last;
        continue;
      }
      k++;
      if (absent[away] === i) away++;
      if (isIdle(kind[i]) || isAbsent(kind[i])) continue;
      const sums = isKernel(kind[i]) ? this.kernel : this.user;
      const to = Math.min((start[i] + dur[i] - begin) / step, columns);
      for (let from = at; from < to; column++) {
        const border = Math.min(column + 1, to);
        sums[column] += (border - from) * step;
        from = border;
      }
    }
  }

  /** The share of all CPUs' time in which they were busy. */
  get busy() {
    const total = (/** @type {Float64Array} */ parts) => parts.reduce((sum, part) => sum + part, 0);
    return (total(this.user) + total(this.kernel)) / Math.max(this.user.length, 1);
  }

  draw() {
    const { context: c, width, ratio } = this;
    const { look: { palette } } = this;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.barsNow(), 0, 0);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = palette.css.back;
    c.fillRect(0, BARS_HEIGHT, width, MATCHES_HEIGHT);
    if (this.search.active) this.matches();
    else this.requests();
    this.window();
  }

  /** The bars, redrawn only if anything about them has changed: there are thousands. */
  barsNow() {
    const { width, ratio, kept, user, kernel, look: { palette } } = this;
    if (kept.user === user && kept.width === width && kept.ratio === ratio && kept.palette === palette) return kept.canvas;
    Object.assign(kept, { user, width, ratio, palette });
    kept.canvas.width = Math.max(Math.round(width * ratio), 1);
    kept.canvas.height = Math.round(BARS_HEIGHT * ratio);
    const c = /** @type {CanvasRenderingContext2D} */ (kept.canvas.getContext("2d"));
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = palette.css.row;
    c.fillRect(0, 0, width, BARS_HEIGHT);
    this.bars(c, kernel, user, palette.css.syscall[0]);
    this.bars(c, user, null, palette.css.users[0]);
    return kept.canvas;
  }

  /** Draws bars of one sort, on top of others. @param {CanvasRenderingContext2D} c @param {Float64Array} parts @param {Float64Array | null} below @param {string} color */
  bars(c, parts, below, color) {
    const { width } = this;
    const step = width / parts.length;
    c.fillStyle = color;
    c.beginPath();
    for (let column = 0; column < parts.length; column++) {
      if (parts[column] <= 0) continue;
      const bottom = BARS_HEIGHT * (1 - (below ? below[column] : 0));
      c.rect(column * step, bottom - BARS_HEIGHT * parts[column], step, BARS_HEIGHT * parts[column]);
    }
    c.fill();
  }

  /** Draws a tick wherever a match begins. */
  matches() {
    const { context: c, width, begin, length } = this;
    const { search, store, look: { palette } } = this;
    const { ids } = search;
    c.fillStyle = palette.css.measure;
    for (let x = 0, k = 0; x < width && k < ids.length; x++) {
      const next = seekStart(store.start, ids, k, ids.length, begin + ((x + 1) / width) * length);
      if (next > k) c.fillRect(x, BARS_HEIGHT + 1, 1, MATCHES_HEIGHT - 2);
      k = next;
    }
  }

  /** Draws a tick wherever a request of the panel begins. */
  requests() {
    const { context: c, width, begin, length } = this;
    const starts = this.starts();
    c.fillStyle = this.look.palette.css.chain;
    for (let k = 0, last = -1; k < starts.length; k++) {
      const x = Math.floor(((starts[k] - begin) / length) * width);
      if (x > last) c.fillRect(x, BARS_HEIGHT + 1, 1, MATCHES_HEIGHT - 2);
      last = x;
    }
  }

  /** Marks the visible range by dimming the rest; if each row shows another time, all is dimmed. */
  window() {
    const { context: c, width } = this;
    const { look: { palette }, view } = this;
    const [x0, x1] = view.relative ? [0, 0] : this.windowEdges();
    c.fillStyle = palette.css.back;
    c.globalAlpha = 0.55;
    c.fillRect(0, 0, x0, BARS_HEIGHT);
    c.fillRect(x1, 0, width - x1, BARS_HEIGHT);
    c.globalAlpha = 1;
    if (view.relative) return;
    c.strokeStyle = palette.css.measure;
    c.lineWidth = 1.5;
    c.strokeRect(x0 + 0.75, 0.75, x1 - x0 - 1.5, BARS_HEIGHT - 1.5);
  }

  /** @returns {[number, number]} */
  windowEdges() {
    const { view } = this;
    const x = (/** @type {number} */ time) => Math.min(Math.max(((time - this.begin) / this.length) * this.width, 0), this.width);
    const [x0, x1] = [x(view.t0), x(view.t1)];
    if (x1 - x0 >= WINDOW_MIN) return [x0, x1];
    const from = Math.min(Math.max((x0 + x1 - WINDOW_MIN) / 2, 0), this.width - WINDOW_MIN);
    return [from, from + WINDOW_MIN];
  }

  /** Moves the visible range so that its middle is at x. @param {number} x */
  centre(x) {
    const { view } = this;
    const time = this.begin + (x / this.width) * this.length;
    const half = (view.t1 - view.t0) / 2;
    view.show(time - half, time + half);
  }
}
