// SPDX-License-Identifier: BSD-3-Clause
// Pointer and wheel on the strip above the picture.

import { showWhole } from "../panel/views.js";
import { pointOf, wheelPixels } from "../dom.js";
/** @import {App} from "../main.js" */

/** Handles click, drag, wheel and double click on the strip. @param {App} app @param {HTMLCanvasElement} canvas */
export function listenToOverview(app, canvas) {
  const { overview, view } = app;
  /** The offset of the visible range's middle from the pointer while dragging. @type {number | null} */
  let grip = null;
  const centre = (/** @type {number} */ x) => {
    overview.centre(x);
    app.viewChanged();
  };
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0 || view.relative) return;
    canvas.setPointerCapture(e.pointerId);
    const [x0, x1] = overview.windowEdges();
    const { x } = pointOf(e, canvas);
    const inside = x >= x0 && x <= x1;
    grip = inside ? (x0 + x1) / 2 - x : 0;
    if (!inside) centre(x);
  });
  canvas.addEventListener("pointermove", (e) => grip !== null && centre(pointOf(e, canvas).x + grip));
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (grip = null));
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    view.zoom(Math.exp(-wheelPixels(e, view.height).y * 0.0025), view.width / 2);
    app.viewChanged();
  }, { passive: false });
  canvas.addEventListener("dblclick", () => showWhole(app));
}
