// SPDX-License-Identifier: BSD-3-Clause
// Times as typed into the search box, or copied from elsewhere on the page: `mm:ss.fff` on the clock,
// optionally with hours and a date, or seconds from the base minute, optionally with the unit.

import { baseMillis, UNITS_PER_SECOND } from "../data/format.js";
/** @import {View} from "./view.js" */

/** Steps of a range that a trailing + widens and a trailing - narrows. */
const SEEK_STEPS = Object.freeze([1, 2, 5]);

/**
 * The range for a typed time: five units of its last digit to either side; null if it is not a time, or one
 * outside of the trace.
 * @param {View} view
 * @param {string} tracebase
 * @param {string} text
 * @returns {{from: number, to: number} | null}
 */
export function rangeOfTime(view, tracebase, text) {
  const [, date, clock, seconds, signs] = /^\s*(?:(\d{4}-\d\d-\d\d)[ T_](?=\d+:\d+:))?((?:\d+:){0,2})(\d+\.\d*)(?: s)?([+-]*)\s*$/.exec(text) ?? [];
  if (seconds === undefined) return null;
  let time = Math.round(Number(seconds) * UNITS_PER_SECOND);
  const base = baseMillis(tracebase) ?? 0;
  const [minutes, hours] = clock.split(":").slice(0, -1).map(Number).reverse();
  if (date !== undefined) time += ((Date.parse(`${date}T00:00:00Z`) - base) / 6e4 + hours * 60 + minutes) * 60 * UNITS_PER_SECOND;
  else if (clock !== "") {
    const start = (base + view.begin / 1e5) / 6e4;
    const whole = hours === undefined ? 60 : 24 * 60;
    // The first such minute at or after the minute in which the trace begins.
    const wanted = (hours ?? 0) * 60 + minutes;
    const ahead = (((wanted - Math.floor(start)) % whole) + whole) % whole;
    time += (Math.floor(start) + ahead - base / 6e4) * 60 * UNITS_PER_SECOND;
  }
  const digits = seconds.length - seconds.indexOf(".") - 1;
  let half = 5 * 10 ** -digits * UNITS_PER_SECOND;
  for (const sign of signs) half = stepped(half, sign === "+" ? 1 : -1);
  const [from, to] = [time - half, time + half];
  return time >= view.begin && time <= view.end ? { from, to } : null;
}

/** The next of 1, 2, 5, 10, 20, ... @param {number} value one of them @param {number} direction */
function stepped(value, direction) {
  const power = Math.floor(Math.log10(value * 1.001));
  const at = SEEK_STEPS.findIndex((step) => Math.abs(step * 10 ** power - value) < value * 0.01) + direction;
  const turn = Math.floor(at / SEEK_STEPS.length);
  return SEEK_STEPS[at - turn * SEEK_STEPS.length] * 10 ** (power + turn);
}

/** The time to type for the visible range. @param {View} view */
export function timeOfRange(view) {
  const half = (view.t1 - view.t0) / 2 / UNITS_PER_SECOND;
  const digits = Math.min(Math.max(Math.ceil(-Math.log10(half / 5)), 0), 8);
  return `${((view.t0 + view.t1) / 2 / UNITS_PER_SECOND).toFixed(digits)}${digits === 0 ? "." : ""}`;
}
