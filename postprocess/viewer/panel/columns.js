// SPDX-License-Identifier: BSD-3-Clause
// The columns of the table: of single spans or whole calls, and of groups of them.

import { countersOf, counterTexts } from "../data/counters.js";
import { alignedText, callText, returnText, secondsText, threadText } from "../data/format.js";
import { isExecution } from "../data/kind.js";
import { targetCpus, targetThreads } from "../data/targets.js";
/**
 * @import {Calls} from "../data/calls.js"
 * @import {Sort} from "../data/filter.js"
 * @import {Store} from "../data/decode.js"
 * @import {Column} from "../data/part.js"
 * @import {Durations} from "../data/pivot.js"
 * @import {Listing} from "./listing.js"
 */

/**
 * The input of a filter: the sort of values and, if there are few distinct ones, a column with the number of each and its text. Otherwise
 * the values are the numbers that are also used for sorting.
 * @typedef {{sort: Sort, few?: () => {column: Column, size: number, text: (k: number) => string}}} Filtered
 */

/**
 * A column of spans: its title, the text of a cell, the values to sort by, a function for the rank of each value if the value itself is not one, and
 * the input of its filter.
 * @typedef {{title: string, cell: (i: number) => string, values: Column, ranks: (() => ArrayLike<number>) | null, filtered: Filtered}} SpanColumn
 */


/** Cached ranks: there may be tens of thousands of texts. @type {WeakMap<readonly (string | number)[], Uint32Array>} */
const RANKS = new WeakMap();

/** The rank of each value by its text. @template {string | number} T @param {readonly T[]} values @param {(value: T) => string} textOf */
export function ranksOf(values, textOf) {
  let ranks = RANKS.get(values);
  if (!ranks) {
    const texts = values.map(textOf);
    RANKS.set(values, (ranks = new Uint32Array(texts.length)));
    for (const [rank, k] of [...texts.keys()].sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0)).entries()) ranks[k] = rank;
  }
  return ranks;
}

/** The distinct texts of spans, for a filter; for a call, the text of its last piece, which has everything. @param {Listing} list @param {(store: Store, i: number) => string} textOf @returns {Filtered["few"]} */
const fewTexts = ({ spans, calls, beside, search }, textOf) => () => {
  const { of, spans: examples } = search.textsOf(false);
  /** @type {Column} */
  let column = of;
  if (calls) {
    column = new Uint32Array(calls.store.n);
    for (let call = 0; call < column.length; call++) column[call] = of[calls.last[call]];
  } else if (beside) {
    column = of.slice();
    for (let call = 0; call < beside.store.n; call++) column[beside.first[call]] = of[beside.last[call]];
  }
  return { column, size: examples.length, text: (k) => textOf(spans, examples[k]) };
};

/** @param {Column} column @param {readonly number[]} numbers of threads or CPUs, by the values of the column @param {(number: number) => string} textOf @returns {Filtered["few"]} */
const fewNumbers = (column, numbers, textOf) => () => ({ column, size: numbers.length, text: (k) => textOf(numbers[k]) });

/** The columns of single spans or calls. @param {{list: Listing}} parts @returns {SpanColumn[]} */
export function columnsOfSpans({ list }) {
  const { store, calls } = list;
  const { name, names, pid, pids, cpu, cpus, start, dur, ret } = store;
  const known = (/** @type {number} */ number) => (number >= 0 ? String(number) : "");
  const thread = (/** @type {number} */ number) => (number >= 0 ? threadText(store, number) : "");
  const returned = (/** @type {Store} */ of, /** @type {number} */ i) => returnText(of, i) ?? "";
  return [
    { title: "Span", cell: (i) => callText(store, i), values: name, ranks: () => ranksOf(names, (text) => text), filtered: { sort: "text", few: fewTexts(list, callText) } },
    { title: "Thread", cell: (i) => thread(pids[pid[i]]), values: pid, ranks: () => ranksOf(pids, (number) => threadText(store, number)), filtered: { sort: "text", few: fewNumbers(pid, pids, thread) } },
    { title: "CPU", cell: (i) => known(cpus[cpu[i]]), values: cpu, ranks: () => cpus, filtered: { sort: "cpu", few: fewNumbers(cpu, cpus, known) } },
    { title: "Start", cell: (i) => secondsText(start[i]), values: start, ranks: null, filtered: { sort: "seconds" } },
    { title: "Duration", cell: (i) => alignedText(dur[i]), values: dur, ranks: null, filtered: { sort: "duration" } },
    ...(calls ? [/** @type {SpanColumn} */ ({ title: "Own time", cell: (i) => alignedText(calls.own[i]), values: calls.own, ranks: null, filtered: { sort: "duration" } })] : []),
    ...(list.wakes ? targetColumns(store)
      : [/** @type {SpanColumn} */ ({ title: "Returned", cell: (i) => returned(store, i), values: ret, ranks: null, filtered: { sort: "value", few: fewTexts(list, returned) } })]),
    ...(calls ? countedInCalls(list, calls) : list.beside ? countedInBoth(list, list.beside) : countedInSpans(store)),
  ];
}

/** The columns of targets: the thread that a wakeup wakes, and the CPU that a wakeup or IPI goes to. @param {Store} store @returns {SpanColumn[]} */
function targetColumns(store) {
  const [threads, cpus] = [targetThreads(store), targetCpus(store)];
  const text = (/** @type {number} */ number) => (number < 0 ? "" : threadText(store, number));
  const known = (/** @type {number} */ number) => (number < 0 ? "" : String(number));
  return [
    {
      title: "Woken", cell: (i) => text(threads.numbers[threads.column[i]]), values: threads.column, ranks: () => ranksOf(threads.numbers, text),
      filtered: { sort: "text", few: fewNumbers(threads.column, threads.numbers, text) },
    },
    {
      title: "To CPU", cell: (i) => known(cpus.numbers[cpus.column[i]]), values: cpus.column, ranks: () => cpus.numbers,
      filtered: { sort: "cpu", few: fewNumbers(cpus.column, cpus.numbers, known) },
    },
  ];
}

/** The counters of spans, a column for each counter. @param {Store} store @returns {SpanColumn[]} */
function countedInSpans(store) {
  const { ipc, kind } = store;
  const { paces, misses, isPair } = countersOf(store);
  const codes = Array.from({ length: 16 }, (_, code) => code);
  /** The codes, and one more for spans that are not execution: these have no counters. */
  const counted = () => {
    const column = new Uint8Array(ipc.length);
    for (let i = 0; i < column.length; i++) column[i] = isExecution(kind[i]) ? ipc[i] & 15 : 16;
    return column;
  };
  /** @type {(title: string, rankOf: (code: number) => number, amountOf: (code: number) => number) => SpanColumn} */
  const column = (title, rankOf, amountOf) => ({
    title, values: ipc, ranks: () => codes.map(rankOf), cell: (i) => countedText(store, i, title),
    filtered: { sort: "number", few: () => ({ column: counted(), size: 17, text: (code) => (code < 16 ? String(amountOf(code)) : "") }) },
  });
  return [
    ...(paces ? [column("IPC", (code) => (isPair ? code >> 2 : code), (code) => paces[code] / 16)] : []),
    ...(misses ? [column("LLC misses", (code) => (isPair ? code & 3 : code), (code) => misses[code])] : []),
  ];
}

/** Instructions per cycle of a whole call, -1 if it did not run. @param {Calls} calls @param {number} call */
const paceOfCall = ({ own, work }, call) => (own[call] > 0 ? work[call] / own[call] / 16 : -1);

/** The filter of counters, as numbers. @type {Filtered} */
const AMOUNT = Object.freeze({ sort: "number" });

/** The counters of whole calls. @param {Listing} list @param {Calls} calls @returns {SpanColumn[]} */
function countedInCalls(list, calls) {
  const { own, work, misses } = calls;
  return [
    ...(work.length > 0 ? [{ title: "IPC", cell: (/** @type {number} */ i) => groupCell(list, "IPC", paceOfCall(calls, i)), get values() { return Float64Array.from(own, (_, i) => paceOfCall(calls, i)); }, ranks: null, filtered: AMOUNT }] : []),
    ...(misses.length > 0 ? [{ title: "LLC misses", cell: (/** @type {number} */ i) => groupCell(list, "LLC misses", misses[i]), values: misses, ranks: null, filtered: AMOUNT }] : []),
  ];
}

/** The counters of spans; for the first pieces of calls, those of the whole calls. @param {Listing} list @param {Calls} calls @returns {SpanColumn[]} */
function countedInBoth(list, calls) {
  const { paces, misses } = countersOf(list.spans);
  const { ipc } = list.spans;
  /** @type {(title: string, ofCall: (call: number) => number, ofCode: (code: number) => number) => SpanColumn} */
  const column = (title, ofCall, ofCode) => ({
    title, ranks: null, filtered: AMOUNT, get values() { return Float64Array.from(ipc, (code, i) => (calls.of[i] > 0 ? ofCall(calls.of[i] - 1) : ofCode(code & 15))); },
    cell: (i) => (calls.of[i] > 0 ? groupCell(list, title, ofCall(calls.of[i] - 1)) : countedText(list.spans, i, title)),
  });
  return [
    ...(paces ? [column("IPC", (call) => paceOfCall(calls, call), (code) => paces[code] / 16)] : []),
    ...(misses ? [column("LLC misses", (call) => calls.misses[call], (code) => misses[code])] : []),
  ];
}

/** A counter of a span as text, empty if the span is not execution. @param {Store} store @param {number} i @param {string} title */
const countedText = (store, i, title) => (isExecution(store.kind[i]) ? counterTexts(store, i).find(([what]) => what === title)?.[1] ?? "" : "");

/** A column of groups: its title, and its value. @typedef {[string, (durations: Durations) => number]} GroupColumn */

/** The columns of groups that follow the groupings. @type {readonly GroupColumn[]} */
export const GROUP_COLUMNS = Object.freeze([
  ["Count", (durations) => durations.count], ["Sum", (durations) => durations.sum], ["Shortest", (durations) => durations.shortest],
  ["Median", (durations) => durations.quantile(0.5)], ["p90", (durations) => durations.quantile(0.9)],
  ["p99", (durations) => durations.quantile(0.99)], ["Longest", (durations) => durations.longest],
]);
/** An additional column for whole calls. @type {GroupColumn} */
const OWN_COLUMN = ["Own time", (durations) => durations.own];
/** Additional columns for counters; waits and the like have none. @type {GroupColumn} */
const IPC_COLUMN = ["IPC", (durations) => durations.pace];
/** @type {GroupColumn} */
const MISSES_COLUMN = ["LLC misses", (durations) => (durations.counted > 0 ? durations.misses : -1)];

/** The columns of groups of the listed items: for calls with own time after the sum, and with sums of counters. @param {Listing} list */
export function groupColumns({ spans, calls }) {
  const { paces, misses } = countersOf(spans);
  return [
    ...GROUP_COLUMNS.slice(0, 2), ...(calls ? [OWN_COLUMN] : []), ...GROUP_COLUMNS.slice(2),
    ...(paces ? [IPC_COLUMN] : []), ...(misses ? [MISSES_COLUMN] : []),
  ];
}

/** Columns of groups that are not times. */
export const NUMBER_COLUMNS = new Set(["Count", "IPC", "LLC misses"]);

/** A cell of a group: a number that is a lower bound is followed by a plus. @param {Listing} list @param {string} title @param {number} value */
export function groupCell({ spans }, title, value) {
  if (value < 0) return "";
  if (title === "IPC") return `${value.toFixed(2)}${countersOf(spans).isPair ? "+" : ""}`;
  if (NUMBER_COLUMNS.has(title)) return `${value.toLocaleString("en")}${title === "Count" ? "" : "+"}`;
  return alignedText(value);
}
