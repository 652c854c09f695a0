// SPDX-License-Identifier: BSD-3-Clause
// How the page looks, whatever it shows: theme, colours, size of text, shape of the picture, fading, grid; and what the
// wheel does.

import { byId } from "../dom.js";
import { Palette } from "./palette.js";

/** What each part of the look can be; the first is the usual. */
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

  /** The theme to use: what was chosen, else what the reader's system asks for. */
  get theme() {
    return this.parts.theme === "auto" ? this.systemTheme : this.parts.theme;
  }

  get systemTheme() {
    // The reader's own colours are around the picture, dark or light: the picture's are to fit.
    if (this.forced.matches) return this.dark.matches ? "contrast" : "light";
    return this.strong.matches ? "contrast" : this.dark.matches ? "dark" : "light";
  }

  paletteNow() {
    return new Palette(this.theme, this.parts.colors === "safe");
  }

  /** Sets a part, or leaves it as it is if there is no such value. @param {LookPart} part @param {string | null} value */
  set(part, value) {
    if (value !== null && LOOKS[part].includes(value)) this.parts[part] = value;
  }

  /** The value this many steps further; the end wraps to the beginning. Every step is to be seen: the system's theme is `auto`. @param {LookPart} part @param {number} steps */
  step(part, steps) {
    const values = LOOKS[part].filter((value) => part !== "theme" || value !== this.systemTheme || value === this.parts.theme);
    this.parts[part] = values[(values.indexOf(this.parts[part]) + steps + values.length) % values.length];
  }

  /** Hands the look to all that draws, to the style sheet and to the controls. */
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

  /** By how much the text, and all around it, is larger than usual. */
  get zoom() {
    return Number(this.parts.text) / 100;
  }

  /** How much of the picture's strength is left. */
  get strength() {
    return this.parts.fade === "yes" ? FADED : 1;
  }
}

/** Strength of a faded picture; style.css has the same. */
const FADED = 0.3;
