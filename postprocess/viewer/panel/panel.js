// SPDX-License-Identifier: BSD-3-Clause
// The panel on the right: it takes its room from the end of the visible range, and nothing in the picture moves.

import { byId, pointOf } from "../dom.js";
/** @import {App} from "../main.js" */

/** Minimum width of the panel, and pixels by which a key moves its edge. */
const PANEL_MIN = 200;
const PANEL_STEP = 24;

/** Makes a change that may affect the panel's size; every time keeps its position in the picture. @param {App} app @param {() => void} change */
export function changePanel(app, change) {
  const { view } = app;
  const { t0, t1, scale } = view;
  const panel = byId("details");
  const before = panel.offsetWidth;
  change();
  if (panel.offsetWidth === before || !app.takeSize()) return;
  const span = view.width / scale;
  // A selected span where the panel is now stays visible.
  const covered = app.selected >= 0 && app.placeOf(app.selected)[0] >= t0 + span;
  if (covered) view.show(t1 - span, t1);
  else view.show(t0, t0 + span);
  app.viewChanged();
}

/** Handles dragging the panel's edge, and moving it by the arrow keys. @param {App} app @param {HTMLElement} edge */
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
