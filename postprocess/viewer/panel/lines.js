// SPDX-License-Identifier: BSD-3-Clause
// The lines above and below the picture: the matches, the visible range and its base, and the span under the pointer.

import { clockText, durationText, spanText } from "../data/format.js";
import { Kind } from "../data/tables.js";
import { explainedName } from "../data/words.js";
import { behindBegin } from "../view/axis.js";
import { TimeScale } from "../view/timescale.js";
import { byId } from "../dom.js";
/**
 * @import {Hit} from "../draw/hit.js"
 * @import {App} from "../main.js"
 */

/** All times as visible, for rows that do not share their time. */
const ALL_TIME = new TimeScale(-Infinity, Infinity, 1);

/** Updates the lines about the view and the matches. @param {App} app */
export function showLines({ axis, view, search, groups }) {
  const base = byId("basetime");
  base.textContent = axis.baseText;
  base.title = `${axis.baseTitle === "" ? "" : `${axis.baseTitle} \u2014 `}Let each row count from its own start, to compare them (O)`;
  base.ariaPressed = String(view.relative);
  for (const id of ["arcs", "ipis"]) byId(id).disabled = view.relative;
  byId("matches").textContent = byId("matches").title = search.text(view.relative ? ALL_TIME : view);
  const closed = search.closedHomes(groups);
  byId("open-homes").hidden = closed.length === 0;
  byId("open-homes").textContent = `Show in ${closed.map((group) => group.title).join(" and ")}`;
  byId("range").textContent = durationText(view.t1 - view.t0);
}

/** Shows the span under the pointer. @param {App} app @param {Hit | null} hit */
export function showHover({ store, view }, hit) {
  const others = hit && hit.others > 0 ? `   (and ${hit.others.toLocaleString("en")} more in this pixel)` : "";
  const behind = hit?.item && view.relative ? `   ${behindBegin(store, hit.i, hit.item.group)}` : "";
  // Arcs and the like describe their ends instead.
  const why = hit && store.kind[hit.i] <= Kind.WAIT ? explainedName(store.names[store.name[hit.i]]) : "";
  byId("hover").textContent = hit ? spanText(store, hit.i) + (why === "" ? "" : `   ${why}`) + behind + others : "";
  byId("hover").title = hit ? clockText(store.meta.tracebase, store.start[hit.i], 8) : "";
}
