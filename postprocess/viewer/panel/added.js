// SPDX-License-Identifier: BSD-3-Clause
// What was added to the page: its notes and its saved views, as a copy of the page or the browser's history keeps them.

import { checkedText } from "../data/decode.js";
import { showBanner } from "./banner.js";
import { byId } from "../dom.js";
/** @import {App} from "../main.js" */

/** The page as it came. */
export let pristine = document.documentElement;

/** Keeps the page as it came, once it is there and before anything is drawn: the texts are shared, so this costs next to nothing. */
export async function keepPristine() {
  while (document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  pristine = /** @type {HTMLElement} */ (document.documentElement.cloneNode(true));
}

/** What was added to the page and is in no address. @param {App} app */
export const addedTo = (app) => ({ views: app.views.list(), notes: app.notes.list() });

/** Takes over what a copy of the page, or this page before it was loaded anew, had been given. @param {App} app @param {any} added */
export function takeAdded(app, added) {
  app.views.load(added?.views);
  app.notes.load(added?.notes);
}

/** What a saved copy brought along. @param {App} app @returns {any} */
export function broughtAlong(app) {
  try {
    return JSON.parse(checkedText(pristine.querySelector("#ku-added")));
  } catch {
    app.store.meta.quality.push("the notes and views in the page are damaged; skipped");
    showBanner(app, byId("banner"));
    return null;
  }
}
