// SPDX-License-Identifier: BSD-3-Clause
// The totals of a range of time, as tables in the panel.

import { alignedText, callText, durationText, threadText, timesText } from "../data/format.js";
import { CANNOT_SHOW, Kind } from "../data/tables.js";
import { allTime, mostTime, Totals } from "../data/totals.js";
import { explainedName, MEANINGS, wordedName } from "../data/words.js";
import { goToCall } from "./call.js";
import { annotate } from "./note.js";
import { csvOf, fileName, offer } from "./save.js";
import { actionButton, closeButton, tableOf, textElement } from "../dom.js";
/**
 * @import {Long, Sum} from "../data/totals.js"
 * @import {App} from "../main.js"
 */

/**
 * The parts of a CPU's time, each with the limitations of a trace that make it unknown.
 * @type {readonly ["user" | "kernel" | "idle" | "stalled" | "absent", string[]][]}
 */
const PARTS = Object.freeze([["user", []], ["kernel", []], ["idle", [CANNOT_SHOW.IDLE]], ["stalled", [CANNOT_SHOW.INTERRUPTS, CANNOT_SHOW.IDLE]], ["absent", [CANNOT_SHOW.LOSSES]]]);

/** The heading for time in which a CPU did nothing although it should. */
const STOOD = MEANINGS[Kind.STALLED][0];

/**
 * Shows the totals of the measured range.
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
      textElement("p", "There are no totals while each row counts from its own start."),
    );
    return;
  }
  const totals = new Totals(store, app.groups, app.search, from, to, app.list.leavesOut());
  const part = (/** @type {number} */ time) => (time === 0 ? "" : `${((100 * time) / (to - from)).toFixed(1)}%`);
  const counted = Object.keys(store.meta.counts ?? {}).length > 0 ? ["in the trace"] : [];
  const byName = (/** @type {Map<number, Sum>} */ sums, /** @type {boolean} */ wholes) => mostTime(sums).map((sum) => [
    actionButton(wordedName(store.names[sum.key]), [explainedName(store.names[sum.key]), "search this name"].filter((text) => text !== "").join("; "), () => app.searchName(sum.key)),
    sum.count.toLocaleString("en"), alignedText(allTime(sum)), ...(wholes ? [alignedText(sum.whole)] : []), ...(counted.length > 0 ? [timesText(store, sum.key)] : []),
  ]);
  const byCpu = [...totals.cpus.values()].sort((a, b) => a.key - b.key);
  const parts = PARTS.filter(([name, lacking]) => byCpu.some((sum) => sum[name] > 0) || !lacking.some((text) => store.meta.unseen?.includes(text)));
  const cpus = byCpu.map((sum) => [`CPU ${sum.key}`, ...parts.map(([name]) => part(sum[name]))]);
  const threads = mostTime(totals.threads)
    .map((sum) => [threadText(store, sum.key), part(sum.user), part(sum.kernel), part(sum.stalled), part(sum.wait)]);
  const spans = (/** @type {Long[]} */ longest) => longest.map(({ of, k, i, inside, length }) => [
    actionButton(callText(of, k), "Go there", () => (of === store ? app.goTo(i) : goToCall(app, i))), threadText(store, store.pids[store.pid[i]]),
    alignedText(inside), inside < length ? `of ${alignedText(length)}` : "",
  ]);
  const classed = (/** @type {string} */ name, /** @type {HTMLElement} */ table) => {
    table.classList.add(name);
    return table;
  };
  const longest = (/** @type {string} */ head, /** @type {Long[]} */ all) => classed("spans", tableOf([head, "thread", "inside", ""], spans(all)));
  panel.replaceChildren(
    closeButton(() => app.measure(null)),
    textElement("h2", `${durationText(to - from)}${app.search.active ? ", matches only" : ""}`),
    actionButton("Fit (F)", "Zoom to this range", () => app.fitSelection()),
    actionButton("Keep as note (M)", "Keep this length as a note on the picture", () => annotate(app)),
    actionButton("CSV", "Save the spans of this range as a table", () => offer(fileName(app, "csv"), csvOf(app, from, to))),
    classed("cpus", tableOf(["CPU", ...parts.map(([name]) => (name === "stalled" ? STOOD : name))], cpus)), classed("names", tableOf(["Name", "count", ...(totals.pieces.size > 0 ? ["own time", "total"] : ["time"]), ...counted], byName(totals.names, totals.pieces.size > 0))),
    tableOf(["Thread", "user", "kernel", STOOD, "waits"], threads), tableOf(["Wait", "spans", "time", ...counted], byName(totals.waits, false)),
    longest("Longest", totals.longest), longest("Longest wait", totals.longestWaits),
  );
}

/** Measures the selected span, or extends the measured range to include it. @param {App} app @param {boolean} stretch */
export function measureSelected(app, stretch) {
  const { selected, measured } = app;
  if (selected < 0) return;
  const [start, end] = app.placeOf(selected);
  const before = stretch && measured ? measured : { from: start, to: end };
  app.measure({ from: Math.min(before.from, start), to: Math.max(before.to, end) });
}
