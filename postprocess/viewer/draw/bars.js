// SPDX-License-Identifier: BSD-3-Clause
// Locks and queues: on a thread's row the locks it holds (a line with caps) and tries to get (dotted), on a
// lock's row its holder and waiters, on a queue's row its contents, on an RPC's row its times in queues.

import { shownName, threadText, valueOf } from "../data/format.js";
import { isOfThreads } from "../data/groups.js";
import { LOCK_HELD, PART } from "../data/kind.js";
import { seekStart } from "../data/rows.js";
import { Kind } from "../data/tables.js";
import { INNER_PART } from "../view/view.js";
import { FONT, inkOn } from "./palette.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {TimeScale} from "../view/timescale.js"
 * @import {Item, Spot, View} from "../view/view.js"
 * @import {Layers} from "./layers.js"
 * @import {Lettering} from "./lettering.js"
 * @import {Look} from "./look.js"
 */

/** Pixels from one level of lines to the next, the same if there is room for names of parts, and the margin around all. */
const BAR_STEP = 5;
const PART_STEP = 13;
const BARS_EDGE = 2;
/** Pixels from one waiter to the next on the row of a lock or queue, if there is room. */
const WAITER_STEP = 16;
/** Bars narrower than this, in CSS pixels, are drawn as ticks, one per this many pixels. */
const BAR_MIN = 2;
/** Maximum number of wider bars drawn on a row; of more, the longest. */
const BARS_MAX = 200;

/**
 * The pixels that the bars of a thread's row take: enough for the names of parts, if there is room for them.
 * @param {Group} group
 * @param {number} row
 * @param {number} room
 */
export function roomOfBars({ levels, named }, row, room) {
  const high = levels[row] * PART_STEP + BARS_EDGE;
  if (levels[row] === 0) return 0;
  return named[row] === 1 && high <= room ? high : levels[row] * BAR_STEP + BARS_EDGE;
}

export class Bars {
  /**
   * @param {{store: Store, view: View, focus: Focus, layers: Layers, look: Look, lettering: Lettering}} parts
   * @param {CanvasRenderingContext2D} context
   * @param {Spot[]} spots
   */
  constructor({ store, view, focus, layers, look, lettering }, context, spots) {
    this.store = store;
    this.view = view;
    this.focus = focus;
    this.layers = layers;
    this.look = look;
    this.lettering = lettering;
    this.context = context;
    this.spots = spots;
    /** The visible times on the row being drawn. @type {TimeScale} */
    this.times = view;
  }

  /** Draws the bars of one row. @param {Item} item */
  draw(item) {
    const { layers, view } = this;
    const { group, row } = item;
    const from = group.bars.first[row];
    const to = group.bars.first[row + 1];
    if (from === to || (isOfThreads(group) && layers.stateOf("locks") === "off")) return;
    this.times = view.on(item);
    for (const k of this.seen(group, from, to)) {
      const i = group.bars.ids[k];
      if (isOfThreads(group)) this.ofThread(i, item, group.level[k]);
      else if (group.name === "RPC") this.queued(i, item);
      else if (isHeld(this.store, i)) this.holder(i, item);
      else this.waiter(i, item, group.level[k]);
    }
    this.context.setLineDash([]);
  }

  /**
   * Positions of the visible bars: all that are wide enough, and of the short ones one per `BAR_MIN` pixels.
   * @param {Group} group
   * @param {number} from
   * @param {number} to
   */
  seen(group, from, to) {
    const { ids } = group.bars;
    const { start, dur } = this.store;
    const { t0, t1, scale } = this.times;
    const high = seekStart(start, ids, from, to, t1);
    const found = group.barIntervals.find(from, high, t0, BAR_MIN / scale);
    if (found.length > BARS_MAX) found.sort((a, b) => dur[ids[b]] - dur[ids[a]]).length = BARS_MAX;
    for (let k = seekStart(start, ids, from, high, t0); k < high;) {
      if (dur[ids[k]] * scale < BAR_MIN) found.push(k);
      k = Math.max(k + 1, seekStart(start, ids, k + 1, high, start[ids[k]] + BAR_MIN / scale));
    }
    return found;
  }

  /** The left and right edges of a bar, clipped. @param {number} i */
  extent(i) {
    const { store, times } = this;
    const x0 = Math.max(times.x(store.start[i]), -10);
    return [x0, Math.max(Math.min(times.x(store.start[i] + store.dur[i]), times.width + 10), x0 + 1.5)];
  }

  /** Draws a lock that a thread holds or tries, or a part that it is in, with its name inside if there is room. @param {number} i @param {Item} item @param {number} level */
  ofThread(i, item, level) {
    const { context: c } = this;
    const { store, view } = this;
    const high = item.above >= item.group.levels[item.row] * PART_STEP;
    const y = view.top(item) + (high ? 1 + level * PART_STEP : 4 + level * BAR_STEP);
    if (!high || !isPart(store, i)) {
      this.line(i, item, high ? y + PART_STEP / 2 : y);
      return;
    }
    const [x0, x1] = this.extent(i);
    const h = PART_STEP - 1;
    c.fillStyle = this.color(i, item);
    c.fillRect(x0, y, x1 - x0, h);
    this.text(shownName(store.names[store.name[i]]), Math.max(x0, 0) + 4, x1, y + h / 2 + 0.5, inkOn(this.color(i, item)));
    this.spots.push({ i, x0, x1, y0: y, y1: y + h });
  }

  /** Draws a line with caps; dotted for a lock being tried, dashed in a queue. @param {number} i @param {Item} item @param {number} y @param {number} [width] */
  line(i, item, y, width = 2) {
    const { context: c } = this;
    const { store } = this;
    const [x0, x1] = this.extent(i);
    this.spots.push({ i, x0: x0 - 1, x1: x1 + 1, y0: y - 3, y1: y + 3 });
    if (x1 - x0 < BAR_MIN) {
      c.fillStyle = this.color(i, item);
      c.fillRect(x0, y - 1, x1 - x0, 2);
      return;
    }
    c.strokeStyle = this.color(i, item);
    c.lineWidth = width;
    c.setLineDash(isHeld(store, i) || isPart(store, i) ? [] : store.kind[i] === Kind.QUEUE ? [7, 4] : [1.5, 2.5]);
    c.beginPath();
    c.moveTo(x0, y);
    c.lineTo(x1, y);
    c.stroke();
    c.setLineDash([]);
    if (x1 - x0 >= 6) {
      c.beginPath();
      c.moveTo(x0, y - 3);
      c.lineTo(x0, y + 3);
      c.moveTo(x1, y - 3);
      c.lineTo(x1, y + 3);
      c.stroke();
    }
  }

  /** Draws an RPC's time in a queue, on the RPC's row. @param {number} i @param {Item} item */
  queued(i, item) {
    const { store, view } = this;
    const [x0, x1] = this.extent(i);
    this.line(i, item, view.middle(item));
    const name = shownName(store.names[store.name[i]]);
    this.text(name, Math.max(x0, 0) + 4, x1, view.middle(item) - 8, this.look.palette.ink(this.color(i, item)));
  }

  /** Draws the holder of a lock, on the lock's row. @param {number} i @param {Item} item */
  holder(i, item) {
    const { context: c } = this;
    const { store, view } = this;
    const [x0, x1] = this.extent(i);
    const h = item.h * INNER_PART * 2;
    const y = view.top(item) + item.h - h - 3;
    c.fillStyle = this.color(i, item);
    c.fillRect(x0, y, x1 - x0, h);
    const ink = inkOn(this.color(i, item));
    const name = threadText(store, store.pids[store.pid[i]]);
    if (h >= 10) this.text(name, Math.max(x0, 0) + 4, x1, y + h / 2 + 0.5, ink);
    this.spots.push({ i, x0, x1, y0: y, y1: y + h });
  }

  /** Draws a waiter for a lock, stacked from the top, or an RPC in a queue, stacked from the bottom, on the row of the lock or queue. @param {number} i @param {Item} item @param {number} level */
  waiter(i, item, level) {
    const { view, store, look: { palette } } = this;
    const queued = store.kind[i] === Kind.QUEUE;
    const levels = item.group.levels[item.row];
    const room = item.h * (queued ? 1 : 1 - 2 * INNER_PART) - 6;
    const step = Math.min(Math.max(room / levels, 3), WAITER_STEP);
    const y = queued ? view.top(item) + item.h - 5 - level * step : view.top(item) + 5 + level * step;
    this.line(i, item, y, step > 6 ? 3 : 2);
    if (step < WAITER_STEP) return;
    const [x0, x1] = this.extent(i);
    const thread = threadText(store, store.pids[store.pid[i]]);
    this.text(queued ? `RPC ${store.rpc[i] & 0xffff}` : thread, Math.max(x0, 0) + 4, x1, queued ? y - 8 : y + 8, palette.css.dim);
  }

  /** Draws as much of a text as fits. @param {string} text @param {number} x @param {number} x1 @param {number} y @param {string} color */
  text(text, x, x1, y, color) {
    const { context: c } = this;
    const { lettering } = this;
    c.font = `10px ${FONT}`;
    const shown = lettering.fit(text, x1 - x - 4, 10);
    if (shown === "") return;
    c.fillStyle = color;
    c.fillText(shown, x, y);
  }

  /** The colour of a bar: by thread on the row of a lock, by RPC in a queue, by lock on the row of a thread, by name for parts. @param {number} i @param {Item} item */
  color(i, item) {
    const { store, look: { palette }, focus } = this;
    if (!focus.shows(i)) return palette.css.grey;
    const by = isPart(store, i) ? store.name[i] : store.kind[i] === Kind.QUEUE ? store.rpc[i] : isOfThreads(item.group) ? valueOf(store.arg[i]) ?? 0 : store.pid[i];
    return palette.css.users[Math.abs(by) % palette.css.users.length];
  }
}

/** True if a bar is a part of a program. @param {Store} store @param {number} i */
const isPart = (store, i) => store.events[store.event[i]] === PART;
/** True if a bar is a held lock. @param {Store} store @param {number} i */
const isHeld = (store, i) => store.events[store.event[i]] === LOCK_HELD;
