// SPDX-License-Identifier: BSD-3-Clause
// The histogram of the listed durations: both axes are logarithmic, so that the few slow ones are visible
// next to the many quick ones. A drag over it keeps a range.

import { durationText } from "../data/format.js";
import { minOfStep, stepOf } from "../data/pivot.js";
import { textElement } from "../dom.js";
/** @import {Durations} from "../data/pivot.js" */

/** Maximum number of bars, and possible numbers of bars per doubling. */
const HISTOGRAM_BARS = 110;
const BARS_OF_DOUBLING = Object.freeze([32, 16, 8, 4, 2, 1]);
const HISTOGRAM_HEIGHT = 64;
/** Width of a tick's text, as a percentage of a narrow histogram. */
const HISTOGRAM_TICK = 16;

/** A bar: its range of durations (`to` is exclusive), and their count. @typedef {{from: number, to: number, count: number}} Bar */

/** A range of durations with a name. @typedef {{from: number, to: number, name: string}} Band */

/** The position of a duration on the axis, in doublings; a duration of 0 counts as half a unit. @param {number} units */
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
 * The histogram; `keep` is called with the range of durations dragged over. Those in `kept` stand out, and `bands` are shaded.
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

/** The ticks below the axis: powers of ten; if fewer than two are in range, 2 and 5 times those as well, or the start and the middle. @param {number} from @param {number} to @param {(units: number) => number} place */
function ticksOf(from, to, place) {
  const axis = textElement("div", "", "ticks");
  const tens = Array.from({ length: 14 }, (_, k) => 10 ** k);
  const within = (/** @type {number[]} */ list) => list.filter((units) => units >= from && units < to);
  const powers = within(tens).length > 1 ? within(tens) : within(tens.flatMap((ten) => [ten, 2 * ten, 5 * ten]));
  // In a narrow panel there is room for some of them only.
  const every = powers.length > 1 ? Math.ceil(HISTOGRAM_TICK / (place(powers[1]) - place(powers[0]))) : 1;
  for (const [k, units] of (powers.length > 1 ? powers : [from, (from + to) / 2]).entries()) {
    // Skip a text that would be cut off at the right edge.
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
