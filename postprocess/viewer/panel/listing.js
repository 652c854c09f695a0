// SPDX-License-Identifier: BSD-3-Clause
// What the table lists, and in which order: the choices made in the panel, which the address carries.

import { isPiece, withWholes } from "../data/calls.js";
import { Filter } from "../data/filter.js";
import { isIdle } from "../data/kind.js";
import { GROUPINGS } from "../data/pivot.js";
import { keepTaken, KIND_WORDS } from "../data/selector.js";
import { Kind, KIND_NAMES } from "../data/tables.js";
import { columnsOfSpans } from "./columns.js";
/**
 * @import {Calls} from "../data/calls.js"
 * @import {Store} from "../data/decode.js"
 * @import {Column} from "../data/part.js"
 * @import {HighlightedRows} from "../data/highlight.js"
 * @import {Grouping, Pivot} from "../data/pivot.js"
 * @import {Search} from "../data/search.js"
 * @import {View} from "../view/view.js"
 * @import {Filtered} from "./columns.js"
 */

/** The word for whole calls, beside those for kinds of spans. */
export const CALLS = "calls";

/** Columns that begin with their first line, not with their largest. */
const TEXT_COLUMNS = new Set(["Span", "Thread", "CPU", "Start", "Woken", "To CPU", "Name", "Program", "Process", "Control group", "Reason"]);

/** Before the title of a column of groups where it is filtered, and before any in the address. */
export const OF_GROUPS = "group ";
const IN_ADDRESS = "filter.";

/** What is listed: `what` is everything, whole calls or a word for kinds, `by` the groupings, `sort` a column's title. */
export class Listing {
  what = "all";
  whole = false;
  /** @type {string[]} */
  by = ["", ""];
  sort = "Duration";
  down = true;
  /** By the titles of columns, what they are filtered by, as typed. @type {Map<string, string>} */
  filters = new Map();
  /** Whether there is room to type more of these. */
  filtering = false;
  /** What waits until typing rests. */
  typing = 0;
  /** The time that was in sight when a line was used, until the view is moved by hand. @type {{t0: number, t1: number} | null} */
  range = null;
  /** The line that was used last, to come back to; -1 for none. */
  line = -1;
  room = new Uint32Array(0);
  /** Memory of what is added up. */
  places = new Uint32Array(0);
  /** What was collected last, in `room`, and of what. @type {{of: unknown[], ids: Uint32Array} | null} */
  collected = null;
  /** What was added up last, and of what. @type {{of: unknown[], pivot: Pivot} | null} */
  added = null;
  /** Spans with whole calls among them, once they were asked for. @type {Store | null} */
  wholes = null;
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

  /** Whole calls, if it is they that are listed: they are asked for, or of what is listed all is pieces of them. */
  get calls() {
    const { what, search } = this;
    const kinds = KIND_WORDS.get(what);
    const isOfPieces = kinds ? kinds.every(isPiece) : what === CALLS || (search.active && search.ids.length > 0 && search.things.pieces === search.ids.length);
    return isOfPieces ? search.calls : null;
  }

  /** What one of the things listed is called. */
  get thing() {
    if (!this.calls) return "span";
    const { calls, interrupts } = this.search.things;
    if (this.what === "irq" || (this.what === "all" && calls === 0 && interrupts > 0)) return "interrupt";
    return this.what === "bh" || (this.what === "all" && calls === 0) ? "bottom half" : "call";
  }

  /** Whether it is wakeups, or IPIs, that are listed. */
  get wakes() {
    const { kind } = this.search.active ? this.search.scope.takes : { kind: null };
    const isOfWakes = (/** @type {number} */ k) => k === Kind.WAKEUP || k === Kind.IPI;
    const taken = [...this.spans.kinds].filter((k) => this.kinds[k] === 1 && (!kind || kind[k] === 1));
    return taken.length > 0 && taken.every(isOfWakes);
  }

  /** Whole calls, if they are listed beside other spans: what is found is told as the search tells it. */
  get beside() {
    const { what, search } = this;
    return what === "all" && search.active && search.things.pieces > 0 && !this.calls ? search.calls : null;
  }

  /** What is listed, as spans. */
  get store() {
    const { calls, beside, spans, search } = this;
    if (beside) this.wholes ??= withWholes(spans, beside, search.lengths);
    return calls?.store ?? (beside ? this.wholes : null) ?? spans;
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

  /** The calls listed, in order of time: those of which any piece is found. @param {Calls} calls */
  collectCalls({ store: { n, start, dur, kind }, first }) {
    const { search, highlight, kinds } = this;
    const { t0, t1 } = this.times;
    if (this.room.length < n) this.room = new Uint32Array(n);
    // What is found lies on highlighted rows, if there are any.
    const found = search.active ? search.things.found : null;
    let count = 0;
    for (let i = 0; i < n && start[i] < t1; i++) {
      this.room[count] = i;
      const isListed = kinds[kind[i]] === 1 && (start[i] >= t0 || start[i] + dur[i] > t0) && (found ? found[i] === 1 : !highlight.active || highlight.shows(first[i]));
      count += isListed ? 1 : 0;
    }
    return this.room.subarray(0, count);
  }

  /** What the address says of the table. @param {boolean} shown */
  address(shown) {
    const { what, whole, by, sort, down } = this;
    if (!shown) return {};
    const filters = [...this.filters].map(([title, typed]) => [IN_ADDRESS + title, typed]);
    return { table: what, where: whole ? "whole" : "", by: by.filter((id) => id !== "").join(), sort: sort === "Duration" ? "" : sort, up: down ? "" : "1", ...Object.fromEntries(filters) };
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
    this.filters = new Map([...address].flatMap(([key, typed]) => (key.startsWith(IN_ADDRESS) ? [[key.slice(IN_ADDRESS.length), typed]] : [])));
    this.filtering = this.filters.size > 0;
    this.range = null;
    this.line = -1;
    return true;
  }

  /** What is found, of calls their first pieces. @param {Calls} calls */
  collectThings({ of, first, store: { n } }) {
    const { search: { ids }, kinds, store: { start, dur, kind } } = this;
    const { t0, t1 } = this.times;
    if (this.room.length < ids.length) this.room = new Uint32Array(ids.length);
    const told = new Uint8Array(n + 1);
    let count = 0;
    for (let k = 0; k < ids.length; k++) {
      const call = of[ids[k]];
      const i = call === 0 ? ids[k] : first[call - 1];
      if (told[call] === 1 || kinds[kind[i]] === 0) continue;
      if (call > 0) told[call] = 1;
      this.room[count] = i;
      count += start[i] < t1 && (start[i] >= t0 || start[i] + dur[i] > t0) ? 1 : 0;
    }
    return this.room.subarray(0, count);
  }

  /** What tells one list from another. @returns {unknown[]} */
  get of() {
    return [this.what, this.key, this.search.ids, JSON.stringify([...this.filters])];
  }

  /** What is listed, spans or calls, in order of time: what was collected last, if that is the same. */
  collect() {
    const { of } = this;
    if (!this.collected?.of.every((what, k) => what === of[k])) this.collected = { of, ids: this.keepFiltered(this.collectAnew()) };
    return this.collected.ids;
  }

  /** What a filter of spans or calls is tried on, by the title of the column; nothing if what is listed has none of that. @param {string} title @returns {Filtered & {values?: Column} | null} */
  filteredBy(title) {
    const column = columnsOfSpans({ list: this }).find((one) => one.title === title);
    if (column) return { ...column.filtered, get values() { return column.values; } };
    const id = this.offered.find(([, other]) => other === title)?.[0];
    const [, grouping] = id ? this.groupingOf(id) ?? [] : [];
    if (!grouping) return null;
    const { column: of, of: groups, text } = grouping;
    return { sort: "text", few: () => ({ column: of, size: groups.length, text: (k) => text(groups[k]) }) };
  }

  /** The filters of spans or calls that what is listed has a column for, and that say something. */
  get filtersNow() {
    return [...this.filters].flatMap(([title, typed]) => {
      const filtered = title.startsWith(OF_GROUPS) ? null : this.filteredBy(title);
      const filter = filtered && new Filter(typed, filtered.sort);
      return filter && !filter.isWrong ? [{ title, filter, filtered }] : [];
    });
  }

  /** Those of some spans or calls that the filters keep, in the same room. @param {Uint32Array} ids */
  keepFiltered(ids) {
    let count = ids.length;
    for (const { filter, filtered: { few, values } } of this.filtersNow) {
      if (few) {
        const { column, size, text } = few();
        count = keepTaken(ids, count, column, Uint8Array.from({ length: size }, (_, k) => Number(filter.keepsText(text(k)))));
      } else if (values) count = keepBetween(ids, count, values, filter);
    }
    return ids.subarray(0, count);
  }

  /** Forgets what was collected and added up. */
  forget() {
    this.room = this.places = new Uint32Array(0);
    this.collected = this.added = null;
  }

  collectAnew() {
    if (this.calls) return this.collectCalls(this.calls);
    if (this.beside) return this.collectThings(this.beside);
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

  /** The ways to group what is listed. */
  get offered() {
    const { wakes, spans: { meta, kinds } } = this;
    /** @type {Record<string, unknown>} */
    const lacking = { cgroup: !meta.cgroups, woken: !wakes, to: !wakes, reason: !kinds.has(Kind.WAIT) };
    return GROUPINGS.filter(([id]) => !lacking[id]);
  }

  /** A grouping of what is listed, with its title. @param {string} id @returns {[string, Grouping] | undefined} */
  groupingOf(id) {
    const { store, offered } = this;
    const made = this.groupings.get(store) ?? new Map();
    this.groupings.set(store, made);
    const [, title, make] = offered.find(([other]) => other === id) ?? [];
    if (!title || !make) return undefined;
    if (!made.has(id)) made.set(id, [title, make(store, this)]);
    return made.get(id);
  }

  /** The groupings chosen, with their titles. */
  get chosen() {
    return [...new Set(this.by)].flatMap((id) => {
      const grouping = this.groupingOf(id);
      return grouping ? [grouping] : [];
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

/**
 * Moves those of some spans whose values a filter keeps to the front; returns how many. It has one range of numbers.
 * @param {Uint32Array} ids
 * @param {number} count
 * @param {Column} values
 * @param {Filter} filter
 */
function keepBetween(ids, count, values, { ranges: [[min, max]], not }) {
  const wanted = not ? 0 : 1;
  let kept = 0;
  for (let k = 0; k < count; k++) {
    const value = values[ids[k]];
    ids[kept] = ids[k];
    kept += (value >= min && value <= max ? 1 : 0) === wanted ? 1 : 0;
  }
  return kept;
}
