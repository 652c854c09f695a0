// SPDX-License-Identifier: BSD-3-Clause
// What some requests have more of than others, cause by cause, ranked as in postprocess/src/why/compare.rs, from sums that
// were computed there. A test checks that both give the same numbers.

import { durationText, roundedText } from "./format.js";
/** @import {Pace, Requests, Sums} from "./requests.js" */

/**
 * A cause that takes more time in some requests: how much more per request, the share of the whole excess, in how many
 * of these and of the others it occurs, and notes.
 * @typedef {{cause: number, words: string, time: number, share: number, inSome: number, inOthers: number, notes: string[]}} Excess
 */

/**
 * The excess of some requests over others: its causes, largest first, none if nothing stands out; the number of causes that
 * are not listed, and the share that no line explains.
 * @typedef {{excess: number, causes: Excess[], leftOut: number, unexplained: number}} Compared
 */

/** A cause's mean per request: time and number of stretches; its pace, and in how many requests it occurs. @param {Sums} sums @param {number} cause */
function meanOf({ count, times, parts, works, requests }, cause) {
  const each = (/** @type {number} */ all) => all / Math.max(count, 1);
  const pace = times[cause] > 0 ? works[cause] / times[cause] : 0;
  return { time: each(times[cause]), parts: each(parts[cause]), pace, requests: requests[cause] };
}

/**
 * How much longer the same work took than at the usual pace; see Pace::longer in postprocess/src/why/meter.rs.
 * @param {Pace} pace @param {{pace: number, time: number}} its @param {{pace: number, time: number}} usual @param {boolean} faster
 */
function longer({ scale, cost, other }, its, usual, faster) {
  if (its.time <= 0 || usual.time <= 0) return 0;
  let ratio = 1;
  if (cost > 0) ratio = Math.max(1 - ((its.pace - usual.pace) / scale) * cost, usual.time / its.time);
  else if (its.pace > 0 && usual.pace > 0) ratio = its.pace / usual.pace;
  return (faster ? ratio > 1 / other : ratio < other) ? its.time * (1 - ratio) : 0;
}

/** The pace of some work, compared with the usual one. @param {Pace} pace @param {number} its @param {number} usual */
function paceText({ unit, scale, cost }, its, usual) {
  const slower = (its < usual) === (cost === 0) ? "slower" : "faster";
  return `, ${slower}: ${roundedText(its / scale, 2)} ${unit}, not ${roundedText(usual / scale, 2)}`;
}

/** @param {Requests} requests @param {Sums} its @param {Sums} usual */
function ranked({ rules: { pace, worth } }, its, usual) {
  const excess = its.mean - usual.mean;
  /** @type {{cause: number, paces: [number, number] | null, time: number}[]} */
  const list = [];
  for (let cause = 0; cause < its.times.length; cause++) {
    const [one, other] = [meanOf(its, cause), meanOf(usual, cause)];
    const byPace = longer(pace, one, other, excess < 0);
    list.push({ cause, paces: null, time: one.time - other.time - byPace }, { cause, paces: [one.pace, other.pace], time: byPace });
  }
  return list.filter(({ time }) => excess !== 0 && time / excess >= worth)
    .sort((a, b) => Math.abs(b.time) - Math.abs(a.time) || a.cause - b.cause);
}

/** Shares of a whole as text, largest first. @param {Map<number, number>} times @param {number} all @param {number} most maximum to list @param {(key: number) => string} nameOf */
function sharesOf(times, all, most, nameOf) {
  const largest = [...times].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return largest.slice(0, most).filter(([, time]) => time * 100 >= all)
    .map(([key, time]) => `${nameOf(key)} ${roundedText((time * 100) / Math.max(all, 1), 0)} %`).join(", ");
}

/** The thread to blame for a cause, if it is the only one. @param {Requests} requests @param {Sums} sums @param {number} cause */
const aloneIn = (requests, { blamed }, cause) => (blamed[cause] > 0 ? requests.thread(blamed[cause] - 1) : undefined);

/**
 * The threads to blame for causes in some requests, where several are, and the CPUs; as notes by cause.
 * @param {Requests} requests
 * @param {Uint32Array} numbers
 * @param {number[]} causes
 */
function blamedFor(requests, numbers, causes) {
  const { lookedAt, names: most, ofCpus } = requests.rules;
  const gathered = new Map(causes.map((cause) => [cause, { time: 0, threads: new Map(), cpus: new Map() }]));
  const add = (/** @type {Map<number, number>} */ times, /** @type {number} */ key, /** @type {number} */ time) => key >= 0 && times.set(key, (times.get(key) ?? 0) + time);
  const step = Math.max(Math.ceil(numbers.length / lookedAt), 1);
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
    const notes = names.length > 1 ? [`${names.length} threads: ${names.slice(0, most).join(", ")}${names.length > most ? ", ..." : ""}`] : [];
    if (ofCpus.includes(requests.causes[cause].kind)) notes.push(sharesOf(cpus, time, most, (cpu) => `CPU ${cpu}`));
    return [cause, notes.filter((note) => note !== "")];
  }));
}

/**
 * Compares the slow requests with the normal ones; null if there are too few. If time in which CPUs stood still is treated separately,
 * the comparison excludes it, and `still` has how much longer the slowest requests take with it and its share in that.
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
  return { slow, normal, still, compared: compare(requests, slowest, slow, normal, requests.rules.timeMin) };
}

/**
 * Compares some requests with others.
 * @param {Requests} requests
 * @param {Uint32Array} numbers the requests to compare
 * @param {Sums} some sums of their causes
 * @param {Sums} others sums of the causes of those to compare with
 * @param {number} timeMin minimum difference for something to stand out, if the requests are few
 * @returns {Compared}
 */
export function compare(requests, numbers, some, others, timeMin = 0) {
  const { excessMin, shareMin, causes: most, often: [factor, least, times], pace } = requests.rules;
  const excess = some.mean - others.mean;
  const isRare = Math.abs(excess) * some.count < shareMin * others.mean * requests.n;
  if (Math.abs(excess) < Math.max(excessMin * others.mean, isRare ? timeMin : 0)) return { excess, causes: [], leftOut: 0, unexplained: 1 };
  const list = ranked(requests, some, others);
  const shown = list.slice(0, most);
  const details = blamedFor(requests, numbers, shown.map(({ cause }) => cause));
  const causes = shown.map(({ cause, paces, time }) => {
    const [its, usual] = [meanOf(some, cause), meanOf(others, cause)];
    const [thread, notes] = [aloneIn(requests, some, cause), details.get(cause) ?? []];
    const often = its.parts >= factor * usual.parts && its.parts >= usual.parts + least && its.parts >= times
      ? [`${roundedText(its.parts, 1)} per request, ${roundedText(usual.parts, 1)} per other one`] : [];
    return {
      cause, words: requests.words(cause, thread) + (paces ? paceText(pace, ...paces) : ""), time, share: time / excess, inSome: its.requests, inOthers: usual.requests,
      notes: [...often, ...notes],
    };
  });
  return { excess, causes, leftOut: list.length - shown.length, unexplained: 1 - causes.reduce((sum, { share }) => sum + share, 0) };
}

/**
 * Where the time of some requests went: for each cause, its mean time per request, its share and its number of requests, largest first.
 * @param {Requests} requests
 * @param {Uint32Array} numbers
 * @param {Sums} sums sums of their causes
 */
export function partsOf(requests, numbers, sums) {
  const list = [...sums.times.keys()].filter((cause) => sums.times[cause] > 0).sort((a, b) => sums.times[b] - sums.times[a] || a - b);
  const shown = list.slice(0, requests.rules.causes);
  const details = blamedFor(requests, numbers, shown);
  const causes = shown.map((cause) => {
    const { time, requests: inSome } = meanOf(sums, cause);
    const [thread, notes] = [aloneIn(requests, sums, cause), details.get(cause) ?? []];
    return { cause, words: requests.words(cause, thread), time, share: time / Math.max(sums.mean, 1), inSome, notes };
  });
  return { causes, leftOut: list.length - shown.length };
}

/**
 * The answer in one sentence, as in postprocess/src/why/verdict.rs: how much longer slow requests take, and the causes
 * of most of that; or where the time of all requests goes.
 * @param {Requests} requests
 * @param {ReturnType<typeof slowAgainstNormal>} sides
 */
export function verdictOf(requests, sides) {
  const { named, namedMin } = requests.rules;
  const list = (/** @type {{words: string, share: number}[]} */ causes) => causes.slice(0, named)
    .filter(({ share }, k) => k === 0 || share >= namedMin).map(({ words, share }) => `${roundedText(share * 100, 0)} % ${words}`).join(", ");
  const ofAll = () => `the time of all goes to: ${list(partsOf(requests, requests.byDuration, requests.all).causes)}`;
  const take = (/** @type {number} */ slow, /** @type {number} */ excess) => `${slow === 1 ? "slow one takes" : `${slow} slow ones take`} ${durationText(Math.trunc(excess))}`;
  if (!sides) return `Too few to compare; ${ofAll()}.`;
  const { slow, still, compared: { causes, excess } } = sides;
  if (still && (causes.length === 0 || still.time > causes[0].time)) return `The ${take(still.slow, still.excess)} more, most of it since CPUs stood still.`;
  if (causes.length === 0) return `Nothing stands out; ${ofAll()}.`;
  return `${still ? "Without the time in which CPUs stood still, the" : "The"} ${take(slow.count, excess)} more: ${list(causes)}.`;
}
