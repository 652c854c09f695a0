// SPDX-License-Identifier: BSD-3-Clause
// Widths of texts, each measured once, and the beginnings of texts that fit.

/** Maximum number of cached widths. */
const WIDTHS_MAX = 20000;

export class Lettering {
  /** @param {CanvasRenderingContext2D} context must have the font that a size stands for whenever a width is requested */
  constructor(context) {
    this.context = context;
    /** @type {Map<string, number>} */
    this.widths = new Map();
  }

  /** Clears the cache. */
  clear() {
    this.widths.clear();
  }

  /**
   * As much of a text as fits, or an empty text.
   * @param {string} text
   * @param {number} room
   * @param {number} size size of the current font
   */
  fit(text, room, size) {
    const width = this.widthOf(text, size);
    if (width <= room) return text;
    const keep = Math.floor((text.length * (room - size * 0.8)) / width);
    return keep >= 2 ? `${text.slice(0, keep)}\u2026` : "";
  }

  /** @param {string} text @param {number} size */
  widthOf(text, size) {
    const key = `${size} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > WIDTHS_MAX) this.widths.clear();
      width = this.context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }
}
