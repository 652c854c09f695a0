// SPDX-License-Identifier: BSD-3-Clause
// Hit testing: finds the span under a point of the picture.

import { isIdle } from "../data/kind.js";
import { firstInLane, firstInRow, seekStart } from "../data/rows.js";
import { Summary } from "../data/tree.js";
import { nearArc } from "./arcs.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {Item, View} from "../view/view.js"
 * @import {Overlay} from "./overlay.js"
 * @import {Picture} from "./picture.js"
 */

/** The drawn picture and its sources. @typedef {{store: Store, view: View, picture: Picture, overlay: Overlay}} Drawing */
/**
 * `i` is a span; `others` is the number of further spans that share its pixel.
 * @typedef {{i: number, item: Item | null, others: number}} Hit
 */

/**
 * The span under a point in CSS pixels: items drawn over the picture first, then samples and frequency, execution,
 * arcs, waits.
 * @param {Drawing} drawing
 * @param {number} x
 * @param {number} y
 * @returns {Hit | null}
 */
export function hitAt(drawing, x, y) {
  const { view, overlay } = drawing;
  const item = view.itemAt(y);
  const spot = overlay.spots.findLast((s) => x >= s.x0 && x <= s.x1 && y >= s.y0 && y <= s.y1);
  if (spot) return { i: spot.i, item, others: 0 };
  const row = item !== null && item.row >= 0 ? item : null;
  const strip = row ? stripAt(drawing, row, x, y) : null;
  if (strip) return strip;
  const executed = row ? executionAt(drawing, row, x) : null;
  if (executed && !isIdle(drawing.store.kind[executed.i])) return executed;
  const arc = overlay.arcs.drawn.find((a) => nearArc(a, x, y));
  if (arc) return { i: arc.i, item, others: 0 };
  return executed ?? (row ? waitAt(drawing, row, x) : null);
}

/**
 * The execution on a row at x; if several spans share the pixel, the longest of the kernel, else of user code, else any.
 * @param {Drawing} drawing
 * @param {Item} item
 * @param {number} x
 * @returns {Hit | null}
 */
function executionAt(drawing, item, x) {
  const { store, view } = drawing;
  const { exec, tree } = item.group;
  const times = view.on(item);
  const end = exec.first[item.row + 1];
  const ratio = drawing.picture.ratio;
  const from = times.time(Math.floor(x * ratio) / ratio);
  const to = times.time((Math.floor(x * ratio) + 1) / ratio);
  const k = firstInRow(store, exec, item.row, from);
  if (k >= end || store.start[exec.ids[k]] >= to) return null;
  const next = seekStart(store.start, exec.ids, k + 1, end, to);
  const middle = times.time(x);
  for (let at = k; at < next; at++) {
    const i = exec.ids[at];
    const wide = store.dur[i] * view.scale * ratio >= 1;
    if (wide && store.start[i] <= middle && store.start[i] + store.dur[i] > middle) return { i, item, others: 0 };
    if (at - k > 8) break;
  }
  const { kernelSpan, userSpan } = tree.query(k, next, new Summary());
  const i = kernelSpan >= 0 ? kernelSpan : userSpan >= 0 ? userSpan : exec.ids[k];
  return { i, item, others: next - k - 1 };
}

/** @param {Drawing} drawing @param {Item} item @param {number} x @returns {Hit | null} */
function waitAt(drawing, item, x) {
  const { store, view } = drawing;
  const { waits } = item.group;
  const times = view.on(item);
  const from = times.time(x - 1);
  const to = times.time(x + 1);
  for (let k = firstInLane(waits, item.row, from); k < waits.first[item.row + 1]; k++) {
    const i = waits.ids[k];
    if (store.start[i] >= to) break;
    if (store.start[i] + store.dur[i] > from) return { i, item, others: 0 };
  }
  return null;
}

/** The sample above execution or the frequency below it. @param {Drawing} drawing @param {Item} item @param {number} x @param {number} y @returns {Hit | null} */
function stripAt(drawing, item, x, y) {
  const { view, store } = drawing;
  const above = y < view.bodyTop(item);
  const below = y >= view.bodyTop(item) + view.bodyHeight(item);
  if (!above && !below) return null;
  const lane = above ? item.group.samples : item.group.freq;
  const time = view.on(item).time(x);
  const k = firstInLane(lane, item.row, time);
  if (k === lane.first[item.row + 1] || store.start[lane.ids[k]] > time) return null;
  return { i: lane.ids[k], item, others: 0 };
}
