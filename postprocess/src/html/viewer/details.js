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
 * Shows everything about the selected span, else what the measured range holds; hides the panel if there is neither.
 * @param {App} app
 * @param {HTMLElement} panel
 */
function showDetails(app, panel) {
  const { selected, measured } = app;
  panel.hidden = selected < 0 && !measured;
  if (selected >= 0) showSpan(app, panel);
  else if (measured) showTotals(app, panel, measured.from, measured.to);
}

/** @param {App} app @param {HTMLElement} panel */
function showSpan(app, panel) {
  const { store, selected } = app;
  const table = document.createElement("table");
  for (const [key, value] of detailsOf(store, selected)) {
    const line = table.insertRow();
    line.append(textElement("th", key), textElement("td", value));
  }
  panel.replaceChildren(
    closeButton(() => app.select(-1)), textElement("h2", callText(store, selected)), table,
    actionButton("Fit (F)", "Zoom to this span", () => app.fitSelection()),
    actionButton("Why now? (B)", "Follow the wakeups back from this span", () => app.askWhy()),
    actionButton("All like this (H)", "Search this name", () => app.searchName(store.name[selected])),
  );
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
  if (arc) lines.push(["To CPU", String(store.arg[i])]);
  if (pid > 0 || (pid === 0 && !arc)) lines.push([arc ? "From thread" : "Thread", threadText(store, pid)]);
  if (kind === Kind.WAKEUP) lines.push(["To thread", threadText(store, store.ret[i])]);
  lines.push(["Event", event < 0 ? String(event) : `0x${event.toString(16)}`]);
  if (!arc) lines.push(["Argument", `${store.arg[i]} (0x${store.arg[i].toString(16)})`]);
  if (kind === Kind.SYSCALL) lines.push(["Returned", `${returnText(store.ret[i])} (${store.ret[i]})`]);
  if (store.rpc[i] !== 0) lines.push(["RPC", String(store.rpc[i] & 0xffff)]);
  if (isExecution(kind)) lines.push(...counterTexts(store, i));
  return lines;
}

/** Says above the picture what is missing from it. @param {Store} store @param {HTMLElement} banner */
function showBanner({ meta }, banner) {
  const missing = meta.quality.map(shownName);
  if (meta.lost > 0) missing.unshift(`${meta.lost.toLocaleString("en")} events were lost while recording`);
  const sentences = missing.length > 0 ? [`This trace is not complete: ${missing.join("; ")}.`] : [];
  if ((meta.flags & FLAG_WRAPPED) !== 0) sentences.push("This is the end of a longer recording: what came before was overwritten.");
  banner.hidden = sentences.length === 0;
  banner.textContent = sentences.join(" ");
}

const HELP = Object.freeze([
  ["Wheel", "zoom at the pointer"],
  ["Drag, Shift-wheel, A and D, \u2190 \u2192", "move in time; with Shift, A and D by a page"],
  ["W and S, + and \u2212", "zoom"],
  ["0", "whole trace"],
  ["Alt-wheel, wheel over the labels, \u2191 \u2193", "scroll rows"],
  ["Click a group", "open or close its rows, or show only those that are highlighted"],
  ["Click a row\u2019s name", "highlight the row: all else turns grey; with the right button all rows named alike; \u2191 \u2193 go to the next name"],
  ["Point at a span", "its text below"],
  ["Click a span", "its details; F zooms to it"],
  ["B", "why the selected span ran only now: its wakeups, back in time"],
  ["H", "search the name of the selected span"],
  ["Shift-drag", "measure a range: its totals, its longest spans; F zooms to it"],
  ["/", "search; ! for what does not match, min and max for durations; Enter and Shift-Enter go to the next and previous match"],
  ["U, I", "wakeup arcs, interprocessor interrupts on and off"],
  ["L", "legend on and off"],
  ["Marks, Locks, Freq, ...", "what is drawn; Shift-click goes back"],
  ["Esc", "clear what is selected, measured, searched, highlighted"],
  ["Dotted below a row", "spans shorter than a pixel, summed up"],
]);

/** @param {HTMLDialogElement} dialog */
function fillHelp(dialog) {
  const table = document.createElement("table");
  for (const [key, action] of HELP) {
    const line = document.createElement("tr");
    line.append(textElement("th", key), textElement("td", action));
    table.append(line);
  }
  const close = textElement("button", "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(textElement("h2", "Keys and gestures"), table, close);
}
