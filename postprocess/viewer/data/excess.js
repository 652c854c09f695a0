// SPDX-License-Identifier: BSD-3-Clause
// What some requests have more of than others, cause by cause: as postprocess/src/why/compare.rs ranks it, over sums that
// were computed there. A test holds both to the same numbers.

import { roundedText } from "./format.js";
/** @import {Requests, Sums} from "./requests.js" */

/** Some must take longer than the others by this part of those, or nothing stands out. */
const EXCESS_MIN = 0.2;
/** And slow ones by this time, 200 us, than normal ones: so much is usual now and then. */
const EXCESS_TIME_MIN = 20000;
/** Or so often that what they take longer is this part of what all would take if they were like the others. */
const EXCESS_SHARE_MIN = 0.1;
/** A cause counts that makes this part of the excess at least. */
const EXCESS_WORTH = 0.02;
/** The same work is slower if it is done at less than this part of the usual instructions per cycle. */
const OTHER_PACE = 0.9;
/** Causes that are listed. */
const CAUSES_MAX = 10;
/** Requests that are looked at to tell who is to blame, at most; names and CPUs that are said. */
const LOOKED_AT = 500;
const NAMES_SAID = 3;
/** Sorts of causes of which it matters on which CPU they happened. */
const OF_CPUS = new Set(["stalled", "queue", "idle", "interrupt", "offline"]);

/**
 * A cause of which some requests have more: how much more of it each has, that as a part of the whole excess, in how many
 * of them and of the others it is, and what else is known of it.
 * @typedef {{cause: number, words: string, time: number, share: number, inSome: number, inOthers: number, notes: string[]}} Excess
 */

/**
 * The excess of some requests over others: what makes it, most first, none if nothing stands out; how many causes are
 * left out, and the share of what is in no line.
 * @typedef {{excess: number, causes: Excess[], leftOut: number, unexplained: number}} Compared
 */

/** Of a cause, in one of several requests: time, stretches of time, instructions per cycle. @param {Sums} sums @param {number} cause */
function meanOf({ count, times, parts, works, requests }, cause) {
  const each = (/** @type {number} */ all) => all / Math.max(count, 1);
  const pace = times[cause] > 0 ? works[cause] / times[cause] / 16 : 0;
  return { time: each(times[cause]), parts: each(parts[cause]), pace, requests: requests[cause] };
}

/** @param {Sums} its @param {Sums} usual */
function ranked(its, usual) {
  const excess = its.mean - usual.mean;
  /** @type {{cause: number, paces: [number, number] | null, time: number}[]} */
  const list = [];
  for (let cause = 0; cause < its.times.length; cause++) {
    const [one, other] = [meanOf(its, cause), meanOf(usual, cause)];
    const pace = one.pace / other.pace;
    const counted = one.pace > 0 && other.pace > 0;
    const another = counted && (excess > 0 ? pace < OTHER_PACE : pace > 1 / OTHER_PACE);
    const byPace = another ? one.time * (1 - pace) : 0;
    list.push({ cause, paces: null, time: one.time - other.time - byPace }, { cause, paces: [one.pace, other.pace], time: byPace });
  }
  return list.filter(({ time }) => excess !== 0 && time / excess >= EXCESS_WORTH)
    .sort((a, b) => Math.abs(b.time) - Math.abs(a.time) || a.cause - b.cause);
}

/** Parts of a whole as text, largest first. @param {Map<number, number>} times @param {number} all @param {(key: number) => string} nameOf */
function sharesOf(times, all, nameOf) {
  const largest = [...times].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return largest.slice(0, NAMES_SAID).filter(([, time]) => time * 100 >= all)
    .map(([key, time]) => `${nameOf(key)} ${roundedText((time * 100) / Math.max(all, 1), 0)} %`).join(", ");
}

/**
 * Who is to blame for causes in some requests, and where: the thread, if it is one alone, and sentences.
 * @param {Requests} requests
 * @param {Uint32Array} numbers
 * @param {number[]} causes
 */
function blamedFor(requests, numbers, causes) {
  const gathered = new Map(causes.map((cause) => [cause, { time: 0, threads: new Map(), cpus: new Map() }]));
  const add = (/** @type {Map<number, number>} */ times, /** @type {number} */ key, /** @type {number} */ time) => key >= 0 && times.set(key, (times.get(key) ?? 0) + time);
  const step = Math.max(Math.ceil(numbers.length / LOOKED_AT), 1);
  const inOrder = numbers.slice().sort();
  for (let k = inOrder.length - 1; k >= 0; k -= step) {
    for (const { from, to, cause, cpu, culprit } of requests.pathOf(inOrder[k])) {
      const its = gathered.get(cause);
      if (!its) continue;
      its.time += to - from;
      add(its.threads, culprit, to - from);
      add(its.cpus, cpu, to - from);
    }
  }
  return new Map([...gathered].map(([cause, { time, threads, cpus }]) => {
    const names = [...threads].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([pid]) => requests.thread(pid));
    const notes = names.length > 1 ? [`${names.length} threads: ${names.slice(0, NAMES_SAID).join(", ")}${names.length > NAMES_SAID ? ", ..." : ""}`] : [];
    if (OF_CPUS.has(requests.causes[cause].kind)) notes.push(sharesOf(cpus, time, (cpu) => `CPU ${cpu}`));
    return [cause, { thread: names.length === 1 ? names[0] : undefined, notes: notes.filter((note) => note !== "") }];
  }));
}

/**
 * Compares the slow requests with the normal ones; nothing of too few. Where time in which CPUs stood still is told apart,
 * all else is without it: then how much longer the slowest with it take, and how much of that it makes.
 * @param {Requests} requests
 */
export function slowAgainstNormal(requests) {
  const { sides, byDuration, byRest, apart } = requests;
  if (!sides) return null;
  const [slowest, usual] = sides.map(({ start, end }) => byRest.subarray(start, end));
  const rest = (/** @type {Sums} */ sums) => (apart < 0 ? sums : sums.withoutCause(apart));
  const [slow, normal] = [slowest, usual].map((numbers) => rest(requests.sum(numbers)));
  const whole = apart < 0 ? null : sides.map(({ start, end }) => requests.sum(byDuration.subarray(start, end)));
  const still = whole && {
    excess: whole[0].mean - whole[1].mean, time: meanOf(whole[0], apart).time - meanOf(whole[1], apart).time,
    inSlow: whole[0].requests[apart], inNormal: whole[1].requests[apart], slow: whole[0].count,
  };
  return { slow, normal, still, compared: compare(requests, slowest, slow, normal, EXCESS_TIME_MIN) };
}

/**
 * Compares some requests with others.
 * @param {Requests} requests
 * @param {Uint32Array} numbers of those that are compared
 * @param {Sums} some what went into their causes
 * @param {Sums} others the same of those that they are compared with
 * @param {number} timeMin by which they must differ where they are few, or nothing stands out
 * @returns {Compared}
 */
export function compare(requests, numbers, some, others, timeMin = 0) {
  const excess = some.mean - others.mean;
  const isRare = Math.abs(excess) * some.count < EXCESS_SHARE_MIN * others.mean * requests.n;
  if (Math.abs(excess) < Math.max(EXCESS_MIN * others.mean, isRare ? timeMin : 0)) return { excess, causes: [], leftOut: 0, unexplained: 1 };
  const list = ranked(some, others);
  const shown = list.slice(0, CAUSES_MAX);
  const details = blamedFor(requests, numbers, shown.map(({ cause }) => cause));
  const causes = shown.map(({ cause, paces, time }) => {
    const [its, usual] = [meanOf(some, cause), meanOf(others, cause)];
    const { thread, notes } = details.get(cause) ?? { thread: undefined, notes: [] };
    const often = its.parts >= 1.5 * usual.parts && its.parts >= usual.parts + 1 && its.parts >= 2
      ? [`${roundedText(its.parts, 1)} times in each, ${roundedText(usual.parts, 1)} times in one of the others`] : [];
    const pace = paces ? `, ${paces[0] < paces[1] ? "slower" : "faster"}: ${roundedText(paces[0], 2)} instructions per cycle, not ${roundedText(paces[1], 2)}` : "";
    return {
      cause, words: requests.words(cause, thread) + pace, time, share: time / excess, inSome: its.requests, inOthers: usual.requests,
      notes: [...often, ...notes],
    };
  });
  return { excess, causes, leftOut: list.length - shown.length, unexplained: 1 - causes.reduce((sum, { share }) => sum + share, 0) };
}

/**
 * Where the time of some requests went: each cause's time in one of them, share and in how many it is, most first.
 * @param {Requests} requests
 * @param {Uint32Array} numbers
 * @param {Sums} sums what went into their causes
 */
export function partsOf(requests, numbers, sums) {
  const list = [...sums.times.keys()].filter((cause) => sums.times[cause] > 0).sort((a, b) => sums.times[b] - sums.times[a] || a - b);
  const shown = list.slice(0, CAUSES_MAX);
  const details = blamedFor(requests, numbers, shown);
  const causes = shown.map((cause) => {
    const { time, requests: inSome } = meanOf(sums, cause);
    const { thread, notes } = details.get(cause) ?? { thread: undefined, notes: [] };
    return { cause, words: requests.words(cause, thread), time, share: time / Math.max(sums.mean, 1), inSome, notes };
  });
  return { causes, leftOut: list.length - shown.length };
}
