// SPDX-License-Identifier: BSD-3-Clause
// Words for kinds of spans, and for names that not everybody knows: those of waits, and those between dashes.

import { shownName } from "./format.js";
import { WAITS } from "./kind.js";
import { Kind } from "./tables.js";

/** Kinds in a word or two, and their meanings. @type {Readonly<Record<number, readonly [string, string]>>} */
export const MEANINGS = {
  [Kind.IDLE]: ["idle", "the CPU has nothing to do"],
  [Kind.LOW_POWER]: ["low power", "the CPU has nothing to do, and sleeps"],
  [Kind.C_EXIT]: ["leaving low power", "the time that the CPU takes to wake up"],
  [Kind.GUEST]: ["guest", "the thread of a virtual CPU runs its guest"],
  [Kind.SCHED]: ["scheduler", "the kernel chooses the next thread"],
  [Kind.LOST]: ["nothing recorded", "events were lost here, or recording had not begun"],
  [Kind.OFFLINE]: ["offline", "the CPU was offline"],
  [Kind.STALLED]: ["stood still", "the host, or the firmware, did not let the CPU run"],
  [Kind.WAKEUP]: ["wakeup", "from the waker of a thread to where it runs"],
  [Kind.IPI]: ["IPI", "one CPU interrupts another"],
  [Kind.FREQ]: ["frequency", "the clock rate of the CPU"],
};

/** Names that are the only one of their kind of span. @type {readonly [string, number][]} */
const NAMES = Object.freeze([
  ["-idle-", Kind.IDLE], ["-idlelp-", Kind.LOW_POWER], ["-c-exit-", Kind.C_EXIT], ["-guest-", Kind.GUEST], ["-sched-", Kind.SCHED], ["-lost-", Kind.LOST],
  ["-offline-", Kind.OFFLINE], ["-stalled-", Kind.STALLED], ["-wakeup-", Kind.WAKEUP], ["-ipi-", Kind.IPI], ["-freq-", Kind.FREQ],
]);

/** By name, its word and a sentence. @type {Map<string, {word: string, why: string}>} */
const WORDS = new Map([
  .../** @type {[string, {word: string, why: string}][]} */ (NAMES.map(([name, kind]) => [name, { word: MEANINGS[kind][0], why: MEANINGS[kind][1] }])),
  .../** @type {[string, {word: string, why: string}][]} */ (WAITS.map(([, name, word, why]) => [name, { word, why: `it waits for ${word}: ${why}` }])),
]);

/** A name in words, if there are any; for a wait, only the thing waited for. @param {string} name */
export const wordOf = (name) => WORDS.get(name)?.word ?? shownName(name);

/** A name in words, followed by the name itself, which a search takes. @param {string} name */
export const wordedName = (name) => (WORDS.has(name) ? `${wordOf(name)} (${name})` : shownName(name));

/** The meaning of a name in a sentence; empty if the name explains itself. @param {string} name */
export const explainedName = (name) => WORDS.get(name)?.why ?? "";
