// SPDX-License-Identifier: BSD-3-Clause
// Additions to the page: its notes and its saved views, as stored in a copy of the page or in the browser's history.

import { checkedText } from "../data/decode.js";
import { showBanner } from "./banner.js";
import { byId } from "../dom.js";
/** @import {App} from "../main.js" */

/** The page in its original state. */
export let pristine = document.documentElement;

/** Copies the page in its original state, once it is complete and before anything is drawn: texts are shared, so this costs almost nothing. */
export async function keepPristine() {
  while (document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  pristine = /** @type {HTMLElement} */ (document.documentElement.cloneNode(true));
}

/** The additions to the page that are not part of an address. @param {App} app */
export const addedTo = (app) => ({ views: app.views.list(), notes: app.notes.list() });

/** Loads the additions of a saved copy of the page, or of this page before it was reloaded. @param {App} app @param {any} added */
export function takeAdded(app, added) {
  app.views.load(added?.views);
  app.notes.load(added?.notes);
}

/** The additions stored in a saved copy; null if they are damaged. @param {App} app @returns {any} */
export function broughtAlong(app) {
  try {
    return JSON.parse(checkedText(pristine.querySelector("#ku-added")));
  } catch {
    app.store.meta.quality.push("the notes and views in the page are damaged; skipped");
    showBanner(app, byId("banner"));
    return null;
  }
}
