// SPDX-License-Identifier: BSD-3-Clause
// The contents and order of the table: the choices made in the panel, which the address carries.

import { isPiece, withWholes } from "../data/calls.js";
import { Filter } from "../data/filter.js";
import { isIdle } from "../data/kind.js";
import { GROUPINGS } from "../data/pivot.js";
import { isOfRecorder, recorderThreads } from "../data/recorder.js";
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
 * @import {Layers} from "../draw/layers.js"
 * @import {Filtered} from "./columns.js"
 */

/** The word for whole calls, in addition to those for kinds of spans. */
export const CALLS = "calls";

/** Columns that are sorted ascending at first; others start with their largest value. */
const TEXT_COLUMNS = new Set(["Span", "Thread", "CPU", "Start", "Woken", "To CPU", "Name", "Program", "Process", "Control group", "Reason"]);

/** The prefix of a column's title in filters of groups, and that of any filter in the address. */
export const OF_GROUPS = "group ";
const IN_ADDRESS = "filter.";

/** The listed items: `what` is everything, whole calls or a word for kinds, `by` the groupings, `sort` a column's title. */
export class Listing {
  what = "all";
  whole = false;
  /** @type {string[]} */
  by = ["", ""];
  sort = "Duration";
  down = true;
  /** Filters as typed, by the titles of columns. @type {Map<string, string>} */
  filters = new Map();
  /** True if the boxes for filters are shown. */
  filtering = false;
  /** The timer that runs until typing rests. */
  typing = 0;
  /** The time that was visible when a line was used, until the user moves the view. @type {{t0: number, t1: number} | null} */
  range = null;
  /** The line that was used last, to return to; -1 for none. */
  line = -1;
  room = new Uint32Array(0);
  /** Memory of the sums. */
  places = new Uint32Array(0);
  /** The items collected last, in `room`, and the inputs. @type {{of: unknown[], ids: Uint32Array} | null} */
  collected = null;
  /** The sums computed last, and the inputs. @type {{of: unknown[], pivot: Pivot} | null} */
  added = null;
  /** Spans with whole calls among them, once needed. @type {Store | null} */
  wholes = null;
  /** The `key` at the last display. */
  shown = "";
  /** Groupings used so far, by the store of spans or whole calls, and by id. @type {Map<Store, Map<string, [string, Grouping]>>} */
  groupings = new Map();

  /** @param {{store: Store, view: View, highlight: HighlightedRows, search: Search, layers?: Layers}} parts */
  constructor({ store, view, highlight, search, layers }) {
    this.layers = layers;
    this.recorder = recorderThreads(store);
    this.spans = store;
    this.view = view;
    this.highlight = highlight;
    this.search = search;
  }

  /** Whole calls, if they are listed: either by choice, or because all listed items are pieces of calls. */
  get calls() {
    const { what, search } = this;
    const kinds = KIND_WORDS.get(what);
    const isOfPieces = kinds ? kinds.every(isPiece) : what === CALLS || (search.active && search.ids.length > 0 && search.things.pieces === search.ids.length);
    return isOfPieces ? search.calls : null;
  }

  /** The word for a listed item. */
  get thing() {
    if (!this.calls) return "span";
    const { calls, interrupts } = this.search.things;
    if (this.what === "irq" || (this.what === "all" && calls === 0 && interrupts > 0)) return "interrupt";
    return this.what === "bh" || (this.what === "all" && calls === 0) ? "bottom half" : "call";
  }

  /** True if only wakeups or IPIs are listed. */
  get wakes() {
    const { kind } = this.search.active ? this.search.scope.takes : { kind: null };
    const isOfWakes = (/** @type {number} */ k) => k === Kind.WAKEUP || k === Kind.IPI;
    const taken = [...this.spans.kinds].filter((k) => this.kinds[k] === 1 && (!kind || kind[k] === 1));
    return taken.length > 0 && taken.every(isOfWakes);
  }

  /** Whole calls, if they are listed together with other spans: the table counts matches like the search does. */
  get beside() {
    const { what, search } = this;
    return what === "all" && search.active && search.things.pieces > 0 && !this.calls ? search.calls : null;
  }

  /** The listed items, as spans. */
  get store() {
    const { calls, beside, spans, search } = this;
    if (beside) this.wholes ??= withWholes(spans, beside, search.lengths);
    return calls?.store ?? (beside ? this.wholes : null) ?? spans;
  }

  /** The listed range of time. */
  get times() {
    const { view } = this;
    return this.whole || view.relative ? { t0: -Infinity, t1: Infinity } : this.range ?? view;
  }

  /** A key that changes if the list has to change with the picture. */
  get key() {
    const { t0, t1 } = this.times;
    return `${t0} ${t1} ${this.highlight.version} ${this.layers?.stateOf("recorder")}`;
  }

  /** The listed kinds, 1 or 0 by kind: without a pattern, execution except idle, and waits. */
  get kinds() {
    const kinds = KIND_WORDS.get(this.what);
    const searched = this.search.active && this.search.query.pattern !== "";
    return Uint8Array.from(KIND_NAMES, (_, kind) => Number(kinds ? kinds.includes(kind) : searched || (kind <= Kind.WAIT && !isIdle(kind))));
  }

  /** Collects the listed calls, in order of time: those of which any piece matches. @param {Calls} calls */
  collectCalls({ store: { n, start, dur, kind }, first }) {
    const { search, highlight, kinds } = this;
    const { t0, t1 } = this.times;
    if (this.room.length < n) this.room = new Uint32Array(n);
    // If there are highlighted rows, matches are on these already.
    const found = search.active ? search.things.found : null;
    let count = 0;
    for (let i = 0; i < n && start[i] < t1; i++) {
      this.room[count] = i;
      const isListed = kinds[kind[i]] === 1 && (start[i] >= t0 || start[i] + dur[i] > t0) && (found ? found[i] === 1 : !highlight.active || highlight.shows(first[i]));
      count += isListed ? 1 : 0;
    }
    return this.withoutRecorder(this.room.subarray(0, count));
  }

  /** Moves the items that are not left out to the front. @param {Uint32Array} ids */
  withoutRecorder(ids) {
    const leavesOut = this.leavesOut(this.store);
    let count = 0;
    for (const i of ids) {
      ids[count] = i;
      count += leavesOut(i) ? 0 : 1;
    }
    return ids.subarray(0, count);
  }

  /** The part of the address about the table. @param {boolean} shown */
  address(shown) {
    const { what, whole, by, sort, down } = this;
    if (!shown) return {};
    const filters = [...this.filters].map(([title, typed]) => [IN_ADDRESS + title, typed]);
    return { table: what, where: whole ? "whole" : "", by: by.filter((id) => id !== "").join(), sort: sort === "Duration" ? "" : sort, up: down ? "" : "1", ...Object.fromEntries(filters) };
  }

  /** Takes the choices from an address; returns whether it has a table. @param {URLSearchParams} address */
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

  /** Collects the matches, for calls their first pieces. @param {Calls} calls */
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

  /** What is true for the recorder's own spans, unless they are asked for: by a search, or in the menu. @param {Store} [store] */
  leavesOut(store = this.spans) {
    const { recorder } = this;
    const all = this.search.active || this.layers?.stateOf("recorder") === "listed";
    return all || !recorder.includes(1) ? () => false : (/** @type {number} */ i) => isOfRecorder(store, recorder, i);
  }

  /** The values that identify a list. @returns {unknown[]} */
  get of() {
    return [this.what, this.key, this.search.ids, JSON.stringify([...this.filters])];
  }

  /** Collects the listed spans or calls, in order of time; the last result, if it is still valid. */
  collect() {
    const { of } = this;
    if (!this.collected?.of.every((what, k) => what === of[k])) this.collected = { of, ids: this.keepFiltered(this.collectAnew()) };
    return this.collected.ids;
  }

  /** The input of a filter of spans or calls, by the title of the column; null if the listed items do not have it. @param {string} title @returns {Filtered & {values?: Column} | null} */
  filteredBy(title) {
    const column = columnsOfSpans({ list: this }).find((one) => one.title === title);
    if (column) return { ...column.filtered, get values() { return column.values; } };
    const id = this.offered.find(([, other]) => other === title)?.[0];
    const [, grouping] = id ? this.groupingOf(id) ?? [] : [];
    if (!grouping) return null;
    const { column: of, of: groups, text } = grouping;
    return { sort: "text", few: () => ({ column: of, size: groups.length, text: (k) => text(groups[k]) }) };
  }

  /** The valid filters of spans or calls, of columns that the listed items have. */
  get filtersNow() {
    return [...this.filters].flatMap(([title, typed]) => {
      const filtered = title.startsWith(OF_GROUPS) ? null : this.filteredBy(title);
      const filter = filtered && new Filter(typed, filtered.sort);
      return filter && !filter.isWrong ? [{ title, filter, filtered }] : [];
    });
  }

  /** The spans or calls that the filters keep, in the same memory. @param {Uint32Array} ids */
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

  /** Drops the collected items and sums. */
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
    return this.withoutRecorder(room.subarray(0, count));
  }

  /** The groupings that the listed items offer. */
  get offered() {
    const { wakes, spans: { meta, kinds } } = this;
    /** @type {Record<string, unknown>} */
    const lacking = { cgroup: !meta.cgroups, woken: !wakes, to: !wakes, reason: !kinds.has(Kind.WAIT) };
    return GROUPINGS.filter(([id]) => !lacking[id]);
  }

  /** A grouping of the listed items, with its title. @param {string} id @returns {[string, Grouping] | undefined} */
  groupingOf(id) {
    const { store, offered } = this;
    const made = this.groupings.get(store) ?? new Map();
    this.groupings.set(store, made);
    const [, title, make] = offered.find(([other]) => other === id) ?? [];
    if (!title || !make) return undefined;
    if (!made.has(id)) made.set(id, [title, make(store, this)]);
    return made.get(id);
  }

  /** The chosen groupings, with their titles. */
  get chosen() {
    return [...new Set(this.by)].flatMap((id) => {
      const grouping = this.groupingOf(id);
      return grouping ? [grouping] : [];
    });
  }

  /** Falls back to sorting by the largest first, if the listed items do not have the sorted column. @param {string[]} titles @param {string} usual */
  sortByOneOf(titles, usual) {
    if (titles.includes(this.sort)) return;
    this.sort = usual;
    this.down = true;
  }

  /** @param {string} title of a column; sorting by it once more reverses the order */
  sortBy(title) {
    this.down = this.sort === title ? !this.down : !TEXT_COLUMNS.has(title);
    this.sort = title;
  }
}

/**
 * Moves the items with values that a filter keeps to the front; returns how many. The filter has one range of numbers.
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
