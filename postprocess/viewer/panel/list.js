// SPDX-License-Identifier: BSD-3-Clause
// Spans as a table: those in sight or of the whole trace, of what is searched if anything is; sorted by any column, or added up
// in groups, with the histogram of their durations. For whoever would rather read than look, and for screen readers.
//
// All passes run over numbers of spans in typed arrays, and only the lines that are shown are sorted and put in words.

import { eachThing } from "../data/calls.js";
import { countersOf, counterTexts } from "../data/counters.js";
import {
  alignedText, callText, countText, durationText, parseDuration, returnText, secondsText, threadText,
} from "../data/format.js";
import { isExecution } from "../data/kind.js";
import { GROUPINGS, Pivot } from "../data/pivot.js";
import { KIND_WORDS, SELECTOR } from "../data/selector.js";
import { FLAG, KIND_NAMES } from "../data/tables.js";
import { goToCall } from "./call.js";
import { histogramOf } from "./histogram.js";
import { CALLS } from "./listing.js";
import { csvOfSpans, fileName, offer } from "./save.js";
import { actionButton, closeButton, tableOf, textElement } from "../dom.js";
/**
 * @import {Taker} from "../data/calls.js"
 * @import {Store} from "../data/decode.js"
 * @import {Column} from "../data/part.js"
 * @import {Durations, Grouping} from "../data/pivot.js"
 * @import {Listing} from "./listing.js"
 * @import {App} from "../main.js"
 */

/** Lines of the table. */
const LIST_MAX = 200;
/** Spans kept while the first in order are looked for. */
const LIST_ROOM = 4096;

/**
 * A column of spans: its title, what a cell says, the values sorted by, and what gives the rank of each value if it is not itself one.
 * @typedef {{title: string, cell: (i: number) => string | Node, values: Column, ranks: (() => ArrayLike<number>) | null}} SpanColumn
 */

/** Ranks that were needed once: there may be tens of thousands of texts. @type {WeakMap<readonly (string | number)[], Uint32Array>} */
const RANKS = new WeakMap();

/** The rank of each of some texts, by what has these texts. @template {string | number} T @param {readonly T[]} values @param {(value: T) => string} textOf */
function ranksOf(values, textOf) {
  let ranks = RANKS.get(values);
  if (!ranks) {
    const texts = values.map(textOf);
    RANKS.set(values, (ranks = new Uint32Array(texts.length)));
    for (const [rank, k] of [...texts.keys()].sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0)).entries()) ranks[k] = rank;
  }
  return ranks;
}

/** The columns of single spans or calls. @param {App} app @returns {SpanColumn[]} */
function columnsOfSpans({ list: { store, calls } }) {
  const { name, names, pid, pids, cpu, cpus, start, dur, ret, ipc, kind } = store;
  const counted = (store.meta.flags & FLAG.COUNTERS) !== 0;
  const cpuText = (/** @type {number} */ i) => (cpus[cpu[i]] >= 0 ? String(cpus[cpu[i]]) : "");
  return [
    { title: "Span", cell: (i) => callText(store, i), values: name, ranks: () => ranksOf(names, (text) => text) },
    { title: "Thread", cell: (i) => (pids[pid[i]] >= 0 ? threadText(store, pids[pid[i]]) : ""), values: pid, ranks: () => ranksOf(pids, (number) => threadText(store, number)) },
    { title: "CPU", cell: cpuText, values: cpu, ranks: () => cpus },
    { title: "Start", cell: (i) => secondsText(start[i]), values: start, ranks: null },
    { title: "Duration", cell: (i) => alignedText(dur[i]), values: dur, ranks: null },
    ...(calls ? [{ title: "Own time", cell: (/** @type {number} */ i) => alignedText(calls.own[i]), values: calls.own, ranks: null }] : []),
    { title: "Returned", cell: (i) => returnText(store, i) ?? "", values: ret, ranks: null },
    ...(counted && !calls ? [{ title: "IPC", cell: (/** @type {number} */ i) => (isExecution(kind[i]) ? counterTexts(store, i)[0][1] : ""), values: ipc, ranks: null }] : []),
  ];
}

/**
 * The first of some spans in the order of a column, those without a value last.
 * @param {Uint32Array} ids in order of time
 * @param {SpanColumn} column
 * @param {boolean} down
 * @returns {number[]}
 */
function firstInOrder(ids, { title, values, ranks: ranksOfAll }, down) {
  const ranks = ranksOfAll?.();
  const sign = down ? -1 : 1;
  const none = title === "Returned" ? 0 : NaN;
  const keys = new Float64Array(LIST_ROOM);
  const kept = new Uint32Array(LIST_ROOM);
  let count = 0;
  let bar = Infinity;
  const cut = () => {
    const order = Array.from({ length: count }, (_, k) => k).sort((a, b) => keys[a] - keys[b] || kept[a] - kept[b]).slice(0, LIST_MAX);
    const lines = order.map((k) => [keys[k], kept[k]]);
    count = lines.length;
    lines.forEach(([key, i], k) => {
      keys[k] = key;
      kept[k] = i;
    });
    if (count === LIST_MAX) bar = keys[count - 1];
  };
  // Backwards, the latest come first: nothing has to be put off again.
  const [from, by] = title === "Start" && down ? [ids.length - 1, -1] : [0, 1];
  for (let k = from, left = ids.length; left > 0; left--, k += by) {
    const value = values[ids[k]];
    const key = value === none ? Number.MAX_VALUE : sign * (ranks ? ranks[value] : value);
    if (key >= bar) continue;
    keys[count] = key;
    kept[count++] = ids[k];
    if (count === LIST_ROOM) cut();
  }
  cut();
  return [...kept.subarray(0, count)];
}

/** A column of groups: its title, and its value. @typedef {[string, (durations: Durations) => number]} GroupColumn */

/** The columns of groups that follow what they are grouped by. @type {readonly GroupColumn[]} */
const GROUP_COLUMNS = Object.freeze([
  ["Count", (durations) => durations.count], ["Sum", (durations) => durations.sum], ["Shortest", (durations) => durations.shortest],
  ["Median", (durations) => durations.quantile(0.5)], ["p90", (durations) => durations.quantile(0.9)],
  ["p99", (durations) => durations.quantile(0.99)], ["Longest", (durations) => durations.longest],
]);
/** One more, of whole calls. @type {GroupColumn} */
const OWN_COLUMN = ["Own time", (durations) => durations.own];
/** More, where they were counted; of waits and the like nothing was. @type {GroupColumn} */
const IPC_COLUMN = ["IPC", (durations) => durations.pace];
/** @type {GroupColumn} */
const MISSES_COLUMN = ["LLC misses", (durations) => (durations.counted > 0 ? durations.misses : -1)];

/** The columns of groups of what is listed: with own time after the sum of calls, and with sums of what was counted. @param {Listing} list */
function groupColumns({ spans, calls }) {
  const { paces, misses } = countersOf(spans);
  return [
    ...GROUP_COLUMNS.slice(0, 2), ...(calls ? [OWN_COLUMN] : []), ...GROUP_COLUMNS.slice(2),
    ...(paces ? [IPC_COLUMN] : []), ...(misses ? [MISSES_COLUMN] : []),
  ];
}

/** Columns of groups that are not times. */
const NUMBER_COLUMNS = new Set(["Count", "IPC", "LLC misses"]);

/** A cell of a group: a number that is known from below has a plus after it. @param {Listing} list @param {string} title @param {number} value */
function groupCell({ spans }, title, value) {
  if (value < 0) return "";
  if (title === "IPC") return `${value.toFixed(2)}${countersOf(spans).isPair ? "+" : ""}`;
  if (NUMBER_COLUMNS.has(title)) return `${value.toLocaleString("en")}${title === "Count" ? "" : "+"}`;
  return alignedText(value);
}

/** What all groups of a grouping are called, made once. @type {WeakMap<Grouping, string[]>} */
const TEXTS = new WeakMap();

/** @param {Grouping} grouping */
function textsOf(grouping) {
  const texts = TEXTS.get(grouping) ?? Array.from({ length: grouping.size }, (_, k) => grouping.text(k));
  TEXTS.set(grouping, texts);
  return texts;
}

/** What a group is called; those that were too many have no number. @param {Grouping} grouping @param {number} number */
const textOfGroup = (grouping, number) => (number < 0 ? "all others" : grouping.text(number));

/** The groups in the order asked for, by sum if that is by something they do not have. @param {Listing} list @param {Pivot} pivot */
function groupsInOrder(list, pivot) {
  const { chosen } = list;
  const columns = groupColumns(list);
  list.sortByOneOf([...chosen, ...columns].map(([title]) => title), "Sum");
  const { sort, down } = list;
  const which = chosen.findIndex(([title]) => title === sort);
  const ranks = which < 0 ? null : ranksOf(textsOf(chosen[which][1]), (text) => text);
  const [, value] = columns.find(([title]) => title === sort) ?? GROUP_COLUMNS[1];
  const sign = down ? -1 : 1;
  const keys = pivot.groups.map((group, at) => sign * (ranks ? ranks[pivot.numberOf(at, which)] ?? 0 : value(group)));
  return keys.map((_, at) => at).sort((a, b) => keys[a] - keys[b]);
}

/** The table of groups: each leads to its spans. @param {App} app @param {Pivot} pivot */
function tableOfGroups(app, pivot) {
  const { list } = app;
  const { chosen } = list;
  const first = groupsInOrder(list, pivot).slice(0, LIST_MAX);
  pivot.countSteps(first.map((at) => pivot.groups[at]));
  const lines = first.map((at) => {
    const numbers = chosen.map((_, which) => pivot.numberOf(at, which));
    const texts = chosen.map(([, grouping], which) => textOfGroup(grouping, numbers[which]));
    const finds = chosen.map(([, grouping], which) => (numbers[which] < 0 ? "" : grouping.find(numbers[which])));
    const link = finds.includes("") ? texts[0] : actionButton(texts[0], "Search for these and list them", () => narrowTo(app, finds));
    return [link, ...texts.slice(1), ...groupColumns(list).map(([title, value]) => groupCell(list, title, value(pivot.groups[at])))];
  });
  return tableOf([...chosen.map(([title]) => title), ...groupColumns(list).map(([title]) => title)], lines);
}

/** Searches one group of what is listed: what was searched stays, but for a name. @param {App} app @param {string[]} finds */
function narrowTo(app, finds) {
  const { query } = app.search;
  const selectors = [...query.pattern.matchAll(SELECTOR)].map(([text]) => text);
  const names = finds.filter((text) => !/^(pid|cpu):/.test(text));
  const rest = names.length > 0 ? names : [query.pattern.replace(SELECTOR, "").trim()];
  const pattern = [...new Set([...selectors, ...finds.filter((text) => !names.includes(text))]), ...rest].filter((text) => text !== "").join(" ");
  app.list.by = ["", ""];
  app.find({ ...query, pattern, invert: query.invert && names.length === 0 });
}

/** The table of spans: each leads to where it lies. @param {App} app @param {Uint32Array} ids */
function tableOfSpans(app, ids) {
  const { list } = app;
  const columns = columnsOfSpans(app);
  list.sortByOneOf(columns.map(({ title }) => title), "Duration");
  const sorted = columns.find(({ title }) => title === list.sort) ?? columns[4];
  const lines = firstInOrder(ids, sorted, list.down).map((i, line) => columns.map(({ cell }, k) =>
    (k > 0 ? cell(i) : actionButton(String(cell(i)), `${KIND_NAMES[list.store.kind[i]]}: go there`, () => {
      list.line = line;
      if (!list.whole) list.range ??= { t0: app.view.t0, t1: app.view.t1 };
      if (list.calls) goToCall(app, list.calls.first[i]);
      else app.goTo(i);
    }))));
  const table = tableOf(columns.map(({ title }) => title), lines);
  table.classList.add("spans");
  return table;
}

/** Makes the headings sort, and the arrow keys go from line to line. @param {App} app @param {HTMLTableElement} table */
function commandTable(app, table) {
  const { list } = app;
  table.hidden = false;
  for (const head of table.querySelectorAll("th")) {
    const title = head.textContent ?? "";
    if (title === list.sort) head.ariaSort = list.down ? "descending" : "ascending";
    head.replaceChildren(actionButton(title, `Sort by ${title.toLowerCase()}`, () => {
      list.sortBy(title);
      list.line = -1;
      app.showDetails();
      const heads = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#details th button")]);
      heads.find((button) => button.textContent === title)?.focus();
    }));
  }
  table.addEventListener("keydown", (e) => {
    const line = /** @type {Element} */ (e.target).closest("tbody tr");
    const next = e.key === "ArrowDown" ? line?.nextElementSibling : e.key === "ArrowUp" ? line?.previousElementSibling : undefined;
    if (next === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    next?.querySelector("button")?.focus();
  });
}

/** A choice. @param {string} label @param {[string, string][]} options by value @param {string} chosen @param {(value: string) => void} choose */
function choiceOf(label, options, chosen, choose) {
  const select = document.createElement("select");
  select.ariaLabel = label;
  select.append(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
  select.addEventListener("change", () => choose(select.value));
  return select;
}

/** What may be listed, and how. @param {App} app @param {(change: () => void) => void} then */
function choicesOf(app, then) {
  const { list, store, view } = app;
  const words = [...KIND_WORDS].filter(([, kinds]) => kinds.some((kind) => store.kinds.has(kind))).map(([word]) => word);
  const offered = GROUPINGS.filter(([id]) => id !== "cgroup" || store.meta.cgroups);
  const groupings = offered.map(([id, title]) => /** @type {[string, string]} */ ([id, `by ${title === "CPU" ? title : title.toLowerCase()}`]));
  const choices = document.createElement("div");
  choices.className = "choices";
  const where = choiceOf("Where", [["sight", "in sight"], ["whole", "whole trace"]], list.whole || view.relative ? "whole" : "sight", (value) => then(() => {
    list.whole = value === "whole";
    list.range = null;
  }));
  where.disabled = view.relative;
  choices.append(
    choiceOf("Kinds", [["all", app.search.query.pattern === "" ? "all but idle" : "all kinds"], [CALLS, "whole calls"], ...words.map((word) => /** @type {[string, string]} */ ([word, word]))],
      list.what, (value) => then(() => (list.what = value))),
    where,
    choiceOf("Group by", [["", list.calls ? "each call" : "each span"], ...groupings], list.by[0], (value) => then(() => (list.by = [value, value === "" ? "" : list.by[1]]))),
  );
  if (list.by[0] !== "") {
    choices.append(choiceOf("And by", [["", "and by nothing"], ...groupings.filter(([id]) => id !== list.by[0])], list.by[1], (value) => then(() => (list.by[1] = value))));
  }
  return choices;
}

/** A table as text that spreadsheets take. @param {HTMLTableElement} table */
const textOfTable = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join("\t")).join("\n");

/** Puts a text where it can be pasted from. @param {string} text */
function copyText(text) {
  const copy = (/** @type {ClipboardEvent} */ e) => {
    e.preventDefault();
    e.clipboardData?.setData("text/plain", text);
  };
  document.addEventListener("copy", copy, { once: true });
  // No page on a disk needs to be asked for this one.
  document.execCommand("copy");
  document.removeEventListener("copy", copy);
}

/** All groups as RFC 4180 has it, times in ns. @param {Listing} list @param {Pivot} pivot */
function csvOfGroups(list, pivot) {
  const { chosen } = list;
  const quoted = (/** @type {string} */ text) => `"${text.replaceAll('"', '""')}"`;
  const columns = groupColumns(list);
  const isTime = (/** @type {string} */ title) => !NUMBER_COLUMNS.has(title);
  const head = [...chosen.map(([title]) => title.toLowerCase()), ...columns.map(([title]) => title.toLowerCase().replace(" ", "_") + (isTime(title) ? "_ns" : ""))];
  const cell = (/** @type {string} */ title, /** @type {number} */ value) =>
    (isTime(title) ? value * 10 : value < 0 ? "" : title === "IPC" ? value.toFixed(2) : value);
  const lines = groupsInOrder(list, pivot).map((at) => [
    ...chosen.map(([, grouping], which) => quoted(textOfGroup(grouping, pivot.numberOf(at, which)))),
    ...columns.map(([title, value]) => cell(title, value(pivot.groups[at]))),
  ].join(","));
  return new Blob([[head.join(","), ...lines, ""].join("\r\n")], { type: "text/csv" });
}

/** What is listed, in words. @param {Listing} list @param {Pivot} pivot @param {number} shown */
function summaryOf({ search, view, chosen, whole, times, calls }, pivot, shown) {
  const thing = calls ? "call" : "span";
  const { all, groups } = pivot;
  const { count } = all;
  const where = whole || view.relative ? "whole trace" : `${secondsText(times.t0)} to ${secondsText(times.t1)} s`;
  const head = `${countText(count, thing)}${search.active ? ", matches only" : ""}, ${where}`;
  if (count === 0) return head;
  const quantiles = [["median", 0.5], ["p90", 0.9], ["p99", 0.99]].map(([what, part]) => `${what} ${durationText(all.quantile(Number(part)))}`);
  const things = chosen.length > 0 ? countText(groups.length, "group") : countText(count, thing);
  const cut = (chosen.length > 0 ? groups.length : count) > shown ? `. The first ${shown} of ${things}` : "";
  return `${head}: ${durationText(all.sum)} together, ${quantiles.join(", ")}, longest ${durationText(all.longest)}${cut}.`;
}

/** Keeps durations from and to a bound, as far as they can be typed. @param {App} app @param {number} from @param {number} to */
function keepDurations(app, from, to) {
  const typed = (/** @type {number} */ units) => (parseDuration(durationText(units)) === units ? durationText(units) : `${units * 10} ns`);
  app.find({ ...app.search.query, min: typed(from), max: typed(to) });
}

/**
 * What is listed in the groups chosen: what was added up last, if that is the same, as it is whenever only the order is another.
 * @param {Listing} list
 * @returns {Pivot}
 */
function pivotOf(list) {
  const of = [list.what, list.key, list.by.join(), list.search.ids];
  if (!list.added?.of.every((what, k) => what === of[k])) {
    list.added = { of, pivot: new Pivot(list.store, list.collect(), list.chosen.map(([, grouping]) => grouping), list.calls) };
  }
  return list.added.pivot;
}

/** @param {App} app @param {HTMLElement} panel */
export function showList(app, panel) {
  const { list, search: { query } } = app;
  list.shown = list.key;
  const { chosen } = list;
  const pivot = pivotOf(list);
  const table = chosen.length > 0 ? tableOfGroups(app, pivot) : tableOfSpans(app, list.collect());
  const lines = table.rows.length - 1;
  commandTable(app, table);
  const summary = textElement("p", summaryOf(list, pivot, lines));
  summary.id = "listed";
  table.setAttribute("aria-describedby", summary.id);
  const then = (/** @type {() => void} */ change) => {
    change();
    list.line = -1;
    const label = document.activeElement?.ariaLabel;
    app.showDetails();
    [...panel.querySelectorAll("select")].find((select) => select.ariaLabel === label)?.focus();
  };
  const csv = () => offer(fileName(app, "csv"), chosen.length > 0 ? csvOfGroups(list, pivotOf(list)) : csvOfSpans(list.store, list.collect()));
  const buttons = [
    actionButton("Longest (J)", "The longest of these, calls as wholes; then the next shorter; Shift-J goes back", () => stepDuration(app, 1)),
    actionButton("CSV", "Save all of this as a table", csv), actionButton("Copy", "Copy the lines below", () => copyText(textOfTable(table))),
  ];
  if (query.min + query.max !== "") buttons.push(actionButton("All durations", "Clear the limits of the duration", () => app.find({ ...query, min: "", max: "" })));
  panel.replaceChildren(
    closeButton(() => toggleList(app)), textElement("h2", "Table"), choicesOf(app, then),
    histogramOf(pivot.all, (from, to) => keepDurations(app, from, to)), ...buttons, summary, table,
  );
  const line = /** @type {HTMLElement | null} */ (table.tBodies[0].rows[list.line]?.querySelector("button"));
  if (line) line.focus();
}

/** The numbers of all spans of one name. @param {Store} store @param {number} wanted */
function spansNamed({ n, name }, wanted) {
  const ids = new Uint32Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) if (name[i] === wanted) ids[count++] = i;
  return ids.subarray(0, count);
}

/**
 * Goes from what is selected to the next shorter of what is listed or searched, or of its name; to the longest if it is none of these. Calls and faults are
 * one thing each, however many pieces they have.
 * @param {App} app
 * @param {number} direction -1 for the next longer, from the shortest
 */
export function stepDuration(app, direction) {
  const { search, listing, list, selected, store } = app;
  const { kind, name, pid } = store;
  const ids = listing ? list.collect() : search.active ? search.ids : selected >= 0 ? spansNamed(store, name[selected]) : null;
  if (!ids) return;
  /** @type {(take: Taker) => void} */
  const each = (take) => {
    const calls = listing ? list.calls : null;
    if (!calls) eachThing(store, () => search.calls, ids, take);
    else for (let k = 0; k < ids.length; k++) take(calls.first[ids[k]], calls.store.dur[ids[k]], ids[k]);
  };
  const isSelected = (/** @type {number} */ i, /** @type {number} */ call) => i === selected
    || (call >= 0 && i < selected && selected <= search.calls.last[call] && pid[i] === pid[selected] && kind[i] === kind[selected]);
  let [current, currentLength, next, nextLength, nextCall] = [-1, 0, -1, 0, -1];
  if (selected >= 0) each((i, length, call) => {
    if (isSelected(i, call)) [current, currentLength] = [i, length];
  });
  each((i, length, call) => {
    if (current >= 0 && direction * (currentLength - length || i - current) <= 0) return;
    if (next >= 0 && direction * (length - nextLength || next - i) <= 0) return;
    [next, nextLength, nextCall] = [i, length, call];
  });
  if (next < 0) return;
  if (listing && !list.whole) list.range ??= { t0: app.view.t0, t1: app.view.t1 };
  if (nextCall < 0) app.goTo(next);
  else goToCall(app, next);
}

/** @param {App} app */
export function toggleList(app) {
  app.listing = !app.listing;
  app.asked.open = false;
  app.list.range = null;
  app.list.line = -1;
  app.notes.selected = null;
  if (app.listing) {
    // The panel takes some of what is in sight, and is to list all of it.
    app.list.whole = app.view.t0 <= app.view.begin && app.view.t1 >= app.view.end;
    app.select(-1);
  } else {
    app.list.room = new Uint32Array(0);
    app.list.added = null;
    app.showDetails();
  }
}
