// SPDX-License-Identifier: BSD-3-Clause
// Search: which spans have a name and a duration that match, their number and time, and the way from one to the next.
//
// The pattern is tried on every distinct name once and only on its beginning, so the number of spans costs one quick
// pass. As in the original viewer, names that begin with a dash match only patterns that do.
"use strict";

/** Longest beginning of a name that is tried. */
const NAME_MOST = 128;
/** Kinds that are not looked for: names of rows. */
const NEVER_FOUND = Kind.LABEL;

/** The pattern that matches one name and no other. @param {string} name */
const exactly = (name) => `^${name.slice(0, NAME_MOST).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;

/**
 * What is looked for: a regular expression, empty for any name; `least` and `most` are durations as typed, empty for
 * any duration.
 * @typedef {{pattern: string, ignoreCase: boolean, invert: boolean, least: string, most: string}} Query
 */

/** @type {Query} */
const NOTHING = Object.freeze({ pattern: "", ignoreCase: false, invert: false, least: "", most: "" });

class Search {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
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
    this.ids = new Uint32Array(0);
    this.total = 0;
    this.shortest = 0;
    this.longest = 0;
    /** Time of the first k matches. */
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
    this.hits = Uint8Array.from(this.store.names, (name) => {
      return (dashed || !name.startsWith("-")) && regex.test(name.slice(0, NAME_MOST)) !== invert ? 1 : 0;
    });
    this.collect();
  }

  collect() {
    const { n, kind, dur } = this.store;
    let count = 0;
    for (let i = 0; i < n; i++) if (this.matches(i) && kind[i] !== NEVER_FOUND) count++;
    this.ids = new Uint32Array(count);
    this.sums = new Float64Array(count + 1);
    this.total = 0;
    this.shortest = Infinity;
    this.longest = 0;
    for (let i = 0, k = 0; k < count; i++) {
      if (!this.matches(i) || kind[i] === NEVER_FOUND) continue;
      const d = dur[i];
      this.ids[k++] = i;
      this.total += d;
      this.sums[k] = this.total;
      if (d < this.shortest) this.shortest = d;
      if (d > this.longest) this.longest = d;
    }
  }

  /** @param {number} i */
  matches(i) {
    const { name, dur } = this.store;
    return this.hits[name[i]] === 1 && dur[i] >= this.least && dur[i] <= this.most;
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
    const count = `Matches: ${n.toLocaleString("en")}`;
    if (n === 0) return count;
    const at = this.current >= 0 ? ` (at ${this.current + 1})` : "";
    const range = `${durationText(this.shortest)}..${durationText(this.longest)}`;
    const { start } = this.store;
    const from = seekStart(start, this.ids, 0, n, view.t0);
    const to = seekStart(start, this.ids, from, n, view.t1);
    const seen = to - from === n ? ""
      : `; in sight ${(to - from).toLocaleString("en")}, ${durationText(this.sums[to] - this.sums[from])}`;
    return `${count}${at}, total ${durationText(this.total)} [${range}]${seen}`;
  }
}
