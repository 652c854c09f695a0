// SPDX-License-Identifier: BSD-3-Clause
// The whole call, fault, interrupt or bottom half that the selected span is a piece of: in words, and as what is selected.

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

/** Pairs of what, which may lead somewhere, and value. @typedef {[string | Node, string][]} Lines */

/** What a system call returned, with its number if it has a name, if it did. @param {Store} store @param {number} i its last piece @returns {Lines} */
export function linesOfReturn(store, i) {
  const returned = returnText(store, i);
  const value = String(valueOf(store.ret[i]));
  return returned === null ? [] : [["Returned", returned === value || returned.startsWith("0x") ? returned : `${returned} (${value})`]];
}

/** From when to when a call is, and how long. @param {Call} call @returns {Lines} */
export const timesOfCall = ({ from, to }) => /** @type {Lines} */ ([["Start", `${secondsText(from)} s`], ["End", `${secondsText(to)} s`], ["Duration", durationText(to - from)]]);

/** What a call is made of: its own time, what cut in, what it waited for, which leads to all such waits. @param {App} app @param {Call} call @returns {Lines} */
export function partsOfCall(app, { pieces, own, cut, waits }) {
  const { names } = app.store;
  const times = (/** @type {Map<number, number>} */ of) => [...of].sort((a, b) => b[1] - a[1]);
  const cuts = times(cut).map(([name, time]) => `${wordedName(names[name])} ${durationText(time)}`).join(", ");
  const waited = (/** @type {string} */ name) => actionButton(`Waited for ${wordedName(name)}`, [explainedName(name), "click to search all of these"].filter((text) => text !== "").join("; "),
    () => app.find({ ...app.search.query, pattern: exactly(name), invert: false }));
  return [
    ["Own time", `${durationText(own)}, in ${countText(pieces.length, "piece")}`], .../** @type {Lines} */ (cuts === "" ? [] : [["What cut in", cuts]]),
    ...times(waits).map(([name, time]) => /** @type {[Node, string]} */ ([waited(names[name]), durationText(time)])),
  ];
}

/** What is to be said about a call, beside its piece. @param {App} app @param {Call} call @returns {Lines} */
export function linesOfCall(app, call) {
  const { store } = app;
  const last = call.pieces[call.pieces.length - 1];
  const ends = [...timesOfCall(call), ...linesOfReturn(store, last)].map(([what, value]) => /** @type {[string, string]} */ ([`Whole ${wordOfCall(store.kind[last])}: ${String(what).toLowerCase()}`, value]));
  return [...ends, ...partsOfCall(app, call)];
}

/** The call that the selected span is a piece of, unless it is all of it. @param {App} app */
export function callOfSelected({ store, groups, selected }) {
  const call = selected < 0 ? null : wholeAround(store, groups, selected);
  return call && call.pieces.length > 1 ? call : null;
}

/** The group on whose rows all of a call lies. @param {App} app @param {Call} call */
const homeOfCall = ({ store, groups }, { pieces: [first] }) => groups[staysOnCpu(store.kind[first]) ? 0 : 1];

/** Selects all of the call that the selected span is a piece of, and brings it into sight. @param {App} app */
export function selectCall(app) {
  const call = callOfSelected(app);
  if (!call) return;
  app.call = call;
  app.home = homeOfCall(app, call);
  app.fitSelection();
  app.showDetails();
}

/** Selects all of the call that a span is a piece of, by that span, and brings it into sight. @param {App} app @param {number} i */
export function goToCall(app, i) {
  app.select(i);
  app.call = callOfSelected(app);
  if (app.call) {
    app.home = homeOfCall(app, app.call);
    app.showDetails();
  }
  app.bringIntoSight(i);
}
