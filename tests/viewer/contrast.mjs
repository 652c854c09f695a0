// SPDX-License-Identifier: BSD-3-Clause
// Whether all text around the picture can be read: WCAG 2, level AA. The picture's own is asked for in a browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { WAITS } from "../../postprocess/viewer/data/kind.js";
import { causeColor } from "../../postprocess/viewer/draw/path.js";
import { contrastOf, Palette } from "../../postprocess/viewer/draw/palette.js";

const STYLE = readFileSync(new URL("../../postprocess/viewer/style.css", import.meta.url), "utf8");

/** The colours of each theme by name. */
function themes() {
  const blocks = STYLE.matchAll(/:root\[data-theme="(\w+)"\] \{([^}]*)\}/g);
  return [...blocks].map(([, theme, text]) => [theme, Object.fromEntries([...text.matchAll(/--([\w-]+): (#\w+);/g)].map(([, name, color]) => [name, color]))]);
}

test("text around the picture has a contrast of 4.5 in every theme", () => {
  const all = themes();
  assert.deepEqual(all.map(([theme]) => theme), ["light", "dark", "contrast"]);
  for (const [theme, colors] of all) {
    const pairs = ["text", "dim", "blue"].flatMap((ink) => ["back", "row"].map((ground) => [ink, ground]));
    for (const [ink, ground] of [...pairs, ["warn-text", "warn-back"]]) {
      const contrast = contrastOf(colors[ink], colors[ground]);
      assert.ok(contrast >= 4.5, `${theme}: ${ink} on ${ground} has ${contrast}`);
    }
  }
});

test("text is in colours that are asked for here, and nowhere made faint", () => {
  const used = [...STYLE.matchAll(/[ {;]color: ([^;]+);/g)].map(([, color]) => color);
  const known = ["var(--text)", "var(--dim)", "var(--blue)", "var(--warn-text)", "inherit", "HighlightText !important", "LinkText"];
  assert.deepEqual(used.filter((color) => !known.includes(color)), []);
  // What is disabled cannot be used; histograms and a faded picture are no text.
  const faint = [...STYLE.matchAll(/^([^{}\n]*)\{[^}]*opacity: (?!1;)/gm)].map(([, rule]) => rule.trim());
  // Browsers make hints faint by themselves.
  assert.match(STYLE, /^::placeholder \{ color: var\(--dim\); opacity: 1; \}$/m);
  assert.deepEqual(faint, ["button:disabled", ':root[data-fade="yes"] #base', "#details figure rect.other", "#details figure .brush"]);
});

test("the text of a mark is legible, whether or not it is searched", () => {
  for (const theme of ["light", "dark", "contrast"]) {
    for (const safe of [false, true]) {
      const palette = new Palette(theme, safe);
      for (const isShown of [true, false]) {
        const contrast = contrastOf(palette.markInk(isShown), palette.css.back);
        assert.ok(contrast >= 4.5, `${theme}: ${isShown} has ${contrast}`);
      }
    }
  }
});

test("each sort of cause has a colour of its own", () => {
  const kinds = ["user", "kernel", "interrupt", "queue", "idle", "wait", "stalled"];
  for (const theme of ["light", "dark", "contrast"]) {
    for (const safe of [false, true]) {
      const palette = new Palette(theme, safe);
      const colors = kinds.map((kind) => causeColor(palette, kind));
      assert.equal(new Set(colors).size, kinds.length, `${theme}: ${colors}`);
    }
  }
});

/** A colour in OKLab (bottosson.github.io/posts/oklab), where distances are as people see them: black and white are 1 apart. */
function seen(css) {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(css.slice(at, at + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  const [l, m, s] = [
    0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b, 0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b, 0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b,
  ].map(Math.cbrt);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

test("waits are told apart by their colours, those that are often seen together by far", () => {
  const apart = (one, other) => Math.hypot(...seen(one).map((v, k) => v - seen(other)[k]));
  assert.ok(Math.abs(apart("#000000", "#ffffff") - 1) < 1e-3);
  for (const safe of [false, true]) {
    const palette = new Palette("light", safe);
    const letters = WAITS.map(([letter]) => letter);
    for (const [k, one] of letters.entries()) {
      for (const other of letters.slice(k + 1)) {
        const distance = apart(palette.wait(one), palette.wait(other));
        const needed = ["kz", "pt", "kn", "kt"].includes([one, other].sort().join("")) ? 0.09 : 0.03;
        assert.ok(distance >= needed, `${one} and ${other}${safe ? ", safe" : ""}: ${distance}`);
      }
    }
  }
});
