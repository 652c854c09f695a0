// SPDX-License-Identifier: BSD-3-Clause
// Describes a span, or a whole call, in a sentence: who did what, where and for how long. Numbers follow below it.

import { interruptedBy, wholeAround } from "./around.js";
import { calledText, callText, cpuText, durationText, returnText, shownName, threadText, valueOf, wokenBy } from "./format.js";
import { ASYNC_PART, isIdle, LOCK_HELD, PART, staysOnCpu, waitLetter } from "./kind.js";
import { Kind } from "./tables.js";
import { wordOf } from "./words.js";
/**
 * @import {Call} from "./around.js"
 * @import {Chains} from "./chain.js"
 * @import {Store} from "./decode.js"
 */

/** Waits of threads that could run. */
const RUNNABLE = "civq";

/** The cause of a wakeup in words. @param {Store} store @param {number} arc @param {number} cause */
export function causeText(store, arc, cause) {
  const where = `on ${cpuText(store, store.cpus[store.cpu[arc]])}`;
  if (cause < 0) return `something unknown ${where}`;
  const kind = store.kind[cause];
  if (isIdle(kind)) return `idle ${cpuText(store, store.cpus[store.cpu[arc]])}`;
  if (staysOnCpu(kind)) return `${callText(store, cause)} ${where}`;
  const thread = threadText(store, store.pids[store.pid[cause]]);
  return kind === Kind.USER || kind === Kind.KERNEL ? `${thread} ${where}` : `${thread} in ${callText(store, cause)} ${where}`;
}

/** The word for a whole, by its kind. @type {Record<number, string>} */
const WORDS_OF_CALLS = Object.freeze({ [Kind.SYSCALL]: "call", [Kind.TRAP]: "fault", [Kind.IRQ]: "interrupt", [Kind.BH]: "bottom half" });

/** @param {number} kind */
export const wordOfCall = (kind) => WORDS_OF_CALLS[kind];

/** @param {Store} store @param {Chains} chains @param {number} i @param {string} thread @param {string} time */
function waitSentence(store, chains, i, thread, time) {
  const letter = waitLetter(store.events[store.event[i]]);
  const what = wordOf(store.names[store.name[i]]);
  if (RUNNABLE.includes(letter)) return `${thread} could run, but waited ${time} for ${what}.`;
  const arc = chains.firstArc(i);
  const woken = arc >= 0 && Math.abs(store.start[arc] - store.start[i] - store.dur[i]) <= 1;
  return `${thread} waited ${time} for ${what}${woken ? `, until ${causeText(store, arc, chains.causeOf(arc))} woke it` : ""}.`;
}

/** The CPU's activity when an interrupt or a fault came: the clause after "while". @param {Store} store @param {Chains} chains @param {number} i its first piece */
function meanwhileText(store, { cpus }, i) {
  const { kind, ret, pids, pid } = store;
  const thread = threadText(store, pids[pid[i]]);
  const other = interruptedBy(store, cpus, i);
  switch (other < 0 ? -1 : kind[other]) {
    // A call that has returned is over, even if its thread has yet to run again.
    case Kind.SYSCALL: if (ret[other] !== 0) break; return `${thread} was in ${calledText(store, other)}`;
    case Kind.TRAP: return `${thread} was in the fault ${shownName(store.names[store.name[other]])}`;
    case Kind.KERNEL: return `${thread} worked in the kernel`;
    case Kind.SCHED: return "the scheduler ran";
    case Kind.GUEST: return `${thread} ran its guest`;
  }
  return pids[pid[i]] > 0 ? `${thread} ran` : "it was idle";
}

/** Times by name in words, longest first. @param {Map<number, number>} times @param {(name: number, time: string) => string} textOf */
const inWords = (times, textOf) => [...times].sort((a, b) => b[1] - a[1]).map(([name, time]) => textOf(name, durationText(time)));

/**
 * A sentence about a whole call, fault or interrupt, and one about its parts.
 * @param {Store} store
 * @param {Chains} chains
 * @param {Call} call
 */
export function sentenceOfCall(store, chains, { pieces, from, to, own, cut, waits }) {
  const [first, last] = [pieces[0], pieces[pieces.length - 1]];
  const { kind, cpus, cpu, pids, pid, names, name } = store;
  const cpuOf = (/** @type {number} */ i) => cpuText(store, cpus[cpu[i]]);
  const where = cpu[first] === cpu[last] ? `on ${cpuOf(first)}` : `from ${cpuOf(first)} to ${cpuOf(last)}`;
  const what = shownName(names[name[first]]);
  const time = durationText(to - from);
  const returned = returnText(store, last);
  const ending = returned === null ? "" : `, which returned ${returned}`;
  const head = kind[first] === Kind.SYSCALL ? `${threadText(store, pids[pid[first]])} was in ${what} for ${time} ${where}${ending}.`
    : `The ${wordOfCall(kind[first])} ${what} took ${time} ${where}${kind[first] === Kind.BH ? "" : `, while ${meanwhileText(store, chains, first)}`}.`;
  const parts = [
    `Its own time was ${durationText(own)}`,
    ...inWords(waits, (reason, waited) => `it waited ${waited} for ${wordOf(names[reason])}`),
    ...inWords(cut, (one, took) => `${names[one] === "-sched-" ? "the scheduler" : shownName(names[one])} cut in for ${took}`),
  ];
  return `${head} ${parts.join("; ")}.`;
}

/**
 * A sentence about a span; empty if its kind has none.
 * @param {Store} store
 * @param {Chains} chains
 * @param {number} i
 * @param {boolean} timed true if its duration is known
 */
export function sentenceOf(store, chains, i, timed) {
  const { kind, cpus, cpu, pids, pid, dur, names, name, arg } = store;
  const where = cpuText(store, cpus[cpu[i]]);
  const thread = threadText(store, pids[pid[i]]);
  const what = shownName(names[name[i]]);
  const time = durationText(dur[i]);
  const whole = wholeAround(store, [chains.cpus, chains.threads], i);
  const meanwhile = () => meanwhileText(store, chains, whole?.pieces[0] ?? i);
  const ofWhole = () => (whole && whole.pieces.length > 1 ? ` of ${durationText(whole.to - whole.from)}` : "");
  const took = () => (timed ? `took ${time}${ofWhole()}` : "came");
  switch (kind[i]) {
    case Kind.IDLE: return `${where} was idle for ${time}.`;
    case Kind.LOW_POWER: return `${where} was idle for ${time}, in a low-power state.`;
    case Kind.C_EXIT: return `${where} needed ${time} to leave its idle state.`;
    case Kind.USER: return `${thread} ran its own code for ${time} on ${where}.`;
    case Kind.GUEST: return `${thread} ran its guest's CPU ${valueOf(arg[i])} for ${time} on ${where}${guestLeft(what)}.`;
    case Kind.LOST: return `Events were lost: what ${where} did for ${time} is not known.`;
    case Kind.OFFLINE: return `${where} was offline for ${time}.`;
    case Kind.STALLED: return `${where} stood still for ${time}${stolenBy(what)}.`;
    case Kind.SYSCALL: {
      const returned = returnText(store, i);
      return `${thread} was in ${what}${timed ? ` for ${time}${ofWhole()}` : ""} on ${where}${returned === null ? "" : `, which returned ${returned}`}.`;
    }
    case Kind.TRAP: return `The fault ${what} ${took()} on ${where}, while ${meanwhile()}.`;
    case Kind.IRQ: return `The interrupt ${what} ${took()} on ${where}, while ${meanwhile()}.`;
    case Kind.BH: return `The bottom half ${what} ${took()} on ${where}.`;
    case Kind.KERNEL: return `${thread} worked in the kernel for ${time} on ${where}.`;
    case Kind.SCHED: return `The scheduler ran for ${time} on ${where}.`;
    case Kind.WAIT: return waitSentence(store, chains, i, thread, time);
    case Kind.WAKEUP: return `${threadText(store, wokenBy(store, i))} was woken by ${causeText(store, i, chains.causeOf(i))} and ran ${time} later.`;
    case Kind.IPI: return `${where} sent an interrupt to ${cpuText(store, valueOf(arg[i]) ?? -1)}.`;
    case Kind.STEAL: return `${where} wanted to run, but its host ran something else for ${time}, up to ${durationText(Math.max(valueOf(arg[i]) ?? 0, 0))} earlier.`;
    case Kind.LOCK: return `${thread} ${store.events[store.event[i]] === LOCK_HELD ? "held" : "tried to get"} the lock ${what.slice(1)} for ${time}.`;
    default: return partSentence(store.events[store.event[i]], thread, what, time);
  }
}

/** The reason why a guest was left, from the name of the time in it. @param {string} name */
const guestLeft = (name) => (name.startsWith("-guest-:") ? `, and left it for ${name.slice("-guest-:".length)}` : "");

/** The host's activity instead of running a CPU, from the name of that time. @param {string} name */
function stolenBy(name) {
  const [, kind, what] = /^stolen:(exit|ran|idle|wakeup)_?(.*)$/.exec(name) ?? [];
  switch (kind) {
    case "exit": return `: its host handled an exit of it, for ${what}`;
    case "ran": return `: its host ran ${what} instead`;
    case "idle": return ": its host's thread for it slept";
    case "wakeup": return ": its host had yet to wake it up";
    default: return "";
  }
}

/** @param {number} event @param {string} thread @param {string} what @param {string} time */
function partSentence(event, thread, what, time) {
  if (event === ASYNC_PART) return `The part ${what}, which ${thread} began, took ${time}.`;
  return event === PART ? `${thread} was in its part ${what} for ${time}.` : "";
}
