// SPDX-License-Identifier: BSD-3-Clause
// Search: the matching spans, their number and time, and steps from one to the next.
//
// The pattern is tried once on every distinct name, and only on its beginning, so all spans together cost one quick
// pass. A pattern with `=` or `\(` in it is also tried on calls as displayed, `read(3)=EAGAIN`, each distinct one
// once. As in the original viewer, names that begin with a dash match only patterns that do, unless a kind is selected,
// and while rows are highlighted, only spans on those are found.

import { callsInParts, lengthsOf } from "./calls.js";
import { countText, durationText, parseDuration, UNSEEN } from "./format.js";
import { indexByRow, laneOf, putInstantsFirst, seekStart } from "./rows.js";
import { keepTaken, readSelectors, Scope } from "./selector.js";
import { FLAG, Kind } from "./tables.js";
import { TEXT_MAX, Texts } from "./texts.js";
import { Things } from "./things.js";
/**
 * @import {Calls} from "./calls.js"
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 * @import {HighlightedRows} from "./highlight.js"
 * @import {Column} from "./part.js"
 * @import {Lane} from "./rows.js"
 */

/** Spans processed together: their list stays in the processor's cache. */
const FOUND_BLOCK = 1 << 14;
/** Spans whose texts are numbered in one step of preparation, before a search needs them: some ms. */
const PREPARED_TOGETHER = 1 << 19;

/** True if a pattern refers to more than a name: to arguments, returned values or counters. @param {string} pattern */
const asksForCalls = (pattern) => /=|\\\(/.test(pattern);

/** Maximum number of names that are highlighted together. */
const JOINED_MAX = 2;

/** The visible escape of a character in a regular expression. @param {string} character */
const escapedCharacter = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** The pattern that matches one name and no other. @param {string} name */
export const exactly = (name) => `^${name.slice(0, TEXT_MAX).replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/(\s[a-z][a-z0-9_]*):/g, "$1\\:").replace(UNSEEN, escapedCharacter)}$`;

/** A pattern for one name, joined to the previous pattern if that is for names. @param {string} before @param {string} one */
export function patternWith(before, one) {
  if (!/^\^.*\$$/.test(before) || before === one) return one;
  const parts = before.split(/(?<=\$)\|(?=\^)/);
  return parts.includes(one) ? one : [...parts, one].slice(-JOINED_MAX).join("|");
}

/**
 * A query: selectors and a regular expression, empty for any name; `invert` inverts the expression;
 * `min` and `max` are durations as typed, empty for any duration.
 * @typedef {{pattern: string, ignoreCase: boolean, invert: boolean, min: string, max: string}} Query
 */

/** @type {Query} */
export const NOTHING = Object.freeze({ pattern: "", ignoreCase: false, invert: false, min: "", max: "" });

/**
 * The text for the number of matches: calls count as wholes, with the number of pieces found and the current one.
 * @param {Things} things
 * @param {number} n pieces and other spans
 * @param {number} current -1 for none
 */
function countOfThings({ count, pieces, calls, interrupts, halves }, n, current) {
  const at = current < 0 ? "" : `${(current + 1).toLocaleString("en")} of `;
  const sorts = /** @type {[number, string][]} */ ([[calls, "call"], [interrupts, "interrupt"], [halves, "bottom half"]]);
  const wholes = sorts.filter(([some]) => some > 0).map(([some, sort]) => countText(some, sort));
  const head = pieces === n && n > 0 ? wholes.join(" and ") : [count.toLocaleString("en"), ...wholes].join(", with ");
  if (count === n) return `${at}${head}`;
  const places = countText(n, pieces === n ? "piece" : "span");
  return `${head} (${at === "" ? "" : `at ${at}`}${places})`;
}

export class Search {
  /** @param {Store} store @param {HighlightedRows} highlight */
  constructor(store, highlight) {
    this.store = store;
    this.highlight = highlight;
    this.query = NOTHING;
    /** True if there is a query. */
    this.active = false;
    /** Bounds of matching durations, units of 10 ns; a piece has the duration of its call. */
    this.min = 0;
    this.max = Infinity;
    /** The error in the query. */
    this.error = "";
    /** Selected places and kinds of matches. */
    this.scope = new Scope(store);
    /** By span, the number of the string that the pattern is tried on: its name, or its text. @type {Column} */
    this.tried = store.name;
    /** By that number, 1 if the string matches. */
    this.hits = new Uint8Array(0);
    /** Texts without counters and with them, once needed. @type {(Texts | null)[]} */
    this.texts = [null, null];
    /** The matches, at the beginning of memory that one search leaves to the next. */
    this.ids = new Uint32Array(0);
    this.room = new Uint32Array(0);
    /** All calls, once requested. @type {Calls | null} */
    this.whole = null;
    /** The computation of all calls in progress. @type {ReturnType<typeof callsInParts> | null} */
    this.underWay = null;
    /** The last result of `things`. @type {Things | null} */
    this.found = null;
    /** The place of the match shown, -1 before the first. */
    this.current = -1;
    /** @type {Map<Group, Lane>} */
    this.lanes = new Map();
    /** The last result of closedHomes(), and its inputs. @type {{ids: Uint32Array, key: string, having: Group[]}} */
    this.homes = { ids: this.ids, key: "", having: [] };
  }

  /**
   * Runs a query; one without selectors, pattern and durations ends the search.
   * @param {Query} query
   */
  find(query) {
    const { ignoreCase, invert, min, max } = query;
    this.query = query;
    this.active = false;
    this.current = -1;
    this.lanes.clear();
    this.ids = new Uint32Array(0);
    this.found = null;
    const { scope, pattern, error } = readSelectors(this.store, query.pattern);
    this.error = error;
    if (error !== "") return;
    if (pattern === "" && min === "" && max === "" && scope.keys.size === 0) {
      this.room = new Uint32Array(0);
      return;
    }
    this.min = min === "" ? 0 : parseDuration(min);
    this.max = max === "" ? Infinity : parseDuration(max);
    if (Number.isNaN(this.min + this.max)) {
      this.error = "not a duration";
      return;
    }
    let regex;
    try {
      regex = new RegExp(pattern, ignoreCase ? "i" : "");
    } catch (e) {
      this.error = "not a regular expression";
      return;
    }
    this.active = true;
    this.scope = scope;
    const dashed = ["kind", "woken", "to"].some((key) => scope.keys.has(key)) || pattern.replace(/^[\^(]+/, "").startsWith("-");
    const { name, names } = this.store;
    const allowed = names.map((text) => dashed || !text.startsWith("-"));
    const matching = names.map((text) => regex.test(text.slice(0, TEXT_MAX)));
    if (asksForCalls(pattern)) {
      const texts = this.textsOf(/ipc=|llc=/i.test(pattern));
      this.tried = texts.of;
      this.hits = new Uint8Array(texts.spans.length);
      for (const [k, i] of texts.spans.entries()) if (allowed[name[i]] && (matching[name[i]] || regex.test(texts.text(i))) !== invert) this.hits[k] = 1;
    } else {
      this.tried = name;
      this.hits = Uint8Array.from(names, (_, k) => (allowed[k] && matching[k] !== invert ? 1 : 0));
    }
    this.collect();
  }

  /** All calls of the trace. */
  get calls() {
    while (!this.whole) this.putTogether();
    return this.whole;
  }

  /** Takes one step towards all calls. */
  putTogether() {
    this.underWay ??= callsInParts(this.store);
    const { done, value } = this.underWay.next();
    if (done) this.whole = value;
  }

  /** The matches with calls as wholes. */
  get things() {
    return (this.found ??= new Things(this.store, () => this.calls, this.ids));
  }

  /** The texts of all spans. @param {boolean} counters true to include counters */
  textsOf(counters) {
    const which = counters && (this.store.meta.flags & FLAG.COUNTERS) !== 0 ? 1 : 0;
    const texts = this.texts[which] ??= new Texts(this.store, which === 1);
    texts.number(this.store.n);
    return texts;
  }

  /** Numbers texts before a search needs them, a few at a time, and then puts calls together. */
  prepare() {
    const texts = this.texts[0] ??= new Texts(this.store, false);
    if (texts.count < this.store.n) texts.number(Math.min(texts.count + PREPARED_TOGETHER, this.store.n));
    else if (!this.whole) this.putTogether();
    else return;
    setTimeout(() => this.prepare());
  }

  /** Lists the matches, only those on highlighted rows if there are any. */
  collect() {
    const { store: { n } } = this;
    let total = 0;
    for (let from = 0; from < n; from += FOUND_BLOCK) {
      if (total + FOUND_BLOCK > this.room.length) {
        const larger = new Uint32Array(Math.min(2 * total, n) + FOUND_BLOCK);
        larger.set(this.room.subarray(0, total));
        this.room = larger;
      }
      const ids = this.room.subarray(total, total + FOUND_BLOCK);
      const count = this.keepMatches(ids, from, Math.min(from + FOUND_BLOCK, n));
      total += this.keepLit(ids, this.scope.keep(ids, count));
    }
    this.ids = this.room.subarray(0, total);
    this.current = -1;
    this.found = null;
    this.lanes.clear();
  }

  /**
   * Lists those of some spans that match the pattern and the durations, pieces by those of their calls; returns how many.
   * @param {Uint32Array} ids
   * @param {number} from
   * @param {number} to
   */
  keepMatches(ids, from, to) {
    const { tried, hits, min, max } = this;
    let count = 0;
    if (!this.bounded) {
      for (let i = from; i < to; i++) {
        ids[count] = i;
        count += hits[tried[i]];
      }
      return count;
    }
    const { lengths } = this;
    for (let i = from; i < to; i++) {
      const d = lengths[i];
      ids[count] = i;
      count += d >= min && d <= max ? 1 : 0;
    }
    return keepTaken(ids, count, tried, hits);
  }

  /** Moves spans on highlighted rows, if there are any, to the front; returns how many. @param {Uint32Array} ids @param {number} count */
  keepLit(ids, count) {
    if (!this.highlight.active) return count;
    let kept = 0;
    for (let k = 0; k < count; k++) if (this.highlight.shows(ids[k])) ids[kept++] = ids[k];
    return kept;
  }

  /** Updates the matches after the highlighted rows have changed. */
  highlightChanged() {
    if (this.active) this.collect();
  }

  /** The groups whose rows have matches, if all of these are closed, so that no match is visible. @param {Group[]} groups */
  closedHomes(groups) {
    const closed = groups.filter((group) => group.collapsed && !group.hidden);
    const key = closed.map((group) => group.name).join();
    if (this.homes.ids !== this.ids || this.homes.key !== key) {
      const open = groups.filter((group) => !group.collapsed && !group.hidden);
      const hidden = this.active && !this.ids.some((i) => open.some((group) => group.rowOf(i) >= 0));
      const having = hidden ? closed.filter((group) => this.ids.some((i) => group.rowOf(i) >= 0)) : [];
      this.homes = { ids: this.ids, key, having };
    }
    return this.homes.having;
  }

  /** True if any piece of a call matches. @param {number} call */
  finds(call) {
    return !this.active || this.things.found[call] === 1;
  }

  /** True if a span matches, regardless of its duration. @param {number} i */
  takes(i) {
    return this.hits[this.tried[i]] === 1 && this.scope.has(i);
  }

  /** True if durations are bounded. */
  get bounded() {
    return this.min > 0 || this.max < Infinity;
  }

  /** True if a duration is within the bounds. @param {number} d */
  isWithin(d) {
    return d >= this.min && d <= this.max;
  }

  /** The length of each span, for pieces that of their call; computed on first use. @returns {Column} */
  get lengths() {
    const value = lengthsOf(this.store, this.calls);
    Object.defineProperty(this, "lengths", { value });
    return value;
  }

  /** @param {number} i */
  matches(i) {
    return this.takes(i) && (!this.bounded || this.isWithin(this.lengths[i]));
  }

  /** True if a span keeps its colour: all do while there is no query. @param {number} i */
  shows(i) {
    return !this.active || this.matches(i);
  }

  /** The matches on the rows of a group. @param {Group} group @returns {Lane} */
  laneOf(group) {
    let lane = this.lanes.get(group);
    if (!lane) {
      const { kind } = this.store;
      const { ids } = this;
      const rowOf = new Int32Array(ids.length);
      for (let k = 0; k < ids.length; k++) rowOf[k] = kind[ids[k]] <= Kind.WAIT ? group.rowOf(ids[k]) : -1;
      const index = indexByRow(group.keys.length, rowOf, this.ids);
      putInstantsFirst(this.store, index);
      lane = laneOf(this.store, index);
      this.lanes.set(group, lane);
    }
    return lane;
  }

  /**
   * The next match after the current one, or around a time if there is no current one; -1 if nothing matches.
   * @param {number} direction 1 or -1
   * @param {number} time
   */
  step(direction, time) {
    const n = this.ids.length;
    if (n === 0) return -1;
    if (this.current < 0) {
      const after = seekStart(this.store.start, this.ids, 0, n, time);
      this.current = (direction > 0 ? after : after - 1 + n) % n;
    } else {
      this.current = (this.current + direction + n) % n;
    }
    return this.ids[this.current];
  }

  /** The result in words, with the matches that start in the visible range. @param {{t0: number, t1: number}} seen */
  text({ t0, t1 }) {
    if (this.error !== "") return this.error;
    if (!this.active) return "";
    const { things, ids: { length: n } } = this;
    const count = `Matches${this.highlight.active ? " on highlighted rows" : ""}: ${countOfThings(things, n, this.current)}`;
    if (n === 0) return count;
    const { total, own, shortest, longest, pieces } = things;
    const ownText = pieces === n && own !== total ? `, own time ${durationText(own)}` : "";
    const seen = things.startingIn(t0, t1);
    const inSight = seen.count === things.count ? "" : `; ${seen.count.toLocaleString("en")} start in sight, ${durationText(seen.time)}`;
    return `${count}, total ${durationText(total)}${ownText} [${durationText(shortest)}..${durationText(longest)}]${inSight}`;
  }
}
