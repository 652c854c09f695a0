// SPDX-License-Identifier: BSD-3-Clause
// The kind of each event number, and names for the numbers that need one.

import { EVENT, Kind, KIND_RANGES } from "./tables.js";

/** Events from this on are user execution, of the thread in the low bits; from KERNEL_EVENTS on, of the kernel. */
const USER_EVENTS = EVENT.USER;
export const KERNEL_EVENTS = EVENT.KERNEL;
/** System calls of 32-bit programs, in traces of this recorder; other recorders' are below. */
export const SYSCALL32 = EVENT.SYSCALL32;
export const MARK_A = EVENT.MARK_A;
/** A part of a program, marked by the program itself; it is on the row of its thread. */
export const PART = EVENT.PROGRAM_BEGIN;
/** A part of a program that any thread may end; its name has a row among the resources. */
export const ASYNC_PART = EVENT.PROGRAM_ASYNC_BEGIN;
/** A value that a program counts, which holds from here on. */
export const VALUE = EVENT.PROGRAM_VALUE;
export const LOCK_HELD = EVENT.LOCK_HELD;
export const RESOURCE_EVENT = EVENT.RESOURCE;
/** Events of arriving messages. @type {readonly number[]} */
export const RX_EVENTS = Object.freeze([EVENT.RPC_RECEIVED, EVENT.RX_PACKET, EVENT.RX_USER, EVENT.RX_FLOW]);
export const WAIT_A = EVENT.WAIT_A;
/** wait_quota. */
export const WAIT_QUOTA = WAIT_A + 16;

/** Kinds by event, except those of execution of user code, idle and the like. @type {Map<number, number>} */
const KIND_OF_EVENT = new Map();
for (const [first, last, kind] of KIND_RANGES) {
  for (let event = first; event <= last; event++) if (!KIND_OF_EVENT.has(event)) KIND_OF_EVENT.set(event, kind);
}

/**
 * The kind of an event, as far as the number alone determines it: user execution may still turn out to be idle or leaving idle.
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
/** True if a chain of wakeups ends there, since no thread caused it. @param {number} kind */
export const endsChain = (kind) => isIdle(kind) || staysOnCpu(kind);
/** True for an interrupt or a bottom half, which does not move with the thread that it interrupted. @param {number} kind */
export const staysOnCpu = (kind) => kind === Kind.IRQ || kind === Kind.BH;
/** True if a CPU did nothing, or its activity is unknown. @param {number} kind */
export const isAbsent = (kind) => kind >= Kind.LOST && kind <= Kind.STALLED;
/** @param {number} kind */
export const isKernel = (kind) => kind >= Kind.SYSCALL && kind <= Kind.SCHED;

/** The reasons of waits: the letter of the wait event, the name, a word, and when it applies. */
export const WAITS = Object.freeze([
  ["c", "wait_cpu", "a CPU", "it could run, but other threads did"],
  ["d", "wait_disk", "a disk", "pages of a file are read, or written"],
  ["f", "wait_frozen", "its group to be thawed", "its control group is frozen"],
  ["g", "wait_guest", "work for its guest", "it runs a virtual CPU that has halted, since its guest has nothing to do"],
  ["h", "wait_stopped", "a signal to continue", "a signal stopped it"],
  ["i", "wait_idle", "an idle CPU to wake up", "it could run, but an idle CPU was slow to wake up"],
  ["k", "wait_task", "another thread, or work", "that has yet to end or to send a signal; a kernel thread waits for work"],
  ["l", "wait_lock", "a lock", "another thread holds it: a lock of a program, a file, a directory"],
  ["m", "wait_mem", "memory", "its group is above its limit, pages are reclaimed, or other threads hold the address space"],
  ["n", "wait_net", "the network", "nothing has arrived from another machine or over loopback"],
  ["p", "wait_pipe", "data from another thread", "that has yet to write or read: a pipe, a socket on this machine, a terminal"],
  ["q", "wait_quota", "its CPU quota", "its control group has used up its share of the CPU"],
  ["r", "wait_rcu", "an RCU grace period", "all CPUs have yet to leave their read-side sections"],
  ["s", "wait_sche", "the scheduler", "the scheduler balances the CPUs"],
  ["t", "wait_time", "time to pass", "it sleeps for a time, or until a given time"],
  ["v", "wait_stall", "a CPU that stood still", "the host, or the firmware, did not let the CPU run"],
  ["x", "wait_traced", "its tracer", "a debugger or another tracer holds it"],
  ["z", "wait_unk", "something not in the trace", "the trace does not show it"],
]);

/** The letters in Morse code, which identify a wait without its colour. */
export const MORSE = Object.freeze((
  ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
).split(" "));

/**
 * The letter of a wait event.
 * @param {number} event
 */
export const waitLetter = (event) => String.fromCharCode(97 + event - WAIT_A);
