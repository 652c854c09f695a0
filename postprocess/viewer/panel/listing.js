// SPDX-License-Identifier: BSD-3-Clause
// What the table lists, and in which order: the choices made in the panel, which the address carries.

import { isIdle } from "../data/kind.js";
import { GROUPINGS } from "../data/pivot.js";
import { KIND_WORDS } from "../data/selector.js";
import { Kind, KIND_NAMES } from "../data/tables.js";
/**
 * @import {Calls} from "../data/calls.js"
 * @import {Store} from "../data/decode.js"
 * @import {HighlightedRows} from "../data/highlight.js"
 * @import {Grouping, Pivot} from "../data/pivot.js"
 * @import {Search} from "../data/search.js"
 * @import {View} from "../view/view.js"
 */

/** The word for whole calls, beside those for kinds of spans. */
export const CALLS = "calls";

/** Columns that begin with their first line, not with their largest. */
const TEXT_COLUMNS = new Set(["Span", "Thread", "CPU", "Start", "Name", "Program", "Process"]);

/** What is listed: `what` is everything, whole calls or a word for kinds, `by` the groupings, `sort` a column's title. */
export class Listing {
  what = "all";
  whole = false;
  /** @type {string[]} */
  by = ["", ""];
  sort = "Duration";
  down = true;
  /** The time that was in sight when a line was used, until the view is moved by hand. @type {{t0: number, t1: number} | null} */
  range = null;
  /** The line that was used last, to come back to; -1 for none. */
  line = -1;
  room = new Uint32Array(0);
  /** What was added up last, and of what; its spans are still in `room`. @type {{of: unknown[], pivot: Pivot} | null} */
  added = null;
  /** What `key` was when it was shown last. */
  shown = "";
  /** By what they are of, spans or whole calls, and by their ids: those that were asked for. @type {Map<Store, Map<string, [string, Grouping]>>} */
  groupings = new Map();

  /** @param {{store: Store, view: View, highlight: HighlightedRows, search: Search}} parts */
  constructor({ store, view, highlight, search }) {
    this.spans = store;
    this.view = view;
    this.highlight = highlight;
    this.search = search;
  }

  /** Whole calls, if it is they that are listed. */
  get calls() {
    return this.what === CALLS ? this.search.calls : null;
  }

  /** What is listed, as spans. */
  get store() {
    return this.calls?.store ?? this.spans;
  }

  /** The time listed. */
  get times() {
    const { view } = this;
    return this.whole || view.relative ? { t0: -Infinity, t1: Infinity } : this.range ?? view;
  }

  /** What changes if the picture does, and the list with it. */
  get key() {
    const { t0, t1 } = this.times;
    return `${t0} ${t1} ${this.highlight.version}`;
  }

  /** The kinds listed, 1 or 0 by kind: without a pattern what ran, and waits. */
  get kinds() {
    const kinds = KIND_WORDS.get(this.what);
    const searched = this.search.active && this.search.query.pattern !== "";
    return Uint8Array.from(KIND_NAMES, (_, kind) => Number(kinds ? kinds.includes(kind) : searched || (kind <= Kind.WAIT && !isIdle(kind))));
  }

  /** The calls listed, in order of time: those of which the first piece is searched, or the last, which has what they returned. @param {Calls} calls */
  collectCalls({ store: { n, start, dur }, first, last }) {
    const { search, highlight } = this;
    const { t0, t1 } = this.times;
    if (this.room.length < n) this.room = new Uint32Array(n);
    let count = 0;
    for (let i = 0; i < n && start[i] < t1; i++) {
      const inSight = start[i] >= t0 || start[i] + dur[i] > t0;
      const found = !search.active || (dur[i] >= search.min && dur[i] <= search.max && (search.takes(first[i]) || search.takes(last[i])));
      if (inSight && found && (!highlight.active || highlight.shows(first[i]))) this.room[count++] = i;
    }
    return this.room.subarray(0, count);
  }

  /** What the address says of the table. @param {boolean} shown */
  address(shown) {
    const { what, whole, by, sort, down } = this;
    return shown ? { table: what, where: whole ? "whole" : "", by: by.filter((id) => id !== "").join(), sort: sort === "Duration" ? "" : sort, up: down ? "" : "1" } : {};
  }

  /** Takes over what an address says; whether there is a table. @param {URLSearchParams} address */
  take(address) {
    const what = address.get("table");
    if (what === null) return false;
    this.what = what === CALLS || KIND_WORDS.has(what) ? what : "all";
    this.whole = address.get("where") === "whole";
    const by = (address.get("by") ?? "").split(",").filter((id) => GROUPINGS.some(([known]) => known === id));
    this.by = [by[0] ?? "", by[1] ?? ""];
    this.sort = address.get("sort") ?? "Duration";
    this.down = !address.has("up");
    this.range = null;
    this.line = -1;
    return true;
  }

  /** What is listed, spans or calls, in order of time. */
  collect() {
    if (this.calls) return this.collectCalls(this.calls);
    const { store: { n, start, dur, kind }, search, highlight } = this;
    const { t0, t1 } = this.times;
    const takes = this.kinds;
    const found = search.active ? search.ids : null;
    const max = found ? found.length : n;
    if (this.room.length < max) this.room = new Uint32Array(max);
    const { room } = this;
    let count = 0;
    if (!found && t0 === -Infinity && t1 === Infinity) {
      for (let i = 0; i < n; i++) {
        room[count] = i;
        count += takes[kind[i]];
      }
    } else for (let k = 0; k < max; k++) {
      const i = found ? found[k] : k;
      if (start[i] >= t1) break;
      room[count] = i;
      count += start[i] >= t0 || start[i] + dur[i] > t0 ? takes[kind[i]] : 0;
    }
    if (!found && highlight.active) count = search.keepLit(room, count);
    return room.subarray(0, count);
  }

  /** The groupings chosen, with their titles. */
  get chosen() {
    const { store } = this;
    const made = this.groupings.get(store) ?? new Map();
    this.groupings.set(store, made);
    return [...new Set(this.by)].flatMap((id) => {
      const [, title, make] = GROUPINGS.find(([other]) => other === id) ?? [];
      if (!title || !make) return [];
      if (!made.has(id)) made.set(id, [title, make(store)]);
      return [made.get(id)];
    });
  }

  /** What the lines now listed have no column for gives way to the largest first. @param {string[]} titles @param {string} usual */
  sortByOneOf(titles, usual) {
    if (titles.includes(this.sort)) return;
    this.sort = usual;
    this.down = true;
  }

  /** @param {string} title a column's, which turns the order round if it is sorted by already */
  sortBy(title) {
    this.down = this.sort === title ? !this.down : !TEXT_COLUMNS.has(title);
    this.sort = title;
  }
}
