// SPDX-License-Identifier: BSD-3-Clause
// The view: the visible range of time, and the place of each row. All lengths are in CSS pixels.
//
// Rows can count time from their own start, to be compared: each is moved in time, by its item's `shift`, so that
// its first contents are at the start of the trace. The view's own range is then that of the axis. Code that draws, or
// searches, on a row takes times from `on(item)`, and need not know.

import { isOfThreads, kernelThreads, KERNEL_THREADS } from "../data/groups.js";
import { ORDERS, orderOf } from "../data/order.js";
import { runsIn } from "../data/rows.js";
import { isFoldedAway, standIn, withHeaders } from "../data/sections.js";
import { TimeScale } from "./timescale.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Index} from "../data/rows.js"
 */

/** The shortest range that can be shown, units of 10 ns. */
export const SHORTEST = 10;
/** Heights in CSS pixels. */
export const MARKS_HEIGHT = 18;
export const AXIS_HEIGHT = 24;
const HEADER_HEIGHT = 22;
/** Minimum share of the room for CPUs, if they need it. */
const CPU_PART = 0.6;
export const ROW_MIN = 18;
const ROW_MAX = 90;
/** Height of a pinned row, and the maximum share of the room for all of them. */
const PIN_HEIGHT = 44;
const PINS_PART = 0.5;
/** Rows of CPUs that do not fit are lower, down to this; lower than `HEAT_MAX` they are a map of the load, and heights differ by a pixel. */
const HEAT_MIN = 1;
export const HEAT_MAX = 10;
/** Height of a CPU's row that is enough: any more is left to other groups. */
const CPU_ENOUGH = 56;
/** Height that the name of a row needs; if rows are lower, not every row is `named`. */
export const NAME_HEIGHT = 14;
/** Limits of the factor by which rows are enlarged. */
const ROW_ZOOM_MIN = 0.5;
const ROW_ZOOM_MAX = 6;
/** Share of the width before the start of rows that are compared. */
const BEGIN_ROOM = 0.02;
/** Extents of the zones, as parts of a row's height from its middle. */
export const OUTER_PART = 0.42;
export const INNER_PART = 0.27;
/** Minimum height of a row for execution; if less would remain, nothing is kept free. */
const BODY_MIN = 20;

/**
 * A row in the picture; `row` is -1 for the header of its group, and less for that of a section. `above` and `below` are kept free of
 * execution; `even` rows have another background. Its contents are drawn `shift` units earlier than they happened. A `pinned` row
 * is above those that scroll. A `named` row has its name next to it.
 * @typedef {{group: Group, row: number, y: number, h: number, above: number, below: number, even: boolean, shift: number, pinned: boolean, named: boolean}} Item
 */

/** The row or header at a height `y` below the pinned rows, and the part of it above that height. @typedef {{group: Group, row: number, part: number, y: number}} Held */

/** An item drawn that a pointer can hit. @typedef {{i: number, x0: number, y0: number, x1: number, y1: number}} Spot */

export class View extends TimeScale {
  /** @param {Store} store @param {Index} exec execution by CPU */
  constructor(store, exec) {
    const [begin, end] = extent(store, exec);
    super(begin, end, 1);
    this.store = store;
    this.begin = begin;
    this.end = end;
    this.height = 1;
    this.scroll = 0;
    /** The height of the pointer in the picture, -1 if it is outside: the row under it keeps its place. */
    this.pointerY = -1;
    this.rowsHeight = 0;
    /** @type {Item[]} */
    this.items = [];
    /** Items by row, for rows that are not hidden. @type {Map<Group, Item[]>} */
    this.itemsOf = new Map();
    /** The rows that are not hidden. @type {Map<Group, number[]>} */
    this.rowsOf = new Map();
    /** The headers of sections, by group and number. @type {Map<Group, Map<number, Item>>} */
    this.headersOf = new Map();
    /** True if rows stay when none of their contents are visible. */
    this.keepsRows = false;
    /** True if rows without visible execution hide, too. */
    this.onlyRunning = false;
    /** True if rows of kernel threads hide. */
    this.onlyPrograms = false;
    /** The rows of kernel threads among threads, once needed. @type {Uint8Array | null} */
    this.kernelThreads = null;
    /** The order of threads. */
    this.orderedBy = ORDERS[0];
    /** The order of rows, if not by number. @type {Map<Group, number[]>} */
    this.orders = new Map();
    /** A span whose rows stay in any case while some of their contents are visible, -1 for none. */
    this.kept = -1;
    /** True if each row counts from its own start. */
    this.relative = false;
    /** The only rows of a group to show, in this order, if any are chosen. @type {{group: Group, rows: number[]} | null} */
    this.chosen = null;
    /** The range to return to afterwards. @type {[number, number] | null} */
    this.rangeBefore = null;
    /** Rows that stay visible above all others, in the order of pinning. @type {{group: Group, row: number}[]} */
    this.pins = [];
    this.pinnedHeight = 0;
    /** Factor of the height of rows. */
    this.rowZoom = 1;
    this.showWhole();
  }

  /** The visible times on a row. @param {Item} item @returns {TimeScale} */
  on({ shift }) {
    return shift === 0 ? this : new TimeScale(this.t0 + shift, this.t1 + shift, this.width);
  }

  /** The shift of a row in time. @param {Group} group @param {number} row */
  shiftOf(group, row) {
    return this.relative && group.from[row] < Infinity ? group.from[row] - this.begin : 0;
  }

  /** Lets each row count from its own start, and shows the starts; or returns to a common time and the previous range. @param {Group[]} groups */
  toggleRelative(groups) {
    this.relative = !this.relative;
    if (this.relative) {
      const from = this.begin - (this.t1 - this.t0) * BEGIN_ROOM;
      this.rangeBefore = [this.t0, this.t1];
      this.show(from, from + this.t1 - this.t0);
    } else if (this.rangeBefore) this.show(...this.rangeBefore);
    this.layOut(groups);
  }

  /** The number of rows of a group that fit if CPUs are high enough, and whether all its rows fit. @param {Group} cpus @param {Group} group */
  roomFor(cpus, group) {
    const left = Math.floor((this.rowsSeen - (2 + cpus.sections.length) * HEADER_HEIGHT - cpus.keys.length * CPU_ENOUGH) / ROW_MIN);
    return { left, fits: group.keys.length <= left };
  }

  /** Shows everything, with a little room at both ends. */
  showWhole() {
    const room = Math.max((this.end - this.begin) * 0.005, 1);
    this.show(this.begin - room, this.end + room);
  }

  /**
   * Shows a range, as near as the limits allow.
   * @param {number} t0
   * @param {number} t1
   */
  show(t0, t1) {
    const whole = Math.max((this.end - this.begin) * 1.01, SHORTEST);
    const span = Math.min(Math.max(t1 - t0, SHORTEST), whole);
    const wanted = span === whole ? (this.begin + this.end) / 2 : (t0 + t1) / 2;
    // Each end of the trace can come to the middle, but the empty part is never wider than the part of the trace out of view.
    const empty = Math.min(Math.max(whole - span, (whole - (this.end - this.begin)) / 2), span / 2);
    const [min, max] = [this.begin - empty + span / 2, this.end + empty - span / 2];
    const middle = Math.min(Math.max(wanted, min), Math.max(max, min));
    this.t0 = middle - span / 2;
    this.t1 = this.t0 + span;
  }

  /**
   * Zooms around a place that keeps its position, or moves to another.
   * @param {number} factor above 1 to see more detail
   * @param {number} x
   * @param {number} [to] position that x moves to
   */
  zoom(factor, x, to = x) {
    const fixed = this.time(x);
    const span = Math.max((this.t1 - this.t0) / factor, SHORTEST);
    const left = (to / this.width) * span;
    this.show(fixed - left, fixed - left + span);
  }

  /** @param {number} pixels to the right */
  pan(pixels) {
    const by = pixels / this.scale;
    this.show(this.t0 + by, this.t1 + by);
  }

  /** Height between the marks and the axis, where rows are visible. */
  get rowsSeen() {
    return Math.max(this.height - MARKS_HEIGHT - AXIS_HEIGHT, 0);
  }

  /** The part of that height which pinned rows leave to those that scroll. */
  get rowsRoom() {
    return Math.max(this.rowsSeen - this.pinnedHeight, 0);
  }

  /** The top of the rows that scroll. */
  get rowsTop() {
    return MARKS_HEIGHT + this.pinnedHeight;
  }

  /** The maximum scroll position of rows. */
  get scrollMax() {
    return Math.max(this.rowsHeight - this.rowsRoom, 0);
  }

  /** @param {Group} group @param {number} row */
  isPinned(group, row) {
    return this.pins.some((pin) => pin.group === group && pin.row === row);
  }

  /** Pins or unpins a row. @param {Group} group @param {number} row */
  pin(group, row) {
    const others = this.pins.filter((pin) => pin.group !== group || pin.row !== row);
    this.pins = others.length < this.pins.length ? others : [...others, { group, row }];
  }

  /** Scrolls rows within the limits; a position outside of these, left by a row that kept its place, may stay but not move further out. @param {number} pixels */
  scrollRows(pixels) {
    const { scroll, scrollMax } = this;
    this.scroll = Math.min(Math.max(scroll + pixels, Math.min(scroll, 0)), Math.max(scroll, scrollMax));
  }

  /** Scrolls rows to a position, as near as the limits allow. @param {number} scroll */
  scrollTo(scroll) {
    this.scroll = Math.min(Math.max(scroll, 0), this.scrollMax);
  }

  /**
   * Rows of a group to show: none of a collapsed group, perhaps only the highlighted ones of a group that has some,
   * else those with visible contents, with visible execution, or of programs, depending on the settings; and the one
   * under the pointer. Pinned rows are placed separately.
   * @param {Group} group
   */
  wantedRows(group) {
    const { lit, from, to, exec } = group;
    if (group.collapsed || group.hidden) return [];
    if (this.chosen?.group === group) return this.chosen.rows.filter((r) => !this.isPinned(group, r));
    // Locks and the network have rows that never have execution.
    const running = this.onlyRunning && exec.ids.length > 0;
    const kept = running && this.kept >= 0 ? group.rowOf(this.kept) : -1;
    const under = this.itemAt(this.pointerY);
    const held = under?.group === group ? under.row : -1;
    const runs = (/** @type {number} */ r) => !running || r === kept || runsIn(this.store, exec, r, this.t0, this.t1);
    if (this.onlyPrograms && group.name === "PID") this.kernelThreads ??= kernelThreads(this.store, group);
    const isProgram = (/** @type {number} */ r) => !this.onlyPrograms || (group.name === "PID" ? this.kernelThreads?.[r] !== 1 : !isOfThreads(group) || group.keys[r] !== KERNEL_THREADS);
    const wanted = group.onlyLit ? (/** @type {number} */ r) => lit[r] === 1
      : this.keepsRows || this.relative || !group.hides ? () => true
      : (/** @type {number} */ r) => lit[r] === 1 || r === held
        || (from[r] <= this.t1 && to[r] >= this.t0 && runs(r) && isProgram(r));
    return (this.orders.get(group) ?? [...group.keys.keys()]).filter((r) => wanted(r) && !this.isPinned(group, r) && !isFoldedAway(group, r));
  }

  /**
   * Orders the rows of threads, if they are open, by the visible range; the order stays until the next call,
   * so that rows do not change places during zooming. Returns whether any row changed its place.
   * @param {Group[]} groups
   */
  order(groups) {
    const before = [...this.orders.values()].join();
    this.orders.clear();
    for (const group of groups) {
      if (!isOfThreads(group) || group.collapsed || group.hidden || this.orderedBy === ORDERS[0]) continue;
      this.orders.set(group, orderOf(this.store, group, this.orderedBy, (row) => {
        const shift = this.shiftOf(group, row);
        return { t0: this.t0 + shift, t1: this.t1 + shift };
      }, groups[1]));
    }
    return [...this.orders.values()].join() !== before;
  }

  /** Repeats the layout if the rows to show have changed. @param {Group[]} groups */
  freshen(groups) {
    const same = groups.every((group) => {
      const now = this.wantedRows(group);
      const was = this.rowsOf.get(group) ?? [];
      return now.length === was.length && now.every((row, k) => row === was[k]);
    });
    if (!same) this.layOut(groups);
  }

  /**
   * Places every row: rows share the available height, within limits. The row under the pointer stays there,
   * even if that leaves a gap above the first row; without a pointer, the first visible row stays, as far as rows scroll.
   * @param {Group[]} groups
   */
  layOut(groups) {
    const held = this.hold(this.pointerY);
    const first = this.scroll > 0 ? this.seen().find((item) => item.row >= 0 && !item.pinned) : undefined;
    // Guests come next to the CPUs, above what may be many threads.
    const place = (/** @type {Group} */ { name }) => ["CPU", "GUEST"].indexOf(name) >>> 0;
    const shown = groups.filter((g) => g.keys.length > 0 && !g.hidden).sort((a, b) => place(a) - place(b));
    this.rowsOf.clear();
    for (const group of shown) this.rowsOf.set(group, this.wantedRows(group));
    const rowsOf = (/** @type {Group} */ g) => this.rowsOf.get(g) ?? [];
    const cpus = shown.reduce((sum, g) => sum + (g.name === "CPU" ? rowsOf(g).length : 0), 0);
    const rest = shown.reduce((sum, g) => sum + rowsOf(g).length, -cpus);
    this.itemsOf.clear();
    this.items = this.layOutPins();
    const linesOf = (/** @type {Group} */ g) => (g.collapsed ? [] : withHeaders(g, rowsOf(g)));
    const headers = shown.reduce((sum, g) => sum + 1 + linesOf(g).length - (g.collapsed ? 0 : rowsOf(g).length), 0);
    const room = this.rowsRoom - headers * HEADER_HEIGHT;
    // All rows of open groups count, visible or not, so CPUs keep their height while such rows hide and reappear.
    const beside = shown.reduce((sum, g) => sum + (g.name === "CPU" || g.collapsed ? 0 : g.keys.length * ROW_MAX), 0);
    const cpuShare = Math.max(room * CPU_PART, room - beside) / Math.max(cpus, 1);
    const cpuHeight = Math.min(Math.max(cpuShare, HEAT_MIN), ROW_MAX);
    const max = held ? Math.min(this.maxAround(held, shown, cpuHeight), ROW_MAX) : ROW_MAX;
    const restHeight = Math.max(Math.min((room - cpus * cpuHeight) / Math.max(rest, 1), max), ROW_MIN);
    let y = 0;
    this.headersOf.clear();
    const putHeader = (/** @type {Group} */ group, /** @type {number} */ row) => {
      const item = { group, row, y, h: HEADER_HEIGHT, above: 0, below: 0, even: false, shift: 0, pinned: false, named: true };
      this.items.push(item);
      y += HEADER_HEIGHT;
      return item;
    };
    for (const group of shown) {
      putHeader(group, -1);
      if (group.collapsed) continue;
      const isCpus = group.name === "CPU";
      const exact = Math.max((isCpus ? cpuHeight : restHeight) * this.rowZoom, isCpus ? HEAT_MIN : ROW_MIN / 2);
      const step = exact < HEAT_MAX ? exact : Math.floor(exact);
      const headerOf = new Map();
      this.headersOf.set(group, headerOf);
      let top = y;
      let nextName = y;
      let k = 0;
      for (const row of linesOf(group)) {
        if (row < 0) {
          headerOf.set(row, putHeader(group, row));
          top += HEADER_HEIGHT;
          continue;
        }
        const below = top + Math.round((k + 1) * step);
        const item = this.itemOf(group, row, y, below - y, k % 2 === 0, false);
        item.named = y >= nextName;
        if (item.named) nextName = y + NAME_HEIGHT;
        this.items.push(item);
        y = below;
        k++;
      }
      if (!this.itemsOf.has(group)) this.itemsOf.set(group, []);
    }
    this.rowsHeight = y;
    const kept = first && this.itemsOf.get(first.group)?.[first.row];
    const scroll = held ? this.scrollFor(held) : undefined;
    if (scroll !== undefined) this.scroll = scroll;
    else this.scrollTo(this.scroll + (kept && !kept.pinned ? kept.y - first.y : 0));
  }

  /** Makes a row's item at its place, and stores it by group and row. @param {Group} group @param {number} row @param {number} y @param {number} h @param {boolean} even @param {boolean} pinned */
  itemOf(group, row, y, h, even, pinned) {
    const below = group.roomBelow;
    const above = group.roomAbove(row, h - below - BODY_MIN);
    const fits = h - above - below >= BODY_MIN;
    const item = { group, row, y, h, above: fits ? above : 0, below: fits ? below : 0, even, shift: this.shiftOf(group, row), pinned, named: true };
    const items = this.itemsOf.get(group) ?? [];
    items[row] = item;
    this.itemsOf.set(group, items);
    return item;
  }

  /** Places the pinned rows, regardless of whether their groups are open. */
  layOutPins() {
    const h = Math.floor(Math.min(PIN_HEIGHT, (this.rowsSeen * PINS_PART) / Math.max(this.pins.length, 1)));
    this.pinnedHeight = h * this.pins.length;
    return this.pins.map(({ group, row }, k) => this.itemOf(group, row, k * h, h, k % 2 === 0, true));
  }

  /** The place in a row at a height, to be restored to that height after another layout. @param {number} y @returns {Held | null} */
  hold(y) {
    const item = this.itemAt(y);
    return item && !item.pinned ? { group: item.group, row: item.row, part: (y - this.top(item)) / item.h, y: y - this.rowsTop } : null;
  }

  /** The scroll position at which a held place is where it was. @param {Held} held */
  scrollFor({ group, row, part, y }) {
    const item = this.items.find((it) => it.group === group && it.row === row);
    return item && Math.round(item.y + part * item.h - y);
  }

  /**
   * The maximum height of rows, except those of CPUs, with which none is pushed out of view by a row that is held.
   * @param {Held} held
   * @param {Group[]} shown
   * @param {number} cpuHeight
   */
  maxAround({ group, row, part, y }, shown, cpuHeight) {
    /** Above and below the held place: the height left for rows, and the number of rows that share it. */
    const [above, below] = [{ room: y, rows: 0 }, { room: this.rowsRoom - y, rows: 0 }];
    let side = above;
    for (const g of shown) {
      for (const r of [-1, ...(g.collapsed ? [] : withHeaders(g, this.rowsOf.get(g) ?? []))]) {
        const take = (/** @type {typeof above} */ from, /** @type {number} */ share) => {
          if (r >= 0 && g.name !== "CPU") from.rows += share;
          else from.room -= share * (r < 0 ? HEADER_HEIGHT : cpuHeight);
        };
        const isHeld = g === group && r === row;
        take(side, isHeld ? part : 1);
        if (!isHeld) continue;
        side = below;
        take(side, 1 - part);
      }
    }
    return Math.min(...[above, below].map(({ room, rows }) => (rows > 0 ? room / rows : Infinity)));
  }

  /**
   * Makes rows higher or lower; the row at a height stays there.
   * @param {number} factor above 1 for higher rows
   * @param {number} y
   * @param {Group[]} groups
   */
  zoomRows(factor, y, groups) {
    const held = this.hold(y);
    this.rowZoom = Math.min(Math.max(this.rowZoom * factor, ROW_ZOOM_MIN), ROW_ZOOM_MAX);
    this.layOut(groups);
    this.scrollTo((held ? this.scrollFor(held) : undefined) ?? this.scroll);
  }

  /** The upper edge of an item in the picture. @param {Item} item */
  top(item) {
    return item.pinned ? MARKS_HEIGHT + item.y : this.rowsTop + item.y - this.scroll;
  }

  /** The upper edge of the part of an item for execution. @param {Item} item */
  bodyTop(item) {
    return this.top(item) + item.above;
  }

  /** @param {Item} item */
  bodyHeight(item) {
    return item.h - item.above - item.below;
  }

  /** The line around which execution is drawn. @param {Item} item */
  middle(item) {
    return this.bodyTop(item) + this.bodyHeight(item) / 2;
  }

  /** The item of a row, if it has one that is not covered by a pinned row. @param {Group} group @param {number} row */
  placeOf(group, row) {
    const item = this.itemsOf.get(group)?.[row];
    return item && (item.pinned || this.pins.length === 0 || item.y >= this.scroll) ? item : undefined;
  }

  /** The same, or the item that stands for the row while its section is folded. @param {Group} group @param {number} row */
  placeOrStandIn(group, row) {
    if (!isFoldedAway(group, row)) return this.placeOf(group, row);
    const instead = standIn(group, row);
    if (instead >= 0) return this.placeOf(group, instead);
    const header = this.headersOf.get(group)?.get(instead);
    return header && (this.pins.length === 0 || header.y >= this.scroll) ? header : undefined;
  }

  /** Visible items: pinned ones, and of the others those that are not covered by pinned ones. */
  seen() {
    const { items, scroll, pins: { length } } = this;
    const pinned = items.slice(0, length);
    const first = items.findIndex((item, k) => k >= length && (length > 0 ? item.y >= scroll : item.y + item.h > scroll));
    if (first < 0) return pinned;
    const below = scroll + this.rowsRoom;
    let last = first;
    while (last < items.length && items[last].y < below) last++;
    return [...pinned, ...items.slice(first, last)];
  }

  /**
   * The item at a height, if any.
   * @param {number} y
   * @returns {Item | null}
   */
  itemAt(y) {
    if (y < MARKS_HEIGHT || y >= MARKS_HEIGHT + this.rowsSeen) return null;
    return this.seen().find((item) => y >= this.top(item) && y < this.top(item) + item.h) ?? null;
  }

  /** Scrolls until an item is visible. @param {Item} item */
  reveal(item) {
    if (item.pinned) return;
    if (item.y < this.scroll) this.scrollRows(item.y - this.scroll);
    const below = this.scroll + this.rowsRoom;
    if (item.y + item.h > below) this.scrollRows(item.y + item.h - below);
  }
}

/**
 * First start and last end: of execution, or of all spans if nothing was executed.
 * @param {Store} store
 * @param {Index} exec execution by CPU
 * @returns {[number, number]}
 */
function extent({ n, start, dur }, { first, ids }) {
  let begin = Infinity;
  let end = -Infinity;
  const take = (/** @type {number} */ i) => {
    begin = Math.min(begin, start[i]);
    end = Math.max(end, start[i] + dur[i]);
  };
  for (let r = 0; r + 1 < first.length; r++) {
    if (first[r] === first[r + 1]) continue;
    take(ids[first[r]]);
    take(ids[first[r + 1] - 1]);
  }
  if (begin > end) for (let i = 0; i < n; i++) take(i);
  return begin <= end ? [begin, end] : [0, 100];
}
