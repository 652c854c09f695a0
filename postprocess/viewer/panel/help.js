// SPDX-License-Identifier: BSD-3-Clause
// The help sheet: keys and gestures, and facts about the trace in which nothing is wrong.

import { countText, shownName } from "../data/format.js";
import { overheadText } from "../draw/curves.js";
import { closeButton, textElement } from "../dom.js";
/** @import {App} from "../main.js" */

/** Keys and gestures by purpose. @type {readonly [string, readonly [string, string][]][]} */
const HELP = Object.freeze([
  ["Move", [
    ["Wheel, W and S, + and \u2212", "zoom, at the pointer"],
    ["Drag, Shift-wheel, A and D, \u2190 \u2192", "move in time; A and D with Shift by a page"],
    ["Drag on the strip above", "move the visible range"],
    ["0", "whole trace"],
    ["Alt-wheel, wheel over the names, \u2191 \u2193, Page Up and Down", "scroll rows"],
    ["Ctrl-wheel over the names", "higher and lower rows"],
    ["Home, End", "first and last row"],
    ["Backspace", "go back to before the last jump"],
    ["Click a group", "open or close its rows, or show only those that are highlighted"],
    ["Shift-click a row\u2019s name, Y", "pin the row, or that of the selection, above all others; again unpins it"],
    ["Click a row\u2019s name", "highlight the row, all else turns grey; with the right button all rows named alike; \u2191 \u2193 there go from name to name"],
  ]],
  ["Select", [
    ["Point at a span", "its text below"],
    ["Click a span", "its details"],
    [". and ,", "next and previous span on the row"],
    ["[ and ]", "the span on the row above and below, at the same time"],
    ["F, Z", "zoom to the selection or the measured range, to the measured range"],
    ["E", "the whole call, fault or interrupt of the selected piece; F and R are then about all of it"],
    ["B", "why it ran only now: its wakeups, back in time"],
    ["H, Shift-right-click", "highlight only spans with this name, with their total; a second name joins the first"],
    ["Q", "requests, if there are any: the causes of the slow ones"],
    ["V", "table of the spans in sight, or of the matches: sorted, in groups, with a histogram to drag over"],
    ["Shift-V", "filter its columns: text, !text, =text, > 5us, 1..2; in the box Esc empties it"],
    ["J, Shift-J", "the longest match or listed span, then the next shorter; back"],
    ["Tab, Enter", "through the page's controls, and use one"],
    ["Esc", "undo one thing: the path of B, the call of E, the selection, the table, the measured range, the search, the highlight"],
  ]],
  ["Measure and note", [
    ["Shift-drag", "measure a range: its totals, its longest spans"],
    ["R, Shift-R", "measure the selected span; stretch the measured range to it"],
    ["Shift-click, M", "note on a span, or on the measured range; M again edits its text"],
    ["Drag a note, or its tip", "move it, or put it on another span"],
    ["N, Shift-N", "next and previous note"],
    ["Ctrl and an arrow, Delete", "move the selected note, remove it"],
  ]],
  ["Search", [
    ["/, Ctrl-F", "search a name, or with = or \\( in it, a call: read\\(3\\)=E"],
    ["cpu:0,2-3 pid:55,bash", "only on these CPUs, of these threads; can be combined with a pattern"],
    ["rpc:5- kind:syscall,irq", "only for these RPCs, of these kinds; kind: alone lists them"],
    ["woken:bash to:0", "wakeups of these threads, wakeups and IPIs to these CPUs"],
    ["\u2026 beside the search", "bounds of the duration, case, inversion"],
    ["Enter, Shift-Enter", "next and previous match"],
    ["41.25, 11:56:41.25", "go to that second, or that time of day, a date before it or not; a trailing + or \u2212 shows more or less around it"],
    ["@@", "the visible time range, as text"],
  ]],
  ["Look and keep", [
    ["1 \u2026 9, with Shift", "show a saved view; save the view"],
    ["T, C, X", "theme, colour-blind palette, fade the picture"],
    ["> and <, K, G", "larger and smaller text, shape of the picture, grid"],
    ["View", "layers, rows, look, saved views, places to start; \u2191 \u2193 move in the menu, Esc closes it"],
    ["O, click on the base time", "let each row count from its own start, to compare them"],
    ["L, U, I", "legend, wakeup arcs, interprocessor interrupts on and off"],
    ["P, Shift-P", "save a figure as PNG, as SVG"],
    ["Ctrl-S", "save a copy of this page with its notes and views"],
    ["?", "this sheet"],
    ["Dotted below a row", "spans shorter than a pixel, summed up"],
  ]],
]);

/** The facts about the trace: its size and origin, its clocks, the kernel's own counts. @param {App} app */
function factsOf({ store, view }) {
  const { n, meta } = store;
  const about = textElement("p", [countText(n, "span"), overheadText(store, view), meta.host, meta.kernel, meta.cpuModel].filter((text) => text !== "").map(shownName).join("  \u00b7  "));
  about.id = "about";
  const clocks = (meta.machines ?? []).map((machine) => machine.clock);
  const section = document.createElement("section");
  section.append(
    textElement("h3", "This trace"), about, ...clocks.map((text) => textElement("div", `Clock: ${shownName(text)}`)),
    ...(meta.counted ?? []).map((text) => textElement("div", shownName(text))),
  );
  return section;
}

/** @param {App} app */
export function fillHelp(app) {
  const { help: dialog } = app;
  const parts = HELP.flatMap(([what, lines]) => {
    const table = document.createElement("table");
    for (const [key, action] of lines) {
      const line = table.insertRow();
      line.append(textElement("th", key), textElement("td", action));
    }
    const part = document.createElement("section");
    part.append(textElement("h3", what), table);
    return [part];
  });
  const sheet = document.createElement("div");
  sheet.append(...parts, factsOf(app));
  dialog.replaceChildren(closeButton(() => dialog.close()), textElement("h2", "Keys and gestures"), sheet);
}
