// SPDX-License-Identifier: BSD-3-Clause
// Adds up the durations of many spans, in groups by any two of name, program, thread, process, control group, CPU and reason,
// and for wakeups also by the thread woken and by its CPU.
//
// One pass over the spans counts each in its group and in the step of its duration. A step is at most a 32nd of its
// durations wide, so quantiles are accurate to 1.6 %; count, sum, shortest and longest are exact.

import { countersOf } from "./counters.js";
import { cgroupsOf, processOf, shownName, threadText } from "./format.js";
import { exactly } from "./search.js";
import { isExecution, waitLetter, WAIT_A, WAITS } from "./kind.js";
import { reasonsOf, REASONS_MAX } from "./reasons.js";
import { KIND_NAMES } from "./tables.js";
import { targetCpus, targetThreads } from "./targets.js";
import { wordedName } from "./words.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 * @import {Targets} from "./targets.js"
 */

/** Steps per doubling of the duration; below twice that, each unit of 10 ns is a step. */
const STEP_BITS = 5;
const DOUBLING = 1 << STEP_BITS;
/** Steps up to a day. */
export const STEPS = 40 * DOUBLING;
/** Bits of a step's number, and their mask. */
const STEP_NUMBER_BITS = 11;
const STEP_NUMBER = (1 << STEP_NUMBER_BITS) - 1;
/** Maximum number of separate groups, in 16 bits; the others are one group. */
const GROUPS_MAX = 16384;
/** Maximum number of pairs of groups for which a table has the place of each; only the part in use takes memory. */
const PAIRS_MAX = 1 << 26;

/** Durations below this, 42 s, are whole numbers of 32 bits. */
const SHORT = 2 ** 32;

/** The step of a short duration. @param {number} units */
function stepOfShort(units) {
  const shift = 31 - STEP_BITS - Math.clz32(units | DOUBLING);
  return shift * DOUBLING + ((units >>> shift) & (2 * DOUBLING - 1));
}

/** The step of a duration. Loops over many durations call `stepOfShort` directly if they can: without fractions, it takes half the time. @param {number} units */
export function stepOf(units) {
  if (units < SHORT) return stepOfShort(units);
  const shift = Math.floor(Math.log2(units)) - STEP_BITS;
  return Math.min(shift * DOUBLING + Math.floor(units / 2 ** shift), STEPS - 1);
}

/** The shortest duration of a step. @param {number} step */
export function minOfStep(step) {
  const shift = Math.max((step >> STEP_BITS) - 1, 0);
  return (step - shift * DOUBLING) * 2 ** shift;
}

/**
 * A way to group spans: a column, the number of the group by value of the column, the number of groups, and by group
 * its label and the search that finds it, empty if none does. There may be tens of thousands of names, so both texts are
 * made on demand.
 * @typedef {{column: Column, of: Int32Array, size: number, text: (group: number) => string, find: (group: number) => string}} Grouping
 */

/** The numbers from 0 to `size` - 1: each value is its own group. @param {number} size */
const allUpTo = (size) => Int32Array.from({ length: size }, (_, k) => k);

/** The spans to group, and whole calls if these are listed, alone or together with other spans. @typedef {{spans: Store, calls: Calls | null, beside: Calls | null}} Grouped */

/** The ways to group spans. @type {readonly [string, string, (store: Store, of?: Grouped) => Grouping][]} */
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
  ["reason", "Reason", reasonsIn],
  ["woken", "Woken", (store) => targetsBy(targetThreads(store), (pid) => threadText(store, pid), "woken")],
  ["to", "To CPU", (store) => targetsBy(targetCpus(store), (cpu) => `CPU ${cpu}`, "to")],
]);

/** @param {Targets} targets @param {(number: number) => string} textOf @param {string} selector @returns {Grouping} */
function targetsBy({ column, numbers }, textOf, selector) {
  return {
    column, of: allUpTo(numbers.length), size: numbers.length,
    text: (k) => (numbers[k] < 0 ? "none" : textOf(numbers[k])), find: (k) => (numbers[k] < 0 ? "" : `${selector}:${numbers[k]}`),
  };
}

/** Groups by the reason of a wait; for whole calls, by that of the longest. @param {Store} store @param {Grouped} [of] @returns {Grouping} */
function reasonsIn(store, { spans, calls, beside } = { spans: store, calls: null, beside: null }) {
  const nameOf = (/** @type {number} */ k) => (k === 0 ? "" : WAITS.find(([letter]) => letter === waitLetter(WAIT_A + k - 1))?.[1] ?? `wait_${waitLetter(WAIT_A + k - 1)}`);
  return {
    column: reasonsOf(spans, calls, beside), of: allUpTo(REASONS_MAX), size: REASONS_MAX,
    text: (k) => (k === 0 ? "no wait" : wordedName(nameOf(k))), find: (k) => (k === 0 || calls || beside ? "" : exactly(nameOf(k))),
  };
}

/** Groups threads of one name. @param {Store} store @returns {Grouping} */
function programsOf(store) {
  return threadsBy(store, (pid) => threadText(store, pid).replace(/\.\d+$/, ""), (program) => program);
}

/** Groups threads of one process, labelled with its first thread. @param {Store} store @returns {Grouping} */
function processesOf(store) {
  return threadsBy(store, (pid) => processOf(store, pid), (process) => threadText(store, process));
}

/** Groups threads of one control group. @param {Store} store @returns {Grouping} */
function controlGroupsOf(store) {
  const groupOf = cgroupsOf(store);
  return threadsBy(store, groupOf, (group) => shownName(group?.short ?? "not known"));
}

/**
 * Groups threads with the same key.
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

/** Durations added up: their count, sum, shortest and longest, and the count in each step. */
export class Durations {
  count = 0;
  sum = 0;
  shortest = Infinity;
  longest = 0;
  /** For whole calls, the time that their threads spent in them on a CPU. */
  own = 0;
  /** Time of execution with counters, that time multiplied by sixteenths of an instruction per cycle, and misses. */
  counted = 0;
  work = 0;
  misses = 0;

  /** The count of durations in each step, once counted. @type {Uint32Array | null} */
  counts = null;

  /** @param {() => void} [countAll] counts the steps when they are first needed */
  constructor(countAll = () => (this.counts = new Uint32Array(STEPS))) {
    this.countAll = countAll;
  }

  /** The count of durations in each step. @returns {Uint32Array} */
  get steps() {
    if (!this.counts) this.countAll();
    return /** @type {Uint32Array} */ (this.counts);
  }

  /** Instructions per cycle over all time together; -1 if they were not counted. */
  get pace() {
    return this.counted > 0 ? this.work / this.counted / 16 : -1;
  }

  /** A quantile: the duration that this part of all does not exceed, as the middle of its step. @param {number} part 0 to 1 */
  quantile(part) {
    const { steps, count } = this;
    const wanted = Math.ceil(part * count);
    let step = 0;
    for (let below = steps[0]; below < wanted; below += steps[step]) step++;
    const middle = Math.floor((minOfStep(step) + minOfStep(step + 1) - 1) / 2);
    return Math.min(Math.max(middle, this.shortest), this.longest);
  }

  /** Adds up the durations of some spans. @param {Column} dur @param {Uint32Array} ids */
  addAll(dur, ids) {
    const { steps } = this;
    let [sum, shortest, longest] = [0, Infinity, 0];
    for (let k = 0; k < ids.length; k++) {
      const d = dur[ids[k]];
      sum += d;
      if (d < shortest) shortest = d;
      if (d > longest) longest = d;
      if (d < SHORT) steps[stepOfShort(d)]++;
      else steps[stepOf(d)]++;
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
   * @param {Grouping[]} by at most two; with none, only `all` is filled
   * @param {Calls | null} [calls] the calls, if `store` is theirs
   * @param {Calls | null} [beside] calls whose first pieces stand for the whole, if any do
   * @param {Uint32Array} [room] memory to reuse for a number per span, if large enough; it invalidates the earlier pivot that had it
   */
  constructor(store, ids, by, calls = null, beside = null, room = new Uint32Array(0)) {
    const alone = { column: store.kind, of: new Int32Array(KIND_NAMES.length), size: 1, text: () => "", find: () => "" };
    const [one, two] = [by[0] ?? alone, by[1] ?? alone];
    /** True if a pair's number is the first grouping's number times `width` plus the second's; else the two are swapped. */
    this.isFirstTimes = one.size < two.size;
    this.width = Math.max(one.size, two.size);
    /** By group, the pair of numbers in both groupings, as one number; -1 for the last group, which has all in excess of `GROUPS_MAX`. @type {number[]} */
    this.pairs = [];
    /** @type {Durations[]} */
    this.groups = [];
    this.all = new Durations();
    /** For each span its group and its step. @type {Uint32Array} */
    this.places = new Uint32Array(0);
    if (by.length === 0) this.all.addAll(store.dur, ids);
    else this.add(store, ids, one, two, calls, beside, room);
    for (const group of this.groups) this.all.join(group);
  }

  /** Counts the steps of the given groups in one pass: counting those of all takes much longer if there are thousands. @type {(groups: Durations[]) => void} */
  countSteps = () => {};

  /** @param {Durations[]} wanted */
  countIn(wanted) {
    const { groups, all, places } = this;
    const n = places.length;
    if (wanted.length === 0 && all.counts) return;
    const rest = wanted.length * STEPS;
    const steps = new Uint32Array(rest + STEPS);
    wanted.forEach((group, k) => (group.counts = steps.subarray(k * STEPS, (k + 1) * STEPS)));
    // Spans of all other groups count in one place after the others: without a branch, no prediction can miss.
    const first = Uint32Array.from(groups, ({ counts }) => (counts?.buffer === steps.buffer ? counts.byteOffset / steps.BYTES_PER_ELEMENT : rest));
    for (let k = 0; k < n; k++) steps[first[places[k] >>> STEP_NUMBER_BITS] + (places[k] & STEP_NUMBER)]++;
    all.counts = new Uint32Array(STEPS);
    for (let k = 0; k < steps.length; k++) all.counts[k % STEPS] += steps[k];
  }

  /** @param {Store} store @param {Uint32Array} ids @param {Grouping} one @param {Grouping} two @param {Calls | null} calls @param {Calls | null} beside @param {Uint32Array} room */
  add(store, ids, one, two, calls, beside, room) {
    this.places = room.length < ids.length ? new Uint32Array(ids.length) : room.subarray(0, ids.length);
    const { places } = this;
    const { counts, sums, shortest, longest } = this.placeAll(store.dur, ids, one, two);
    const countAll = () => this.countSteps(this.groups);
    this.groups = this.pairs.map((_, at) => {
      const group = new Durations(countAll);
      group.count = counts[at + 1];
      group.sum = sums[at + 1];
      group.shortest = shortest[at + 1];
      group.longest = longest[at + 1];
      return group;
    });
    this.all.countAll = () => this.countSteps([]);
    this.countSteps = (wanted) => this.countIn(wanted.filter(({ counts }) => !counts));
    if (calls) this.addCalls(ids, places, calls);
    else this.addCounted(store, ids, places, beside);
  }

  /** Adds up the counters of spans and of calls among them. @param {Store} store @param {Uint32Array} ids @param {Uint32Array} places @param {Calls | null} beside */
  addCounted(store, ids, places, beside) {
    const { dur, ipc, kind } = store;
    const { paces, misses } = countersOf(store);
    if (!paces && !misses) return;
    for (let k = 0; k < ids.length; k++) {
      const i = ids[k];
      if (!isExecution(kind[i])) continue;
      const group = this.groups[places[k] >>> STEP_NUMBER_BITS];
      if (beside && beside.of[i] > 0) {
        const call = beside.of[i] - 1;
        group.counted += beside.own[call];
        group.work += beside.work[call] ?? 0;
        group.misses += beside.misses[call] ?? 0;
        continue;
      }
      group.counted += dur[i];
      if (paces) group.work += dur[i] * paces[ipc[i] & 15];
      if (misses) group.misses += misses[ipc[i] & 15];
    }
  }

  /** Adds up the own time of whole calls, and the counters over it. @param {Uint32Array} ids @param {Uint32Array} places @param {Calls} calls */
  addCalls(ids, places, { own, work, misses }) {
    for (let k = 0; k < ids.length; k++) {
      const group = this.groups[places[k] >>> STEP_NUMBER_BITS];
      group.own += own[ids[k]];
      if (work.length > 0) group.work += work[ids[k]];
      if (misses.length > 0) group.misses += misses[ids[k]];
    }
    if (work.length + misses.length > 0) for (const group of this.groups) group.counted = group.own;
  }

  /**
   * Finds the group of each span, created with its first, and stores it above the step of its duration; returns the totals of each group.
   * All in one pass, so that each span's values are read once.
   * @param {Column} dur
   * @param {Uint32Array} ids
   * @param {Grouping} first
   * @param {Grouping} second
   */
  placeAll(dur, ids, first, second) {
    const { pairs, places, width, isFirstTimes } = this;
    const size = first.size * second.size;
    // Table and map hold the place of a pair, from 1 on. The pairs of one thread (or of any smaller grouping) are adjacent: most of the table's memory is never touched.
    const table = size <= PAIRS_MAX ? new Uint16Array(size) : null;
    /** @type {Map<number, number>} */
    const map = new Map();
    const isShort = dur.BYTES_PER_ELEMENT <= 4;
    const room = GROUPS_MAX + 2;
    const [counts, sums] = [new Uint32Array(room), new Float64Array(room)];
    // 32-bit integers have no fraction, so comparing them takes less time.
    const [shortest, longest] = isShort ? [new Uint32Array(room), new Uint32Array(room)] : [new Float64Array(room), new Float64Array(room)];
    const [one, two] = [first.column, second.column];
    // Without a table, the number of a pair may be too large for 32 bits.
    const [ofOne, ofTwo] = [first, second].map(({ of }, which) => (table ? of : Float64Array.from(of)).map((group) => ((which === 0) === isFirstTimes ? group * width : group)));
    // An engine may read an array's length again in each iteration.
    const n = ids.length;
    for (let k = 0; k < n; k++) {
      const i = ids[k];
      const d = dur[i];
      const pair = ofOne[one[i]] + ofTwo[two[i]];
      let place = table ? table[pair] : map.get(pair) ?? 0;
      if (place === 0) {
        if (pairs.length <= GROUPS_MAX) shortest[pairs.push(pairs.length < GROUPS_MAX ? pair : -1)] = d;
        place = pairs.length;
        if (table) table[pair] = place;
        else map.set(pair, place);
      }
      const group = (place - 1) << STEP_NUMBER_BITS;
      if (isShort || d < SHORT) places[k] = group | stepOfShort(d);
      else places[k] = group | stepOf(d);
      counts[place]++;
      sums[place] += d;
      if (d < shortest[place]) shortest[place] = d;
      if (d > longest[place]) longest[place] = d;
    }
    return { counts, sums, shortest, longest };
  }

  /** The number of a group in one of the groupings; -1 for the last group if it has all in excess of `GROUPS_MAX`. @param {number} at @param {number} which 0 or 1 */
  numberOf(at, which) {
    const { pairs, width, isFirstTimes } = this;
    if (pairs[at] < 0) return -1;
    return (which === 0) === isFirstTimes ? Math.floor(pairs[at] / width) : pairs[at] % width;
  }
}
