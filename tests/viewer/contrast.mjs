// SPDX-License-Identifier: BSD-3-Clause
// Whether all text around the picture can be read: WCAG 2, level AA. The picture's own is asked for in a browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

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
  const known = ["var(--text)", "var(--dim)", "var(--blue)", "var(--warn-text)", "inherit", "HighlightText !important"];
  assert.deepEqual(used.filter((color) => !known.includes(color)), []);
  // What is disabled cannot be used; histograms and a faded picture are no text.
  const faint = [...STYLE.matchAll(/^([^{}\n]*)\{[^}]*opacity: (?!1;)/gm)].map(([, rule]) => rule.trim());
  // Browsers make hints faint by themselves.
  assert.match(STYLE, /^::placeholder \{ color: var\(--dim\); opacity: 1; \}$/m);
  assert.deepEqual(faint, ["button:disabled", ':root[data-fade="yes"] #base', "#details figure rect.other", "#details figure .brush"]);
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
