// SPDX-License-Identifier: BSD-3-Clause
// Events: a cause that made one request slow often slowed others, too. Two requests are of one event if they share half of their
// time, or if their longest parts have the same cause at the same time, as in postprocess/src/why/event.rs. A
// test checks that both find the same events.

/** @import {PathPart, Requests} from "./requests.js" */

/** An event: its longest request, the longest part of that request, and its number of requests. @typedef {{longest: number, part: PathPart | null, count: number}} Event */

/** Maximum number of requests to group: those after them are as short as many others. */
const GROUPED_MAX = 2000;

/** A request and the longest part of its time. @typedef {{number: number, from: number, to: number, part: PathPart | null}} Slow */

export class Events {
  /** Groups the last `GROUPED_MAX` of the requests. @param {Requests} requests @param {Uint32Array | number[]} numbers */
  constructor(requests, numbers) {
    const slow = [...numbers.slice(-GROUPED_MAX)].map((number) => slowOf(requests, number)).sort((a, b) => a.from - b.from || a.number - b.number);
    const first = grouped(slow);
    /** Events by their first request. @type {Map<number, Event>} */
    const events = new Map();
    slow.forEach(({ number, part }, n) => {
      const event = events.get(first[n]) ?? { longest: number, part, count: 0 };
      events.set(first[n], event);
      event.count++;
      if (requests.dur[number] > requests.dur[event.longest]) Object.assign(event, { longest: number, part });
    });
    /** Sorted by their longest request, longest first. */
    this.list = [...events.values()].sort((a, b) => requests.dur[b.longest] - requests.dur[a.longest]);
    this.of = new Map(slow.map(({ number }, n) => [number, /** @type {Event} */ (events.get(first[n]))]));
  }
}

/** @param {Requests} requests @param {number} number @returns {Slow} */
function slowOf(requests, number) {
  /** @type {PathPart | null} */
  let longest = null;
  for (const part of requests.pathOf(number)) if (!longest || part.to - part.from > longest.to - longest.from) longest = part;
  const from = requests.start[number];
  return { number, from, to: from + requests.dur[number], part: longest };
}

/** For each request, in the order of starts, the first request of its event. @param {Slow[]} slow */
function grouped(slow) {
  const first = slow.map((_, n) => n);
  const root = (/** @type {number} */ n) => {
    while (first[n] !== n) n = first[n] = first[first[n]];
    return n;
  };
  /** @type {number[]} */
  let underWay = [];
  for (let n = 0; n < slow.length; n++) {
    underWay = underWay.filter((other) => slow[other].to > slow[n].from);
    for (const other of underWay) {
      if (!areOfOne(slow[n], slow[other])) continue;
      const [a, b] = [root(n), root(other)];
      first[Math.max(a, b)] = Math.min(a, b);
    }
    underWay.push(n);
  }
  return first.map((_, n) => root(n));
}

/** @param {Slow} a @param {Slow} b */
function areOfOne(a, b) {
  const common = Math.min(a.to, b.to) - Math.max(a.from, b.from);
  const isSame = a.part && b.part && a.part.cause === b.part.cause && a.part.from < b.part.to && b.part.from < a.part.to;
  return isSame || common * 2 >= Math.max(a.to - a.from, b.to - b.from);
}
