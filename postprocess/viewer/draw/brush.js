// SPDX-License-Identifier: BSD-3-Clause
// The base of classes that draw over execution.

/**
 * @import {Store} from "../data/decode.js"
 * @import {Focus} from "../data/highlight.js"
 * @import {View} from "../view/view.js"
 * @import {Lettering} from "./lettering.js"
 * @import {Look} from "./look.js"
 */

/** @typedef {{store: Store, view: View, focus: Focus, look: Look, lettering: Lettering}} Parts */

export class Brush {
  /** @param {Parts} parts @param {CanvasRenderingContext2D} context */
  constructor({ store, view, focus, look, lettering }, context) {
    this.store = store;
    this.view = view;
    this.focus = focus;
    this.look = look;
    this.lettering = lettering;
    this.context = context;
  }
}
