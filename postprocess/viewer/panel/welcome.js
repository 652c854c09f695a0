// SPDX-License-Identifier: BSD-3-Clause
// A page that is opened for the first time: threads are open if CPUs leave room for them, and a line under the picture
// explains how to read it.

import { byId, closeButton, textElement } from "../dom.js";
/** @import {App} from "../main.js" */

/** Minimum number of rows of threads that must fit. */
const ROWS_MIN = 6;
/** The key in local storage for the lines that have been seen. */
const SEEN_KEY = "kutrace-callouts";

/** How to read the picture. */
const CALLOUTS = Object.freeze([
  "Strip on top: the whole trace, orange user code, green kernel.",
  "Height: a thin line is idle, the middle user code, full height the kernel.",
  "Click anything for its details; L explains the colours.",
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

/** True if the lines were seen before, on any page. */
function wereSeen() {
  // Without access to storage, assume that they were not.
  try {
    return localStorage.getItem(SEEN_KEY) !== null;
  } catch {
    return false;
  }
}

/** Shows the lines under the picture until they are closed; once the page is used, no other page shows them. @param {App} app */
export function showCallouts(app) {
  const place = byId("welcome");
  if (wereSeen() || app.store.n === 0) return;
  place.append(...CALLOUTS.map((text) => textElement("span", text, "callout")), closeButton(() => (place.hidden = true)));
  place.hidden = false;
  const used = () => {
    try {
      localStorage.setItem(SEEN_KEY, "1");
    } catch {
      // Without storage, they are shown next time.
    }
  };
  for (const sort of ["keydown", "pointerdown", "wheel"]) document.addEventListener(sort, used, { capture: true, passive: true, once: true });
}
