// SPDX-License-Identifier: BSD-3-Clause
// Requests and the critical paths of their threads, as the page carries them (postprocess/src/sink/page/requests.rs), and
// sums of causes over any of them.
//
// The causes, the start of each part of a path and the set of requests were computed by the same code that prints
// `kutrace_control why`; here they are only added up, in whole units of 10 ns.

import { piecesOf } from "./decode.js";
import { unpackPart } from "./part.js";
import { Durations } from "./pivot.js";
/** @import {Column} from "./part.js" */

/**
 * @typedef {{kind: string, text: string[]}} CauseText
 * @typedef {{field: string, rows: number, width: number, wide: number, offset: number, bytes: number}} Stored
 * @typedef {{start: number, end: number}} Side
 * @typedef {{unit: string, scale: number, cost: number, other: number}} Pace
 * @typedef {{excessMin: number, timeMin: number, shareMin: number, worth: number, causes: number, lookedAt: number, names: number, ofCpus: string[], often: [number, number, number], named: number, namedMin: number, beyond: number, pace: Pace}} Rules
 * @typedef {{asked: string, unfinished: number, causes: CauseText[], threads: Record<string, string>, sides: [Side, Side] | null, apart: boolean, rules: Rules, columns: Stored[]}} Carried
 */

/** A part of a request's time: its start and end, the cause it counts as, its CPU (-1 for none), and the thread to blame (-1 for the request's own). @typedef {{from: number, to: number, cause: number, cpu: number, culprit: number}} PathPart */

/** Sums by cause over some requests: time, number of stretches, counted work, number of requests with it, and the thread to blame if only one is: its number plus one, 0 for none, -1 for several. */
export class Sums {
  /** @param {number} causes */
  constructor(causes) {
    this.count = 0;
    this.time = 0;
    this.times = new Float64Array(causes);
    this.parts = new Float64Array(causes);
    this.works = new Float64Array(causes);
    this.requests = new Uint32Array(causes);
    this.blamed = new Float64Array(causes);
  }

  /** The mean duration. */
  get mean() {
    return this.time / Math.max(this.count, 1);
  }

  /** These sums minus those of some of the requests; the threads to blame stay those of all. @param {Sums} some */
  without(some) {
    const rest = new Sums(this.times.length);
    rest.count = this.count - some.count;
    rest.time = this.time - some.time;
    rest.blamed = this.blamed;
    for (const column of /** @type {const} */ (["times", "parts", "works", "requests"])) {
      rest[column].forEach((_, cause) => (rest[column][cause] = this[column][cause] - some[column][cause]));
    }
    return rest;
  }

  /** These sums minus the time of a cause. @param {number} cause */
  withoutCause(cause) {
    const none = new Sums(this.times.length);
    none.time = this.times[cause];
    for (const column of /** @type {const} */ (["times", "parts", "works", "requests"])) none[column][cause] = this[column][cause];
    return this.without(none);
  }
}

/** Spans by start, with the CPU of each as an index into `cpus`. @typedef {{start: Column, cpu: Column, cpus: number[]}} Starts */

/**
 * Reads the requests in a page; throws if they are damaged.
 * @param {Carried} carried
 * @param {string[]} chunks the texts of the page's data elements
 * @param {number} chunkBytes
 * @param {Starts} spans the spans of the page
 */
export async function readRequests(carried, chunks, chunkBytes, spans) {
  /** @type {Record<string, Column>} */
  const columns = {};
  for (const { field, rows, width, wide, offset, bytes } of carried.columns) {
    const last = Math.ceil((offset + bytes) / chunkBytes);
    const values = chunks.length < last ? null
      : await unpackPart({ pieces: piecesOf(chunks, chunkBytes, offset, bytes), width, wide, rows, sums: field === "start" });
    if (!values) throw new Error(`the requests in the page are damaged (column ${field})`);
    columns[field] = values.length === rows ? values : new Uint8Array(rows);
  }
  return new Requests(carried, columns, spans);
}

export class Requests {
  /** @param {Carried} carried @param {Record<string, Column>} columns @param {Starts} spans */
  constructor({ asked, unfinished, causes, threads, sides, apart, rules }, { pid, start, dur, parts, steps, length, cause, cpu, culprit, work }, spans) {
    this.asked = asked;
    this.unfinished = unfinished;
    this.causes = causes;
    this.threads = threads;
    this.sides = sides;
    this.rules = rules;
    this.n = start.length;
    this.pid = pid;
    this.start = start;
    this.dur = dur;
    this.length = new Float64Array(cause.length);
    this.cause = cause;
    this.cpu = cpu;
    this.culprit = culprit;
    this.work = work;
    /** The start of each part. */
    this.at = new Float64Array(cause.length);
    /** The first part of each request, and the part after its last. */
    this.first = new Uint32Array(this.n);
    this.after = new Uint32Array(this.n);
    this.place(parts, new Ends(spans, steps, length));
    /** The causes of each request: those of request n are from `offsets[n]` to `offsets[n + 1]`. */
    this.offsets = new Float64Array(this.n + 1);
    this.present = this.whichCauses();
    const numbers = Uint32Array.from(start, (_, n) => n);
    /** Statistics of all durations. */
    this.durations = new Durations();
    this.durations.addAll(dur, numbers);
    /** Numbers of requests by duration; equal ones by number. */
    this.byDuration = numbers.sort((a, b) => dur[a] - dur[b] || a - b);
    this.all = this.sum(this.byDuration);
    /** The cause that CPUs stood still, if it is treated separately; -1 if not. */
    this.apart = apart ? causes.findIndex(({ kind }) => kind === "stalled") : -1;
    /** Numbers of requests by duration without the time of that cause. */
    this.byRest = this.apart < 0 ? this.byDuration : this.withoutTimeOf(this.apart);
  }

  /** Finds the parts of each request: overlapping requests of one thread share a run of parts. @param {Column} counts @param {Ends} ends */
  place(counts, ends) {
    const { n, pid, start, dur, at, length, cpu, first, after } = this;
    const end = (/** @type {number} */ r) => start[r] + dur[r];
    let [request, part] = [0, 0];
    for (let run = 0; run < counts.length; run++) {
      const [begin, stop] = [part, part + counts[run]];
      for (let time = start[request]; part < stop; part++) {
        at[part] = time;
        length[part] = ends.next(time, cpu[part] - 1) - time;
        time += length[part];
      }
      const thread = pid[request];
      for (let to = -Infinity; request < n && pid[request] === thread && (to === -Infinity || start[request] < to); request++) {
        to = Math.max(to, end(request));
        first[request] = firstWith(begin, stop, (k) => at[k] + length[k] > start[request]);
        after[request] = Math.max(firstWith(begin, stop, (k) => at[k] >= end(request)), first[request]);
      }
    }
    if (request !== n || part !== at.length || !ends.isOver) throw new Error("the requests in the page are damaged");
  }

  /** The causes of each request, except those without time. */
  whichCauses() {
    const { n, cause, first, after, offsets, dur } = this;
    const seen = new Int32Array(this.causes.length).fill(-1);
    // Two passes: the first counts, to size the array.
    for (let r = 0; r < n; r++) {
      let count = 0;
      for (let k = first[r]; k < after[r] && dur[r] > 0; k++) {
        count += Number(seen[cause[k]] !== r);
        seen[cause[k]] = r;
      }
      offsets[r + 1] = offsets[r] + count;
    }
    seen.fill(-1);
    const present = this.causes.length <= 2 ** 16 ? new Uint16Array(offsets[n]) : new Uint32Array(offsets[n]);
    let place = 0;
    for (let r = 0; r < n; r++) {
      for (let k = first[r]; k < after[r] && dur[r] > 0; k++) {
        if (seen[cause[k]] === r) continue;
        seen[cause[k]] = r;
        present[place++] = cause[k];
      }
    }
    return present;
  }

  /** Sums by cause over these requests. @param {Uint32Array} numbers */
  sum(numbers) {
    const sums = new Sums(this.causes.length);
    const chosen = new Uint8Array(this.n);
    for (const r of numbers) chosen[r] = 1;
    // The number of these requests that each part is in, as differences from part to part.
    const changes = new Int32Array(this.at.length + 1);
    this.addEnds(sums, chosen, changes);
    this.addParts(sums, changes);
    return sums;
  }

  /** Counts the chosen requests and the ends of their runs of parts, and subtracts what extends beyond a request at its ends. It follows the order of the parts: by duration, each request would miss the cache a dozen times. @param {Sums} sums @param {Uint8Array} chosen @param {Int32Array} changes */
  addEnds(sums, chosen, changes) {
    const { n, start, dur, first, after, at, length, cause, work, offsets, present } = this;
    const { times, works, requests } = sums;
    for (let r = 0; r < n; r++) {
      if (chosen[r] === 0) continue;
      sums.count++;
      sums.time += dur[r];
      if (dur[r] === 0 || first[r] === after[r]) continue;
      changes[first[r]]++;
      changes[after[r]]--;
      const [head, tail] = [first[r], after[r] - 1];
      const before = start[r] - at[head];
      const behind = at[tail] + length[tail] - start[r] - dur[r];
      times[cause[head]] -= before;
      times[cause[tail]] -= behind;
      if (before > 0) works[cause[head]] -= workOf(work[head], before, length[head]);
      if (behind > 0) works[cause[tail]] -= workOf(work[tail], behind, length[tail]);
      for (let k = offsets[r]; k < offsets[r + 1]; k++) requests[present[k]]++;
    }
  }

  /** Adds each part once for each request that it is in. @param {Sums} sums @param {Int32Array} changes */
  addParts({ times, parts, works, blamed }, changes) {
    const { length, cause, culprit, work } = this;
    for (let k = 0, many = 0; k < length.length; k++) {
      many += changes[k];
      if (many === 0) continue;
      const its = cause[k];
      times[its] += many * length[k];
      parts[its] += many;
      if (work[k] > 0) works[its] += many * work[k];
      if (culprit[k] > 0 && blamed[its] !== culprit[k]) blamed[its] = blamed[its] === 0 ? culprit[k] : -1;
    }
  }

  /** The path of a request. @param {number} r @returns {PathPart[]} */
  pathOf(r) {
    const { start, dur, first, after, at, length, cause, cpu, culprit } = this;
    return Array.from({ length: after[r] - first[r] }, (_, n) => {
      const k = first[r] + n;
      return {
        from: Math.max(at[k], start[r]), to: Math.min(at[k] + length[k], start[r] + dur[r]), cause: cause[k], cpu: cpu[k] - 1, culprit: culprit[k] - 1,
      };
    });
  }

  /** The time by cause in one request, largest first. @param {number} r @returns {{cause: number, time: number, words: string}[]} */
  causesOf(r) {
    /** @type {Map<number, {cause: number, time: number, threads: Set<number>}>} */
    const sums = new Map();
    for (const { from, to, cause, culprit } of this.pathOf(r)) {
      const sum = sums.get(cause) ?? { cause, time: 0, threads: new Set() };
      sums.set(cause, sum);
      sum.time += to - from;
      if (culprit >= 0) sum.threads.add(culprit);
    }
    const list = [...sums.values()].sort((a, b) => b.time - a.time || a.cause - b.cause);
    return list.map(({ cause, time, threads }) => ({ cause, time, words: this.words(cause, threads.size === 1 ? this.thread([...threads][0]) : undefined) }));
  }

  /** The number of a thread's request with this start and end; -1 if none. @param {{pid: number, from: number, to: number}} named */
  numberOf({ pid, from, to }) {
    return this.start.findIndex((/** @type {number} */ start, /** @type {number} */ r) => start === from && start + this.dur[r] === to && this.pid[r] === pid);
  }

  /** The requests whose durations are between two bounds, inclusive, by duration. @param {number} from @param {number} to */
  between(from, to) {
    const { byDuration, dur, n } = this;
    return byDuration.subarray(firstWith(0, n, (k) => dur[byDuration[k]] >= from), firstWith(0, n, (k) => dur[byDuration[k]] > to));
  }

  /** Numbers of requests by duration without the time of a cause. @param {number} cause */
  withoutTimeOf(cause) {
    const timeOf = this.timeIn(cause);
    const rest = Float64Array.from(this.dur, (dur, r) => dur - timeOf(r));
    return Uint32Array.from(rest, (_, n) => n).sort((a, b) => rest[a] - rest[b] || a - b);
  }

  /** The requests, of some, with most time of a cause, largest first. @param {Uint32Array} numbers @param {number} cause @param {number} max maximum number of them */
  withMost(numbers, cause, max) {
    const timeOf = this.timeIn(cause);
    /** @type {[number, number][]} */
    const those = [...numbers].map((r) => [r, timeOf(r)]);
    return those.filter(([, time]) => time > 0).sort((a, b) => b[1] - a[1] || this.start[a[0]] - this.start[b[0]]).slice(0, max);
  }

  /** Returns a function for the time of a cause in any request. @param {number} cause */
  timeIn(cause) {
    const { cause: causes, length, at, first, after, start, dur } = this;
    const before = new Float64Array(length.length + 1);
    for (let k = 0; k < length.length; k++) before[k + 1] = before[k] + (causes[k] === cause ? length[k] : 0);
    return (/** @type {number} */ r) => {
      const [head, tail] = [first[r], after[r] - 1];
      if (tail < head) return 0;
      const outside = (causes[head] === cause ? start[r] - at[head] : 0) + (causes[tail] === cause ? at[tail] + length[tail] - start[r] - dur[r] : 0);
      return before[tail + 1] - before[head] - outside;
    };
  }

  /** The cause in words, with the thread to blame if there is only one. @param {number} cause @param {string} [culprit] */
  words(cause, culprit) {
    const { text } = this.causes[cause];
    return text.length < 3 ? text.join("") : `${text[0]}${culprit ?? text[1]}${text[2]}`;
  }

  /** The name of a thread. @param {number} pid */
  thread(pid) {
    return this.threads[pid] ?? `.${pid}`;
  }

  /** A part in words. @param {PathPart} part */
  wordsOf({ cause, culprit }) {
    return this.words(cause, culprit >= 0 ? this.thread(culprit) : undefined);
  }
}

/** The ends of successive parts: at the start of a span of their CPU, or after a duration of their own. */
class Ends {
  /** @param {Starts} spans @param {Column} steps @param {Column} lengths */
  constructor({ start, cpu, cpus }, steps, lengths) {
    this.start = start;
    this.cpu = cpu;
    this.steps = steps;
    this.lengths = lengths;
    /** The index of each CPU. */
    this.indexes = new Map(cpus.map((number, index) => [number, index]));
    this.step = 0;
    this.length = 0;
  }

  /** The end of the next part. @param {number} begin its start @param {number} cpu */
  next(begin, cpu) {
    const { start, cpu: cpuOf, steps, lengths, indexes } = this;
    let left = steps[this.step++];
    if (left === 0) return begin + lengths[this.length++];
    const index = indexes.get(cpu);
    let k = firstWith(0, start.length, (i) => start[i] > begin);
    while (k < start.length && (left -= Number(cpuOf[k] === index)) > 0) k++;
    if (k === start.length) throw new Error("the requests in the page are damaged");
    return start[k];
  }

  get isOver() {
    return this.step === this.steps.length && this.length === this.lengths.length;
  }
}

/** The first number from `begin` on that fulfils a monotonic condition; `end` if none does. @param {number} begin @param {number} end @param {(k: number) => boolean} holds */
function firstWith(begin, end, holds) {
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (holds(middle)) end = middle;
    else begin = middle + 1;
  }
  return begin;
}

/** The instructions of a piece of a part, rounded down to a whole number. @param {number} work @param {number} piece @param {number} length */
function workOf(work, piece, length) {
  const product = work * piece;
  return product <= Number.MAX_SAFE_INTEGER ? Math.floor(product / length) : Number((BigInt(work) * BigInt(piece)) / BigInt(length));
}
