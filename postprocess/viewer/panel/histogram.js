// SPDX-License-Identifier: BSD-3-Clause
// The histogram of what is listed: durations to the right, both axes logarithmic, so that the few slow ones are seen
// beside the many quick ones. A drag over it keeps a part.

import { durationText } from "../data/format.js";
import { minOfStep, stepOf } from "../data/pivot.js";
import { textElement } from "../dom.js";
/** @import {Durations} from "../data/pivot.js" */

/** Bars at most, and how many a doubling may have. */
const HISTOGRAM_BARS = 110;
const BARS_OF_DOUBLING = Object.freeze([32, 16, 8, 4, 2, 1]);
const HISTOGRAM_HEIGHT = 64;
/** Parts of a hundred of a narrow histogram that a tick's text takes. */
const HISTOGRAM_TICK = 16;

/** A bar: from which duration to which (exclusive), and how many. @typedef {{from: number, to: number, count: number}} Bar */

/** Durations that have a name, from and to. @typedef {{from: number, to: number, name: string}} Band */

/** Where a duration lies on the axis; nothing lies half a doubling below the shortest. @param {number} units */
const logOf = (units) => Math.log2(Math.max(units, 0.5));

/** @param {Durations} durations @returns {Bar[]} */
function barsOf({ shortest, longest, steps }) {
  const doublings = logOf(longest + 1) - logOf(shortest);
  const per = BARS_OF_DOUBLING.find((max) => max * doublings <= HISTOGRAM_BARS) ?? 1;
  /** @type {Bar[]} */
  const bars = [];
  let last = NaN;
  for (let step = stepOf(shortest); step <= stepOf(longest); step++) {
    const from = minOfStep(step);
    const to = minOfStep(step + 1);
    const which = Math.floor(logOf(from) * per + 1e-9);
    if (which !== last) bars.push({ from, to, count: 0 });
    last = which;
    const bar = bars[bars.length - 1];
    bar.to = to;
    bar.count += steps[step];
  }
  return bars;
}

/** @param {string} tag @param {Record<string, string | number>} attributes */
export function svgElement(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/**
 * The histogram; `keep` is called with the durations, from and to, that are dragged over. Those that were kept stand out, and
 * `bands` are shaded.
 * @param {Durations} durations
 * @param {(from: number, to: number) => void} keep
 * @param {{from: number, to: number} | null} [kept]
 * @param {Band[]} [bands]
 */
export function histogramOf(durations, keep, kept = null, bands = []) {
  const figure = document.createElement("figure");
  const bars = barsOf(durations);
  if (bars.length === 0) return figure;
  const [left, right] = [logOf(bars[0].from), logOf(bars[bars.length - 1].to)];
  const place = (/** @type {number} */ units) => (100 * (logOf(units) - left)) / (right - left);
  const svg = svgElement("svg", { viewBox: `0 0 100 ${HISTOGRAM_HEIGHT}`, preserveAspectRatio: "none", height: HISTOGRAM_HEIGHT, role: "img" });
  const max = Math.max(...bars.map((bar) => bar.count));
  svg.setAttribute("aria-label", `Histogram of durations, ${durationText(durations.shortest)} to ${durationText(durations.longest)}`);
  for (const { from, to, name } of bands) {
    const band = svgElement("rect", { class: `band ${name}`, x: place(from), y: 0, width: Math.max(place(to + 1) - place(from), 0.3), height: HISTOGRAM_HEIGHT });
    band.append(svgElement("title", {}));
    /** @type {Element} */ (band.firstChild).textContent = `${name}: ${durationText(from)} to ${durationText(to)}`;
    svg.append(band);
  }
  for (const { from, to, count } of bars) {
    if (count === 0) continue;
    const h = Math.max((HISTOGRAM_HEIGHT * Math.log1p(count)) / Math.log1p(max), 2);
    const bar = svgElement("rect", { x: place(from), y: HISTOGRAM_HEIGHT - h, width: Math.max(place(to) - place(from), 0.3), height: h });
    const range = to - from === 1 ? durationText(from) : `${durationText(from)} to ${durationText(to - 1)}`;
    if (kept && (to <= kept.from || from > kept.to)) bar.setAttribute("class", "other");
    bar.append(svgElement("title", {}));
    /** @type {Element} */ (bar.firstChild).textContent = `${range}: ${count.toLocaleString("en")}`;
    svg.append(bar);
  }
  figure.append(svg, ticksOf(bars[0].from, bars[bars.length - 1].to, place));
  listenToHistogram(svg, bars, place, keep);
  return figure;
}

/** What stands below the axis: powers of ten; if there are less than two, 2 and 5 times those as well, or the beginning and the middle. @param {number} from @param {number} to @param {(units: number) => number} place */
function ticksOf(from, to, place) {
  const axis = textElement("div", "", "ticks");
  const tens = Array.from({ length: 14 }, (_, k) => 10 ** k);
  const within = (/** @type {number[]} */ list) => list.filter((units) => units >= from && units < to);
  const powers = within(tens).length > 1 ? within(tens) : within(tens.flatMap((ten) => [ten, 2 * ten, 5 * ten]));
  // Where the panel is narrow, only some have room.
  const every = powers.length > 1 ? Math.ceil(HISTOGRAM_TICK / (place(powers[1]) - place(powers[0]))) : 1;
  for (const [k, units] of (powers.length > 1 ? powers : [from, (from + to) / 2]).entries()) {
    // A text that would be cut at the right edge is left out.
    if (place(units) > 88) continue;
    const tick = textElement("span", durationText(Math.round(units)), k % every === 0 ? "" : "dense");
    tick.style.left = `${place(units)}%`;
    axis.append(tick);
  }
  return axis;
}

/** @param {Element} svg @param {Bar[]} bars @param {(units: number) => number} place @param {(from: number, to: number) => void} keep */
function listenToHistogram(svg, bars, place, keep) {
  const brush = svgElement("rect", { class: "brush", y: 0, height: HISTOGRAM_HEIGHT, width: 0 });
  svg.append(brush);
  let pressed = NaN;
  const barAt = (/** @type {PointerEvent} */ e) => {
    const box = svg.getBoundingClientRect();
    const x = (100 * (e.clientX - box.left)) / box.width;
    return Math.max(bars.findLastIndex((bar) => place(bar.from) <= x), 0);
  };
  const taken = (/** @type {PointerEvent} */ e) => {
    const other = barAt(e);
    return { from: bars[Math.min(pressed, other)].from, to: bars[Math.max(pressed, other)].to };
  };
  svg.addEventListener("pointerdown", (event) => {
    const e = /** @type {PointerEvent} */ (event);
    svg.setPointerCapture(e.pointerId);
    pressed = barAt(e);
  });
  svg.addEventListener("pointermove", (event) => {
    if (Number.isNaN(pressed)) return;
    const { from, to } = taken(/** @type {PointerEvent} */ (event));
    brush.setAttribute("x", String(place(from)));
    brush.setAttribute("width", String(place(to) - place(from)));
  });
  svg.addEventListener("pointercancel", () => (pressed = NaN));
  svg.addEventListener("pointerup", (event) => {
    if (Number.isNaN(pressed)) return;
    const { from, to } = taken(/** @type {PointerEvent} */ (event));
    pressed = NaN;
    keep(from, to - 1);
  });
}
