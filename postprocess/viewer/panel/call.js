// SPDX-License-Identifier: BSD-3-Clause
// The whole call, fault, interrupt or bottom half that the selected span is a piece of: its description, and its selection.

import { wholeAround } from "../data/around.js";
import { countText, durationText, returnText, secondsText, valueOf } from "../data/format.js";
import { staysOnCpu } from "../data/kind.js";
import { exactly } from "../data/search.js";
import { wordOfCall } from "../data/sentence.js";
import { explainedName, wordedName } from "../data/words.js";
import { actionButton } from "../dom.js";
/**
 * @import {Call} from "../data/around.js"
 * @import {Store} from "../data/decode.js"
 * @import {App} from "../main.js"
 */

/** Pairs of a label, which may be a link, and a value. @typedef {[string | Node, string][]} Lines */

/** The returned value of a system call, with its number if it has a name; empty if it did not return. @param {Store} store @param {number} i its last piece @returns {Lines} */
export function linesOfReturn(store, i) {
  const returned = returnText(store, i);
  const value = String(valueOf(store.ret[i]));
  return returned === null ? [] : [["Returned", returned === value || returned.startsWith("0x") ? returned : `${returned} (${value})`]];
}

/** The start, end and duration of a call. @param {Call} call @returns {Lines} */
export const timesOfCall = ({ from, to }) => /** @type {Lines} */ ([["Start", `${secondsText(from)} s`], ["End", `${secondsText(to)} s`], ["Duration", durationText(to - from)]]);

/** The parts of a call: its own time, interruptions, and waits, whose labels search for all such waits. @param {App} app @param {Call} call @returns {Lines} */
export function partsOfCall(app, { pieces, own, cut, waits }) {
  const { names } = app.store;
  const times = (/** @type {Map<number, number>} */ of) => [...of].sort((a, b) => b[1] - a[1]);
  const cuts = times(cut).map(([name, time]) => `${wordedName(names[name])} ${durationText(time)}`).join(", ");
  const waited = (/** @type {string} */ name) => actionButton(`Waited for ${wordedName(name)}`, [explainedName(name), "click to search all of these"].filter((text) => text !== "").join("; "),
    () => app.find({ ...app.search.query, pattern: exactly(name), invert: false }));
  return [
    ["Own time", `${durationText(own)}, in ${countText(pieces.length, "piece")}`], .../** @type {Lines} */ (cuts === "" ? [] : [["Interrupted by", cuts]]),
    ...times(waits).map(([name, time]) => /** @type {[Node, string]} */ ([waited(names[name]), durationText(time)])),
  ];
}

/** The lines about a call that follow those about its piece. @param {App} app @param {Call} call @returns {Lines} */
export function linesOfCall(app, call) {
  const { store } = app;
  const last = call.pieces[call.pieces.length - 1];
  const ends = [...timesOfCall(call), ...linesOfReturn(store, last)].map(([what, value]) => /** @type {[string, string]} */ ([`Whole ${wordOfCall(store.kind[last])}: ${String(what).toLowerCase()}`, value]));
  return [...ends, ...partsOfCall(app, call)];
}

/** The call that the selected span is a piece of, unless it is the only piece. @param {App} app */
export function callOfSelected({ store, groups, selected }) {
  const call = selected < 0 ? null : wholeAround(store, groups, selected);
  return call && call.pieces.length > 1 ? call : null;
}

/** The group that has all of a call on one row. @param {App} app @param {Call} call */
const homeOfCall = ({ store, groups }, { pieces: [first] }) => groups[staysOnCpu(store.kind[first]) ? 0 : 1];

/** Selects the whole call that the selected span is a piece of, and scrolls it into view. @param {App} app */
export function selectCall(app) {
  const call = callOfSelected(app);
  if (!call) return;
  app.call = call;
  app.home = homeOfCall(app, call);
  app.fitSelection();
  app.showDetails();
}

/** Selects a span and the whole call that it is a piece of, and scrolls it into view. @param {App} app @param {number} i */
export function goToCall(app, i) {
  app.select(i);
  app.call = callOfSelected(app);
  if (app.call) {
    app.home = homeOfCall(app, app.call);
    app.showDetails();
  }
  app.bringIntoSight(i);
}
