// SPDX-License-Identifier: BSD-3-Clause
// The menu of the look, and the effects of a change in it.

import { LOOK_PARTS } from "../draw/look.js";
import { showLegend } from "./legend.js";
import { byId } from "../dom.js";
/**
 * @import {LookPart} from "../draw/look.js"
 * @import {App} from "../main.js"
 */

/** @param {App} app */
export function listenToLook(app) {
  for (const part of LOOK_PARTS) {
    byId(`look-${part}`).addEventListener("change", () => {
      app.look.set(part, byId(`look-${part}`).value);
      lookChanged(app);
    });
  }
  for (const query of [app.look.dark, app.look.strong, app.look.forced]) query.addEventListener("change", () => lookChanged(app));
}

/** @param {App} app @param {LookPart} part @param {number} steps */
export function changeLook(app, part, steps) {
  app.look.step(part, steps);
  lookChanged(app);
}

/** Applies the current look and redraws. @param {App} app */
export function lookChanged(app) {
  app.look.apply();
  showLegend(app, byId("legend"));
  app.viewChanged();
}
