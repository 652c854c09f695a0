// SPDX-License-Identifier: BSD-3-Clause
// The whole call, or fault, that the selected span is a piece of: in words, and as what is selected.

import { callAround } from "../data/calls.js";
import { countText, durationText, secondsText, shownName } from "../data/format.js";
/**
 * @import {Call} from "../data/calls.js"
 * @import {Store} from "../data/decode.js"
 * @import {App} from "../main.js"
 */

/** What is to be said about a call, beside its piece: pairs of what and value. @param {Store} store @param {Call} call @returns {[string, string][]} */
export function linesOfCall({ names }, { pieces, from, to, own, cut, waits }) {
  const waited = [...waits].sort((a, b) => b[1] - a[1]).map(([name, time]) => /** @type {[string, string]} */ ([shownName(names[name]), durationText(time)]));
  return [
    ["Whole call", `${durationText(to - from)} from ${secondsText(from)} s, in ${countText(pieces.length, "piece")}`],
    ["Own time", durationText(own)], ...(cut > 0 ? [/** @type {[string, string]} */ (["What cut in", durationText(cut)])] : []), ...waited,
  ];
}

/** The call that the selected span is a piece of, unless it is all of it. @param {App} app */
export function callOfSelected({ store, groups, selected }) {
  const call = selected < 0 ? null : callAround(store, groups[1], selected);
  return call && call.pieces.length > 1 ? call : null;
}

/** Selects all of the call that the selected span is a piece of, and brings it into sight. @param {App} app */
export function selectCall(app) {
  const call = callOfSelected(app);
  if (!call) return;
  app.call = call;
  // All of it lies on one row only among threads.
  app.home = app.groups[1];
  app.fitSelection();
  app.showDetails();
}

/** Selects all of the call that a span is a piece of, by that span, and brings it into sight. @param {App} app @param {number} i */
export function goToCall(app, i) {
  app.select(i);
  app.call = callOfSelected(app);
  if (app.call) app.home = app.groups[1];
  app.bringIntoSight(i);
}
