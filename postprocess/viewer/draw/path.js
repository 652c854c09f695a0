// SPDX-License-Identifier: BSD-3-Clause
// The critical path of a request over the rows: the thread responsible at each moment. It runs below the spans, whose names
// stay legible: on the row of the request's thread, on that of the thread it waits for, and on those of their CPUs.

import { threadsOf } from "../data/groups.js";
import { OUTER_PART } from "../view/view.js";
import { FONT } from "./palette.js";
/**
 * @import {Group} from "../data/groups.js"
 * @import {PathPart} from "../data/requests.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Look} from "./look.js"
 * @import {Lettering} from "./lettering.js"
 * @import {Palette} from "./palette.js"
 */

/** Thickness of the line, and minimum width of a part with words, in pixels. */
const LINE = 4;
const WORDS_MIN = 70;
/** Minimum height of a row with words. */
const WORDS_HEIGHT = 26;

/** A part with its colour and its words. @typedef {PathPart & {kind: string, words: string}} DrawnPart */

/** The path of a request of a thread, parts in order. @typedef {{pid: number, parts: DrawnPart[]}} RequestPath */

/** The colour of a sort of cause: that of the execution or wait. @param {Palette} palette @param {string} kind */
export function causeColor({ css }, kind) {
  /** @type {Record<string, string>} */
  const colors = {
    user: css.users[0], kernel: css.syscall[0], interrupt: css.irq[0], queue: css.trap[0], idle: css.lowPower, quota: css.sched[0],
    wait: css.users[1], stalled: css.cexit,
  };
  return colors[kind] ?? css.grey;
}

export class Paths {
  /** @param {{groups: Group[], view: View, look: Look, lettering: Lettering}} parts @param {CanvasRenderingContext2D} context */
  constructor({ groups, view, look, lettering }, context) {
    this.groups = groups;
    this.view = view;
    this.look = look;
    this.lettering = lettering;
    this.context = context;
    /** Counts of lines and words drawn, for tests. */
    this.drawn = { lines: 0, words: /** @type {string[]} */ ([]) };
  }

  /** @param {RequestPath} path */
  draw({ pid, parts }) {
    const { view, groups, groups: [cpus] } = this;
    const threads = threadsOf(groups);
    this.drawn = { lines: 0, words: [] };
    const own = this.itemOf(threads, pid);
    this.along(parts, ({ cpu }) => this.itemOf(cpus, cpu), false);
    this.along(parts, ({ culprit }) => this.itemOf(threads, culprit) ?? own, true);
    // Mark the start and end of the request.
    const { context: c, look: { palette } } = this;
    const [first, last] = [parts[0], parts[parts.length - 1]];
    c.fillStyle = palette.css.text;
    for (const x of first ? [view.x(first.from), view.x(last.to)] : []) {
      if (own && x >= 0 && x <= view.width) c.fillRect(Math.round(x) - 1, view.top(own), 2, own.h);
    }
  }

  /** @param {Group} group @param {number} key @returns {Item | undefined} */
  itemOf(group, key) {
    const row = group.rowOfKey.get(key);
    return row === undefined ? undefined : this.view.placeOf(group, row);
  }

  /** Draws the lines of parts on rows, the connections from row to row, and with `told` also words if there is room. @param {DrawnPart[]} parts @param {(part: DrawnPart) => Item | undefined} rowOf @param {boolean} told */
  along(parts, rowOf, told) {
    const { context: c, view, look: { palette }, lettering } = this;
    let [lastX, lastY] = [-Infinity, NaN];
    c.font = `11px ${FONT}`;
    for (const part of parts) {
      const [x0, x1] = [Math.max(view.x(part.from), -1), Math.min(view.x(part.to), view.width + 1)];
      if (x1 < 0 || x0 > view.width) continue;
      const item = rowOf(part);
      if (!item) {
        lastY = NaN;
        continue;
      }
      // A line narrower than a pixel at a place already drawn would not be visible.
      if (x1 - lastX < 0.5) continue;
      const y = Math.round(view.middle(item) + view.bodyHeight(item) * OUTER_PART) + 1;
      if (y !== lastY && Number.isFinite(lastY)) {
        c.fillStyle = palette.css.chain;
        c.fillRect(Math.round(x0) - 0.5, Math.min(y, lastY), 1, Math.abs(y - lastY));
      }
      const line = Math.min(LINE, item.h);
      c.fillStyle = palette.css.back;
      if (line === LINE) c.fillRect(x0, y - 1, Math.max(x1 - x0, 1), LINE + 2);
      c.fillStyle = causeColor(palette, part.kind);
      c.fillRect(x0, line === LINE ? y : view.top(item), Math.max(x1 - x0, 1), line);
      this.drawn.lines++;
      [lastX, lastY] = [x1, y];
      if (!told || x1 - x0 < WORDS_MIN || item.h < WORDS_HEIGHT) continue;
      const text = lettering.fit(part.words, x1 - x0 - 8, 211);
      if (text === "") continue;
      c.globalAlpha = 0.85;
      c.fillStyle = palette.css.back;
      c.fillRect(x0 + 1, y - 15, lettering.widthOf(text, 211) + 6, 14);
      c.globalAlpha = 1;
      c.fillStyle = palette.css.text;
      c.fillText(text, x0 + 4, y - 7.5);
      this.drawn.words.push(part.words);
    }
  }
}
