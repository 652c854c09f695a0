// SPDX-License-Identifier: BSD-3-Clause
// What sort of thing an event number stands for, and the names of the numbers that need one.
//
// All scripts of the page are classic scripts that share one global scope: a page opened from file:// cannot load
// modules from other files, and errors then name the script they happened in. `main.js` is the only one that acts.
"use strict";

/** Sorts of spans. Those up to SCHED are execution: on one CPU they never overlap. LOST is time without a record. */
const Kind = Object.freeze({
  IDLE: 0,
  LOW_POWER: 1,
  C_EXIT: 2,
  USER: 3,
  LOST: 4,
  SYSCALL: 5,
  TRAP: 6,
  IRQ: 7,
  BH: 8,
  SCHED: 9,
  WAIT: 10,
  WAKEUP: 11,
  IPI: 12,
  MARK: 13,
  POINT: 14,
  SAMPLE: 15,
  FREQ: 16,
  LOCK: 17,
  RPC: 18,
  PACKET: 19,
  MESSAGE: 20,
  QUEUE: 21,
  LABEL: 22,
  CALLOUT: 23,
  OTHER: 24,
});

/** What each kind is called, for people. */
const KIND_NAMES = Object.freeze([
  "idle", "idle, low power", "leaving idle", "user", "lost", "system call", "fault", "interrupt", "bottom half",
  "scheduler", "wait", "wakeup", "IPI", "mark", "event", "PC sample", "frequency", "lock", "RPC", "packet", "message",
  "queue", "row label", "callout", "annotation",
]);

/** Events of 0x10000 and above are user execution, of the thread in the low bits. */
const USER_EVENTS = 0x10000;
const C_EXIT_EVENT = 0x20000;
const LOST_EVENT = 0x30000;
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
 * @param {number} arg
 * @returns {number}
 */
function kindOfUser(event, pid, arg) {
  if (pid > 0) return Kind.USER;
  if (event === USER_EVENTS) return arg === 1 ? Kind.LOW_POWER : Kind.IDLE;
  return event === C_EXIT_EVENT ? Kind.C_EXIT : event === LOST_EVENT ? Kind.LOST : Kind.USER;
}

/** @param {number} kind */
const isExecution = (kind) => kind <= Kind.SCHED;
/** @param {number} kind */
const isIdle = (kind) => kind <= Kind.C_EXIT;
/** @param {number} kind */
const isKernel = (kind) => kind >= Kind.SYSCALL && kind <= Kind.SCHED;

/** What a thread waits for, by the letter of its wait event: a letter, a word. */
const WAITS = Object.freeze([
  ["c", "CPU"], ["d", "disk"], ["k", "task"], ["l", "lock"], ["m", "memory"], ["n", "network"], ["p", "pipe"],
  ["r", "RCU"], ["s", "scheduler"], ["t", "time"], ["z", "unknown"],
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
