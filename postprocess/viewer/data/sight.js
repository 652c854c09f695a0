// SPDX-License-Identifier: BSD-3-Clause
// The kinds of spans and the events in sight: in the visible range, on rows that are neither closed nor scrolled away.

/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 */

/**
 * @param {Store} store
 * @param {{t0: number, t1: number, relative: boolean, seen: () => {group: Group, row: number}[]}} view
 * @param {(i: number) => boolean} hides what is not drawn in its usual look
 * @param {ReadonlyMap<number, boolean>} drawn of kinds that belong to no row: whether they are drawn
 */
export function sightOf({ n, start, dur, kind, event, events }, view, hides, drawn) {
  /** The visible rows by group. @type {Map<Group, Set<number>>} */
  const rows = new Map();
  for (const { group, row } of view.seen()) if (row >= 0) rows.set(group, (rows.get(group) ?? new Set()).add(row));
  const onRow = (/** @type {number} */ i) => [...rows].some(([group, visible]) => visible.has(group.rowOf(i)));
  const [t0, t1] = view.relative ? [-Infinity, Infinity] : [view.t0, view.t1];
  const kinds = new Set();
  const known = new Uint8Array(events.length);
  for (let i = 0; i < n && start[i] < t1; i++) {
    if (start[i] + dur[i] < t0 || (known[event[i]] === 1 && kinds.has(kind[i]))) continue;
    if (hides(i) || !(drawn.get(kind[i]) ?? onRow(i))) continue;
    kinds.add(kind[i]);
    known[event[i]] = 1;
  }
  return { kinds: /** @type {Set<number>} */ (kinds), events: new Set(events.filter((_, k) => known[k] === 1)) };
}
