// SPDX-License-Identifier: BSD-3-Clause
// Highlighted rows: spans on a highlighted row keep their colour on every row; all others are grey.

import { kernelThreads } from "./groups.js";
import { WAIT_A } from "./kind.js";
import { recorderThreads } from "./recorder.js";
import { indexByRow, laneOf, putInstantsFirst } from "./rows.js";
import { Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Group} from "./groups.js"
 * @import {Lane} from "./rows.js"
 * @import {Search} from "./search.js"
 */

/** The common prefix of similar rows: the letters, underscores and dashes at the start of their labels. @param {string} label */
const prefixOf = (label) => /^[A-Za-z_-]*/.exec(label)?.[0] ?? "";

export class HighlightedRows {
  /** @param {Group[]} groups */
  constructor(groups) {
    this.groups = groups;
    /** Groups with highlighted rows. @type {Group[]} */
    this.having = [];
    /** Grows with every change. */
    this.version = 0;
  }

  get active() {
    return this.having.length > 0;
  }

  /** @param {Group} group @param {number} row */
  toggle(group, row) {
    this.set(group, [row], group.lit[row] === 0);
  }

  /** Toggles all rows whose labels share the prefix of this row's. @param {Group} group @param {number} row */
  toggleAlike(group, row) {
    const prefix = prefixOf(group.labels[row]);
    const rows = [...group.keys.keys()].filter((r) => prefixOf(group.labels[r]) === prefix);
    this.set(group, rows, group.lit[row] === 0);
  }

  /** @param {Group} group @param {number[]} rows @param {boolean} lit */
  set(group, rows, lit) {
    for (const row of rows) group.lit[row] = lit ? 1 : 0;
    group.litCount = group.lit.reduce((sum, one) => sum + one, 0);
    if (group.litCount === 0) group.onlyLit = false;
    this.having = this.groups.filter((g) => g.litCount > 0);
    this.version++;
  }

  clear() {
    for (const group of this.groups) this.set(group, [...group.keys.keys()], false);
  }

  /** True if a span keeps its colour. @param {number} i */
  shows(i) {
    if (this.having.length === 0) return true;
    for (const group of this.having) if (group.lit[group.rowOf(i)] === 1) return true;
    return false;
  }
}

/** Waits of a thread without work: for another task, for time to pass. */
const IDLE_WAITS = Object.freeze(["k", "t"].map((letter) => WAIT_A + letter.charCodeAt(0) - 97));

/** The spans that keep their colour: the matches of the search that are also on highlighted rows. */
export class Focus {
  /** @param {Store} store @param {Search} search @param {HighlightedRows} highlight @param {Group} threads */
  constructor(store, search, highlight, threads) {
    this.store = store;
    this.search = search;
    this.highlight = highlight;
    /** By place in the list of threads, 1 for those of the kernel and of the recorder. */
    this.quiet = recorderThreads(store);
    const rows = kernelThreads(store, threads);
    store.pids.forEach((pid, k) => (this.quiet[k] ||= rows[threads.rowOfKey.get(pid) ?? -1] ?? 0));
    this.version = highlight.version;
    /** @type {Map<Group, Lane>} */
    this.lanes = new Map();
  }

  get active() {
    return this.search.active || this.highlight.active;
  }

  /** @param {number} i */
  shows(i) {
    return this.search.shows(i) && this.highlight.shows(i);
  }

  /** True for the wait of a thread of the kernel, or of the recorder, that has nothing to do: drawn without a colour. @param {number} i */
  sleeps(i) {
    const { kind, event, events, pid } = this.store;
    return kind[i] === Kind.WAIT && this.quiet[pid[i]] === 1 && IDLE_WAITS.includes(events[event[i]]);
  }

  /** True if all spans of a row keep their colour. @param {Group} group @param {number} row */
  showsRow(group, row) {
    return !this.search.active && (group.lit[row] === 1 || !this.highlight.active);
  }

  /** The execution and waits on a group's rows that keep their colour. @param {Group} group @returns {Lane} */
  laneOf(group) {
    if (this.search.active || !this.highlight.active) return this.search.laneOf(group);
    if (this.version !== this.highlight.version) this.lanes.clear();
    this.version = this.highlight.version;
    let lane = this.lanes.get(group);
    if (!lane) this.lanes.set(group, (lane = this.collect(group)));
    return lane;
  }

  /** @param {Group} group @returns {Lane} */
  collect(group) {
    const { n, kind } = this.store;
    const rowOf = new Int32Array(n).fill(-1);
    for (let i = 0; i < n; i++) if (kind[i] <= Kind.WAIT && this.highlight.shows(i)) rowOf[i] = group.rowOf(i);
    const index = indexByRow(group.keys.length, rowOf);
    putInstantsFirst(this.store, index);
    return laneOf(this.store, index);
  }
}

/** Rows in the form of the address, in order: `PID.55-CPU.0`. @param {{group: Group, row: number}[]} rows */
export const rowsText = (rows) => rows.map(({ group, row }) => `${group.name}.${group.keys[row]}`).join("-");

/** The rows named in an address. @param {Group[]} groups @param {string} text */
export function rowsOfText(groups, text) {
  return text.split("-").flatMap((part) => {
    const [name, ...keys] = part.split(".");
    const group = groups.find((g) => g.name === name);
    return group ? keys.flatMap((key) => group.rowOfKey.get(Number(key)) ?? []).map((row) => ({ group, row })) : [];
  });
}

/** The highlighted rows in the form of the address: `CPU.0.2-PID.55`. @param {Group[]} groups */
export function litText(groups) {
  const lit = groups.filter((group) => group.litCount > 0);
  return lit.map((group) => [group.name, ...group.keys.filter((_, row) => group.lit[row] === 1)].join(".")).join("-");
}

/** Highlights the rows named in an address; `only` lists the groups that show nothing else. @param {HighlightedRows} highlight @param {string} text @param {string} only */
export function showLit(highlight, text, only) {
  highlight.clear();
  for (const part of text.split("-")) {
    const [name, ...keys] = part.split(".");
    const group = highlight.groups.find((g) => g.name === name);
    if (!group) continue;
    highlight.set(group, keys.flatMap((key) => group.rowOfKey.get(Number(key)) ?? []), true);
    group.onlyLit = !group.collapsed && group.litCount > 0 && only.split(",").includes(name);
  }
}
