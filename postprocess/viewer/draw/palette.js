// SPDX-License-Identifier: BSD-3-Clause
// The colours of each theme: as CSS text for the overlay, and as pixels for the picture below it.

import { valueOf } from "../data/format.js";
import { isKernel, WAIT_A } from "../data/kind.js";
import { Kind } from "../data/tables.js";
/** @import {Store} from "../data/decode.js" */

/** The font of all text in the picture. */
export const FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

const LIGHT = Object.freeze({
  back: "#ffffff", row: "#f3f5f8", grid: "#e3e7ec", text: "#1d2530", dim: "#66707d", grey: "#d3d8de", dots: "#9aa4b0",
  idle: "#20262e", lowPower: "#7b8694", cexit: "#e03131", stalled: "#f3b6b6", select: "#111111", measure: "#1c6fd1",
  syscall: ["#2f9e57", "#46ad69", "#238a49"], trap: ["#e0559b", "#e876af", "#cf4389"],
  guest: ["#c9b3e6"], irq: ["#2b6cd4", "#4a84df", "#1f59b8"], bh: ["#35a3cf", "#55b5da", "#238bb5"], sched: ["#8b95a1"],
  users: ["#f0a02e", "#a58ae0", "#d8c03f", "#b07a52", "#ec8f62", "#8f93e6", "#a3bf3f", "#c9a06a", "#7db8a4",
    "#e6b866", "#9fa8c9", "#c4703f", "#b3a23a", "#b59adf"],
  stripes: ["#ffffff", "#ffe357", "#101418", "#a8ecff", "#8a1c1c", "#ffb3da", "#0f2a6b", "#ff8f1f"],
  wakeup: "#1d5fd0", ipi: "#8a929c", mark: "#7a2fb5", chain: "#d9480f", match: "#000000",
});

const DARK = Object.freeze({
  back: "#14181d", row: "#1b2128", grid: "#2a323c", text: "#e3e8ee", dim: "#939eab", grey: "#39424d", dots: "#5f6b78",
  idle: "#c3cad2", lowPower: "#77828f", cexit: "#ff5d5d", stalled: "#7a3434", select: "#ffffff", measure: "#6cb0ff",
  syscall: ["#3cb269", "#54c07f", "#2f9c59"], trap: ["#e86aa9", "#f08abd", "#d65897"],
  guest: ["#7d68a3"], irq: ["#4c8bf0", "#6ea2f5", "#3a76d6"], bh: ["#45b4de", "#68c5e8", "#339cc4"], sched: ["#8d97a3"],
  users: ["#f0a840", "#b097ec", "#dcc850", "#bd8a63", "#f09d72", "#9ba0f0", "#aecb4c", "#d2ad7c", "#8dc8b4",
    "#ecc47a", "#acb5d6", "#d2814f", "#c2b148", "#c2a9ea"],
  stripes: LIGHT.stripes,
  wakeup: "#7fb2ff", ipi: "#9aa4b0", mark: "#cf9bff", chain: "#ff922b", match: "#ffffff",
});

/** Black ground, strong colours, no faint ones. */
const CONTRAST = Object.freeze({
  ...DARK,
  back: "#000000", row: "#101010", grid: "#4d4d4d", text: "#ffffff", dim: "#d6d6d6", grey: "#5c5c5c", dots: "#b8b8b8",
  idle: "#ffffff", lowPower: "#c8c8c8", cexit: "#ff4040", measure: "#5cc8ff",
  syscall: ["#2fe070", "#5cf090", "#16c958"], trap: ["#ff6fc0", "#ff94d1", "#ff4dae"],
  irq: ["#6aa8ff", "#8ebdff", "#4a92ff"], bh: ["#40dcff", "#7ae7ff", "#1ccaf0"], sched: ["#bcc4cc"],
  wakeup: "#8fc1ff", ipi: "#d0d0d0", mark: "#e0b0ff", chain: "#ffa94d",
});

/**
 * Colours that red-green colour-blind readers can tell apart (after Okabe and Ito, jfly.uni-koeln.de/color): kinds differ
 * in hue and lightness, threads in lightness alone.
 */
const SAFE = Object.freeze({
  syscall: ["#009e73", "#26b38c", "#00875f"], trap: ["#cc79a7", "#d995ba", "#b96292"],
  irq: ["#0072b2", "#2a8ac4", "#00609a"], bh: ["#56b4e9", "#7cc5ef", "#3aa3dd"], cexit: "#d55e00",
  users: ["#e69f00", "#f0e442", "#b87d00", "#f3c14d", "#d9cf2e", "#8f6200", "#f7d991", "#c9a52a", "#fff08a", "#a67c1a"],
  stripes: ["#ffffff", "#000000", "#f0e442", "#0b3c5d", "#e69f00", "#d55e00"],
  wakeup: "#0072b2", chain: "#d55e00", measure: "#0072b2",
});
/** The same on dark ground, where lines in the darker colours would be invisible. */
const SAFE_DARK = Object.freeze({ ...SAFE, wakeup: "#56b4e9", measure: "#56b4e9", irq: ["#2a8ac4", "#4da3d6", "#0072b2"] });

/** @typedef {{[Use in keyof typeof LIGHT]: (typeof LIGHT)[Use] extends string ? string : string[]}} Colors */
/** Colours by theme. @type {Record<string, Colors>} */
const THEMES = Object.freeze({ light: LIGHT, dark: DARK, contrast: CONTRAST });

/** Colours of waits by letter, legible on all grounds. */
const WAIT_COLORS = Object.freeze({
  c: "#f28c1c", d: "#3f9f45", f: "#4fb3bf", g: "#8fae9b", h: "#7a8a3c", i: "#f5b971", q: "#c2410c", x: "#5b7f95", k: "#9673c4", l: "#e04848", m: "#9a6a44", n: "#3f83c9", p: "#1b9a8e", r: "#c2a633",
  s: "#6d6fd0", t: "#98a2ad", v: "#a3154f", z: "#e377a8",
});
const SAFE_WAITS = Object.freeze({
  c: "#e69f00", d: "#009e73", f: "#56b4e9", g: "#a9b8c9", h: "#8f6200", i: "#f3c14d", q: "#b96292", x: "#4da3d6", k: "#cc79a7", l: "#d55e00", m: "#a67c1a", n: "#0072b2", p: "#44aa99", r: "#d9cf2e",
  s: "#8888dd", t: "#98a2ad", v: "#882255", z: "#f5a3c7",
});

export class Palette {
  /** @param {string} theme light, dark or contrast @param {boolean} safe for colour-blind readers */
  constructor(theme, safe) {
    /** @type {Colors} */
    this.css = safe ? { ...THEMES[theme], ...(theme === "light" ? SAFE : SAFE_DARK) } : THEMES[theme];
    this.waits = safe ? SAFE_WAITS : WAIT_COLORS;
    const { css } = this;
    this.back = pixel(css.back);
    this.row = pixel(css.row);
    this.grid = pixel(css.grid);
    this.grey = pixel(css.grey);
    this.dots = pixel(css.dots);
    /** @type {string[][]} shades of each kind of execution */
    this.shades = [];
    this.shades[Kind.IDLE] = [css.idle];
    this.shades[Kind.LOW_POWER] = [css.lowPower];
    this.shades[Kind.C_EXIT] = [css.cexit];
    this.shades[Kind.USER] = css.users;
    this.shades[Kind.GUEST] = css.guest;
    this.shades[Kind.LOST] = this.shades[Kind.OFFLINE] = [css.grey];
    this.shades[Kind.STALLED] = [css.stalled];
    this.shades[Kind.SYSCALL] = css.syscall;
    this.shades[Kind.TRAP] = css.trap;
    this.shades[Kind.IRQ] = css.irq;
    this.shades[Kind.BH] = css.bh;
    this.shades[Kind.KERNEL] = css.syscall.slice(0, 1);
    this.shades[Kind.SCHED] = css.sched;
    this.pixels = this.shades.map((shades) => shades.map(pixel));
    this.shadeInks = this.shades.map((shades) => shades.map(inkOn));
    this.stripes = css.stripes.map(pixel);
    /** The colour of text on grey. */
    this.greyInk = legible(css.dim, css.grey);
    /** Legible colours for text, by original colour. @type {Map<string, string>} */
    this.inks = new Map();
    this.waitPixels = Array.from({ length: 26 }, (_, k) => pixel(this.wait(String.fromCharCode(97 + k))));
  }

  /** @param {string} letter */
  wait(letter) {
    return /** @type {Record<string, string>} */ (this.waits)[letter] ?? "#b07aa1";
  }

  /** A legible colour for text on the rows, as near as possible to a colour chosen for lines. @param {string} css */
  ink(css) {
    let ink = this.inks.get(css);
    if (!ink) this.inks.set(css, (ink = legible(css, this.css.row)));
    return ink;
  }

  /** A colour for the text of a mark. @param {boolean} isShown true if it keeps its colour */
  markInk(isShown) {
    return isShown ? this.css.mark : this.css.dim;
  }

  /**
   * The number that determines the colour of a span of execution: its place in the list of threads, whose neighbours should
   * differ, the number of a bottom half, or that of the event.
   * @param {Store} store
   * @param {number} i
   */
  numberOf(store, i) {
    const kind = store.kind[i];
    return kind === Kind.USER ? store.pid[i] : kind === Kind.BH ? valueOf(store.arg[i]) ?? 0 : store.events[store.event[i]];
  }

  /** The index of a span's shade among those of its kind. @param {Store} store @param {number} i */
  shade(store, i) {
    return this.numberOf(store, i) % this.pixels[store.kind[i]].length;
  }

  /**
   * The pixels of a span's stripes, the outer and the inner one, 0 for none: the kernel's spans show two digits of their
   * number, threads one, so that threads of the same colour have different stripes.
   * @param {Store} store
   * @param {number} i
   * @returns {[number, number]}
   */
  stripesOf(store, i) {
    const { stripes } = this;
    const kind = store.kind[i];
    const by = this.numberOf(store, i);
    if (kind === Kind.USER) return [0, stripes[(by + Math.floor(by / this.pixels[kind].length)) % stripes.length]];
    if (!isKernel(kind) || kind >= Kind.KERNEL) return [0, 0];
    return [stripes[by % stripes.length], stripes[Math.floor(by / stripes.length) % stripes.length]];
  }

  /** @param {Store} store @param {number} i */
  waitPixel(store, i) {
    return this.waitPixels[store.events[store.event[i]] - WAIT_A];
  }

  /** @param {Store} store @param {number} i */
  color(store, i) {
    const kind = store.kind[i];
    return this.shades[kind][this.shade(store, i)];
  }

  /** The colour of a name in a span. @param {Store} store @param {number} i */
  inkOf(store, i) {
    return this.shadeInks[store.kind[i]][this.shade(store, i)];
  }

  /** @param {Store} store @param {number} i */
  pixelOf(store, i) {
    const kind = store.kind[i];
    return this.pixels[kind][this.shade(store, i)];
  }
}

/**
 * A colour as stored by the canvas, in the byte order of all machines that run browsers: A B G R.
 * @param {string} css as #rrggbb
 */
export function pixel(css) {
  const rgb = parseInt(css.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >>> 16)) >>> 0;
}

/**
 * Mixes two pixels: 0 gives `from`, 256 gives `to`.
 * @param {number} from
 * @param {number} to
 * @param {number} part
 */
export function mix(from, to, part) {
  const rest = 256 - part;
  const redBlue = ((from & 0xff00ff) * rest + (to & 0xff00ff) * part) >>> 8;
  const green = (((from >>> 8) & 0xff) * rest + ((to >>> 8) & 0xff) * part) & 0xff00;
  return (0xff000000 | (redBlue & 0xff00ff) | green) >>> 0;
}

/** The minimum contrast of text (WCAG 2, level AA). */
const CONTRAST_MIN = 4.5;

/** Red, green and blue, 0 to 255. @param {string} css as #rrggbb */
const rgbOf = (css) => [1, 3, 5].map((at) => parseInt(css.slice(at, at + 2), 16));

/** The relative luminance of a colour, from 0 to 1. @param {string} css as #rrggbb */
function luminance(css) {
  const [r, g, b] = rgbOf(css).map((value) => value / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The contrast of two colours, from 1 to 21. @param {string} one @param {string} other */
export function contrastOf(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Black or white, whichever is legible on a colour: at least one always is. @param {string} css as #rrggbb */
export const inkOn = (css) => (contrastOf("#000000", css) >= contrastOf("#ffffff", css) ? "#000000" : "#ffffff");

/** A colour shifted towards black or white until it is legible on a ground. @param {string} css as #rrggbb @param {string} ground */
function legible(css, ground) {
  const end = rgbOf(inkOn(ground));
  let ink = css;
  for (let part = 0; part <= 1 && contrastOf(ink, ground) < CONTRAST_MIN; part += 1 / 16) {
    ink = `#${rgbOf(css).map((value, k) => Math.round(value + (end[k] - value) * part).toString(16).padStart(2, "0")).join("")}`;
  }
  return ink;
}
