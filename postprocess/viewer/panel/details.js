// SPDX-License-Identifier: BSD-3-Clause
// The panel's contents: the selected note, the selected span in full, the table or the totals.

import { counterTexts } from "../data/counters.js";
import {
  callText, cgroupsOf, clockText, durationText, processOf, secondsText, shownName, takesAddress, threadText, timesText, valueOf, wokenBy,
} from "../data/format.js";
import { isExecution } from "../data/kind.js";
import { sentenceOf, sentenceOfCall, wordOfCall } from "../data/sentence.js";
import { EVENT, Kind, KIND_NAMES, CANNOT_SHOW } from "../data/tables.js";
import { explainedName, wordedName } from "../data/words.js";
import { behindBegin } from "../view/axis.js";
import { callOfSelected, linesOfCall, linesOfReturn, partsOfCall, selectCall, timesOfCall } from "./call.js";
import { showList } from "./list.js";
import { annotate, showNote } from "./note.js";
import { changePanel } from "./panel.js";
import { showRequests } from "./requests.js";
import { measureSelected, showTotals } from "./totals.js";
import { showChain } from "./why.js";
import { actionButton, closeButton, textElement } from "../dom.js";
/**
 * @import {Call} from "../data/around.js"
 * @import {Store} from "../data/decode.js"
 * @import {App} from "../main.js"
 * @import {Lines} from "./call.js"
 */

/**
 * Shows the selected note, else the selected span, else requests, else the table, else the totals of the
 * measured range; hides the panel if there is none of these.
 * @param {App} app
 * @param {HTMLElement} panel
 */
export function showDetails(app, panel) {
  const { selected, measured, listing, asked } = app;
  const note = app.notes.selected;
  // Size the panel first, since the table lists what is visible next to it.
  changePanel(app, () => {
    const before = panel.className;
    panel.hidden = selected < 0 && !measured && !note && !listing && !asked.open;
    panel.classList.toggle("wide", (listing || asked.open) && selected < 0 && !note);
    panel.classList.toggle("totals", measured !== null && !listing && !asked.open && selected < 0 && !note);
    panel.classList.toggle("calls", listing && (app.list.calls !== null || app.list.wakes));
    panel.classList.toggle("requests", asked.open && selected < 0 && !note);
    panel.classList.toggle("grouped", listing && selected < 0 && !note && app.list.by[0] !== "");
    panel.classList.toggle("two", app.list.by[1] !== "");
    // Drop the previous contents, so that they are not laid out once more.
    if (panel.className !== before) panel.replaceChildren();
  });
  if (note) showNote(app, panel, note);
  else if (selected >= 0) showSpan(app, panel);
  else if (asked.open) showRequests(app, panel);
  else if (listing) showList(app, panel);
  else if (measured) showTotals(app, panel, measured.from, measured.to);
  else panel.replaceChildren();
}

/** @param {App} app @param {HTMLElement} panel */
function showSpan(app, panel) {
  const { store, selected } = app;
  const call = app.call ?? callOfSelected(app);
  // A call selected as a whole is described as a whole.
  const last = app.call ? app.call.pieces[app.call.pieces.length - 1] : selected;
  const lines = app.call ? linesOfWhole(app, app.call) : detailsOf(store, selected);
  if (call && !app.call) lines.push(...linesOfCall(app, call));
  const home = app.homeOf(selected);
  if (app.view.relative && home) lines.splice(2, 0, ["On its row", behindBegin(store, selected, home)]);
  const isRaw = (/** @type {Lines[number]} */ [key]) => RAW.has(String(key)) || (key === "Argument" && isExecution(store.kind[selected]));
  const raw = document.createElement("details");
  raw.append(textElement("summary", "Raw"), tableOfLines(lines.filter(isRaw)));
  const said = textElement("p", app.call ? sentenceOfCall(store, app.chains, app.call) : sentenceOf(store, app.chains, selected, !isUntimed(store, selected)));
  said.className = "said";
  said.title = explainedName(store.names[store.name[selected]]);
  panel.replaceChildren(
    closeButton(() => app.select(-1)), textElement("h2", headOf(store, last)),
    said, tableOfLines(lines.filter((line) => !isRaw(line))), raw,
    actionButton("Fit (F)", "Zoom to this span", () => app.fitSelection()),
    ...(call && !app.call ? [actionButton(`Whole ${wordOfCall(store.kind[call.pieces[0]])} (E)`, "Select all of it, from its start to its end", () => selectCall(app))] : []),
    actionButton("Why now? (B)", "Follow the wakeups back from this span", () => app.askWhy()),
    actionButton("Search for this name (H)", "Search this name", () => app.searchName(store.name[selected])),
    actionButton("Note (M)", "Put a note on this span", () => annotate(app)),
    actionButton("Measure (R)", "Sum up the time of this span", () => measureSelected(app, false)),
  );
  if (app.chain) showChain(app, panel, app.chain);
}

/** Labels of lines for those who know the format. */
const RAW = new Set(["Kind", "Event"]);

/** @param {Lines} lines */
function tableOfLines(lines) {
  const table = document.createElement("table");
  for (const [key, value] of lines) {
    const line = table.insertRow();
    line.append(textElement("th", ""), textElement("td", value));
    line.cells[0].append(key);
  }
  return table;
}

/** The heading of a span: its text, in words if its name is not for people. @param {Store} store @param {number} i */
function headOf(store, i) {
  const name = store.names[store.name[i]];
  const text = callText(store, i).replace(shownName(name), () => wordedName(name));
  return store.kind[i] === Kind.WAIT ? `waits for ${text}` : text;
}

/** For spans of these kinds without length, the duration is unknown if the trace cannot show one of these. @type {Map<number, string[]>} */
const UNTIMED = new Map([
  [Kind.TRAP, [CANNOT_SHOW.KERNEL_FAULTS, CANNOT_SHOW.EXCEPTIONS, CANNOT_SHOW.NMIS]], [Kind.SYSCALL, [CANNOT_SHOW.DENIED]],
]);

/** True if the duration of a span is unknown. @param {Store} store @param {number} i */
const isUntimed = (store, i) => store.dur[i] === 0 && (UNTIMED.get(store.kind[i]) ?? []).some((text) => store.meta.unseen?.includes(text));

/** The end and duration of a span. @param {Store} store @param {number} i @returns {[string, string][]} */
const lastsOf = (store, i) => [
  ["End", `${secondsText(store.start[i] + store.dur[i])} s`], ["Duration", durationText(store.dur[i])],
];

/** An argument; of a call's first argument only the low bits are known. @param {Store} store @param {number} i @param {number} arg */
function argumentOf(store, i, arg) {
  const isCall = store.kind[i] === Kind.SYSCALL;
  const bits = `the low ${arg > 0xffff ? 32 : 16} bits`;
  if (takesAddress(store, i)) return `an address, of which ${bits} are 0x${arg.toString(16)}`;
  return `${arg} (0x${arg.toString(16)}${isCall ? `, ${bits}` : ""})`;
}

/** A thread, with its earlier names. @param {Store} store @param {number} pid */
function threadNow(store, pid) {
  const earlier = store.earlier.get(pid);
  return `${threadText(store, pid)}${earlier === undefined ? "" : `, earlier ${shownName(earlier)}`}`;
}

/** Labels of lines that describe a piece, not its whole. */
const OF_PIECES = new Set(["Start", "End", "Duration", "CPU", "Returned", "IPC", "LLC misses"]);

/** The details of a whole call. @param {App} app @param {Call} call @returns {Lines} */
function linesOfWhole(app, call) {
  const { store } = app;
  const { pieces } = call;
  const [kind, ...rest] = detailsOf(store, pieces[0]).filter(([what]) => !OF_PIECES.has(String(what)));
  const cpus = [...new Set(pieces.map((i) => store.cpus[store.cpu[i]]))];
  return [kind, ...timesOfCall(call), [cpus.length > 1 ? "CPUs" : "CPU", cpus.join(", ")], ...linesOfReturn(store, pieces[pieces.length - 1]), ...partsOfCall(app, call), ...rest];
}

/**
 * The details of a span: pairs of label and value.
 * @param {Store} store
 * @param {number} i
 * @returns {Lines}
 */
function detailsOf(store, i) {
  const kind = store.kind[i];
  const cpu = store.cpus[store.cpu[i]];
  const pid = store.pids[store.pid[i]];
  const event = store.events[store.event[i]];
  const arc = kind === Kind.WAKEUP || kind === Kind.IPI;
  /** @type {Lines} */
  const lines = [
    ["Kind", KIND_NAMES[kind]],
    ["Start", `${secondsText(store.start[i])} s`],
    ...(isUntimed(store, i) ? [] : lastsOf(store, i)),
    ["Clock", clockText(store.meta.tracebase, store.start[i], 8)],
  ];
  if (cpu >= 0) lines.push([arc ? "From CPU" : "CPU", String(cpu)]);
  const arg = valueOf(store.arg[i]);
  if (arc) lines.push(["To CPU", String(arg)]);
  if (pid > 0 || (pid === 0 && !arc)) lines.push([arc ? "From thread" : "Thread", threadNow(store, pid)]);
  if (pid > 0 && processOf(store, pid) !== pid) lines.push(["Of process", threadNow(store, processOf(store, pid))]);
  const group = pid > 0 ? cgroupsOf(store)(pid) : undefined;
  if (group) lines.push(["Control group", shownName(group.short === group.path ? group.path : `${group.short} (${group.path})`)]);
  if (kind === Kind.WAKEUP) lines.push(["To thread", threadNow(store, wokenBy(store, i))]);
  lines.push(...linesOfReturn(store, i));
  const times = timesText(store, store.name[i]);
  if (times !== "") lines.push(["In the trace", `${times} ×`]);
  if (store.rpc[i] !== 0) lines.push(["RPC", String(store.rpc[i] & 0xffff)]);
  if (isExecution(kind)) lines.push(...counterTexts(store, i));
  if (event === EVENT.RX_FLOW || event === EVENT.TX_FLOW) lines.push(["Bytes", String(valueOf(store.ret[i]))], [/\/udp#/.test(callText(store, i)) ? "Hash" : "Sequence", String(arg)]);
  else if (!arc && arg !== null && kind !== Kind.WAIT) lines.push(["Argument", argumentOf(store, i, arg)]);
  lines.push(["Event", event < 0 ? String(event) : `0x${event.toString(16)}`]);
  return lines;
}
