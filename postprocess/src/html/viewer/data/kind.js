// SPDX-License-Identifier: BSD-3-Clause
// What sort of thing an event number stands for, and the names of the numbers that need one.

import { EVENT, Kind, KIND_RANGES } from "./tables.js";

/** Events of this and above are user execution, of the thread in the low bits; from KERNEL_EVENTS on, of the kernel's. */
const USER_EVENTS = EVENT.USER;
export const KERNEL_EVENTS = EVENT.KERNEL;
/** System calls of 32-bit programs, in traces of ours; those of others are below. */
export const SYSCALL32 = EVENT.SYSCALL32;
export const MARK_A = EVENT.MARK_A;
export const LOCK_HELD = EVENT.LOCK_HELD;
export const RESOURCE_EVENT = EVENT.RESOURCE;
/** Events by which a message arrives. @type {readonly number[]} */
export const RX_EVENTS = Object.freeze([EVENT.RPC_RECEIVED, EVENT.RX_PACKET, EVENT.RX_USER]);
export const WAIT_A = EVENT.WAIT_A;
/** wait_quota. */
export const WAIT_QUOTA = WAIT_A + 16;

/** Kinds by event, of all but whole times of user code, idle and the like. @type {Map<number, number>} */
const KIND_OF_EVENT = new Map();
for (const [first, last, kind] of KIND_RANGES) {
  for (let event = first; event <= last; event++) if (!KIND_OF_EVENT.has(event)) KIND_OF_EVENT.set(event, kind);
}

/**
 * The kind of an event, as far as the number alone says: user execution may still be idle or leaving idle.
 * @param {number} event
 * @returns {number}
 */
export function kindOfEvent(event) {
  if (event >= KERNEL_EVENTS) return Kind.KERNEL;
  if (event >= USER_EVENTS) return Kind.USER;
  return KIND_OF_EVENT.get(event) ?? Kind.OTHER;
}

/**
 * The kind of one span of user execution.
 * @param {number} event
 * @param {number} pid
 * @param {number | null} arg
 * @returns {number}
 */
export function kindOfUser(event, pid, arg) {
  if (event === EVENT.STALLED) return Kind.STALLED;
  if (pid > 0) return Kind.USER;
  if (event === USER_EVENTS) return arg === 1 ? Kind.LOW_POWER : Kind.IDLE;
  if (event === EVENT.IDLE_EXIT) return Kind.C_EXIT;
  if (event === EVENT.OFFLINE_SPAN) return Kind.OFFLINE;
  return event === EVENT.LOST ? Kind.LOST : Kind.USER;
}

/** @param {number} kind */
export const isExecution = (kind) => kind <= Kind.SCHED;
/** @param {number} kind */
export const isIdle = (kind) => kind <= Kind.C_EXIT;
/** Whether a CPU did nothing, or nothing is known of it. @param {number} kind */
export const isAbsent = (kind) => kind >= Kind.LOST && kind <= Kind.STALLED;
/** @param {number} kind */
export const isKernel = (kind) => kind >= Kind.SYSCALL && kind <= Kind.SCHED;

/** What a thread waits for, by the letter of its wait event: a letter, a word. */
export const WAITS = Object.freeze([
  ["c", "a CPU"], ["d", "disk"], ["f", "thaw"], ["h", "SIGCONT"], ["i", "a CPU, beside an idle one"], ["k", "a thread or work"], ["l", "a lock"],
  ["m", "memory"], ["n", "network"], ["p", "a pipe"], ["q", "CPU quota"], ["r", "RCU"], ["s", "the scheduler"], ["t", "time"], ["v", "a CPU that stood still"],
  ["x", "its tracer"], ["z", "something not in the trace"],
]);

/** The letters in Morse code, by which a wait can be told without its colour. */
export const MORSE = Object.freeze((
  ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
).split(" "));

/**
 * The letter of a wait event.
 * @param {number} event
 */
export const waitLetter = (event) => String.fromCharCode(97 + event - WAIT_A);
