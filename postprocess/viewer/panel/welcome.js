// SPDX-License-Identifier: BSD-3-Clause
// A page that is opened for the first time: threads are open if CPUs leave room for them, and three callouts explain how
// to read the picture, until they are closed, once for all pages.

import { byId, closeButton, pointOf, textElement } from "../dom.js";
/** @import {App} from "../main.js" */

/** Minimum number of rows of threads that must fit. */
const ROWS_MIN = 6;
/** The key in local storage for closed callouts. */
const CLOSED_KEY = "kutrace-callouts";
/** Distance in pixels between a callout and its subject. */
const CALLOUT_AWAY = 8;

/** Callouts: the subject (the strip, a row, the legend), the heading and the text. @type {readonly [string, string, string][]} */
const CALLOUTS = Object.freeze([
  ["strip", "The whole trace", "Orange is user code, green the kernel, of all CPUs. The frame is what you see below: drag it, or zoom with the wheel or two fingers."],
  ["rows", "Height says who runs", "A thin line is an idle CPU, middle height a program\u2019s own code, full height the kernel. Click anything for its details."],
  ["legend", "Colour says what", "Each thread and each sort of kernel work has its colour. Point at an entry for what it means; click it to find where it is."],
]);

/** Opens the threads if CPUs leave room for them; if not all fit, those with most CPU time come first. @param {App} app */
export function openThreads({ groups, view, layers }) {
  const [cpus, threads] = groups;
  const { left, fits } = view.roomFor(cpus, threads);
  if (threads.keys.length === 0 || left < ROWS_MIN) return;
  threads.collapsed = false;
  if (!fits) layers.choose("order", "CPU time");
  else view.layOut(groups);
}

/** True if the callouts were closed before, on any page. */
function wereClosed() {
  // Without access to storage, assume that they were not.
  try {
    return localStorage.getItem(CLOSED_KEY) !== null;
  } catch {
    return false;
  }
}

/** Shows the callouts over the picture, unless they were closed before. @param {App} app */
export function showCallouts(app) {
  const layer = byId("callouts");
  if (wereClosed() || app.store.n === 0) return;
  const close = () => {
    layer.replaceChildren();
    layer.hidden = true;
    for (const sort of SORTS) document.removeEventListener(sort, used, true);
    try {
      localStorage.setItem(CLOSED_KEY, "1");
    } catch {
      // Without storage, they will be shown next time.
    }
  };
  const used = (/** @type {Event} */ e) => {
    if (!(e.target instanceof Node && layer.contains(e.target))) close();
  };
  const SORTS = ["keydown", "pointerdown", "wheel"];
  layer.hidden = false;
  layer.replaceChildren(...CALLOUTS.map(([about, head, text]) => {
    const callout = textElement("div", "", "callout");
    callout.dataset.about = about;
    callout.append(textElement("b", head), textElement("span", text));
    return callout;
  }));
  layer.querySelector("b")?.after(closeButton(close));
  placeCallouts(app, layer);
  for (const sort of SORTS) document.addEventListener(sort, used, { capture: true, passive: true });
}

/** Places each callout next to its subject. @param {App} app @param {HTMLElement} layer */
function placeCallouts({ view }, layer) {
  const placeOf = (/** @type {HTMLElement} */ element) => {
    const { x, y } = pointOf(/** @type {MouseEvent} */ ({ clientX: element.getBoundingClientRect().left, clientY: element.getBoundingClientRect().top }), layer);
    return { x, y };
  };
  const [strip, rows, legend] = /** @type {HTMLElement[]} */ ([...layer.children]);
  const plot = placeOf(byId("plot"));
  const second = view.items.filter((item) => item.row >= 0)[1] ?? view.items[view.items.length - 1];
  const below = placeOf(byId("strip")).y + byId("strip").offsetHeight + CALLOUT_AWAY;
  const set = (/** @type {HTMLElement} */ callout, /** @type {number} */ x, /** @type {number} */ y) => {
    callout.style.left = `${Math.max(Math.min(x, layer.clientWidth - callout.offsetWidth - CALLOUT_AWAY), CALLOUT_AWAY)}px`;
    callout.style.top = `${y}px`;
  };
  set(strip, plot.x + view.width * 0.08, below);
  const under = strip.offsetTop + strip.offsetHeight + CALLOUT_AWAY;
  set(rows, plot.x + view.width * 0.4, Math.max(plot.y + (second ? view.middle(second) : 0), under));
  set(legend, plot.x + view.width * 0.72, Math.max(placeOf(byId("legend")).y - legend.offsetHeight - CALLOUT_AWAY, rows.offsetTop + rows.offsetHeight + CALLOUT_AWAY));
}
