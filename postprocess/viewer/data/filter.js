// SPDX-License-Identifier: BSD-3-Clause
// A column's filter as typed: `redis` keeps texts that contain it, `=read(3)` only that exact text, `a|b` either;
// `> 5us`, `<= 1ms` and `5us..1ms` keep numbers, `0,2-3` numbers of CPUs; a leading `!` inverts the filter.

import { parseDuration, UNITS_PER_SECOND } from "./format.js";

/**
 * The contents of a column: texts, returned values, which are text and number, numbers of CPUs, other numbers, durations, times in seconds.
 * @typedef {"text" | "value" | "cpu" | "number" | "duration" | "seconds"} Sort
 */

/** The parser of each sort of numbers, which returns NaN for anything else. @type {Record<Sort, (text: string) => number>} */
const PARSED = Object.freeze({
  text: () => NaN, value: numberOf, cpu: numberOf, number: numberOf, duration: parseDuration,
  seconds: (text) => Math.round(numberOf(text.replace(/\s*s$/, "")) * UNITS_PER_SECOND),
});

/** Examples of each sort of filter, shown if the typed one is invalid. @type {Record<Sort, string>} */
export const FILTER_MAY = Object.freeze({
  text: "text, !text, =text", value: "> 100, text, !text", cpu: "0,2-3, !1, > 7", number: "> 2, < 0.5, 0.5..2", duration: "> 5us, < 1ms, 5us..1ms",
  seconds: "> 41.25, < 43, 41.25..43",
});

/** @param {string} text */
function numberOf(text) {
  return text.trim() === "" ? NaN : Number(text);
}

/** The next greater value that a column of this sort can have. @param {Sort} sort @param {number} value */
const above = (sort, value) => (sort === "number" ? value + Math.max(Math.abs(value), 1) * Number.EPSILON : value + 1);
/** @param {Sort} sort @param {number} value */
const below = (sort, value) => (sort === "number" ? value - Math.max(Math.abs(value), 1) * Number.EPSILON : value - 1);

/** The range that a text specifies; null if it specifies none. @param {string} text @param {Sort} sort @returns {[number, number] | null} */
function rangeOfText(text, sort) {
  const parse = PARSED[sort];
  // Counts and measurements are not negative: a value below 0 marks an absent one.
  const least = sort === "value" ? -Infinity : 0;
  const [, sign, bound] = /^(>=|<=|>|<)(.*)$/.exec(text) ?? [];
  const value = parse(bound ?? "");
  switch (sign) {
    case ">": return [above(sort, value), Infinity];
    case ">=": return [value, Infinity];
    case "<": return [least, below(sort, value)];
    case "<=": return [least, value];
  }
  const [, from, to] = /^(.*?)\.\.(.*)$/.exec(text) ?? [];
  return from === undefined ? null : [parse(from), parse(to)];
}

/** The numbers of `0,2-3`, `=1`. @param {string} text @returns {[number, number][]} */
function rangesOfList(text) {
  return text.replace(/^=/, "").split(",").map((part) => {
    const [, from, dash, to] = /^\s*(\d+)\s*(?:(-)\s*(\d*))?\s*$/.exec(part) ?? [];
    return [Number(from ?? NaN), !dash ? Number(from ?? NaN) : to === "" ? Infinity : Number(to)];
  });
}

export class Filter {
  /** Ranges of numbers that it keeps. @type {[number, number][]} */
  ranges = [];
  /** Words of which a text that it keeps has one. @type {string[]} */
  words = [];

  /** @param {string} typed @param {Sort} sort */
  constructor(typed, sort) {
    const text = typed.trim();
    this.not = text.startsWith("!");
    const rest = text.replace(/^!\s*/, "");
    this.exact = rest.startsWith("=");
    const range = sort === "text" ? null : rangeOfText(rest, sort);
    if (range) this.ranges = [range];
    else if (sort === "cpu") this.ranges = rangesOfList(rest);
    else if (sort === "text" || sort === "value") this.words = rest.replace(/^=/, "").toLowerCase().split(this.exact ? /$^/ : "|");
    this.isWrong = this.ranges.length + this.words.length === 0 || this.ranges.some(([from, to]) => Number.isNaN(from + to));
  }

  /** @param {number} value */
  keepsNumber(value) {
    return !Number.isNaN(value) && this.ranges.some(([from, to]) => value >= from && value <= to) !== this.not;
  }

  /** @param {string} text */
  keepsText(text) {
    if (this.ranges.length > 0) return this.keepsNumber(numberOf(text));
    const lower = text.toLowerCase();
    return this.words.some((word) => (this.exact ? lower === word : lower.includes(word))) !== this.not;
  }
}
