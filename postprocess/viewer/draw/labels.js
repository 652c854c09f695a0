// SPDX-License-Identifier: BSD-3-Clause
// The names of the rows on the left: a button for each visible row and for each group.
//
// A click on a row highlights it, a Shift-click pins it to the top, and a right click highlights all rows whose names begin alike. A click on a group
// closes it, opens it, or reduces it to the highlighted rows; a click on the header of a section, or on the triangle before its first row, folds
// or opens the section. The arrow keys move from one button to the next.

import { MARKS_HEIGHT, NAME_HEIGHT } from "../view/view.js";
import { shownName } from "../data/format.js";
import { sectionOf, sectionOfHeader } from "../data/sections.js";
import { textElement } from "../dom.js";
/**
 * @import {Group} from "../data/groups.js"
 * @import {HighlightedRows} from "../data/highlight.js"
 * @import {Section} from "../data/sections.js"
 * @import {Item, View} from "../view/view.js"
 */

/**
 * The actions of clicks: highlights a row, with `alike` also all with similar names; pins or unpins a row; closes or opens a group; folds or opens a section.
 * @typedef {{highlightRow: (group: Group, row: number, alike: boolean) => void, pinRow: (group: Group, row: number) => void, toggleGroup: (group: Group) => void, toggleSection: (section: Section) => void}} LabelCommands
 */

export class Labels {
  /** @param {{view: View, highlight: HighlightedRows}} parts @param {HTMLElement} element @param {LabelCommands} commands */
  constructor({ view, highlight }, element, commands) {
    this.view = view;
    this.highlight = highlight;
    this.element = element;
    this.commands = commands;
    /** The state shown now, to skip updates when nothing changed. */
    this.shown = "";
    element.addEventListener("keydown", (e) => this.step(e));
  }

  /** Moves the focus up or down. @param {KeyboardEvent} e */
  step(e) {
    const down = e.key === "ArrowDown";
    const from = document.activeElement;
    if ((!down && e.key !== "ArrowUp") || !from) return;
    const to = /** @type {HTMLElement | null} */ (down ? from.nextElementSibling : from.previousElementSibling);
    // At either end the page's own handling scrolls the rows.
    if (!to) return;
    e.preventDefault();
    e.stopPropagation();
    to.focus();
  }

  draw() {
    const { view, highlight } = this;
    const items = view.seen();
    const key = `${view.scroll} ${view.height} ${highlight.version} ${items.map((it) =>
      `${it.group.name}${it.row}${it.row < 0 ? this.headerText(it) : foldSign(headedBy(it))}${it.y}${it.pinned}`).join()}`;
    if (key === this.shown) return;
    this.shown = key;
    const focused = document.activeElement instanceof HTMLElement && this.element.contains(document.activeElement)
      ? document.activeElement.dataset.row : undefined;
    const rows = document.createElement("div");
    rows.className = "rows";
    rows.style.top = `${MARKS_HEIGHT}px`;
    rows.style.height = `${view.rowsSeen}px`;
    for (const item of items) {
      if (!item.named) continue;
      const place = (/** @type {HTMLElement} */ label, /** @type {string} */ name) => {
        label.dataset.row = name;
        label.style.top = `${view.top(item) - MARKS_HEIGHT}px`;
        const h = Math.max(item.h, NAME_HEIGHT);
        label.style.height = `${h}px`;
        label.style.lineHeight = `${h}px`;
        rows.append(label);
      };
      place(item.row < 0 ? this.header(item) : this.row(item), `${item.group.name} ${item.row}`);
      const section = headedBy(item);
      if (section) place(this.fold(section), `${item.group.name} fold ${item.row}`);
    }
    this.element.replaceChildren(rows);
    if (focused) /** @type {HTMLElement | null} */ (rows.querySelector(`[data-row="${focused}"]`))?.focus();
  }

  /** @param {Item} item */
  row(item) {
    const { group, row } = item;
    const { view } = this;
    const label = /** @type {HTMLButtonElement} */ (textElement("button", group.labels[row]));
    label.type = "button";
    label.className = `row${item.even ? " even" : ""}${group.lit[row] ? " lit" : ""}${item.pinned ? " pinned" : ""}`;
    const earlier = group.name === "PID" ? view.store.earlier.get(group.keys[row]) : undefined;
    label.title = `${group.labels[row]}${earlier === undefined ? "" : `, earlier ${shownName(earlier)}`}: click to highlight, Shift-click to ${item.pinned ? "let it scroll again" : "pin it to the top"}`;
    label.tabIndex = -1;
    label.ariaPressed = String(group.lit[row] === 1);
    label.addEventListener("click", (e) => (e.shiftKey ? this.commands.pinRow(group, row) : this.commands.highlightRow(group, row, false)));
    label.addEventListener("contextmenu", (e) => {
      e.preventDefault();
      this.commands.highlightRow(group, row, true);
    });
    return label;
  }

  /** @param {Item} item */
  headerText({ group, row }) {
    const section = sectionOfHeader(group, row);
    return section ? `${foldSign(section)} ${section.title} (${section.to - section.from})` : groupText(this.view, group);
  }

  /** The triangle before the row that stays when the rest of its section is folded. @param {Section} section */
  fold(section) {
    const label = /** @type {HTMLButtonElement} */ (textElement("button", foldSign(section)));
    label.type = "button";
    label.className = "fold";
    label.title = `${section.title}: ${section.folded ? "show" : "hide"} the activity of its guest`;
    label.tabIndex = -1;
    label.setAttribute("aria-expanded", String(!section.folded));
    label.addEventListener("click", () => this.commands.toggleSection(section));
    return label;
  }

  /** @param {Item} item */
  header(item) {
    const { group, row } = item;
    const label = /** @type {HTMLButtonElement} */ (textElement("button", this.headerText(item)));
    label.type = "button";
    label.className = "group";
    const section = sectionOfHeader(group, row);
    if (section) {
      label.classList.add("section");
      label.title = section.about;
      label.setAttribute("aria-expanded", String(!section.folded));
      label.addEventListener("click", () => this.commands.toggleSection(section));
      return label;
    }
    label.title = `${label.textContent ?? ""}${group.onlyLit ? ", those that are highlighted" : ""}`;
    label.setAttribute("aria-expanded", String(!group.collapsed));
    label.addEventListener("click", () => this.commands.toggleGroup(group));
    return label;
  }
}

/** The section headed by a row, which stays when the section is folded. @param {Item} item */
function headedBy({ group, row, pinned }) {
  const section = pinned || row < 0 ? undefined : sectionOf(group, row);
  return section?.head && section.from === row ? section : undefined;
}

/** @param {Section | undefined} section */
const foldSign = (section) => (section ? (section.folded ? "\u25b8" : "\u25be") : "");

/** A group's name, state and number of rows shown. @param {View} view @param {Group} group */
function groupText(view, group) {
  const n = group.keys.length;
  if (group.collapsed) return `\u25b8 ${group.title} (${n})`;
  const seen = (view.rowsOf.get(group)?.length ?? n) + view.pins.filter((pin) => pin.group === group).length;
  const count = seen === n ? `${n}` : `${seen} of ${n}`;
  return `${group.onlyLit ? "\u25b9" : "\u25be"} ${group.title} (${count})`;
}
