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
 * What spans are grouped by: a column, by its values the number of the group, how many there are, and by that number what
 * it is called and the search that finds it, nothing if none does. Of names there may be tens of thousands, so both are
 * made when they are asked for.
 * @typedef {{column: Column, of: Int32Array, size: number, text: (group: number) => string, find: (group: number) => string}} Grouping
 */

/** This many values, each by itself. @param {number} size */
const allUpTo = (size) => Int32Array.from({ length: size }, (_, k) => k);

/** The ways to group spans. @type {readonly [string, string, (store: Store) => Grouping][]} */
export const GROUPINGS = Object.freeze([
  ["name", "Name", ({ name, names }) => ({
    column: name, of: allUpTo(names.length), size: names.length, text: (k) => shownName(names[k]), find: (k) => exactly(names[k]),
  })],
  ["program", "Program", programsOf],
  ["thread", "Thread", (store) => ({
    column: store.pid, of: allUpTo(store.pids.length), size: store.pids.length,
    text: (k) => (store.pids[k] < 0 ? "none" : threadText(store, store.pids[k])), find: (k) => (store.pids[k] < 0 ? "" : `pid:${store.pids[k]}`),
  })],
  ["process", "Process", processesOf],
  ["cgroup", "Control group", controlGroupsOf],
  ["cpu", "CPU", ({ cpu, cpus }) => ({
    column: cpu, of: allUpTo(cpus.length), size: cpus.length,
    text: (k) => (cpus[k] < 0 ? "none" : `CPU ${cpus[k]}`), find: (k) => (cpus[k] < 0 ? "" : `cpu:${cpus[k]}`),
  })],
]);

/** Threads of one name together. @param {Store} store @returns {Grouping} */
function programsOf(store) {
  return threadsBy(store, (pid) => threadText(store, pid).replace(/\.\d+$/, ""), (program) => program);
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
  /** @type {(T | null)[]} */
  const keys = pids.map((number) => (number < 0 ? null : keyOf(number)));
  const places = new Map([...new Set(keys)].map((key, place) => [key, place]));
  const of = Int32Array.from(keys, (key) => places.get(key) ?? 0);
  const known = [...places.keys()];
  return {
    column: pid, of, size: known.length,
    text: (k) => { const key = known[k]; return key === null ? "none" : textOf(key); },
    find: (k) => (known[k] === null ? "" : `pid:${pids.filter((_, p) => of[p] === k).join(",")}`),
  };
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
    const { steps } = this;
    let [sum, shortest, longest] = [0, Infinity, 0];
    for (let k = 0; k < ids.length; k++) {
      const d = dur[ids[k]];
      sum += d;
      if (d < shortest) shortest = d;
      if (d > longest) longest = d;
      steps[stepOf(d)]++;
    }
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
    const alone = { column: store.kind, of: new Int32Array(KIND_NAMES.length), size: 1, text: () => "", find: () => "" };
    const [one, two] = [by[0], by[1] ?? alone];
    this.width = two.size;
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

  /** @param {Durations[]} wanted @param {Uint16Array} places @param {Column} dur @param {Uint32Array} ids */
  countIn(wanted, places, dur, ids) {
    const { groups, all } = this;
    if (wanted.length === 0 && all.counts) return;
    const rest = wanted.length * STEPS;
    const steps = new Uint32Array(rest + STEPS);
    wanted.forEach((group, k) => (group.counts = steps.subarray(k * STEPS, (k + 1) * STEPS)));
    // What is not wanted is counted in one place after the others: no branch can be guessed wrongly.
    const first = Uint32Array.from(groups, ({ counts }) => (counts?.buffer === steps.buffer ? counts.byteOffset / steps.BYTES_PER_ELEMENT : rest));
    for (let k = 0; k < ids.length; k++) steps[first[places[k]] + stepOf(dur[ids[k]])]++;
    all.counts = new Uint32Array(STEPS);
    for (let k = 0; k < steps.length; k++) all.counts[k % STEPS] += steps[k];
  }

  /** @param {Store} store @param {Uint32Array} ids @param {Grouping} one @param {Grouping} two @param {Calls | null} calls */
  add(store, ids, one, two, calls) {
    const { dur } = store;
    const places = this.placesOf(ids, one, two);
    // Count, sum, shortest and longest of each group lie beside each other, in one line of the processor's cache.
    const numbers = new Float64Array(this.pairs.length * 4);
    for (let at = 0; at < this.pairs.length; at++) numbers[4 * at + 2] = Infinity;
    for (let k = 0; k < ids.length; k++) {
      const d = dur[ids[k]];
      const at = 4 * places[k];
      numbers[at]++;
      numbers[at + 1] += d;
      if (d < numbers[at + 2]) numbers[at + 2] = d;
      if (d > numbers[at + 3]) numbers[at + 3] = d;
    }
    const countAll = () => this.countSteps(this.groups);
    this.groups = this.pairs.map((_, at) => {
      const [count, sum, shortest, longest] = numbers.subarray(4 * at, 4 * at + 4);
      return Object.assign(new Durations(countAll), { count, sum, shortest, longest });
    });
    this.all.countAll = () => this.countSteps([]);
    this.countSteps = (wanted) => this.countIn(wanted.filter(({ counts }) => !counts), places, dur, ids);
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

  /** The group of each span, which is made with its first. @param {Uint32Array} ids @param {Grouping} first @param {Grouping} second */
  placesOf(ids, first, second) {
    const { width, pairs } = this;
    const size = width * first.size;
    // Both have the place of a pair from 1 on.
    const table = size <= PAIRS_MAX ? new Uint16Array(size) : null;
    /** @type {Map<number, number>} */
    const map = new Map();
    const [one, two] = [first.column, second.column];
    const [ofOne, ofTwo] = [first.of, second.of];
    const places = new Uint16Array(ids.length);
    for (let k = 0; k < ids.length; k++) {
      const i = ids[k];
      const pair = ofOne[one[i]] * width + ofTwo[two[i]];
      let at = table ? table[pair] : map.get(pair) ?? 0;
      if (at === 0) {
        at = Math.min(pairs.length, GROUPS_MAX) + 1;
        if (table) table[pair] = at;
        else map.set(pair, at);
        if (at > pairs.length) pairs.push(at > GROUPS_MAX ? -1 : pair);
      }
      places[k] = at - 1;
    }
    return places;
  }

  /** The number of a group in one of the groupings. @param {number} at @param {number} which 0 or 1 */
  numberOf(at, which) {
    const pair = this.pairs[at];
    return which === 0 ? Math.floor(pair / this.width) : pair % this.width;
  }
}
