// SPDX-License-Identifier: BSD-3-Clause
// Layers drawn in addition to execution, and what is listed; each has a menu of its states.

import { valueOf } from "../data/format.js";
import { isAbsent, isIdle, isKernel } from "../data/kind.js";
import { recorderThreads } from "../data/recorder.js";
import { foldedThreads, foldOf, foldsOf, isFolded, isOfThreads } from "../data/groups.js";
import { ORDERS } from "../data/order.js";
import { FLAG, Kind } from "../data/tables.js";
import { roomOfBars } from "./bars.js";
import { FREQ_HEIGHT, SAMPLES_HEIGHT } from "./strips.js";
import { byId, textElement } from "../dom.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Group} from "../data/groups.js"
 * @import {Lane} from "../data/rows.js"
 * @import {View} from "../view/view.js"
 */

/** Frequencies with a range narrower than this, in MHz, are not shown at first. */
const FREQ_RANGE_MIN = 9;

/**
 * A switch: its states, the first of which draws most; `state` is the index of the current one.
 * @typedef {{id: string, title: string, name: string, states: string[], state: number}} Layer
 */

export class Layers {
  /** @param {{store: Store, groups: Group[], marks: Lane, view: View}} parts @param {() => void} changed */
  constructor({ store, groups, marks, view }, changed) {
    this.store = store;
    this.groups = groups;
    this.view = view;
    this.changed = changed;
    const { kinds } = store;
    this.freqRange = rangeOf(store, groups[0].freq.ids);
    const slow = this.freqRange.max - this.freqRange.min < FREQ_RANGE_MIN;
    const counters = store.meta.flags & FLAG.COUNTERS;
    const counted = counters === FLAG.IPC ? "IPC" : counters === FLAG.LLC ? "LLC" : "IPC, LLC";
    /** @type {[boolean, Layer][]} */
    const all = [
      [true, { id: "names", name: "Names", title: "Inside spans; also of each thread where it first runs in sight; of all spans", states: ["inside", "threads", "all"], state: 0 }],
      [marks.ids.length > 0, { id: "marks", name: "Marks", title: "All, text (a, c), numbers (b, d), none", states: ["all", "a c", "b d", "off"], state: 0 }],
      [groups[1].bars.ids.length > 0, { id: "locks", name: kinds.has(Kind.LOCK) ? "Locks" : "Parts", title: "Locks held and tried, and parts of programs, on the rows of threads", states: ["on", "off"], state: 0 }],
      [kinds.has(Kind.FREQ), { id: "freq", name: "Frequency", title: "Of each CPU, below its row", states: ["on", "off"], state: slow ? 1 : 0 }],
      [kinds.has(Kind.SAMPLE), { id: "samples", name: "Samples", title: "Samples of the program counter above the rows of CPUs", states: ["busy", "idle", "off"], state: 0 }],
      [counters !== 0, { id: "counters", name: counted, title: "Instructions per cycle, cache misses: of all, of the kernel, of user code", states: ["all", "kernel", "user", "off"], state: 0 }],
      [true, { id: "rows", name: "Rows", title: "Those with anything in sight; all, where they are; those on which something runs in sight; those in sight but the kernel's threads", states: ["in sight", "all", "that run", "programs"], state: 0 }],
    ];
    all.push([groups[1].keys.length > 1, { id: "fold", name: "Fold", title: "One row for several threads: none; one for all kernel threads; one for each process, control group, machine", states: ["none", ...foldsOf(store)], state: 0 }]);
    all.push([groups[1].keys.length > 1, { id: "order", name: "Order", title: "The order of rows: by number, by CPU time in sight, by when they first ran, by name, by process", states: [...ORDERS], state: 0 }]);
    all.push([recorderThreads(store).includes(1), { id: "recorder", name: "Recorder", title: "The recorder\u2019s own threads in Start here, totals and tables", states: ["left out", "listed"], state: 0 }]);
    this.list = all.flatMap(([has, layer]) => (has ? [layer] : []));
    /** The initial states when the page opens. */
    this.first = this.list.map((layer) => layer.state);
    this.apply();
  }

  /** The name of a layer's state, "off" if the trace has no data for the layer. @param {string} id */
  stateOf(id) {
    const layer = this.list.find((l) => l.id === id);
    return layer ? layer.states[layer.state] : "off";
  }

  /** @param {string} id @param {number} step 1 or -1 */
  cycle(id, step) {
    const layer = this.list.find((l) => l.id === id);
    if (layer) this.set(layer, (layer.state + step + layer.states.length) % layer.states.length);
  }

  /** Sets a layer to a state, both by name. @param {string} id @param {string} state */
  choose(id, state) {
    const layer = this.list.find((l) => l.id === id);
    if (layer) this.set(layer, layer.states.indexOf(state));
  }

  /** @param {Layer} layer @param {number} state */
  set(layer, state) {
    layer.state = state;
    this.apply();
    this.show();
    this.view.order(this.groups);
    this.view.layOut(this.groups);
    this.changed();
  }

  /** Gives rows the room that the layers need. */
  apply() {
    const { groups, view } = this;
    view.keepsRows = this.stateOf("rows") === "all";
    view.onlyRunning = this.stateOf("rows") === "that run";
    view.onlyPrograms = this.stateOf("rows") === "programs";
    view.orderedBy = this.stateOf("order");
    const fold = foldOf(this.stateOf("fold"));
    if (fold && groups[2]?.name !== fold.name) groups.splice(2, isFolded(groups[2]) ? 1 : 0, foldedThreads(this.store, groups[1], fold.by));
    for (const group of groups) group.hidden = fold ? group.name === "PID" : isFolded(group);
    const cpus = groups[0];
    const sampled = this.stateOf("samples") === "off" ? 0 : SAMPLES_HEIGHT;
    cpus.roomAbove = () => sampled;
    cpus.roomBelow = this.stateOf("freq") === "off" ? 0 : FREQ_HEIGHT;
    const withBars = this.stateOf("locks") !== "off";
    for (const group of groups.filter(isOfThreads)) group.roomAbove = (row, room) => (withBars ? roomOfBars(group, row, room) : 0);
  }

  /** True if marks with this letter are drawn. @param {string} letter */
  showsMark(letter) {
    const state = this.stateOf("marks");
    return state === "all" || state.includes(letter);
  }

  /** True if a sample is drawn: the layer shows either those of threads or those of idle CPUs. @param {number} i */
  showsSample(i) {
    const { pid, pids } = this.store;
    return (pids[pid[i]] > 0) === (this.stateOf("samples") === "busy");
  }

  /** True if counters are drawn on spans of a kind. @param {number} kind */
  showsCounters(kind) {
    const state = this.stateOf("counters");
    if (isIdle(kind) || isAbsent(kind)) return false;
    return state === "all" || (state === "kernel" && isKernel(kind)) || (state === "user" && kind === Kind.USER);
  }

  /** Makes the menus. @param {HTMLElement} element */
  fill(element) {
    element.replaceChildren(...this.list.map((layer) => {
      const label = textElement("label", layer.name);
      const select = document.createElement("select");
      select.id = `layer-${layer.id}`;
      label.title = layer.title;
      select.append(...layer.states.map((state) => textElement("option", state)));
      select.addEventListener("change", () => this.set(layer, select.selectedIndex));
      label.append(select);
      return label;
    }));
    this.show();
  }

  /** Updates the menus to the current states. */
  show() {
    for (const layer of this.list) {
      const select = byId(`layer-${layer.id}`);
      if (select) select.selectedIndex = layer.state;
    }
  }

  /** The states that differ from the initial ones, for the address: `marks.3-freq.1`. */
  text() {
    const changed = this.list.filter((layer, k) => layer.state !== this.first[k]);
    return changed.map((layer) => `${layer.id}.${layer.state}`).join("-");
  }

  /** Takes the states from an address. @param {string} text */
  take(text) {
    const named = new Map(text.split("-").map((part) => /** @type {[string, string]} */ (part.split("."))));
    for (const [k, layer] of this.list.entries()) {
      const state = Number(named.get(layer.id) ?? this.first[k]);
      layer.state = layer.states[state] === undefined ? this.first[k] : state;
    }
    this.apply();
    this.show();
  }
}

/** The smallest and largest argument of the spans. @param {Store} store @param {Uint32Array} ids */
function rangeOf(store, ids) {
  let min = Infinity;
  let max = -Infinity;
  for (const i of ids) {
    const value = valueOf(store.arg[i]) ?? 0;
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  return { min, max };
}
