// SPDX-License-Identifier: BSD-3-Clause
// The look of the page, independent of its contents: theme, colours, size of text, shape of the picture, fading, grid; and the action of
// the wheel.

import { byId } from "../dom.js";
import { Palette } from "./palette.js";

/** The values of each part of the look; the first is the default. */
export const LOOKS = Object.freeze({
  theme: ["auto", "light", "dark", "contrast"],
  colors: ["usual", "safe"],
  text: ["100", "115", "130", "150", "175", "200", "75", "90"],
  aspect: ["fill", "3:1", "2:1", "16:9", "4:3", "1:1"],
  fade: ["no", "yes"],
  grid: ["yes", "no"],
  wheel: ["zoom", "rows"],
});

/** @typedef {keyof typeof LOOKS} LookPart */
export const LOOK_PARTS = /** @type {LookPart[]} */ (Object.keys(LOOKS));

export class Look {
  constructor() {
    /** @type {Record<LookPart, string>} */
    this.parts = { theme: "auto", colors: "usual", text: "100", aspect: "fill", fade: "no", grid: "yes", wheel: "zoom" };
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.strong = matchMedia("(prefers-contrast: more)");
    this.forced = matchMedia("(forced-colors: active)");
    this.palette = this.paletteNow();
  }

  /** The theme to use: the chosen one, else the reader's system setting. */
  get theme() {
    return this.parts.theme === "auto" ? this.systemTheme : this.parts.theme;
  }

  get systemTheme() {
    // With forced colours, the reader's own surround the picture, dark or light: the picture's must match.
    if (this.forced.matches) return this.dark.matches ? "contrast" : "light";
    return this.strong.matches ? "contrast" : this.dark.matches ? "dark" : "light";
  }

  paletteNow() {
    return new Palette(this.theme, this.parts.colors === "safe");
  }

  /** Sets a part, if the value is valid. @param {LookPart} part @param {string | null} value */
  set(part, value) {
    if (value !== null && LOOKS[part].includes(value)) this.parts[part] = value;
  }

  /** Moves a part on by some values, with wraparound. It skips the theme that `auto` already shows, so every step is visible. @param {LookPart} part @param {number} steps */
  step(part, steps) {
    const values = LOOKS[part].filter((value) => part !== "theme" || value !== this.systemTheme || value === this.parts.theme);
    this.parts[part] = values[(values.indexOf(this.parts[part]) + steps + values.length) % values.length];
  }

  /** Applies the look to everything that draws, to the style sheet and to the controls. */
  apply() {
    this.palette = this.paletteNow();
    const { aspect, fade } = this.parts;
    const { style, dataset } = document.documentElement;
    dataset.theme = this.theme;
    dataset.fade = fade;
    dataset.aspect = aspect === "fill" ? "fill" : "fixed";
    style.setProperty("--text-size", String(this.zoom));
    style.setProperty("--aspect", aspect === "fill" ? "1" : aspect.replace(":", "/"));
    for (const part of LOOK_PARTS) byId(`look-${part}`).value = this.parts[part];
  }

  /** The factor by which the text, and everything around it, is enlarged. */
  get zoom() {
    return Number(this.parts.text) / 100;
  }

  /** The strength of the picture, from 0 to 1. */
  get strength() {
    return this.parts.fade === "yes" ? FADED : 1;
  }
}

/** Strength of a faded picture; style.css has the same. */
const FADED = 0.3;
