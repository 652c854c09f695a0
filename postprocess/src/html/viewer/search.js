// SPDX-License-Identifier: BSD-3-Clause
// Search: which spans have a name and a duration that match, their number and time, and the way from one to the next.
//
// The pattern is tried on every distinct name once and only on its beginning, so the number of spans costs one quick
// pass. A pattern with `=` or `\\(` in it is also tried on calls as they are shown, `read(3)=EAGAIN`, each distinct one
// once. As in the original viewer, names that begin with a dash match only patterns that do, and while rows are
// highlighted only what lies on those is found.
"use strict";

/** Longest beginning of a name that is tried. */
const NAME_MOST = 128;
/** Kinds that are not looked for: names of rows. */
const NEVER_FOUND = Kind.LABEL;
/** Kinds whose text is more than their name; counters are there for all execution. */
const CALL_KINDS = new Set(/** @type {number[]} */ ([Kind.SYSCALL, Kind.FREQ, Kind.MESSAGE, Kind.LOST, Kind.TRAP, Kind.IRQ, Kind.BH, Kind.POINT]));
/** Calls remembered for a quick answer, a power of two. */
const CALLS_AT_HAND = 1 << 13;
/** Matches found that are kept together, and matches whose time is added up together. */
const FOUND_CHUNK = 1 << 16;
const SUM_BITS = 8;

/** Whether a pattern asks for more than a name: for arguments, returned values, counters. @param {string} pattern */
const asksForCalls = (pattern) => /=|\\\(/.test(pattern);

/** Names that are highlighted together. */
const JOINED_MOST = 2;

/** The pattern that matches one name and no other. @param {string} name */
const exactly = (name) => `^${name.slice(0, NAME_MOST).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;

/** A pattern for one name, joined to that for others if there is one. @param {string} before @param {string} one */
function patternWith(before, one) {
  if (!/^\^.*\$$/.test(before) || before === one) return one;
  const parts = before.split(/(?<=\$)\|(?=\^)/);
  return parts.includes(one) ? one : [...parts, one].slice(-JOINED_MOST).join("|");
}

/**
 * What is looked for: a regular expression, empty for any name; `least` and `most` are durations as typed, empty for
 * any duration.
 * @typedef {{pattern: string, ignoreCase: boolean, invert: boolean, least: string, most: string}} Query
 */

/** @type {Query} */
const NOTHING = Object.freeze({ pattern: "", ignoreCase: false, invert: false, least: "", most: "" });

class Search {
  /** @param {Store} store @param {LitRows} highlight */
  constructor(store, highlight) {
    this.store = store;
    this.highlight = highlight;
    this.query = NOTHING;
    /** Whether anything is looked for. */
    this.active = false;
    /** Durations that match, units of 10 ns. */
    this.least = 0;
    this.most = Infinity;
    /** What is wrong with the query. */
    this.error = "";
    /** By name: 1 if it matches. */
    this.hits = new Uint8Array(store.names.length);
    /** By span, if calls are looked for: 1 if it matches. @type {Uint8Array | null} */
    this.calls = null;
    this.ids = new Uint32Array(0);
    this.total = 0;
    this.shortest = 0;
    this.longest = 0;
    /** Time of all matches before each block of them. */
    this.sums = new Float64Array(1);
    /** Which of the matches is shown, -1 before the first. */
    this.current = -1;
    /** @type {Map<Group, Lane>} */
    this.lanes = new Map();
  }

  /**
   * Looks for something; a query without pattern and durations ends the search.
   * @param {Query} query
   */
  find(query) {
    const { pattern, ignoreCase, invert, least, most } = query;
    this.query = query;
    this.error = "";
    this.active = false;
    this.current = -1;
    this.lanes.clear();
    this.ids = new Uint32Array(0);
    if (pattern === "" && least === "" && most === "") return;
    this.least = least === "" ? 0 : parseDuration(least);
    this.most = most === "" ? Infinity : parseDuration(most);
    if (Number.isNaN(this.least + this.most)) {
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
    const dashed = pattern.replace(/^[\^(]+/, "").startsWith("-");
    const allowed = (/** @type {string} */ name) => dashed || !name.startsWith("-");
    const { names } = this.store;
    this.calls = asksForCalls(pattern) ? this.matchCalls(regex, invert, names.map(allowed)) : null;
    if (!this.calls) this.hits = Uint8Array.from(names, (name) => (allowed(name) && regex.test(name.slice(0, NAME_MOST)) !== invert ? 1 : 0));
    this.collect();
  }

  /**
   * Tries a pattern on names and on whole calls; what a call is made of says whether it was tried before.
   * @param {RegExp} regex
   * @param {boolean} invert
   * @param {boolean[]} allowed by name
   */
  matchCalls(regex, invert, allowed) {
    const { store } = this;
    const { n, kind, name, names, arg, ret, ipc } = store;
    const counters = /ipc=|llc=/i.test(regex.source);
    const tries = Uint8Array.from(KIND_NAMES, (_, k) => (CALL_KINDS.has(k) || (counters && isExecution(k)) ? 1 : 0));
    const byName = Uint8Array.from(names, (text) => (regex.test(text.slice(0, NAME_MOST)) ? 1 : 0));
    const forbidden = Uint8Array.from(allowed, (is) => (is ? 0 : 1));
    const [yes, no] = invert ? [0, 1] : [1, 0];
    /** By name and call. @type {Map<number, Map<number, number>>} */
    const tried = new Map();
    const known = { name: new Int32Array(CALLS_AT_HAND).fill(-1), call: new Float64Array(CALLS_AT_HAND), hit: new Uint8Array(CALLS_AT_HAND) };
    const calls = this.calls ?? new Uint8Array(n);
    for (let i = 0; i < n; i++) {
      const which = name[i];
      if (forbidden[which] === 1) calls[i] = 0;
      else if (byName[which] === 1) calls[i] = yes;
      else if (tries[kind[i]] === 0) calls[i] = no;
      else {
        const call = (arg[i] * 0x20000 + (ret[i] & 0x1ffff)) * 16 + (counters ? ipc[i] & 15 : 0);
        const at = (which * 31 + arg[i] * 7 + ret[i] * 3) & (CALLS_AT_HAND - 1);
        if (known.name[at] !== which || known.call[at] !== call) {
          let calls = tried.get(which);
          if (!calls) tried.set(which, (calls = new Map()));
          const before = calls.get(call);
          const hit = before ?? (regex.test(searchedText(store, i, counters)) ? yes : no);
          if (before === undefined) calls.set(call, hit);
          known.name[at] = which;
          known.call[at] = call;
          known.hit[at] = hit;
        }
        calls[i] = known.hit[at];
      }
    }
    return calls;
  }

  /** Lists what matches and lies on highlighted rows, if any are. */
  collect() {
    const { store: { n, kind, name, dur }, hits, calls, least, most, highlight } = this;
    const lit = highlight.active;
    const bounded = least > 0 || most < Infinity;
    /** @type {Uint32Array[]} */
    const full = [];
    let chunk = new Uint32Array(FOUND_CHUNK);
    let count = 0;
    for (let i = 0; i < n; i++) {
      if (bounded && (dur[i] < least || dur[i] > most)) continue;
      if ((calls ? calls[i] : hits[name[i]]) === 0 || kind[i] === NEVER_FOUND || (lit && !highlight.shows(i))) continue;
      chunk[count++] = i;
      if (count < FOUND_CHUNK) continue;
      full.push(chunk);
      chunk = new Uint32Array(FOUND_CHUNK);
      count = 0;
    }
    this.ids = new Uint32Array(full.length * FOUND_CHUNK + count);
    full.forEach((part, k) => this.ids.set(part, k * FOUND_CHUNK));
    this.ids.set(chunk.subarray(0, count), full.length * FOUND_CHUNK);
    this.current = -1;
    this.lanes.clear();
    this.addUp();
  }

  /** Adds up the time of the matches. */
  addUp() {
    const { ids, store: { dur } } = this;
    this.sums = new Float64Array((ids.length >>> SUM_BITS) + 1);
    let [total, shortest, longest] = [0, Infinity, 0];
    for (let k = 0; k < ids.length; k++) {
      const d = dur[ids[k]];
      if ((k & ((1 << SUM_BITS) - 1)) === 0) this.sums[k >>> SUM_BITS] = total;
      total += d;
      if (d < shortest) shortest = d;
      if (d > longest) longest = d;
    }
    if ((ids.length & ((1 << SUM_BITS) - 1)) === 0) this.sums[ids.length >>> SUM_BITS] = total;
    [this.total, this.shortest, this.longest] = [total, shortest, longest];
  }

  /** Time of the first matches. @param {number} count */
  timeOf(count) {
    let sum = this.sums[count >>> SUM_BITS];
    for (let k = (count >>> SUM_BITS) << SUM_BITS; k < count; k++) sum += this.store.dur[this.ids[k]];
    return sum;
  }

  /** The highlighted rows have changed. */
  highlightChanged() {
    if (this.active) this.collect();
  }

  /** @param {number} i */
  matches(i) {
    const { name, dur } = this.store;
    return (this.calls ? this.calls[i] : this.hits[name[i]]) === 1 && dur[i] >= this.least && dur[i] <= this.most;
  }

  /** Whether a span keeps its colour: all do while nothing is looked for. @param {number} i */
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
   * The next match after the current one, or around a time if there is none yet; -1 if nothing matches.
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

  /** What was found, and how much of it starts in sight, in words. @param {View} view */
  text(view) {
    if (this.error !== "") return this.error;
    if (!this.active) return "";
    const n = this.ids.length;
    const count = `Matches${this.highlight.active ? " on highlighted rows" : ""}: ${n.toLocaleString("en")}`;
    if (n === 0) return count;
    const at = this.current >= 0 ? ` (at ${this.current + 1})` : "";
    const range = `${durationText(this.shortest)}..${durationText(this.longest)}`;
    const { start } = this.store;
    const from = seekStart(start, this.ids, 0, n, view.t0);
    const to = seekStart(start, this.ids, from, n, view.t1);
    const seen = to - from === n ? ""
      : `; in sight ${(to - from).toLocaleString("en")}, ${durationText(this.timeOf(to) - this.timeOf(from))}`;
    return `${count}${at}, total ${durationText(this.total)} [${range}]${seen}`;
  }
}

/** A span as a pattern for calls sees it. @param {Store} store @param {number} i @param {boolean} counters */
function searchedText(store, i, counters) {
  const call = callText(store, i).slice(0, NAME_MOST);
  if (!counters || !isExecution(store.kind[i])) return call;
  return `${call} ${counterTexts(store, i).map(([what, value]) => `${what.slice(0, 3).toLowerCase()}=${value}`).join(" ")}`;
}
