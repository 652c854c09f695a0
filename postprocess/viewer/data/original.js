// SPDX-License-Identifier: BSD-3-Clause
// Imports what the original's viewer kept in its JSON: its callouts as notes, its saved views as views.

import { shownName, valueOf } from "./format.js";
import { Kind } from "./tables.js";
/** @import {Store} from "./decode.js" */

/** The original's groups, in the order of its lists. */
const ORIGINAL_GROUPS = Object.freeze(["CPU", "PID", "RPC", "RES"]);
/** Pixels of a row in the original, the unit of a callout's distance above or below its span. */
const ORIGINAL_ROW = 24;

/** The notes and views that the trace brought from the original. @param {Store} store */
export function ofOriginal(store) {
  // The first view is the state in which the page was left.
  const views = store.meta.savedViews.slice(1).map(([name, state], k) => viewOfOriginal(k + 1, name, state));
  return { views, notes: calloutsOf(store) };
}

/** @param {number} number @param {string} name @param {Record<string, any>} state */
function viewOfOriginal(number, name, state) {
  const open = ORIGINAL_GROUPS.filter((_, k) => state.groupcompress?.[k] > 0);
  const text = String(state.search_text ?? "");
  const parts = new URLSearchParams({ t: `${state.xleft_ts}..${state.xright_ts}`, open: open.join() });
  // A time typed in order to go there is not a search.
  if (text !== "" && !/^[\d:.]+[-+]*$/.test(text)) parts.set("find", text);
  if (parts.has("find") && state.searchnot_value === 1) parts.set("not", "1");
  // Its names are HTML: a circled digit, or a text.
  const plain = name.replace(/&#x([0-9a-f]{1,6});/gi, (_, code) => String.fromCodePoint(Math.min(parseInt(code, 16), 0x10ffff)));
  return { number, name: shownName(plain), address: `#${parts}` };
}

/** @param {Store} store */
function calloutsOf(store) {
  const { n, kind, start, cpu, cpus, arg, ret, name, names } = store;
  const notes = [];
  if (!store.kinds.has(Kind.CALLOUT)) return [];
  for (let i = 0; i < n; i++) {
    if (kind[i] !== Kind.CALLOUT) continue;
    const group = cpus[cpu[i]] >= 0 ? "CPU" : "PID";
    notes.push({ i, group, from: start[i], to: start[i], dx: valueOf(arg[i]) ?? 0, dy: (valueOf(ret[i]) ?? 0) * ORIGINAL_ROW, text: names[name[i]] });
  }
  return notes;
}
