// SPDX-License-Identifier: BSD-3-Clause
// What a range of time holds: time by name, CPU and thread, and the longest spans; of all, or of what is searched.
//
// A span that reaches over an end of the range counts with its part inside. Execution is taken from the rows of the
// CPUs and waits from those of the threads, so the cost is that of the spans in the range, however long the trace.

import { alignedText, callText, durationText, shownName, threadText, timesText, trimmed } from "../data/format.js";
import { isAbsent, isIdle, isKernel } from "../data/kind.js";
import { firstInLane, firstInRow } from "../data/rows.js";
import { Kind } from "../data/tables.js";
import { annotate } from "./note.js";
import { csvOf, fileName, offer } from "./save.js";
import { actionButton, closeButton, tableOf, textElement } from "../dom.js";
/**
 * @import {Index} from "../data/rows.js"
 * @import {App} from "../main.js"
 */

/** Rows of each table. */
const TOTALS_MOST = 20;

/**
 * Time by what was done in it, units of 10 ns, and number of spans; `key` is a name's index, a CPU, or a thread.
 * @typedef {{key: number, count: number, user: number, kernel: number, idle: number, stalled: number, absent: number, wait: number}} Sum
 */

/** @param {Sum} sum */
const allTime = (sum) => sum.user + sum.kernel + sum.idle + sum.stalled + sum.absent + sum.wait;

/** Which sum a span counts in: absent is time in which a CPU was offline, or of which nothing is known. @param {number} kind */
function partOf(kind) {
  if (kind === Kind.WAIT) return "wait";
  if (isIdle(kind)) return "idle";
  if (isKernel(kind)) return "kernel";
  return kind === Kind.STALLED ? "stalled" : isAbsent(kind) ? "absent" : "user";
}

class Totals {
  /** @type {Map<number, Sum>} */
  names = new Map();
  /** @type {Map<number, Sum>} */
  cpus = new Map();
  /** @type {Map<number, Sum>} */
  threads = new Map();
  /** By the name of what was waited for. @type {Map<number, Sum>} */
  waits = new Map();
  /** The longest spans that are not idle, longest first. @type {number[]} */
  longest = [];
  /** The longest waits. @type {number[]} */
  longestWaits = [];

  /** @param {App} app @param {number} from @param {number} to */
  constructor(app, from, to) {
    const [cpus, threads] = app.groups;
    this.store = app.store;
    this.search = app.search;
    this.from = from;
    this.to = to;
    cpus.keys.forEach((_, row) => this.addRow(cpus.exec, row, firstInRow(app.store, cpus.exec, row, from)));
    threads.keys.forEach((_, row) => this.addRow(threads.waits, row, firstInLane(threads.waits, row, from)));
  }

  /** @param {Index} index @param {number} row @param {number} first position of the first span that can reach the range */
  addRow(index, row, first) {
    const { start, dur } = this.store;
    for (let k = first; k < index.first[row + 1] && start[index.ids[k]] < this.to; k++) {
      const i = index.ids[k];
      if (start[i] + dur[i] > this.from && this.search.shows(i)) this.add(i);
    }
  }

  /** @param {number} i */
  add(i) {
    const { kind, name, cpu, cpus, pid, pids } = this.store;
    const time = this.inside(i);
    const part = partOf(kind[i]);
    this.count(part === "wait" ? this.waits : this.names, name[i], part, time);
    if (part !== "wait") this.count(this.cpus, cpus[cpu[i]], part, time);
    if (part !== "idle" && pids[pid[i]] > 0) this.count(this.threads, pids[pid[i]], part, time);
    if (part !== "idle") this.rank(part === "wait" ? this.longestWaits : this.longest, i);
  }

  /** How much of a span lies in the range. @param {number} i */
  inside(i) {
    const { start, dur } = this.store;
    return Math.min(start[i] + dur[i], this.to) - Math.max(start[i], this.from);
  }

  /** Puts a span among those of which most lies in the range, if it is one. @param {number[]} longest @param {number} i */
  rank(longest, i) {
    let at = longest.length;
    while (at > 0 && this.inside(longest[at - 1]) < this.inside(i)) at--;
    if (at === TOTALS_MOST) return;
    longest.splice(at, 0, i);
    if (longest.length > TOTALS_MOST) longest.pop();
  }

  /** @param {Map<number, Sum>} sums @param {number} key @param {ReturnType<typeof partOf>} part @param {number} time */
  count(sums, key, part, time) {
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { key, count: 0, user: 0, kernel: 0, idle: 0, stalled: 0, absent: 0, wait: 0 }));
    sum.count++;
    sum[part] += time;
  }
}

/** The sums with most time. @param {Map<number, Sum>} sums */
const mostTime = (sums) => [...sums.values()].sort((a, b) => allTime(b) - allTime(a)).slice(0, TOTALS_MOST);

/**
 * Shows what the measured range holds.
 * @param {App} app
 * @param {HTMLElement} panel
 * @param {number} from
 * @param {number} to
 */
export function showTotals(app, panel, from, to) {
  const { store } = app;
  if (app.view.relative) {
    panel.replaceChildren(
      closeButton(() => app.measure(null)), textElement("h2", durationText(to - from)),
      actionButton("Fit (F)", "Zoom to this range", () => app.fitSelection()),
      textElement("p", "On rows that count from their own starts this is another time on each: there are no totals."),
    );
    return;
  }
  const totals = new Totals(app, from, to);
  const part = (/** @type {number} */ time) => (time === 0 ? "" : `${trimmed((100 * time) / (to - from), 1)}%`);
  const counted = Object.keys(store.meta.counts ?? {}).length > 0 ? ["in the trace"] : [];
  const byName = (/** @type {Map<number, Sum>} */ sums) => mostTime(sums).map((sum) => [
    actionButton(shownName(store.names[sum.key]), "Search this name", () => app.searchName(sum.key)),
    sum.count.toLocaleString("en"), alignedText(allTime(sum)), ...(counted.length > 0 ? [timesText(store, sum.key)] : []),
  ]);
  const cpus = [...totals.cpus.values()].sort((a, b) => a.key - b.key)
    .map((sum) => [`CPU ${sum.key}`, part(sum.user), part(sum.kernel), part(sum.idle), part(sum.stalled), part(sum.absent)]);
  const threads = mostTime(totals.threads)
    .map((sum) => [threadText(store, sum.key), part(sum.user), part(sum.kernel), part(sum.stalled), part(sum.wait)]);
  const spans = (/** @type {number[]} */ ids) => ids.map((i) => [
    actionButton(callText(store, i), "Go to this span", () => app.goTo(i)), threadText(store, store.pids[store.pid[i]]),
    alignedText(totals.inside(i)), totals.inside(i) < store.dur[i] ? `of ${alignedText(store.dur[i])}` : "",
  ]);
  const longest = (/** @type {string} */ head, /** @type {number[]} */ ids) => {
    const table = tableOf([head, "thread", "inside", ""], spans(ids));
    table.classList.add("spans");
    return table;
  };
  panel.replaceChildren(
    closeButton(() => app.measure(null)),
    textElement("h2", `${durationText(to - from)}${app.search.active ? ", matches only" : ""}`),
    actionButton("Fit (F)", "Zoom to this range", () => app.fitSelection()),
    actionButton("Keep as note (M)", "Keep this length as a note on the picture", () => annotate(app)),
    actionButton("CSV", "Save the spans of this range as a table", () => offer(fileName(app, "csv"), csvOf(app, from, to))),
    tableOf(["CPU", "user", "kernel", "idle", "stalled", "absent"], cpus), tableOf(["Name", "spans", "time", ...counted], byName(totals.names)),
    tableOf(["Thread", "user", "kernel", "stalled", "waits"], threads), tableOf(["Wait", "spans", "time", ...counted], byName(totals.waits)),
    longest("Longest", totals.longest), longest("Longest wait", totals.longestWaits),
  );
}

/** Measures the selected span, or stretches what is measured to it. @param {App} app @param {boolean} stretch */
export function measureSelected(app, stretch) {
  const { selected, measured } = app;
  if (selected < 0) return;
  const [start, end] = app.placeOf(selected);
  const before = stretch && measured ? measured : { from: start, to: end };
  app.measure({ from: Math.min(before.from, start), to: Math.max(before.to, end) });
}
