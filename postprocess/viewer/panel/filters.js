// SPDX-License-Identifier: BSD-3-Clause
// The filters of the table: a line of boxes below its headings, and a button for each filter whose column is not shown.

import { Filter, FILTER_MAY } from "../data/filter.js";
import { groupColumns, NUMBER_COLUMNS } from "./columns.js";
import { OF_GROUPS } from "./listing.js";
import { actionButton, byId, textElement } from "../dom.js";
/**
 * @import {Sort} from "../data/filter.js"
 * @import {Durations} from "../data/pivot.js"
 * @import {Listing} from "./listing.js"
 * @import {App} from "../main.js"
 */

/** Time that typing must rest before its text is used, ms. */
const TYPING_REST = 200;

/** The titles of the filters of the table's columns; in a table of groups, columns of sums have titles of their own. @param {Listing} list @param {string[]} heads */
const titlesOf = ({ chosen }, heads) => heads.map((head, k) => (chosen.length > 0 && k >= chosen.length ? OF_GROUPS + head : head));

/** The sort of values in a column. @param {Listing} list @param {string} title @returns {Sort | null} */
function sortOf(list, title) {
  if (!title.startsWith(OF_GROUPS)) return list.filteredBy(title)?.sort ?? null;
  return NUMBER_COLUMNS.has(title.slice(OF_GROUPS.length)) ? "number" : "duration";
}

/** Returns a test for whether the filters keep a group, by the values of its columns. @param {Listing} list @returns {(group: Durations) => boolean} */
export function keptOfGroups(list) {
  const filters = groupColumns(list).flatMap(([title, value]) => {
    const typed = list.filters.get(OF_GROUPS + title);
    const filter = typed === undefined ? null : new Filter(typed, sortOf(list, OF_GROUPS + title) ?? "number");
    return filter && !filter.isWrong ? [{ value, filter }] : [];
  });
  return (group) => filters.every(({ value, filter }) => filter.keepsNumber(value(group)));
}

/** Sets the filter of a column. @param {Listing} list @param {string} title @param {string} typed empty for no filter */
function setFilter({ filters }, title, typed) {
  if (typed.trim() === "") filters.delete(title);
  else filters.set(title, typed);
}

/** Repeats the list after a change of filters; a box that has the focus keeps it. @param {App} app */
function listAnew(app) {
  const box = document.activeElement instanceof HTMLInputElement && document.activeElement.closest(".filters") ? document.activeElement : null;
  const place = box && { label: box.ariaLabel, from: box.selectionStart, to: box.selectionEnd };
  app.list.line = -1;
  app.showDetails();
  app.noteAddress();
  const again = place && boxes().find((one) => one.ariaLabel === place.label);
  again?.focus();
  again?.setSelectionRange(place?.from ?? 0, place?.to ?? 0);
}

const boxes = () => /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll("#details .filters input")]);

/** Filters a column by a value, or removes its filter. @param {App} app @param {string} title @param {string} typed */
function filterBy(app, title, typed) {
  setFilter(app.list, title, typed);
  listAnew(app);
}

/** The box for a column's filter. @param {App} app @param {string} title @param {Sort} sort */
function filterBox(app, title, sort) {
  const { list } = app;
  const box = document.createElement("input");
  box.type = "text";
  box.maxLength = 100;
  box.autocomplete = "off";
  box.spellcheck = false;
  box.value = list.filters.get(title) ?? "";
  box.ariaLabel = `Filter ${title.replace(OF_GROUPS, "")}`;
  box.placeholder = FILTER_MAY[sort].split(", ")[0];
  box.title = `Keep only: ${FILTER_MAY[sort]}`;
  box.ariaInvalid = String(box.value !== "" && new Filter(box.value, sort).isWrong);
  const soon = (/** @type {number} */ rest) => {
    clearTimeout(list.typing);
    list.typing = setTimeout(() => listAnew(app), rest);
  };
  box.addEventListener("input", () => {
    setFilter(list, title, box.value);
    soon(TYPING_REST);
  });
  box.addEventListener("keydown", (e) => {
    if (e.key === "Enter") soon(0);
    else if (e.key === "ArrowDown") /** @type {HTMLElement | null} */ (document.querySelector("#details tbody button"))?.focus();
    else if (e.key === "Escape" && box.value === "") byId("overlay").focus();
    else if (e.key === "Escape") {
      box.value = "";
      setFilter(list, title, "");
      soon(0);
    }
  });
  return box;
}

/** Adds the boxes below the headings, if filtering is on. @param {App} app @param {HTMLTableElement} table @param {string[]} heads */
export function addFilters(app, table, heads) {
  const { list } = app;
  if (!list.filtering || !table.tHead) return;
  const line = table.tHead.insertRow();
  line.className = "filters";
  for (const title of titlesOf(list, heads)) {
    const sort = sortOf(list, title);
    line.insertCell().append(...(sort ? [filterBox(app, title, sort)] : []));
  }
}

/** A value in a line of the table; while filtering is on, a click keeps only this value, or excludes it. @param {App} app @param {string} title @param {string} text */
export function valueCell(app, title, text) {
  if (!app.list.filtering || text === "") return text;
  const button = actionButton(text, "Keep only these; with Shift leave these out", () => {});
  button.className = "value";
  button.addEventListener("click", (e) => filterBy(app, title, `${e.shiftKey ? "!" : ""}=${text}`));
  return button;
}

/** Shows the boxes and goes to the first, or removes them and all filters. @param {App} app */
export function toggleFilters(app) {
  const { list } = app;
  list.filtering = !list.filtering;
  if (!list.filtering) list.filters.clear();
  app.showDetails();
  app.noteAddress();
  if (list.filtering) boxes()[0]?.focus();
}

/** Errors in typed filters, and a button for each filter of a column that is not shown. @param {App} app @param {string[]} heads @returns {Node[]} */
export function filterNotes(app, heads) {
  const { list } = app;
  const titles = titlesOf(list, heads);
  return [...list.filters].flatMap(([title, typed]) => {
    const sort = sortOf(list, title);
    if (!sort || (title.startsWith(OF_GROUPS) && list.chosen.length === 0)) return [];
    if (titles.includes(title)) return new Filter(typed, sort).isWrong ? [textElement("p", `${title.replace(OF_GROUPS, "")} takes ${FILTER_MAY[sort]}`, "hint")] : [];
    return [actionButton(`${title} ${typed} \u00d7`, "Stop filtering by this", () => filterBy(app, title, ""))];
  });
}
