// SPDX-License-Identifier: BSD-3-Clause
// Durations of many spans added up, in groups by any two of name, program, thread, process and CPU.
//
// One pass over the spans counts each in the step of its duration, of its group. A step is at most a 32nd of its
// durations wide, so quantiles are right within 1.6 %; count, sum, shortest and longest are exact.

import { countersOf } from "./counters.js";
import { cgroupsOf, processOf, shownName, threadText } from "./format.js";
import { exactly } from "./search.js";
import { isExecution } from "./kind.js";
import { KIND_NAMES } from "./tables.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/** Steps in each doubling of the duration; below twice that each unit of 10 ns is one. */
const STEP_BITS = 5;
const DOUBLING = 1 << STEP_BITS;
/** Steps up to a day. */
const STEPS = 40 * DOUBLING;
/** Groups that are told apart, in 16 bits; the others are one. */
const GROUPS_MAX = 16384;
/** Pairs of groups up to which a table says the place of each; of its room only what is used takes memory. */
const PAIRS_MAX = 1 << 26;

/** Spans that are looked at together: what is known of them stays in the processor's cache. */
const PIVOT_BLOCK = 1 << 13;

/** The step of a duration. @param {number} units */
export function stepOf(units) {
  if (units < 2 ** 31) {
    const shift = 31 - STEP_BITS - Math.clz32(units | DOUBLING);
    return shift * DOUBLING + (units >>> shift);
  }
  const shift = Math.floor(Math.log2(units)) - STEP_BITS;
  return Math.min(shift * DOUBLING + Math.floor(units / 2 ** shift), STEPS - 1);
}

/** The shortest duration of a step. @param {number} step */
export function minOfStep(step) {
  const shift = Math.max((step >> STEP_BITS) - 1, 0);
  return (step - shift * DOUBLING) * 2 ** shift;
}

/**
 * What spans are grouped by: a column, by its values the number of the group, and by that number what it is called and the
 * search that finds it, nothing if none does.
 * @typedef {{column: Column, of: Int32Array, texts: string[], finds: string[]}} Grouping
 */

/** The ways to group spans. @type {readonly [string, string, (store: Store) => Grouping][]} */
export const GROUPINGS = Object.freeze([
  ["name", "Name", ({ name, names }) => ({
    column: name, of: Int32Array.from(names, (_, k) => k), texts: names.map(shownName), finds: names.map(exactly),
  })],
  ["program", "Program", programsOf],
  ["thread", "Thread", (store) => ({
    column: store.pid, of: Int32Array.from(store.pids, (_, k) => k), texts: store.pids.map((pid) => (pid < 0 ? "none" : threadText(store, pid))),
    finds: store.pids.map((pid) => (pid < 0 ? "" : `pid:${pid}`)),
  })],
  ["process", "Process", processesOf],
  ["cgroup", "Control group", controlGroupsOf],
  ["cpu", "CPU", ({ cpu, cpus }) => ({
    column: cpu, of: Int32Array.from(cpus, (_, k) => k), texts: cpus.map((number) => (number < 0 ? "none" : `CPU ${number}`)),
    finds: cpus.map((number) => (number < 0 ? "" : `cpu:${number}`)),
  })],
]);

/** Threads of one name together. @param {Store} store @returns {Grouping} */
function programsOf(store) {
  const { pid, pids } = store;
  const nameOf = (/** @type {number} */ number) => (number < 0 ? "none" : threadText(store, number).replace(/\.\d+$/, ""));
  const texts = [...new Set(pids.map(nameOf))];
  const numbers = texts.map((text) => pids.filter((number) => nameOf(number) === text));
  return {
    column: pid, of: Int32Array.from(pids, (number) => texts.indexOf(nameOf(number))), texts,
    finds: numbers.map((all) => (all[0] < 0 ? "" : `pid:${all.join(",")}`)),
  };
}

/** Threads of one process together, called after its first thread. @param {Store} store @returns {Grouping} */
function processesOf(store) {
  return threadsBy(store, (pid) => processOf(store, pid), (process) => threadText(store, process));
}

/** Threads of one control group together. @param {Store} store @returns {Grouping} */
function controlGroupsOf(store) {
  const groupOf = cgroupsOf(store);
  return threadsBy(store, groupOf, (group) => shownName(group?.short ?? "not known"));
}

/**
 * Threads of which the same is true together.
 * @template T
 * @param {Store} store
 * @param {(pid: number) => T} keyOf
 * @param {(key: T) => string} textOf
 * @returns {Grouping}
 */
function threadsBy({ pid, pids }, keyOf, textOf) {
  const keyOrNone = (/** @type {number} */ number) => (number < 0 ? null : keyOf(number));
  const keys = [...new Set(pids.map(keyOrNone))];
  const places = new Map(keys.map((key, place) => [key, place]));
  const threads = /** @type {number[][]} */ (keys.map(() => []));
  for (const number of pids) threads[places.get(keyOrNone(number)) ?? 0].push(number);
  return {
    column: pid, of: Int32Array.from(pids, (number) => places.get(keyOrNone(number)) ?? 0),
    texts: keys.map((key) => (key === null ? "none" : textOf(key))),
    finds: threads.map((all) => (all[0] < 0 ? "" : `pid:${all.join(",")}`)),
  };
}

/**
 * Adds the durations of some spans to the numbers of their groups, notes the step of each, and counts the steps of all.
 * @param {Column} dur
 * @param {Uint32Array} ids
 * @param {number} from
 * @param {number} to
 * @param {Uint16Array} places
 * @param {Float64Array} numbers
 * @param {Uint16Array} stepsOf
 * @param {Uint32Array} all
 */
function addUp(dur, ids, from, to, places, numbers, stepsOf, all) {
  for (let k = from; k < to; k++) {
    const d = dur[ids[k]];
    const at = 4 * places[k];
    numbers[at]++;
    numbers[at + 1] += d;
    if (d < numbers[at + 2]) numbers[at + 2] = d;
    if (d > numbers[at + 3]) numbers[at + 3] = d;
    const step = stepOf(d);
    stepsOf[k] = step;
    all[step]++;
  }
}

/** Some durations: how many, how long together, the shortest, the longest, and how many there are of each step. */
export class Durations {
  count = 0;
  sum = 0;
  shortest = Infinity;
  longest = 0;
  /** Of whole calls, the time their threads were in them on a CPU. */
  own = 0;
  /** Time of execution in which anything was counted, that times sixteenths of an instruction per cycle, and misses. */
  counted = 0;
  work = 0;
  misses = 0;

  /** How many there are of each step, once they are counted. @type {Uint32Array | null} */
  counts = null;

  /** @param {() => void} [countAll] counts steps where nobody did so before they are needed */
  constructor(countAll = () => (this.counts = new Uint32Array(STEPS))) {
    this.countAll = countAll;
  }

  /** How many there are of each step. @returns {Uint32Array} */
  get steps() {
    if (!this.counts) this.countAll();
    return /** @type {Uint32Array} */ (this.counts);
  }

  /** Instructions per cycle, all time taken together; -1 if none was counted. */
  get pace() {
    return this.counted > 0 ? this.work / this.counted / 16 : -1;
  }

  /** The duration that a part of all does not exceed: the middle of its step. @param {number} part 0 to 1 */
  quantile(part) {
    const { steps, count } = this;
    const wanted = Math.ceil(part * count);
    let step = 0;
    for (let below = steps[0]; below < wanted; below += steps[step]) step++;
    const middle = Math.floor((minOfStep(step) + minOfStep(step + 1) - 1) / 2);
    return Math.min(Math.max(middle, this.shortest), this.longest);
  }

  /** Adds all of some spans. @param {Column} dur @param {Uint32Array} ids */
  addAll(dur, ids) {
    // Spans beside each other often are of one step, whose counter had to be written before it is read again: there are two.
    const [even, odd] = [this.steps, new Uint32Array(STEPS)];
    let [sum, shortest, longest] = [0, Infinity, 0];
    let k = 0;
    for (; k + 1 < ids.length; k += 2) {
      const [d, e] = [dur[ids[k]], dur[ids[k + 1]]];
      sum += d + e;
      if (d < shortest) shortest = d;
      if (d > longest) longest = d;
      if (e < shortest) shortest = e;
      if (e > longest) longest = e;
      even[stepOf(d)]++;
      odd[stepOf(e)]++;
    }
    for (; k < ids.length; k++) {
      const d = dur[ids[k]];
      sum += d;
      shortest = Math.min(shortest, d);
      longest = Math.max(longest, d);
      even[stepOf(d)]++;
    }
    for (let step = 0; step < STEPS; step++) even[step] += odd[step];
    [this.count, this.sum, this.shortest, this.longest] = [ids.length, sum, shortest, longest];
  }

  /** @param {Durations} other */
  join(other) {
    this.count += other.count;
    this.sum += other.sum;
    this.shortest = Math.min(this.shortest, other.shortest);
    this.longest = Math.max(this.longest, other.longest);
    this.own += other.own;
    this.counted += other.counted;
    this.work += other.work;
    this.misses += other.misses;
  }
}

/** Spans by group. */
export class Pivot {
  /**
   * @param {Store} store
   * @param {Uint32Array} ids
   * @param {Grouping[]} by two at most; of none, only `all` is there
   * @param {Calls | null} [calls] whose store it is, if it is one of whole calls
   */
  constructor(store, ids, by, calls = null) {
    const alone = { column: store.kind, of: new Int32Array(KIND_NAMES.length), texts: [""], finds: [""] };
    const [one, two] = [by[0], by[1] ?? alone];
    this.width = two.texts.length;
    /** By group, the numbers of both groupings in one; -1 for the last, of all that are too many. @type {number[]} */
    this.pairs = [];
    /** @type {Durations[]} */
    this.groups = [];
    this.all = new Durations();
    if (by.length === 0) this.all.addAll(store.dur, ids);
    else this.add(store, ids, one, two, calls);
    for (const group of this.groups) this.all.join(group);
  }

  /** Counts the steps of some groups together: those of all take much more time where there are thousands. @type {(groups: Durations[]) => void} */
  countSteps = () => {};

  /** @param {Durations[]} wanted @param {Uint16Array} places @param {Uint16Array} stepsOf */
  countIn(wanted, places, stepsOf) {
    if (wanted.length === 0) return;
    const rest = wanted.length * STEPS;
    const steps = new Uint32Array(rest + STEPS);
    wanted.forEach((group, k) => (group.counts = steps.subarray(k * STEPS, (k + 1) * STEPS)));
    // What is not wanted is counted in one place after the others: no branch can be guessed wrongly.
    const first = Uint32Array.from(this.groups, ({ counts }) => (counts?.buffer === steps.buffer ? counts.byteOffset / steps.BYTES_PER_ELEMENT : rest));
    for (let k = 0; k < places.length; k++) steps[first[places[k]] + stepsOf[k]]++;
  }

  /** @param {Store} store @param {Uint32Array} ids @param {Grouping} one @param {Grouping} two @param {Calls | null} calls */
  add(store, ids, one, two, calls) {
    const { dur } = store;
    const places = new Uint16Array(ids.length);
    const stepsOf = new Uint16Array(ids.length);
    const place = this.placing(one, two);
    // Count, sum, shortest and longest of each group lie beside each other, in one line of the processor's cache.
    const numbers = new Float64Array((GROUPS_MAX + 1) * 4);
    for (let at = 2; at < numbers.length; at += 4) numbers[at] = Infinity;
    const all = new Uint32Array(STEPS);
    for (let from = 0; from < ids.length; from += PIVOT_BLOCK) {
      const to = Math.min(from + PIVOT_BLOCK, ids.length);
      place(ids, from, to, places);
      addUp(dur, ids, from, to, places, numbers, stepsOf, all);
    }
    const countAll = () => this.countSteps(this.groups);
    this.groups = this.pairs.map((_, at) => {
      const [count, sum, shortest, longest] = numbers.subarray(4 * at, 4 * at + 4);
      return Object.assign(new Durations(countAll), { count, sum, shortest, longest });
    });
    this.all.counts = all;
    this.countSteps = (wanted) => this.countIn(wanted.filter(({ counts }) => !counts), places, stepsOf);
    if (calls) this.addCalls(ids, places, calls);
    else this.addCounted(store, ids, places);
  }

  /** Adds up what was counted while spans ran. @param {Store} store @param {Uint32Array} ids @param {Uint16Array} places */
  addCounted(store, ids, places) {
    const { dur, ipc, kind } = store;
    const { paces, misses } = countersOf(store);
    if (!paces && !misses) return;
    for (let k = 0; k < ids.length; k++) {
      const i = ids[k];
      if (!isExecution(kind[i])) continue;
      const group = this.groups[places[k]];
      group.counted += dur[i];
      if (paces) group.work += dur[i] * paces[ipc[i] & 15];
      if (misses) group.misses += misses[ipc[i] & 15];
    }
  }

  /** Adds up the own time of whole calls, and what was counted in it. @param {Uint32Array} ids @param {Uint16Array} places @param {Calls} calls */
  addCalls(ids, places, { own, work, misses }) {
    for (let k = 0; k < ids.length; k++) {
      const group = this.groups[places[k]];
      group.own += own[ids[k]];
      if (work.length > 0) group.work += work[ids[k]];
      if (misses.length > 0) group.misses += misses[ids[k]];
    }
    if (work.length + misses.length > 0) for (const group of this.groups) group.counted = group.own;
  }

  /**
   * What says the group of each of some spans, which is made with its first.
   * @param {Grouping} first
   * @param {Grouping} second
   * @returns {(ids: Uint32Array, from: number, to: number, places: Uint16Array) => void}
   */
  placing(first, second) {
    const { width, pairs } = this;
    const size = width * first.texts.length;
    // Both have the place of a pair from 1 on.
    const table = size <= PAIRS_MAX ? new Uint16Array(size) : null;
    /** @type {Map<number, number>} */
    const map = new Map();
    const [one, two] = [first.column, second.column];
    const [ofOne, ofTwo] = [first.of, second.of];
    const added = (/** @type {number} */ pair) => {
      const at = Math.min(pairs.length, GROUPS_MAX) + 1;
      if (table) table[pair] = at;
      else map.set(pair, at);
      if (at > pairs.length) pairs.push(at > GROUPS_MAX ? -1 : pair);
      return at;
    };
    // What follows in time often is of the same group.
    let [last, lastAt] = [-1, 0];
    return (ids, from, to, places) => {
      for (let k = from; k < to; k++) {
        const i = ids[k];
        const pair = ofOne[one[i]] * width + ofTwo[two[i]];
        if (pair !== last) {
          last = pair;
          lastAt = (table ? table[pair] : map.get(pair) ?? 0) || added(pair);
        }
        places[k] = lastAt - 1;
      }
    };
  }

  /** The number of a group in one of the groupings. @param {number} at @param {number} which 0 or 1 */
  numberOf(at, which) {
    const pair = this.pairs[at];
    return which === 0 ? Math.floor(pair / this.width) : pair % this.width;
  }
}
