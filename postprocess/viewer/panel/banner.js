// SPDX-License-Identifier: BSD-3-Clause
// The banner: one line about data that are missing and delays of everything, if there are any; `More` unfolds the rest.

import { countText, durationText, shownName } from "../data/format.js";
import { WAIT_QUOTA } from "../data/kind.js";
import { FLAG, Kind } from "../data/tables.js";
import { foldByTap } from "./fold.js";
import { actionButton, textElement } from "../dom.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {App} from "../main.js"
 */

/**
 * Conditions that make everything in a trace take longer, as the start of a sentence.
 * @type {readonly [string, number, number | null][]} with the kind and, of waits, the event
 */
const DELAYS = Object.freeze([
  ["CPUs stood still", Kind.STALLED, null], ["CPUs were offline", Kind.OFFLINE, null], ["Threads waited for the CPU quota of their group", Kind.WAIT, WAIT_QUOTA],
]);

/** The count, total time and longest of the spans of a kind, and of an event if given. @param {Store} store @param {number} wanted @param {number | null} number */
function sumOfKind({ kind, dur, event, events, cpus, cpu }, wanted, number) {
  const sum = { count: 0, time: 0, longest: -1 };
  const has = number === null ? (/** @type {number} */ i) => cpus[cpu[i]] >= 0 : (/** @type {number} */ i) => events[event[i]] === number;
  if (number !== null && !events.includes(number)) return sum;
  for (let i = kind.indexOf(wanted); i >= 0; i = kind.indexOf(wanted, i + 1)) {
    if (!has(i)) continue;
    sum.count++;
    sum.time += dur[i];
    if (sum.longest < 0 || dur[i] > dur[sum.longest]) sum.longest = i;
  }
  return sum;
}

/** A folded list of lines. @param {string} summary @param {readonly string[]} lines */
function foldedElement(summary, lines) {
  const element = document.createElement("details");
  element.append(textElement("summary", summary), ...lines.map((text) => textElement("div", shownName(text))));
  return element;
}

/** @param {number} count */
const timesWord = (count) => (count === 1 ? "once" : `${count.toLocaleString("en")} times`);

/** Fills the banner above the picture, or hides it if there is nothing to report. @param {App} app @param {HTMLElement} banner */
export function showBanner(app, banner) {
  const { meta } = app.store;
  const missing = meta.quality.map(shownName);
  if (meta.lost > 0) missing.unshift(`${meta.lost.toLocaleString("en")} events were lost while recording`);
  const sentences = missing.length > 0 ? [`This trace is not complete: ${missing.join("; ")}.`] : [];
  if ((meta.flags & FLAG.WRAPPED) !== 0) sentences.push("This is the end of a longer recording: its beginning was overwritten.");
  const parts = sentences.map((text) => textElement("span", text));
  for (const [what, kind, event] of DELAYS) {
    const { count, time, longest } = sumOfKind(app.store, kind, event);
    if (count === 0) continue;
    const part = textElement("span", `${what} ${timesWord(count)}, ${durationText(time)} together: durations contain that. `);
    part.append(actionButton(`The longest: ${durationText(app.store.dur[longest])}`, "Go there", () => app.goTo(longest)));
    parts.push(part);
  }
  if (meta.unseen?.length) parts.push(foldedElement(`This trace cannot show ${countText(meta.unseen.length, "thing")}`, meta.unseen));
  banner.hidden = parts.length === 0;
  const fold = textElement("button", "", "unfold");
  foldByTap(fold, banner, ["More", "Less"]);
  banner.replaceChildren(...parts, fold);
  if (parts.length === 0) return;
  // A single part that fits has no more.
  new ResizeObserver(([{ target }]) => {
    if (!banner.classList.contains("unfolded")) fold.hidden = parts.length === 1 && target.scrollWidth <= target.clientWidth;
  }).observe(parts[0]);
}
