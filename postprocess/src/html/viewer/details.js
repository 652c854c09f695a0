// SPDX-License-Identifier: BSD-3-Clause
// Text beside the picture: the selected span in full, the legend, the banner, the help sheet.
"use strict";

/** Flag of a trace whose beginning was overwritten. */
const FLAG_WRAPPED = 0x40;

/**
 * An element with text in it. All text from a trace passes through here or is set as textContent.
 * @param {string} tag
 * @param {string} text
 * @param {string} [className]
 */
function textElement(tag, text, className) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

/**
 * A button that does something.
 * @param {string} text
 * @param {string} title
 * @param {() => void} action
 */
function actionButton(text, title, action) {
  const button = /** @type {HTMLButtonElement} */ (textElement("button", text));
  button.type = "button";
  button.title = title;
  button.addEventListener("click", action);
  return button;
}

/** @param {() => void} action */
function closeButton(action) {
  const button = actionButton("\u00d7", "Close (Esc)", action);
  button.className = "close";
  return button;
}

/**
 * A table of numbers; the first cell of each line names it.
 * @param {string[]} heads
 * @param {(string | Node)[][]} lines
 */
function tableOf(heads, lines) {
  const table = document.createElement("table");
  table.className = "numbers";
  table.hidden = lines.length === 0;
  const head = table.createTHead().insertRow();
  head.append(...heads.map((text) => textElement("th", text)));
  const body = table.createTBody();
  for (const cells of lines) {
    const line = body.insertRow();
    for (const cell of cells) line.insertCell().append(cell);
  }
  return table;
}

/**
 * Shows the selected note, else the selected span, else the table of what is in sight, else what the measured range
 * holds; hides the panel if there is nothing of these.
 * @param {App} app
 * @param {HTMLElement} panel
 */
function showDetails(app, panel) {
  const { selected, measured, listing } = app;
  const note = app.notes.selected;
  // First its size: what it lists is what is in sight beside it.
  changePanel(app, () => {
    panel.hidden = selected < 0 && !measured && !note && !listing;
    panel.classList.toggle("wide", listing && selected < 0 && !note);
    panel.classList.toggle("grouped", listing && selected < 0 && !note && app.list.by[0] !== "");
    panel.classList.toggle("two", app.list.by[1] !== "");
  });
  if (note) showNote(app, panel, note);
  else if (selected >= 0) showSpan(app, panel);
  else if (listing) showList(app, panel);
  else if (measured) showTotals(app, panel, measured.from, measured.to);
  else panel.replaceChildren();
}

/** @param {App} app @param {HTMLElement} panel */
function showSpan(app, panel) {
  const { store, selected } = app;
  const table = document.createElement("table");
  const lines = detailsOf(store, selected);
  const home = app.homeOf(selected);
  if (app.view.relative && home) lines.splice(2, 0, ["On its row", behindBegin(store, selected, home)]);
  for (const [key, value] of lines) {
    const line = table.insertRow();
    line.append(textElement("th", key), textElement("td", value));
  }
  panel.replaceChildren(
    closeButton(() => app.select(-1)), textElement("h2", callText(store, selected)), table,
    actionButton("Fit (F)", "Zoom to this span", () => app.fitSelection()),
    actionButton("Why now? (B)", "Follow the wakeups back from this span", () => app.askWhy()),
    actionButton("Find all of this name (H)", "Search this name", () => app.searchName(store.name[selected])),
    actionButton("Note (M)", "Put a note on this span", () => annotate(app)),
    actionButton("Measure (R)", "Sum up the time of this span", () => measureSelected(app, false)),
  );
  if (app.chain) showChain(app, panel, app.chain);
}

/**
 * What there is to say about a span: pairs of what and value.
 * @param {Store} store
 * @param {number} i
 * @returns {[string, string][]}
 */
function detailsOf(store, i) {
  const kind = store.kind[i];
  const cpu = store.cpus[store.cpu[i]];
  const pid = store.pids[store.pid[i]];
  const event = store.events[store.event[i]];
  const arc = kind === Kind.WAKEUP || kind === Kind.IPI;
  /** @type {[string, string][]} */
  const lines = [
    ["Kind", KIND_NAMES[kind]],
    ["Start", `${secondsText(store.start[i])} s`],
    ["End", `${secondsText(store.start[i] + store.dur[i])} s`],
    ["Duration", durationText(store.dur[i])],
    ["Clock", clockText(store.meta.tracebase, store.start[i], 8)],
  ];
  if (cpu >= 0) lines.push([arc ? "From CPU" : "CPU", String(cpu)]);
  const arg = valueOf(store.arg[i]);
  if (arc) lines.push(["To CPU", String(arg)]);
  if (pid > 0 || (pid === 0 && !arc)) lines.push([arc ? "From thread" : "Thread", threadText(store, pid)]);
  if (kind === Kind.WAKEUP) lines.push(["To thread", threadText(store, wokenBy(store, i))]);
  lines.push(["Event", event < 0 ? String(event) : `0x${event.toString(16)}`]);
  if (!arc && arg !== null) lines.push(["Argument", `${arg} (0x${arg.toString(16)})`]);
  const returned = returnText(store, i);
  const value = String(valueOf(store.ret[i]));
  if (returned !== null) lines.push(["Returned", returned === value || returned.startsWith("0x") ? returned : `${returned} (${value})`]);
  const times = timesText(store, store.name[i]);
  if (times !== "") lines.push(["In the trace", `${times} ×`]);
  if (store.rpc[i] !== 0) lines.push(["RPC", String(store.rpc[i] & 0xffff)]);
  if (isExecution(kind)) lines.push(...counterTexts(store, i));
  return lines;
}

/**
 * What makes everything in a trace take longer, as sentences begin that tell of it.
 * @type {readonly [string, number, number | null][]} with the kind and, of waits, the event
 */
const DELAYS = Object.freeze([
  ["CPUs stood still", Kind.STALLED, null], ["CPUs were offline", Kind.OFFLINE, null], ["Threads waited for the CPU quota of their group", Kind.WAIT, WAIT_QUOTA],
]);

/** The spans of a kind, and of an event if one is given: how many, how long together, which is the longest. @param {Store} store @param {number} wanted @param {number | null} number */
function sumOfKind({ kind, dur, event, events, cpus, cpu }, wanted, number) {
  const sum = { count: 0, time: 0, longest: -1 };
  const has = number === null ? (/** @type {number} */ i) => cpus[cpu[i]] >= 0 : (/** @type {number} */ i) => events[event[i]] === number;
  if (number !== null && !events.includes(number)) return sum;
  for (let i = kind.indexOf(wanted); i >= 0; i = kind.indexOf(wanted, i + 1)) {
    if (!has(i)) continue;
    sum.count++;
    sum.time += dur[i];
    if (sum.longest < 0 || dur[i] > dur[sum.longest]) sum.longest = i;
  }
  return sum;
}

/** @param {number} count */
const timesWord = (count) => (count === 1 ? "once" : `${count.toLocaleString("en")} times`);

/** Says above the picture what is missing from it, and what delayed all that is in it. @param {App} app @param {HTMLElement} banner */
function showBanner(app, banner) {
  const { meta } = app.store;
  const missing = meta.quality.map(shownName);
  if (meta.lost > 0) missing.unshift(`${meta.lost.toLocaleString("en")} events were lost while recording`);
  const sentences = missing.length > 0 ? [`This trace is not complete: ${missing.join("; ")}.`] : [];
  if ((meta.flags & FLAG_WRAPPED) !== 0) sentences.push("This is the end of a longer recording: what came before was overwritten.");
  const parts = sentences.map((text) => textElement("span", text));
  for (const [what, kind, event] of DELAYS) {
    const { count, time, longest } = sumOfKind(app.store, kind, event);
    if (count === 0) continue;
    const part = textElement("span", `${what} ${timesWord(count)}, ${durationText(time)} together: durations contain that. `);
    part.append(actionButton(`The longest: ${durationText(app.store.dur[longest])}`, "Go there", () => app.goTo(longest)));
    parts.push(part);
  }
  banner.hidden = parts.length === 0;
  banner.replaceChildren(...parts);
}

/** Keys and gestures by what they are for. @type {readonly [string, readonly [string, string][]][]} */
const HELP = Object.freeze([
  ["Move", [
    ["Wheel, W and S, + and \u2212", "zoom, at the pointer"],
    ["Drag, Shift-wheel, A and D, \u2190 \u2192", "move in time; A and D with Shift by a page"],
    ["Drag on the strip above", "move what is in sight over the whole trace"],
    ["0", "whole trace"],
    ["Alt-wheel, wheel over the names, \u2191 \u2193, Page Up and Down", "scroll rows"],
    ["Ctrl-wheel over the names", "higher and lower rows"],
    ["Home, End", "first and last row"],
    ["Backspace", "back to where the last jump began"],
    ["Click a group", "open or close its rows, or show only those that are highlighted"],
    ["Click a row\u2019s name", "highlight the row, all else turns grey; with the right button all rows named alike; \u2191 \u2193 there go from name to name"],
  ]],
  ["Select", [
    ["Point at a span", "its text below"],
    ["Click a span", "its details"],
    [". and ,", "next and previous span on the row"],
    ["[ and ]", "the span on the row above and below, at the same time"],
    ["F, Z", "zoom to what is selected or measured, to what is measured"],
    ["B", "why it ran only now: its wakeups, back in time"],
    ["H, Shift-right-click", "keep the colour of all spans of its name only, with their total; a second name joins the first"],
    ["V", "table of what is in sight or searched: sorted, in groups, with a histogram to drag over"],
    ["J, Shift-J", "the longest of what is searched or listed, then the next shorter; back"],
    ["Tab, Enter", "through the page's controls, and use one"],
    ["Esc", "undo one thing: the path of B, what is selected, the table, what is measured, searched, highlighted"],
  ]],
  ["Measure and note", [
    ["Shift-drag", "measure a range: its totals, its longest spans"],
    ["R, Shift-R", "measure the selected span; stretch what is measured to it"],
    ["Shift-click, M", "note on a span, or on what is measured; M again edits its text"],
    ["Drag a note, or its tip", "move it, or put it on another span"],
    ["N, Shift-N", "next and previous note"],
    ["Ctrl and an arrow, Delete", "move the selected note, remove it"],
  ]],
  ["Search", [
    ["/, Ctrl-F", "search a name, or with = or \\( in it, a call: read\\(3\\)=E"],
    ["cpu:0,2-3 pid:55,bash", "only on these CPUs, of these threads; a pattern may stand beside it"],
    ["rpc:5- kind:syscall,irq", "only for these RPCs, of these kinds; kind: alone says which there are"],
    ["!, Aa, min, max", "what does not match; ignore case; bounds of the duration"],
    ["Enter, Shift-Enter", "next and previous match"],
    ["41.25, 11:56:41.25", "go to that second, or that time of day, a date before it or not; a trailing + or \u2212 shows more or less around it"],
    ["@@", "the time in sight, to be typed again"],
  ]],
  ["Look and keep", [
    ["1 \u2026 9, with Shift", "show a saved view; save the view"],
    ["T, C, X", "theme, colour-blind palette, fade the picture"],
    ["> and <, K, G", "larger and smaller text, shape of the picture, grid"],
    ["Names, Marks, Freq \u2026", "what is drawn; Shift-click goes back"],
    ["O, click on the base time", "let each row count from its own start, to compare them"],
    ["L, U, I", "legend, wakeup arcs, interprocessor interrupts on and off"],
    ["P, Shift-P", "save a figure as PNG, as SVG"],
    ["Ctrl-S", "save a copy of this page with its notes and views"],
    ["?", "this sheet"],
    ["Dotted below a row", "spans shorter than a pixel, summed up"],
  ]],
]);

/** @param {HTMLDialogElement} dialog */
function fillHelp(dialog) {
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
  sheet.append(...parts);
  dialog.replaceChildren(closeButton(() => dialog.close()), textElement("h2", "Keys and gestures"), sheet);
}
