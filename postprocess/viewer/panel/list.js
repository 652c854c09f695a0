// SPDX-License-Identifier: BSD-3-Clause
// Spans as a table: the visible ones or those of the whole trace, only matches if there is a search; sorted by any column, or added up
// in groups, with the histogram of their durations. It serves readers who prefer text, and screen readers.
//
// All passes run over numbers of spans in typed arrays; only the lines shown are sorted and put in words.

import { eachThing } from "../data/calls.js";
import { countText, durationText, parseDuration, secondsText } from "../data/format.js";
import { minOfStep, Pivot, STEPS } from "../data/pivot.js";
import { KIND_WORDS, SELECTOR } from "../data/selector.js";
import { KIND_NAMES } from "../data/tables.js";
import { goToCall } from "./call.js";
import { columnsOfSpans, GROUP_COLUMNS, groupCell, groupColumns, NUMBER_COLUMNS, ranksOf } from "./columns.js";
import { addFilters, filterNotes, keptOfGroups, toggleFilters, valueCell } from "./filters.js";
import { histogramOf } from "./histogram.js";
import { CALLS } from "./listing.js";
import { csvOfSpans, fileName, offer } from "./save.js";
import { actionButton, closeButton, completeTable, longTableOf, textElement } from "../dom.js";
/**
 * @import {Taker} from "../data/calls.js"
 * @import {Store} from "../data/decode.js"
 * @import {Column} from "../data/part.js"
 * @import {Durations, Grouping} from "../data/pivot.js"
 * @import {SpanColumn} from "./columns.js"
 * @import {Listing} from "./listing.js"
 * @import {App} from "../main.js"
 */

/** Maximum number of lines of the table. */
const LIST_MAX = 200;
/** Number of candidates kept while searching for the first in order. */
const LIST_ROOM = 4096;

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
  const keep = (/** @type {number} */ i, /** @type {number} */ key) => {
    keys[count] = key;
    kept[count++] = i;
    if (count === LIST_ROOM) cut();
  };
  // Backwards, the latest come first: no candidate is displaced later.
  if (title === "Start" && down) for (let k = ids.length - 1; k >= 0; k--) {
    const key = -values[ids[k]];
    if (key < bar) keep(ids[k], key);
  } else if (ranks || none === 0) for (let k = 0; k < ids.length; k++) {
    const value = values[ids[k]];
    const key = value === none ? Number.MAX_VALUE : sign * (ranks ? ranks[value] : value);
    if (!(key >= bar)) keep(ids[k], key);
  } else for (let k = 0; k < ids.length; k++) {
    const key = sign * values[ids[k]];
    if (!(key >= bar)) keep(ids[k], key);
  }
  cut();
  return [...kept.subarray(0, count)];
}

/** The candidates for the longest spans in the table, found from the count in each step of duration: they include a few more. @param {Uint32Array} ids @param {Column} dur @param {Uint32Array} steps */
function longestOf(ids, dur, steps) {
  const wanted = Math.min(LIST_MAX, ids.length);
  let [step, count] = [STEPS, 0];
  while (count < wanted) count += steps[--step];
  const min = minOfStep(step);
  const longest = new Uint32Array(count);
  let at = 0;
  for (let k = 0; k < ids.length; k++) if (dur[ids[k]] >= min) longest[at++] = ids[k];
  return longest;
}

/** Labels of all groups of a grouping, made once. @type {WeakMap<Grouping, string[]>} */
const TEXTS = new WeakMap();

/** @param {Grouping} grouping */
function textsOf(grouping) {
  const texts = TEXTS.get(grouping) ?? Array.from({ length: grouping.size }, (_, k) => grouping.text(k));
  TEXTS.set(grouping, texts);
  return texts;
}

/** The label of a group; a negative number is that of all groups in excess. @param {Grouping} grouping @param {number} number */
const textOfGroup = (grouping, number) => (number < 0 ? "all others" : grouping.text(number));

/** The groups that the filters keep, in the chosen order, or by sum if they do not have that column. @param {Listing} list @param {Pivot} pivot */
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
  const keeps = keptOfGroups(list);
  return [...keys.keys()].filter((at) => keeps(pivot.groups[at])).sort((a, b) => keys[a] - keys[b]);
}

/** The table of groups, each with a link to its spans. @param {App} app @param {Pivot} pivot @param {number[]} order */
function tableOfGroups(app, pivot, order) {
  const { list } = app;
  const { chosen } = list;
  const first = order.slice(0, LIST_MAX);
  pivot.countSteps(first.map((at) => pivot.groups[at]));
  const lines = first.map((at) => {
    const numbers = chosen.map((_, which) => pivot.numberOf(at, which));
    const texts = chosen.map(([, grouping], which) => textOfGroup(grouping, numbers[which]));
    const finds = chosen.map(([, grouping], which) => (numbers[which] < 0 ? "" : grouping.find(numbers[which])));
    // A filter replaces a search that does not exist: for the reason of a call.
    const reason = chosen.findIndex(([title], which) => title === "Reason" && finds[which] === "");
    const isFound = finds.every((text, which) => text !== "" || which === reason);
    const link = isFound ? actionButton(texts[0], "Search for these and list them", () => narrowTo(app, finds, reason < 0 ? "" : `=${texts[reason]}`)) : texts[0];
    return [link, ...texts.slice(1), ...groupColumns(list).map(([title, value]) => groupCell(list, title, value(pivot.groups[at])))];
  });
  return longTableOf([...chosen.map(([title]) => title), ...groupColumns(list).map(([title]) => title)], lines);
}

/** Searches for one group of the listed items, in addition to the current search except for its name. @param {App} app @param {string[]} finds @param {string} reason filter of the reason, if the group has one */
function narrowTo(app, finds, reason) {
  const { query } = app.search;
  const selectors = [...query.pattern.matchAll(SELECTOR)].map(([text]) => text);
  const names = finds.filter((text) => !/^(pid|cpu|woken|to):/.test(text));
  const rest = names.length > 0 ? names : [query.pattern.replace(SELECTOR, "").trim()];
  const pattern = [...new Set([...selectors, ...finds.filter((text) => !names.includes(text))]), ...new Set(rest)].filter((text) => text !== "").join(" ");
  app.list.by = ["", ""];
  if (reason !== "") app.list.filters.set("Reason", reason);
  app.find({ ...query, pattern, invert: query.invert && names.length === 0 });
}

/** The table of spans, each with a link to its place. @param {App} app @param {Uint32Array} ids @param {Durations} all statistics of their durations */
function tableOfSpans(app, ids, all) {
  const { list } = app;
  const columns = columnsOfSpans(app);
  list.sortByOneOf(columns.map(({ title }) => title), "Duration");
  const sorted = columns.find(({ title }) => title === list.sort) ?? columns[4];
  const likely = sorted.values === list.store.dur && list.down ? longestOf(ids, sorted.values, all.steps) : ids;
  const cellOf = (/** @type {number} */ i, /** @type {number} */ k) => {
    const { title, cell, filtered } = columns[k];
    return filtered.few && filtered.sort !== "number" ? valueCell(app, title, cell(i)) : cell(i);
  };
  const lines = firstInOrder(likely, sorted, list.down).map((i, line) => columns.map(({ cell }, k) =>
    (k > 0 ? cellOf(i, k) : actionButton(cell(i), `${KIND_NAMES[list.store.kind[i]]}: go there`, () => {
      list.line = line;
      if (!list.whole) list.range ??= { t0: app.view.t0, t1: app.view.t1 };
      const first = list.calls ? list.calls.first[i] : i;
      if (list.calls || list.beside?.of[i]) goToCall(app, first);
      else app.goTo(first);
    }))));
  const table = longTableOf(columns.map(({ title }) => title), lines);
  table.classList.add("spans");
  return table;
}

/** Makes the headings sort, and the arrow keys move from line to line. @param {App} app @param {HTMLTableElement} table */
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

/** A menu of choices. @param {string} label @param {[string, string][]} options by value @param {string} chosen @param {(value: string) => void} choose */
function choiceOf(label, options, chosen, choose) {
  const select = document.createElement("select");
  select.ariaLabel = label;
  select.append(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
  select.addEventListener("change", () => choose(select.value));
  return select;
}

/** The menus for the items to list, and for how to list them. @param {App} app @param {(change: () => void) => void} then */
function choicesOf(app, then) {
  const { list, store, view } = app;
  const words = [...KIND_WORDS].filter(([, kinds]) => kinds.some((kind) => store.kinds.has(kind))).map(([word]) => word);
  const groupings = list.offered.map(([id, title]) => /** @type {[string, string]} */ ([id, `by ${title.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())}`]));
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
    choiceOf("Group by", [["", `each ${list.thing}`], ...groupings], list.by[0], (value) => then(() => (list.by = [value, value === "" ? "" : list.by[1]]))),
  );
  if (list.by[0] !== "") {
    choices.append(choiceOf("And by", [["", "and by nothing"], ...groupings.filter(([id]) => id !== list.by[0])], list.by[1], (value) => then(() => (list.by[1] = value))));
  }
  return choices;
}

/** A table as text that can be pasted into spreadsheets. @param {HTMLTableElement} table */
function textOfTable(table) {
  completeTable(table);
  return [...table.rows].filter(({ className }) => className === "").map((row) => [...row.cells].map((cell) => cell.textContent).join("\t")).join("\n");
}

/** Copies a text to the clipboard. @param {string} text */
function copyText(text) {
  const copy = (/** @type {ClipboardEvent} */ e) => {
    e.preventDefault();
    e.clipboardData?.setData("text/plain", text);
  };
  document.addEventListener("copy", copy, { once: true });
  // Unlike the clipboard API, this needs no permission in a page from disk.
  document.execCommand("copy");
  document.removeEventListener("copy", copy);
}

/** All groups as CSV by RFC 4180, times in ns. @param {Listing} list @param {Pivot} pivot */
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

/** A summary of the listed items in words. @param {Listing} list @param {Pivot} pivot @param {number} groups their number */
function summaryOf({ search, view, chosen, whole, times, thing, beside, filtersNow }, { all }, groups) {
  const { count } = all;
  const where = whole || view.relative ? "whole trace" : `${secondsText(times.t0)} to ${secondsText(times.t1)} s`;
  const head = `${countText(count, thing)}${search.active ? ", matches only" : ""}${filtersNow.length > 0 ? ", filtered" : ""}${beside ? ", calls as wholes" : ""}, ${where}`;
  if (count === 0) return head;
  const quantiles = [["median", 0.5], ["p90", 0.9], ["p99", 0.99]].map(([what, part]) => `${what} ${durationText(all.quantile(Number(part)))}`);
  const things = chosen.length > 0 ? countText(groups, "group") : countText(count, thing);
  const cut = (chosen.length > 0 ? groups : count) > LIST_MAX ? `. The first ${LIST_MAX} of ${things}` : "";
  return `${head}: ${durationText(all.sum)} together, ${quantiles.join(", ")}, longest ${durationText(all.longest)}${cut}.`;
}

/** Restricts the search to a range of durations, in a form that can be typed. @param {App} app @param {number} from @param {number} to */
function keepDurations(app, from, to) {
  const typed = (/** @type {number} */ units) => (parseDuration(durationText(units)) === units ? durationText(units) : `${units * 10} ns`);
  app.find({ ...app.search.query, min: typed(from), max: typed(to) });
}

/**
 * The listed items in the chosen groups; the last result, if it is still valid, as it is if only the order changed.
 * @param {Listing} list
 * @returns {Pivot}
 */
function pivotOf(list) {
  const of = [...list.of, list.by.join()];
  if (!list.added?.of.every((what, k) => what === of[k])) {
    const ids = list.collect();
    if (list.places.length < ids.length && list.chosen.length > 0) list.places = new Uint32Array(ids.length);
    list.added = { of, pivot: new Pivot(list.store, ids, list.chosen.map(([, grouping]) => grouping), list.calls, list.beside, list.places) };
  }
  return list.added.pivot;
}

/** @param {App} app @param {HTMLElement} panel */
export function showList(app, panel) {
  const { list, search: { query } } = app;
  list.shown = list.key;
  const { chosen } = list;
  const pivot = pivotOf(list);
  const order = chosen.length > 0 ? groupsInOrder(list, pivot) : [];
  const table = chosen.length > 0 ? tableOfGroups(app, pivot, order) : tableOfSpans(app, list.collect(), pivot.all);
  const heads = [...table.querySelectorAll("th")].map((head) => head.textContent ?? "");
  commandTable(app, table);
  addFilters(app, table, heads);
  const summary = textElement("p", summaryOf(list, pivot, order.length));
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
  const filter = actionButton("Filter", "Filter columns, or stop (Shift-V)", () => toggleFilters(app));
  filter.ariaPressed = String(list.filtering);
  buttons.unshift(filter);
  if (query.min + query.max !== "") buttons.push(actionButton("All durations", "Clear the limits of the duration", () => app.find({ ...query, min: "", max: "" })));
  panel.replaceChildren(
    closeButton(() => toggleList(app)), textElement("h2", "Table"), choicesOf(app, then),
    histogramOf(pivot.all, (from, to) => keepDurations(app, from, to)), ...buttons, ...filterNotes(app, heads), summary, table,
  );
  if (list.line >= table.tBodies[0].rows.length) completeTable(table);
  const line = /** @type {HTMLElement | null} */ (table.tBodies[0].rows[list.line]?.querySelector("button"));
  if (line) line.focus();
}

/** The numbers of all spans with one name. @param {Store} store @param {number} wanted */
function spansNamed({ n, name }, wanted) {
  const ids = new Uint32Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) if (name[i] === wanted) ids[count++] = i;
  return ids.subarray(0, count);
}

/**
 * Goes from the selected item to the next shorter of those listed or searched, or with the same name; to the longest if the selection is not among them. Calls, faults, interrupts and bottom halves are
 * one item each, regardless of the number of their pieces.
 * @param {App} app
 * @param {number} direction -1 for the next longer, starting with the shortest
 */
export function stepDuration(app, direction) {
  const { search, listing, list, selected, store } = app;
  const { name } = store;
  const ids = listing ? list.collect() : search.active ? search.ids : selected >= 0 ? spansNamed(store, name[selected]) : null;
  if (!ids) return;
  /** @type {(take: Taker) => void} */
  const each = (take) => {
    const calls = listing ? list.calls : null;
    if (!calls) eachThing(store, () => search.calls, ids, take);
    else for (let k = 0; k < ids.length; k++) take(calls.first[ids[k]], calls.store.dur[ids[k]], ids[k]);
  };
  const isSelected = (/** @type {number} */ i, /** @type {number} */ call) => i === selected || (call >= 0 && search.calls.of[selected] - 1 === call);
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
    // Check before the panel covers a part of the picture, so that the table lists all of it.
    app.list.whole = app.view.t0 <= app.view.begin && app.view.t1 >= app.view.end;
    app.select(-1);
  } else {
    app.list.forget();
    app.showDetails();
  }
}

/** Shows the table with boxes for its filters, or removes the boxes. @param {App} app */
export function askFilters(app) {
  if (!app.listing) toggleList(app);
  else if (app.selected >= 0) app.select(-1);
  toggleFilters(app);
}
