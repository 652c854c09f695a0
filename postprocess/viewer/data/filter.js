// SPDX-License-Identifier: BSD-3-Clause
// A filter of one column, as it is typed: `redis` keeps texts with that in them, `=read(3)` that text alone, `a|b` either;
// `> 5us`, `<= 1ms` and `5us..1ms` keep numbers, `0,2-3` numbers of CPUs; after a `!` the same is left out.

import { parseDuration, UNITS_PER_SECOND } from "./format.js";

/**
 * What is in a column: texts, returned values, which are both, numbers of CPUs, other numbers, durations, times in seconds.
 * @typedef {"text" | "value" | "cpu" | "number" | "duration" | "seconds"} Sort
 */

/** How each sort of numbers is typed, NaN for what is not one. @type {Record<Sort, (text: string) => number>} */
const PARSED = Object.freeze({
  text: () => NaN, value: numberOf, cpu: numberOf, number: numberOf, duration: parseDuration,
  seconds: (text) => Math.round(numberOf(text.replace(/\s*s$/, "")) * UNITS_PER_SECOND),
});

/** What each sort of filter may be, for whoever typed something else. @type {Record<Sort, string>} */
export const FILTER_MAY = Object.freeze({
  text: "text, !text, =text", value: "> 100, text, !text", cpu: "0,2-3, !1, > 7", number: "> 2, < 0.5, 0.5..2", duration: "> 5us, < 1ms, 5us..1ms",
  seconds: "> 41.25, < 43, 41.25..43",
});

/** @param {string} text */
function numberOf(text) {
  return text.trim() === "" ? NaN : Number(text);
}

/** The next number above one, as far as values of a column tell numbers apart. @param {Sort} sort @param {number} value */
const above = (sort, value) => (sort === "number" ? value + Math.max(Math.abs(value), 1) * Number.EPSILON : value + 1);
/** @param {Sort} sort @param {number} value */
const below = (sort, value) => (sort === "number" ? value - Math.max(Math.abs(value), 1) * Number.EPSILON : value - 1);

/** The range that a text asks for; null if it asks for none. @param {string} text @param {Sort} sort @returns {[number, number] | null} */
function rangeOfText(text, sort) {
  const parse = PARSED[sort];
  // Whatever is counted or measured is not negative: below 0 is what was not.
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
  /** What it keeps of numbers. @type {[number, number][]} */
  ranges = [];
  /** What it keeps of texts, one of these. @type {string[]} */
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
