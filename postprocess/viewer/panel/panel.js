// SPDX-License-Identifier: BSD-3-Clause
// The panel on the right: it takes its room from the end of what is in sight, and nothing in the picture moves.

import { byId, pointOf } from "../dom.js";
/** @import {App} from "../main.js" */

/** Width of the panel at least, and pixels that a key moves its edge. */
const PANEL_MIN = 200;
const PANEL_STEP = 24;

/** Does what may change the panel's size; every time stays where it is in the picture. @param {App} app @param {() => void} change */
export function changePanel(app, change) {
  const { view } = app;
  const { t0, t1, scale } = view;
  const panel = byId("details");
  const before = panel.offsetWidth;
  change();
  if (panel.offsetWidth === before || !app.takeSize()) return;
  const span = view.width / scale;
  // What was selected where the panel is now stays in sight.
  const covered = app.selected >= 0 && app.placeOf(app.selected)[0] >= t0 + span;
  if (covered) view.show(t1 - span, t1);
  else view.show(t0, t0 + span);
  app.viewChanged();
}

/** Its edge is dragged, or moved by the arrow keys. @param {App} app @param {HTMLElement} edge */
export function listenToPanel(app, edge) {
  const panel = byId("details");
  const widen = (/** @type {number} */ by) => changePanel(app, () => {
    const max = byId("main").clientWidth - byId("labels").clientWidth - PANEL_MIN;
    panel.style.width = `${Math.max(Math.min(panel.offsetWidth + by, max), PANEL_MIN)}px`;
  });
  edge.addEventListener("pointerdown", (e) => edge.setPointerCapture(e.pointerId));
  edge.addEventListener("pointermove", (e) => edge.hasPointerCapture(e.pointerId) && widen(-pointOf(e, edge).x));
  edge.addEventListener("dblclick", () => changePanel(app, () => panel.style.removeProperty("width")));
  edge.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: PANEL_STEP, ArrowRight: -PANEL_STEP }[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    widen(by);
  });
}
