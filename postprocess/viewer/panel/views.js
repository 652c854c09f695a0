// SPDX-License-Identifier: BSD-3-Clause
// Saved views to return to, and the way back from recent jumps. A view is stored as its address.

import { rangeText } from "../view/axis.js";
import { actionButton, byId } from "../dom.js";
/**
 * @import {View} from "../view/view.js"
 * @import {App} from "../main.js"
 */

/** The number of views that have a key, and the maximum number of steps back. */
export const VIEWS_MAX = 9;
const PAST_MAX = 50;

/** @typedef {{name: string, address: string}} SavedView */

/**
 * The address of the current view, a function that shows another, and one to call when data stored with the address have changed.
 * @typedef {{now: () => string, show: (address: string) => void, changed: () => void}} Addresses
 */

export class Views {
  /** @param {View} view @param {Addresses} addresses */
  constructor(view, addresses) {
    this.view = view;
    this.addresses = addresses;
    /** Saved views by key, from 1. @type {(SavedView | undefined)[]} */
    this.saved = [];
    /** Addresses before the last jumps. @type {string[]} */
    this.past = [];
  }

  /** Saves the current view under a number, or under the first free one. @param {number} [number] */
  save(number = this.free) {
    const name = rangeText(this.view);
    if (number > 0 && number <= VIEWS_MAX) this.saved[number] = { name, address: this.addresses.now() };
    this.changed();
  }

  /** The first number without a view, or else the last number. */
  get free() {
    for (let number = 1; number <= VIEWS_MAX; number++) if (!this.saved[number]) return number;
    return VIEWS_MAX;
  }

  /** @param {number} number */
  restore(number) {
    const saved = this.saved[number];
    if (!saved) return;
    this.remember();
    this.addresses.show(saved.address);
  }

  /** Remembers the current view for the way back. */
  remember() {
    const address = this.addresses.now();
    if (this.past.at(-1) === address) return;
    this.past.push(address);
    if (this.past.length > PAST_MAX) this.past.shift();
    byId("back").disabled = false;
  }

  back() {
    const address = this.past.pop();
    byId("back").disabled = this.past.length === 0;
    if (address !== undefined) this.addresses.show(address);
  }

  /** The views in the form they are saved in. @returns {(SavedView & {number: number})[]} */
  list() {
    return this.saved.flatMap((view, number) => (view ? [{ number, ...view }] : []));
  }

  /** Loads saved views. @param {unknown} kept */
  load(kept) {
    this.saved = [];
    for (const view of Array.isArray(kept) ? kept : []) {
      if (!(view?.number >= 1 && view.number <= VIEWS_MAX) || typeof view.address !== "string") continue;
      this.saved[view.number] = { name: String(view.name), address: view.address };
    }
    this.show();
  }

  changed() {
    this.show();
    this.addresses.changed();
  }

  /** Updates the list of views in the menu. */
  show() {
    byId("view-list").replaceChildren(...this.list().map(({ number, name }) => {
      const line = document.createElement("li");
      const input = document.createElement("input");
      input.value = name;
      input.maxLength = 80;
      input.setAttribute("aria-label", `Name of view ${number}`);
      input.addEventListener("change", () => {
        const saved = this.saved[number];
        if (saved) saved.name = input.value;
        this.addresses.changed();
      });
      const go = actionButton(String(number), `Show view ${number}`, () => this.restore(number));
      const remove = actionButton("\u00d7", `Forget view ${number}`, () => {
        this.saved[number] = undefined;
        this.changed();
      });
      line.append(go, input, remove);
      return line;
    }));
  }
}

/** Shows the whole trace, with a way back. @param {App} app */
export function showWhole(app) {
  app.views.remember();
  app.view.showWhole();
  app.viewChanged();
}
