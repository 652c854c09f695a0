// SPDX-License-Identifier: BSD-3-Clause
// What a span was, as a sentence: who did what, where and for how long. Numbers follow below it.

import { callText, cpuText, durationText, returnText, shownName, threadText, valueOf, wokenBy } from "./format.js";
import { ASYNC_PART, isIdle, LOCK_HELD, PART, waitLetter, WAITS } from "./kind.js";
import { Kind } from "./tables.js";
/**
 * @import {Chains} from "./chain.js"
 * @import {Store} from "./decode.js"
 */

/** Waits of threads that could run. */
const RUNNABLE = "civq";

/** What woke a thread, in words. @param {Store} store @param {number} arc @param {number} cause */
export function causeText(store, arc, cause) {
  const where = `on ${cpuText(store, store.cpus[store.cpu[arc]])}`;
  if (cause < 0) return `something unknown ${where}`;
  const kind = store.kind[cause];
  if (isIdle(kind) || kind === Kind.IRQ) return `${callText(store, cause)} ${where}`;
  const thread = threadText(store, store.pids[store.pid[cause]]);
  return kind === Kind.USER ? `${thread} ${where}` : `${thread} in ${callText(store, cause)} ${where}`;
}

/** @param {Store} store @param {Chains} chains @param {number} i @param {string} thread @param {string} time */
function waitSentence(store, chains, i, thread, time) {
  const letter = waitLetter(store.events[store.event[i]]);
  const what = WAITS.find(([its]) => its === letter)?.[2] ?? shownName(store.names[store.name[i]]);
  if (RUNNABLE.includes(letter)) return `${thread} could run, but waited ${time} for ${what}.`;
  const arc = chains.firstArc(i);
  const woken = arc >= 0 && Math.abs(store.start[arc] - store.start[i] - store.dur[i]) <= 1;
  return `${thread} waited ${time} for ${what}${woken ? `, until ${causeText(store, arc, chains.causeOf(arc))} woke it` : ""}.`;
}

/**
 * A sentence about a span; empty for what has none.
 * @param {Store} store
 * @param {Chains} chains
 * @param {number} i
 * @param {boolean} timed whether it is known how long it took
 */
export function sentenceOf(store, chains, i, timed) {
  const { kind, cpus, cpu, pids, pid, dur, names, name, arg } = store;
  const where = cpuText(store, cpus[cpu[i]]);
  const thread = threadText(store, pids[pid[i]]);
  const what = shownName(names[name[i]]);
  const time = durationText(dur[i]);
  const meanwhile = pids[pid[i]] > 0 ? `${thread} ran` : "it was idle";
  const took = timed ? `took ${time}` : "came";
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
      return `${thread} was in ${what}${timed ? ` for ${time}` : ""} on ${where}${returned === null ? "" : `, which returned ${returned}`}.`;
    }
    case Kind.TRAP: return `The fault ${what} ${took} on ${where}, while ${meanwhile}.`;
    case Kind.IRQ: return `The interrupt ${what} ${took} on ${where}, while ${meanwhile}.`;
    case Kind.BH: return `The bottom half ${what} ${took} on ${where}.`;
    case Kind.KERNEL: return `${thread} worked in the kernel for ${time} on ${where}.`;
    case Kind.SCHED: return `The scheduler ran for ${time} on ${where}.`;
    case Kind.WAIT: return waitSentence(store, chains, i, thread, time);
    case Kind.WAKEUP: return `${threadText(store, wokenBy(store, i))} was woken by ${causeText(store, i, chains.causeOf(i))} and ran ${time} later.`;
    case Kind.IPI: return `${where} sent an interrupt to ${cpuText(store, valueOf(arg[i]) ?? -1)}.`;
    case Kind.LOCK: return `${thread} ${store.events[store.event[i]] === LOCK_HELD ? "held" : "tried to get"} the lock ${what.slice(1)} for ${time}.`;
    default: return partSentence(store.events[store.event[i]], thread, what, time);
  }
}

/** Why a guest was left, by the name of the time in it. @param {string} name */
const guestLeft = (name) => (name.startsWith("-guest-:") ? `, and left it for ${name.slice("-guest-:".length)}` : "");

/** What the host did instead of running a CPU, by the name of that time. @param {string} name */
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
