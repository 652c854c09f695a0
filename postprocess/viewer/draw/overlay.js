// SPDX-License-Identifier: BSD-3-Clause
// The overlay above the picture: names inside spans, the items drawn by the files around this one, the axis, the selection, a
// measured range.

import { callText, durationText, shownName } from "../data/format.js";
import { isAbsent, isKernel, MARK_A, waitLetter } from "../data/kind.js";
import { firstInLane, indexByRow, laneOf, seekStart } from "../data/rows.js";
import { EVENT, Kind } from "../data/tables.js";
import { wordOf } from "../data/words.js";
import { AXIS_HEIGHT, INNER_PART, MARKS_HEIGHT, OUTER_PART } from "../view/view.js";
import { Arcs } from "./arcs.js";
import { Bars } from "./bars.js";
import { Crossings } from "./crossings.js";
import { Curves } from "./curves.js";
import { Glyphs } from "./glyphs.js";
import { Lettering } from "./lettering.js";
import { FONT } from "./palette.js";
import { Paths } from "./path.js";
import { Steals } from "./steals.js";
import { Steps } from "./steps.js";
import { Tags } from "./tags.js";
import { Messages } from "./messages.js";
/**
 * @import {Call} from "../data/around.js"
 * @import {Step} from "../data/chain.js"
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {Lane} from "../data/rows.js"
 * @import {Axis} from "../view/axis.js"
 * @import {TimeScale} from "../view/timescale.js"
 * @import {Item, Spot, View} from "../view/view.js"
 * @import {Layers} from "./layers.js"
 * @import {Look} from "./look.js"
 * @import {RequestPath} from "./path.js"
 * @import {Picture} from "./picture.js"
 */

/** Maximum number of outlined pieces of a selected call. */
const PIECES_MAX = 1000;
/** Points of a row are drawn if each has at least this number of pixels on average. */
const POINT_ROOM = 40;
/** And only if a pixel is less time than this, units of 10 ns. */
const POINT_SCALE = 500;

/**
 * The state to draw: the axis; the selected span, -1 for none, and the call selected with it; a measured range; the wakeups that led to the selected
 * span, if requested; the path of the request shown; the switches of arcs.
 * @typedef {{axis: Axis, selected: number, call: Call | null, measured: {from: number, to: number} | null, chain: Step[] | null,
 *   path: RequestPath | null, showArcs: boolean, showIpis: boolean}} Shown
 */

export class Overlay {
  /** Device pixels per CSS pixel. */
  ratio = 1;

  /**
   * @param {{store: Store, groups: Group[], wakeups: Lane, ipis: Lane, marks: Lane, view: View, focus: Focus,
   *   layers: Layers, look: Look, picture: Picture}} parts
   * @param {HTMLCanvasElement} canvas
   */
  constructor({ store, groups, wakeups, ipis, marks, view, focus, layers, look, picture }, canvas) {
    this.store = store;
    this.groups = groups;
    this.wakeups = wakeups;
    this.ipis = ipis;
    this.marks = marks;
    this.view = view;
    this.focus = focus;
    this.layers = layers;
    this.look = look;
    this.picture = picture;
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const lettering = new Lettering(this.context);
    this.lettering = lettering;
    /** Marks and points drawn. @type {Spot[]} */
    this.spots = [];
    /** Marks by row of a group, once rows share no time. @type {Map<Group, Lane>} */
    this.marksOf = new Map();
    this.arcs = new Arcs({ store, groups, view, focus, look }, [wakeups, ipis], this.context);
    this.crossings = new Crossings({ store, groups, view, focus, look }, this.context);
    this.paths = new Paths({ groups, view, look, lettering }, this.context);
    this.bars = new Bars({ store, view, focus, layers, look, lettering }, this.context, this.spots);
    this.messages = new Messages({ store, view, focus, look, lettering }, this.context, this.spots);
    this.steps = new Steps({ store, view, focus, look, lettering }, this.context, this.spots);
    this.curves = new Curves({ store, view, focus, look, lettering }, this.context);
    this.steals = new Steals({ store, view, focus, look, lettering }, this.context, this.curves, this.spots);
    this.tags = new Tags({ store, view, focus, layers, look, lettering }, this.context);
    this.glyphs = new Glyphs({ store, view, focus, layers }, this.context);
  }

  /** @param {number} width in CSS pixels @param {number} height @param {number} ratio */
  resize(width, height, ratio) {
    this.canvas.width = Math.max(Math.round(width * ratio), 1);
    this.canvas.height = Math.max(Math.round(height * ratio), 1);
    this.ratio = ratio;
    this.lettering.clear();
  }

  /** @param {Shown} shown */
  draw({ axis, selected, call, measured, chain, path, showArcs, showIpis }) {
    const { context: c, ratio, look: { palette } } = this;
    const { view, groups, wakeups, ipis, picture } = this;
    this.spots.length = 0;
    this.arcs.drawn.length = 0;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, view.width, view.height);
    c.textBaseline = "middle";
    c.save();
    c.beginPath();
    c.rect(0, MARKS_HEIGHT, view.width, view.rowsSeen);
    c.clip();
    this.headers();
    this.curves.draw(picture.lines.curves);
    // Connections from row to row need a time that the rows share.
    const shared = !view.relative;
    if (shared && showArcs) this.arcs.draw(wakeups, groups, palette.css.wakeup, true);
    if (shared && showArcs) this.crossings.draw();
    if (shared && showIpis) this.arcs.draw(ipis, groups.slice(0, 1), palette.css.ipi, false);
    for (const item of view.seen()) if (item.row >= 0) this.steals.draw(item);
    this.names();
    this.glyphs.draw(picture.lines.roomy, ratio);
    this.samples();
    for (const item of view.seen()) if (item.row >= 0) this.rowDetails(item);
    this.tags.draw();
    if (shared && path) this.paths.draw(path);
    if (shared && chain) this.arcs.drawChain(chain);
    if (call) for (const piece of call.pieces.slice(0, PIECES_MAX)) this.selection(piece, piece, groups.slice(0, 1));
    if (call) this.selection(call.pieces[0], call.pieces[call.pieces.length - 1], groups.slice(1));
    else if (selected >= 0) this.selection(selected, selected);
    c.restore();
    if (shared) this.flagsOfAll();
    this.axis(axis);
    if (measured) this.measure(measured);
    this.scrollBar();
  }

  /** Draws lines below group headers, and below the pinned rows. */
  headers() {
    const { view, look: { palette } } = this;
    this.context.fillStyle = palette.css.dim;
    if (view.pins.length > 0) this.context.fillRect(0, view.rowsTop - 2, view.width, 2);
    this.context.fillStyle = palette.css.grid;
    for (const item of view.seen()) {
      if (item.row < 0) this.context.fillRect(0, Math.round(view.top(item) + item.h) - 1, view.width, 1);
    }
  }

  /** Draws the names of spans that have room for them. */
  names() {
    const { context: c } = this;
    const { store, view, look: { palette }, focus, picture } = this;
    for (const { i, x, w, item } of picture.lines.roomy) {
      const kind = store.kind[i];
      const size = Math.min(12, Math.floor(view.bodyHeight(item) * 2 * (isKernel(kind) ? OUTER_PART : INNER_PART)));
      if (size < 9) continue;
      c.font = `${size}px ${FONT}`;
      const name = store.names[store.name[i]];
      const full = kind === Kind.SYSCALL ? callText(store, i) : isAbsent(kind) ? wordOf(name) : shownName(name);
      const text = this.lettering.fit(full, w - 6, size);
      if (text === "") continue;
      const shows = focus.shows(i);
      const width = this.lettering.widthOf(text, size);
      if (this.steals.isBetween(item, x + 4, x + 4 + width)) {
        c.fillStyle = shows ? palette.color(store, i) : palette.css.grey;
        c.fillRect(x + 2, view.middle(item) - size / 2 - 1, width + 4, size + 2);
      }
      c.fillStyle = shows ? palette.inkOf(store, i) : palette.greyInk;
      c.fillText(text, x + 4, view.middle(item) + 0.5);
    }
  }

  /** Draws the names of sampled functions. */
  samples() {
    const { context: c } = this;
    const { store, view, focus, look: { palette }, picture } = this;
    c.font = `10px ${FONT}`;
    for (const { i, x, w, item } of picture.strips.roomy) {
      const y = view.top(item) + item.above / 2 + 0.5;
      this.spots.push({ i, x0: x, x1: x + w, y0: view.top(item) + 2, y1: view.top(item) + item.above - 1 });
      const text = this.lettering.fit(shownName(store.names[store.name[i]]), w - 6, 10);
      if (text === "") continue;
      c.fillStyle = focus.shows(i) ? "#0d1117" : palette.greyInk;
      c.fillText(text, x + 3, y);
    }
  }

  /** Draws the other items on one row. @param {Item} item */
  rowDetails(item) {
    this.waitTexts(item);
    this.points(item);
    this.bars.draw(item);
    this.messages.draw(item);
    this.steps.draw(item);
    if (this.view.relative) this.rowMarks(item);
  }

  /** Draws the reason of each wait in words, or as a letter, if there is room next to its code. @param {Item} item */
  waitTexts(item) {
    const { context: c } = this;
    const { store, view, look: { palette }, focus } = this;
    const { waits } = item.group;
    const times = view.on(item);
    const end = waits.first[item.row + 1];
    const y = view.middle(item);
    const size = Math.min(11, view.bodyHeight(item) - 8);
    if (size < 8) return;
    c.font = `bold ${size}px ${FONT}`;
    for (let k = firstInLane(waits, item.row, times.t0), next = k; k < end; k = next) {
      const i = waits.ids[k];
      if (store.start[i] >= times.t1) break;
      next = k + 1;
      if (store.dur[i] * view.scale < 1) {
        next = Math.max(next, seekStart(store.start, waits.ids, next, end, store.start[i] + 1 / view.scale) - 1);
      }
      const a = Math.max(times.x(store.start[i]), 0);
      const b = Math.min(times.x(store.start[i] + store.dur[i]), view.width);
      if (b - a < 24 || (focus.sleeps(i) && !(focus.active && focus.shows(i)))) continue;
      const letter = waitLetter(store.events[store.event[i]]);
      const word = b - a > 180 ? shownName(store.names[store.name[i]]) : letter;
      const width = this.lettering.widthOf(word, size + 100);
      const x = a + (b - a - width) / (b - a > 180 ? 3 : 2);
      c.fillStyle = palette.css[item.even ? "row" : "back"];
      c.fillRect(x - 3, y - 4, width + 6, 8);
      c.fillStyle = focus.shows(i) ? palette.ink(palette.wait(letter)) : palette.css.dim;
      c.fillText(word, x, y + 0.5);
    }
  }

  /** Draws small triangles for events without duration, if there is room. @param {Item} item */
  points(item) {
    const { context: c } = this;
    const { store, view, look: { palette }, focus } = this;
    const lane = item.group.points;
    const times = view.on(item);
    const from = firstInLane(lane, item.row, times.t0);
    const to = seekStart(store.start, lane.ids, from, lane.first[item.row + 1], times.t1);
    if ((to - from) * POINT_ROOM > view.width || view.scale * POINT_SCALE < 1) return;
    const bottom = view.top(item) + item.h - item.below;
    for (let k = from; k < to; k++) {
      const i = lane.ids[k];
      const x = times.x(store.start[i]);
      const color = store.kind[i] === Kind.RPC ? palette.css.mark : palette.css.dim;
      c.fillStyle = focus.shows(i) ? color : palette.css.grey;
      c.beginPath();
      c.moveTo(x, bottom - 7);
      c.lineTo(x - 3.5, bottom - 1);
      c.lineTo(x + 3.5, bottom - 1);
      c.fill();
      this.spots.push({ i, x0: x - 4, x1: x + 4, y0: bottom - 8, y1: bottom });
    }
  }

  /** Draws marks: a flag above the rows, and a line down to the row that it belongs to. */
  flagsOfAll() {
    const { view, marks, groups } = this;
    this.flags(marks, 0, view, 0, (i) => {
      const item = groups.map((g) => view.itemsOf.get(g)?.[g.rowOf(i)]).find((it) => it !== undefined);
      return item ? Math.min(Math.max(view.middle(item), MARKS_HEIGHT), view.height - AXIS_HEIGHT) : MARKS_HEIGHT;
    });
  }

  /** Draws marks on the row that they belong to, for rows that share no time. @param {Item} item */
  rowMarks(item) {
    const { store, view, marks } = this;
    const { group } = item;
    let lane = this.marksOf.get(group);
    if (!lane) {
      const rowOf = Int32Array.from(marks.ids, group.rowOf);
      this.marksOf.set(group, (lane = laneOf(store, indexByRow(group.keys.length, rowOf, marks.ids))));
    }
    this.flags(lane, item.row, view.on(item), view.top(item), () => view.middle(item));
  }

  /**
   * Draws the flags of one row of a lane; of those in one pixel, only the first.
   * @param {Lane} lane
   * @param {number} row
   * @param {TimeScale} times
   * @param {number} top
   * @param {(i: number) => number} bottomOf bottom end of a flag's line
   */
  flags(lane, row, times, top, bottomOf) {
    const { context: c } = this;
    const { store, look: { palette }, focus, layers } = this;
    let free = -Infinity;
    c.font = `11px ${FONT}`;
    const from = firstInLane(lane, row, times.t0);
    const to = seekStart(store.start, lane.ids, from, lane.first[row + 1], times.t1);
    const foot = top + MARKS_HEIGHT;
    for (let k = from; k < to;) {
      const i = lane.ids[k];
      const event = store.events[store.event[i]];
      // Marks that programs record themselves, and tracepoints, are text.
      const isText = event === EVENT.PROGRAM_MARK || event === EVENT.TRACEPOINT_MARK;
      const letter = isText ? "a" : String.fromCharCode(97 + event - MARK_A);
      k++;
      if (!layers.showsMark(letter)) continue;
      k = seekStart(store.start, lane.ids, k, to, store.start[i] + 0.5 / times.scale);
      const x = times.x(store.start[i]);
      const color = focus.shows(i) ? palette.css.mark : palette.css.grey;
      c.fillStyle = color;
      c.globalAlpha = 0.6;
      c.fillRect(Math.round(x), foot - 4, 1, bottomOf(i) - foot + 4);
      c.globalAlpha = 1;
      this.spots.push({ i, x0: x - 3, x1: x + 3, y0: top, y1: foot });
      if (x < free) continue;
      const text = shownName(store.names[store.name[i]]).replace(/^mark_([a-d])=/, (_, which) => (which === "d" ? "#" : ""));
      const width = this.lettering.widthOf(text, 211);
      c.fillStyle = palette.css.back;
      c.globalAlpha = 0.85;
      c.fillRect(x + 1, top + 4, width + 4, MARKS_HEIGHT - 6);
      c.globalAlpha = 1;
      c.fillStyle = palette.markInk(focus.shows(i));
      c.fillText(text, x + 3, (top + foot) / 2 + 1);
      free = x + width + 8;
      this.spots.push({ i, x0: x, x1: free - 6, y0: top, y1: foot });
    }
  }

  /** Draws an outline from the start of a span to the end of another, on every row that shows the first. @param {number} selected @param {number} last @param {Group[]} [groups] */
  selection(selected, last, groups = this.groups) {
    const { context: c } = this;
    const { store, view, look: { palette } } = this;
    c.strokeStyle = palette.css.select;
    c.lineWidth = 2;
    for (const group of groups) {
      const item = view.placeOf(group, group.rowOf(selected));
      if (!item) continue;
      const part = isKernel(store.kind[selected]) ? OUTER_PART : INNER_PART;
      const reach = view.bodyHeight(item) * part + 1;
      const times = view.on(item);
      const x0 = times.x(store.start[selected]);
      const x1 = Math.max(times.x(store.start[last] + store.dur[last]), x0 + 2);
      const left = Math.max(x0, -5);
      c.strokeRect(left - 1, view.middle(item) - reach, Math.min(x1, view.width + 5) - left + 2, 2 * reach);
    }
  }

  /** @param {Axis} axis */
  axis(axis) {
    const { context: c } = this;
    const { view, look: { palette } } = this;
    const top = view.height - AXIS_HEIGHT;
    c.fillStyle = palette.css.back;
    c.fillRect(0, top, view.width, AXIS_HEIGHT);
    c.fillStyle = palette.css.dim;
    c.fillRect(0, top, view.width, 1);
    c.font = `11px ${FONT}`;
    for (const { time, label } of axis.ticks) {
      const x = view.x(time);
      c.fillStyle = palette.css.dim;
      c.fillRect(Math.round(x), top, 1, 5);
      c.fillStyle = palette.css.text;
      const width = this.lettering.widthOf(label, 211);
      c.fillText(label, Math.min(Math.max(x - width / 2, 2), view.width - width - 2), top + 14);
    }
  }

  /** Draws the range that is being measured, or was measured last. @param {{from: number, to: number}} measured */
  measure(measured) {
    const { context: c } = this;
    const { view, look: { palette } } = this;
    const x0 = view.x(Math.min(measured.from, measured.to));
    const x1 = view.x(Math.max(measured.from, measured.to));
    const bottom = view.height - AXIS_HEIGHT;
    c.fillStyle = palette.css.measure;
    c.globalAlpha = 0.12;
    c.fillRect(x0, MARKS_HEIGHT, x1 - x0, bottom - MARKS_HEIGHT);
    c.globalAlpha = 1;
    c.fillRect(x0, MARKS_HEIGHT, 1, bottom - MARKS_HEIGHT);
    c.fillRect(x1, MARKS_HEIGHT, 1, bottom - MARKS_HEIGHT);
    const text = durationText(Math.abs(measured.to - measured.from));
    c.font = `bold 13px ${FONT}`;
    const width = this.lettering.widthOf(text, 313);
    const x = Math.min(Math.max((x0 + x1 - width) / 2, 8), view.width - width - 8);
    c.fillRect(x - 6, bottom - 26, width + 12, 20);
    c.fillStyle = palette.css.back;
    c.fillText(text, x, bottom - 15.5);
  }

  /** Draws the position of the visible rows among all rows. */
  scrollBar() {
    const { context: c } = this;
    const { view, look: { palette } } = this;
    if (view.scrollMax === 0) return;
    const part = view.rowsRoom / view.rowsHeight;
    c.fillStyle = palette.css.dim;
    c.globalAlpha = 0.5;
    c.fillRect(view.width - 5, view.rowsTop + Math.min(Math.max(view.scroll, 0), view.scrollMax) * part, 4, Math.max(view.rowsRoom * part, 12));
    c.globalAlpha = 1;
  }
}

/** The number of items of each sort drawn last. @param {Picture} picture @param {Overlay} overlay */
export function drawnBy({ lines, strips }, { arcs, curves, tags, glyphs, spots }) {
  return {
    names: lines.roomy.length, curves: lines.curves.length, samples: strips.roomy.length, arcs: arcs.drawn.length,
    overheads: curves.overheads, tags: [...tags.drawn], dials: glyphs.count, spots: spots.map((spot) => ({ ...spot })),
  };
}
