// SPDX-License-Identifier: BSD-3-Clause
// Ticks of the time axis: round steps, short labels, and the base time that they count from: seconds from the base minute
// of the trace, as everywhere on the page, or from the start of each row.

import { baseMillis, clockText, durationText, secondsText, trimmed, UNITS_PER_SECOND } from "../data/format.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {View} from "./view.js"
 */

/** Units of labels: size in units of 10 ns, name, the number of which base times are multiples, and decimals of a second in base times. */
const AXIS_UNITS = Object.freeze([
  { size: 0.1, name: "ns", next: 100, digits: 6 },
  { size: 100, name: "\u00b5s", next: 1e5, digits: 3 },
  { size: 1e5, name: "ms", next: 1e8, digits: 0 },
  { size: 1e8, name: "s", next: Infinity, digits: 0 },
]);

/** Minimum space in pixels for a tick and its label. */
const TICK_ROOM = 95;

/**
 * `baseTitle` is the base time on the clock. Ticks count from the base, which is a full second or the like; if one other base is in view, its own tick
 * has its full time, and later ticks count from there, so that their labels are short, too.
 * @typedef {{baseText: string, baseTitle: string, ticks: {time: number, label: string}[]}} Axis
 */

/**
 * The axis for the visible range.
 * @param {string} tracebase
 * @param {View} view
 * @returns {Axis}
 */
export function axisOf(tracebase, view) {
  const zero = view.relative ? view.begin : 0;
  const [t0, t1] = [view.t0 - zero, view.t1 - zero];
  const step = roundStep((t1 - t0) / Math.max(view.width / TICK_ROOM, 2));
  const unit = [...AXIS_UNITS].reverse().find((u) => step >= u.size * 0.999) ?? AXIS_UNITS[0];
  const first = Math.ceil(t0 / step);
  const base = unit.next === Infinity ? 0 : Math.max(Math.floor((first * step) / unit.next) * unit.next, 0);
  const turn = Math.floor(t1 / step) * step < base + 2 * unit.next ? base + unit.next : Infinity;
  const fullText = (/** @type {number} */ time) => `${trimmed(time / UNITS_PER_SECOND, unit.digits)} s`;
  const ticks = [];
  for (let k = first; k * step <= t1; k++) {
    const from = k * step > turn ? turn : base;
    const label = k * step === turn ? fullText(turn) : `${trimmed((k * step - from) / unit.size, 3)} ${unit.name}`;
    ticks.push({ time: k * step + zero, label });
  }
  const seconds = base > 0 ? `${fullText(base)} +` : "+";
  if (view.relative) return { baseText: `Each row\u2019s start${base > 0 ? " + " : " "}${seconds}`, baseTitle: "", ticks };
  const minute = baseMillis(tracebase) === null ? "" : `${clockText(tracebase, 0, 0).slice(0, 16)}${base > 0 ? ", " : " "}`;
  return { baseText: `${minute}${seconds}`, baseTitle: clockText(tracebase, base, unit.digits), ticks };
}

/** The visible range in words. @param {View} view */
export function rangeText({ t0, t1, begin, relative }) {
  const from = relative ? `${durationText(Math.round(t0 - begin))} after each row\u2019s start` : `${secondsText(Math.round(t0))} s`;
  return `${durationText(t1 - t0)} from ${from}`;
}

/** The time from the start of a row in a group to a span on it, in words; empty if the span is not on one. @param {Store} store @param {number} i @param {Group} group */
export function behindBegin(store, i, group) {
  const row = group.rowOf(i);
  return row < 0 ? "" : `${durationText(store.start[i] - group.from[row])} after the row\u2019s start`;
}

/** The next 1, 2 or 5 times a power of ten at or above `min`. @param {number} min */
function roundStep(min) {
  const power = 10 ** Math.floor(Math.log10(Math.max(min, 1)));
  const step = [1, 2, 5, 10].find((m) => m * power >= min * 0.999) ?? 10;
  return Math.max(step * power, 1);
}
