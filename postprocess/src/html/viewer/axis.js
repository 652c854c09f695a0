// SPDX-License-Identifier: BSD-3-Clause
// Ticks of the time axis: round steps, short labels, and the base time that they count from.
"use strict";

/** Units a label can have: units of 10 ns in one, its name, decimals of a second that the base time shows. */
const AXIS_UNITS = Object.freeze([
  { size: 0.1, name: "ns", next: 100, digits: 6 },
  { size: 100, name: "\u00b5s", next: 1e5, digits: 3 },
  { size: 1e5, name: "ms", next: 1e8, digits: 0 },
  { size: 1e8, name: "s", next: 6e9, digits: 0 },
]);

/** @typedef {{step: number, base: number, baseText: string, ticks: {time: number, label: string}[]}} Axis */

/**
 * The axis for a range of time.
 * @param {string} tracebase
 * @param {number} t0
 * @param {number} t1
 * @param {number} most ticks that have room
 * @returns {Axis}
 */
function axisOf(tracebase, t0, t1, most) {
  const step = roundStep((t1 - t0) / Math.max(most, 2));
  const unit = [...AXIS_UNITS].reverse().find((u) => step >= u.size * 0.999) ?? AXIS_UNITS[0];
  const base = Math.floor(t0 / unit.next) * unit.next;
  const ticks = [];
  for (let k = Math.ceil(t0 / step); k * step <= t1; k++) {
    const value = (k * step - base) / unit.size;
    ticks.push({ time: k * step, label: `${trimmed(value, 3)} ${unit.name}` });
  }
  return { step, base, baseText: clockText(tracebase, base, unit.digits), ticks };
}

/** The next 1, 2 or 5 times a power of ten at or above `least`. @param {number} least */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const step = [1, 2, 5, 10].find((m) => m * power >= least * 0.999) ?? 10;
  return Math.max(step * power, 1);
}
