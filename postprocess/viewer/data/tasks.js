// SPDX-License-Identifier: BSD-3-Clause
// Rows of parts that any thread may end: one for each name. A task has its own row, with its polls, which are parts
// `NAME(task=NUMBER)` of threads, its life, `NAME(id=NUMBER)`, and the times `NAME.ready(id=NUMBER)` when it was ready but not polled.

import { valuesOf, withoutFields } from "./field.js";
import { processOf, shownName } from "./format.js";
import { ASYNC_PART, PART } from "./kind.js";

/** @import {Store} from "./decode.js" */

/**
 * The key and label of the row of each of these spans, if it has one.
 * @param {Store} store
 * @param {Uint32Array} points
 * @returns {Map<number, {key: string, label: string}>}
 */
export function partRows(store, points) {
  const { event, events, name, names, pid, pids } = store;
  const isAsync = (/** @type {number} */ i) => events[event[i]] === ASYNC_PART;
  const asyncs = points.filter(isAsync);
  /** @type {Map<number, {key: string, label: string}>} */
  const rows = new Map();
  if (asyncs.length === 0) return rows;
  const plain = names.map(withoutFields);
  const task = valuesOf(names, "task");
  const id = valuesOf(names, "id");
  const polls = task ? points.filter((i) => events[event[i]] === PART && task[name[i]] !== undefined) : asyncs.subarray(0, 0);
  const polled = new Set(Array.from(polls, (i) => plain[name[i]]));
  const lives = new Set(Array.from(asyncs, (i) => plain[name[i]]));
  const put = (/** @type {number} */ i, /** @type {string} */ of, /** @type {string | undefined} */ number) =>
    rows.set(i, { key: `${processOf(store, pids[pid[i]])} ${of} ${number}`, label: `task ${shownName(of)} ${number}` });
  for (const i of asyncs) {
    const own = plain[name[i]];
    const of = own.replace(/\.ready$/, "");
    if (polled.has(of)) put(i, of, id?.[name[i]]);
    else rows.set(i, { key: own, label: `part ${shownName(own)}` });
  }
  for (const i of polls) if (lives.has(plain[name[i]])) put(i, plain[name[i]], task?.[name[i]]);
  return rows;
}
