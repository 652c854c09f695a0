// SPDX-License-Identifier: BSD-3-Clause
// Notes on the picture: a bubble of text whose tip points at a span, or a measured length between two times.

import { callText, durationText, secondsText, shownName, threadText } from "../data/format.js";
import { AXIS_HEIGHT, MARKS_HEIGHT } from "../view/view.js";
import { FONT } from "./palette.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {TimeScale} from "../view/timescale.js"
 * @import {View} from "../view/view.js"
 * @import {Hit} from "./hit.js"
 * @import {Look} from "./look.js"
 */

const NOTE_SIZE = 12;
const NOTE_LINE = 16;
const NOTE_PAD = 6;
/** Maximum number of characters in a line and lines in a bubble; longer text is drawn truncated. */
const NOTE_CHARACTERS = 72;
const NOTE_LINES = 12;
/** Half the height of a length, and pixels from one line of lengths to the next. */
const LENGTH_HALF = 9;
const LENGTH_STEP = 22;
/** Distance in pixels within which a click takes the tip. */
const TIP_REACH = 6;

/**
 * A note. With `to` greater than `from` it is a length, `dy` below the upper edge of the rows; else `from` is the time of its
 * tip on the row of span `i` in `group` (a group's name), and the bubble's corner is at an offset of `dx`, `dy` from there.
 * @typedef {{i: number, group: string, from: number, to: number, dx: number, dy: number, text: string}} Note
 */
/** The place where a note was drawn. @typedef {{note: Note, tipX: number, tipY: number, x: number, y: number, w: number, h: number}} Bubble */

/**
 * The page as notes see it. Requests: the group on whose row a span is shown, the span under a point, scrolling the row of a span
 * into view, remembering the view for the way back. Notifications: another note is selected, the overlay or
 * the view has changed.
 * @typedef {{homeOf: (i: number) => Group, hitAt: (x: number, y: number) => Hit | null, revealRow: (i: number) => void,
 *   remember: () => void, noteSelected: () => void, overlayChanged: () => void, viewChanged: () => void}} NotesPage
 */

export class Notes {
  /** @param {{store: Store, groups: Group[], view: View, look: Look}} parts @param {NotesPage} page */
  constructor({ store, groups, view, look }, page) {
    this.store = store;
    this.groups = groups;
    this.view = view;
    this.look = look;
    this.page = page;
    /** @type {Note[]} */
    this.all = [];
    /** The note whose text is in the panel. @type {Note | null} */
    this.selected = null;
    /** The bubbles drawn last. @type {Bubble[]} */
    this.bubbles = [];
  }

  /**
   * Adds a note on a span, at the given time, or in the span's middle if the time is outside of it.
   * @param {number} i
   * @param {number} time
   * @param {Group | undefined} group
   */
  addSpan(i, time, group) {
    const { store } = this;
    const [start, end] = [store.start[i], store.start[i] + store.dur[i]];
    const from = time >= start && time <= end ? time : (start + end) / 2;
    const home = group ?? this.page.homeOf(i);
    const thread = store.pids[store.pid[i]] > 0 ? ` \u00b7 ${threadText(store, store.pids[store.pid[i]])}` : "";
    const text = `${callText(store, i)}\n${secondsText(start)} s \u00b7 ${durationText(store.dur[i])}${thread}`;
    this.add({ i, group: home?.name ?? "", from, to: from, dx: 24, dy: -64, text });
  }

  /** Adds a length, on the first line where it covers no other note; the totals stay in the panel. @param {number} from @param {number} to */
  addLength(from, to) {
    const { view } = this;
    const [x0, x1] = [view.x(from) - LENGTH_HALF, view.x(to) + LENGTH_HALF];
    const covers = (/** @type {number} */ dy) => this.bubbles.some((b) =>
      b.x < x1 && b.x + b.w > x0 && b.y < MARKS_HEIGHT + dy + LENGTH_HALF && b.y + b.h > MARKS_HEIGHT + dy - LENGTH_HALF);
    let dy = 16;
    while (covers(dy) && dy + LENGTH_STEP < view.rowsSeen) dy += LENGTH_STEP;
    this.all.push({ i: -1, group: "", from, to, dx: 0, dy, text: durationText(to - from) });
    this.page.overlayChanged();
  }

  /** @param {Note} note */
  add(note) {
    this.all.push(note);
    this.select(note);
  }

  /** @param {Note | null} note */
  select(note) {
    this.selected = note;
    this.page.noteSelected();
  }

  /** @param {Note} note */
  remove(note) {
    this.all = this.all.filter((other) => other !== note);
    this.select(null);
  }

  /** Selects the next or the previous note in time and scrolls it into view. @param {number} direction */
  step(direction) {
    const inTime = this.shown.sort((a, b) => a.from - b.from);
    if (inTime.length === 0) return;
    const at = this.selected ? inTime.indexOf(this.selected) + direction : direction > 0 ? 0 : -1;
    const note = inTime[(at + inTime.length) % inTime.length];
    const { view } = this;
    const group = this.groupOf(note);
    const shift = group ? view.shiftOf(group, group.rowOf(note.i)) : 0;
    const [from, to] = [note.from - shift, note.to - shift];
    if (from < view.t0 || to > view.t1) {
      this.page.remember();
      const half = Math.max(view.t1 - view.t0, (to - from) * 1.2) / 2;
      view.show((from + to) / 2 - half, (from + to) / 2 + half);
    }
    if (note.i >= 0) this.page.revealRow(note.i);
    this.page.viewChanged();
    this.select(note);
  }

  /** The notes in the form they are saved in: each with values that identify its span, independent of the span's number. */
  list() {
    const { start, dur, cpu, cpus, pid, pids, event, events } = this.store;
    return this.all.map((note) => {
      const { i } = note;
      return { ...note, span: i < 0 ? null : [start[i], dur[i], cpus[cpu[i]], pids[pid[i]], events[event[i]]] };
    });
  }

  /** Loads saved notes; those that cannot belong to this trace are skipped. @param {unknown} kept */
  load(kept) {
    const { store } = this;
    const numbers = /** @type {const} */ (["from", "to", "dx", "dy"]);
    const whole = (/** @type {any} */ note) => numbers.every((key) => Number.isFinite(note?.[key]))
      && typeof note.text === "string" && typeof note.group === "string";
    this.all = (Array.isArray(kept) ? kept : []).filter(whole).flatMap(({ span, ...note }) => {
      const i = Array.isArray(span) ? spanLike(store, span) : Number.isInteger(note.i) ? note.i : -1;
      return i < store.n && (i >= 0 || note.to > note.from) ? [{ ...note, i }] : [];
    });
  }

  /** The notes that can be drawn: a length is not on a row, so it needs a time that all rows share. */
  get shown() {
    return this.all.filter((note) => note.i >= 0 || !this.view.relative);
  }

  /** @param {Note} note */
  groupOf(note) {
    return this.groups.find((g) => g.name === note.group);
  }

  /** The position of a note's tip; null if it is not visible. @param {Note} note */
  tipOf(note) {
    const { view } = this;
    const group = this.groupOf(note);
    const item = group && view.itemsOf.get(group)?.[group.rowOf(note.i)];
    if (!item) return null;
    const x = view.on(item).x(note.from);
    if (x < 0 || x > view.width) return null;
    const y = view.middle(item);
    return y < MARKS_HEIGHT || y > MARKS_HEIGHT + view.rowsSeen ? null : { x, y };
  }

  /** Draws all visible notes, and records their bubbles for hit tests. @param {CanvasRenderingContext2D} c */
  draw(c) {
    this.bubbles = [];
    for (const note of this.shown) {
      if (note.to > note.from) this.drawLength(c, note);
      else this.drawBubble(c, note);
    }
  }

  /** @param {CanvasRenderingContext2D} c @param {Note} note */
  drawBubble(c, note) {
    const { view, look: { palette } } = this;
    const tip = this.tipOf(note);
    if (!tip) return;
    const lines = note.text.split("\n").slice(0, NOTE_LINES).map((line) => shownName(line).slice(0, NOTE_CHARACTERS));
    c.font = `${NOTE_SIZE}px ${FONT}`;
    const w = Math.max(...lines.map((line) => c.measureText(line).width), 20) + 2 * NOTE_PAD;
    const h = lines.length * NOTE_LINE + 2 * NOTE_PAD - 2;
    const x = Math.min(Math.max(tip.x + note.dx, 2), Math.max(view.width - w - 2, 2));
    const y = Math.min(Math.max(tip.y + note.dy, 2), Math.max(view.height - AXIS_HEIGHT - h - 2, 2));
    const edge = note === this.selected ? palette.css.measure : palette.css.text;
    c.strokeStyle = c.fillStyle = edge;
    c.lineWidth = 1.25;
    const nearX = Math.min(Math.max(tip.x, x + 8), x + w - 8);
    const nearY = Math.min(Math.max(tip.y, y), y + h);
    c.beginPath();
    c.moveTo(tip.x, tip.y);
    c.lineTo(nearX, nearY);
    c.stroke();
    c.beginPath();
    c.arc(tip.x, tip.y, 3.5, 0, 2 * Math.PI);
    c.fill();
    c.fillStyle = palette.css.back;
    c.beginPath();
    c.roundRect(x, y, w, h, 5);
    c.fill();
    c.lineWidth = note === this.selected ? 2 : 1;
    c.stroke();
    c.fillStyle = palette.css.text;
    lines.forEach((line, k) => c.fillText(line, x + NOTE_PAD, y + NOTE_PAD + (k + 0.5) * NOTE_LINE - 1));
    this.bubbles.push({ note, tipX: tip.x, tipY: tip.y, x, y, w, h });
  }

  /** @param {CanvasRenderingContext2D} c @param {Note} note */
  drawLength(c, note) {
    const { view, look: { palette } } = this;
    if (note.from > view.t1 || note.to < view.t0) return;
    const [x0, x1] = [Math.max(view.x(note.from), -10), Math.min(view.x(note.to), view.width + 10)];
    const y = Math.min(MARKS_HEIGHT + Math.max(note.dy, 10), view.height - AXIS_HEIGHT - 10);
    const color = note === this.selected ? palette.css.measure : palette.css.text;
    c.fillStyle = color;
    c.fillRect(x0, y - 0.75, x1 - x0, 1.5);
    c.fillRect(x0 - 0.75, y - 7, 1.5, 14);
    c.fillRect(x1 - 0.75, y - 7, 1.5, 14);
    const text = shownName(note.text.split("\n")[0]).slice(0, NOTE_CHARACTERS);
    c.font = `bold ${NOTE_SIZE}px ${FONT}`;
    const w = c.measureText(text).width + 8;
    const x = Math.min(Math.max((x0 + x1 - w) / 2, 2), Math.max(view.width - w - 2, 2));
    c.fillStyle = palette.css.back;
    c.fillRect(x, y - 9, w, 18);
    c.fillStyle = color;
    c.fillText(text, x + 4, y + 0.5);
    this.bubbles.push({ note, tipX: -99, tipY: -99, x: Math.min(x, x0), y: y - 9, w: Math.max(w, x1 - x0), h: 18 });
  }

  /**
   * The note under a point, and which part of it.
   * @param {number} x
   * @param {number} y
   * @returns {{note: Note, part: "tip" | "bubble"} | null}
   */
  at(x, y) {
    const onBubble = this.bubbles.findLast((b) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h);
    if (onBubble) return { note: onBubble.note, part: "bubble" };
    const onTip = this.bubbles.findLast((b) => Math.hypot(x - b.tipX, y - b.tipY) <= TIP_REACH);
    return onTip ? { note: onTip.note, part: "tip" } : null;
  }

  /**
   * Moves a note by pixels, the whole bubble or only the tip; a moved tip attaches to the span under it.
   * @param {{note: Note, part: "tip" | "bubble"}} taken
   * @param {number} byX
   * @param {number} byY
   * @param {{x: number, y: number}} [to] new position of the tip
   */
  move({ note, part }, byX, byY, to) {
    if (part === "bubble") {
      note.dx += byX;
      note.dy += byY;
    } else if (to) {
      const { view } = this;
      const hit = this.page.hitAt(to.x, to.y);
      const before = this.tipOf(note);
      if (!hit?.item || hit.item.row < 0 || hit.item.group.rowOf(hit.i) < 0) return;
      note.i = hit.i;
      note.group = hit.item.group.name;
      note.from = note.to = this.snapped(to.x, hit.i, view.on(hit.item));
      const after = this.tipOf(note);
      if (before && after) {
        // The bubble stays where it is.
        note.dx += before.x - after.x;
        note.dy += before.y - after.y;
      }
    }
    this.page.overlayChanged();
  }

  /** The time at x, or the start of the span if that is near. @param {number} x @param {number} i @param {TimeScale} times */
  snapped(x, i, times) {
    const { store } = this;
    const [start, end] = [store.start[i], store.start[i] + store.dur[i]];
    if (Math.abs(times.x(start) - x) < TIP_REACH) return start;
    return Math.min(Math.max(times.time(x), start), end);
  }
}

/** The span with these values, -1 if none. @param {Store} store @param {number[]} numbers start, duration, CPU, thread, event */
function spanLike(store, [from, ...others]) {
  const { n, start, dur, cpu, cpus, pid, pids, event, events } = store;
  let [low, high] = [0, n];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (start[middle] < from) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < n && start[i] === from; i++) {
    const numbers = [dur[i], cpus[cpu[i]], pids[pid[i]], events[event[i]]];
    if (numbers.every((value, k) => value === others[k])) return i;
  }
  return -1;
}
