// SPDX-License-Identifier: BSD-3-Clause
// What sort of thing an event number stands for, and the names of the numbers that need one.
//
// All scripts of the page are classic scripts that share one global scope: a page opened from file:// cannot load
// modules from other files, and errors then name the script they happened in. `main.js` is the only one that acts.
"use strict";

/** Sorts of spans. Those up to SCHED are execution: on one CPU they never overlap. LOST is time without a record, OFFLINE and STALLED
 * are time in which a CPU did nothing at all. */
const Kind = Object.freeze({
  IDLE: 0,
  LOW_POWER: 1,
  C_EXIT: 2,
  USER: 3,
  LOST: 4,
  OFFLINE: 5,
  STALLED: 6,
  SYSCALL: 7,
  TRAP: 8,
  IRQ: 9,
  BH: 10,
  KERNEL: 11,
  SCHED: 12,
  WAIT: 13,
  WAKEUP: 14,
  IPI: 15,
  MARK: 16,
  POINT: 17,
  SAMPLE: 18,
  FREQ: 19,
  LOCK: 20,
  RPC: 21,
  PACKET: 22,
  MESSAGE: 23,
  QUEUE: 24,
  LABEL: 25,
  CALLOUT: 26,
  OTHER: 27,
});

/** What each kind is called, for people. */
const KIND_NAMES = Object.freeze([
  "idle", "idle, low power", "leaving idle", "user", "lost", "offline", "stalled", "system call", "fault", "interrupt", "bottom half",
  "kernel thread or exit work", "scheduler", "wait", "wakeup", "IPI", "mark", "event", "PC sample", "frequency", "lock", "RPC", "packet", "message",
  "queue", "row label", "callout", "annotation",
]);

/** Events of 0x10000 and above are user execution, of the thread in the low bits; from KERNEL_EVENTS on, of the kernel's. */
const USER_EVENTS = 0x10000;
const KERNEL_EVENTS = 0x40000;
const EXIT_WORK_EVENT = 0x9fd;
/** System calls of 32-bit programs, in traces of ours; those of others are below. */
const SYSCALL32 = 0xc00;
const C_EXIT_EVENT = 0x20000;
const LOST_EVENT = 0x30000;
const OFFLINE_EVENT = 0x30001;
const STALLED_EVENT = 0x30002;
const MARK_A = 0x20a;
const LOCK_HELD = 0x282;
const RESOURCE_EVENT = 0x219;
const RX_EVENTS = Object.freeze([0x204, 0x214, 0x216]);
const WAIT_A = 0x300;
const WAIT_Z = 0x319;

/**
 * The kind of an event, as far as the number alone says: user execution may still be idle or leaving idle.
 * @param {number} event
 * @returns {number}
 */
function kindOfEvent(event) {
  if (event === -3) return Kind.WAKEUP;
  if (event === -7) return Kind.IPI;
  if (event === -4) return Kind.CALLOUT;
  if (event < 0x200) return Kind.OTHER;
  if (event >= KERNEL_EVENTS || event === EXIT_WORK_EVENT) return Kind.KERNEL;
  if (event >= USER_EVENTS) return Kind.USER;
  if (event >= 0x800) return event === 0x9ff || event === 0xdff ? Kind.SCHED : Kind.SYSCALL;
  if (event >= 0x400) {
    if ((event & 0x100) === 0) return Kind.TRAP;
    return event === 0x5ff ? Kind.BH : Kind.IRQ;
  }
  if (event >= WAIT_A) return event <= WAIT_Z ? Kind.WAIT : Kind.OTHER;
  return SPECIAL_KINDS.get(event) ?? Kind.POINT;
}

const SPECIAL_KINDS = new Map([
  [0x201, Kind.RPC], [0x202, Kind.RPC], [0x203, Kind.RPC], [0x204, Kind.MESSAGE], [0x205, Kind.MESSAGE],
  [0x209, Kind.FREQ], [0x21c, Kind.FREQ],
  [0x20a, Kind.MARK], [0x20b, Kind.MARK], [0x20c, Kind.MARK], [0x20d, Kind.MARK],
  [0x20e, Kind.LABEL], [0x20f, Kind.LABEL],
  [0x214, Kind.PACKET], [0x215, Kind.PACKET], [0x216, Kind.PACKET], [0x217, Kind.PACKET],
  [0x21a, Kind.QUEUE],
  [0x280, Kind.SAMPLE], [0x281, Kind.SAMPLE], [0x282, Kind.LOCK], [0x283, Kind.LOCK],
]);

/**
 * The kind of one span of user execution.
 * @param {number} event
 * @param {number} pid
 * @param {number | null} arg
 * @returns {number}
 */
function kindOfUser(event, pid, arg) {
  if (event === STALLED_EVENT) return Kind.STALLED;
  if (pid > 0) return Kind.USER;
  if (event === USER_EVENTS) return arg === 1 ? Kind.LOW_POWER : Kind.IDLE;
  if (event === C_EXIT_EVENT) return Kind.C_EXIT;
  if (event === OFFLINE_EVENT) return Kind.OFFLINE;
  return event === LOST_EVENT ? Kind.LOST : Kind.USER;
}

/** @param {number} kind */
const isExecution = (kind) => kind <= Kind.SCHED;
/** @param {number} kind */
const isIdle = (kind) => kind <= Kind.C_EXIT;
/** Whether a CPU did nothing, or nothing is known of it. @param {number} kind */
const isAbsent = (kind) => kind >= Kind.LOST && kind <= Kind.STALLED;
/** @param {number} kind */
const isKernel = (kind) => kind >= Kind.SYSCALL && kind <= Kind.SCHED;

/** What a thread waits for, by the letter of its wait event: a letter, a word. */
const WAITS = Object.freeze([
  ["c", "a CPU"], ["d", "disk"], ["f", "thaw"], ["h", "SIGCONT"], ["i", "a CPU, beside an idle one"], ["k", "a thread or work"], ["l", "a lock"],
  ["m", "memory"], ["n", "network"], ["p", "a pipe"], ["q", "CPU quota"], ["r", "RCU"], ["s", "the scheduler"], ["t", "time"], ["v", "a CPU that stood still"],
  ["x", "its tracer"], ["z", "unknown"],
]);

/** The letters in Morse code, by which a wait can be told without its colour. */
const MORSE = Object.freeze((
  ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
).split(" "));

/**
 * The letter of a wait event.
 * @param {number} event
 */
const waitLetter = (event) => String.fromCharCode(97 + event - WAIT_A);
