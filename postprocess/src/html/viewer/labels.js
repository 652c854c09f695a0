// SPDX-License-Identifier: BSD-3-Clause
// The names of the rows on the left: one element for each row in sight, a button for each group.
"use strict";

class Labels {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    /** What is shown now, to leave it alone when nothing changed. */
    this.shown = "";
  }

  /** @param {App} app */
  draw(app) {
    const { view } = app;
    const items = view.seen();
    const key = `${view.scroll} ${view.height} ${items.map((it) => `${it.group.name}${it.row}${it.group.collapsed}${it.h}`).join()}`;
    if (key === this.shown) return;
    this.shown = key;
    const rows = document.createElement("div");
    rows.className = "rows";
    rows.style.top = `${MARKS_HEIGHT}px`;
    rows.style.height = `${view.rowsSeen}px`;
    for (const item of items) {
      const label = item.row < 0 ? this.header(app, item.group) : this.row(item);
      label.style.top = `${item.y - view.scroll}px`;
      label.style.height = `${item.h}px`;
      label.style.lineHeight = `${item.h}px`;
      rows.append(label);
    }
    this.element.replaceChildren(rows);
  }

  /** @param {Item} item */
  row(item) {
    const label = document.createElement("div");
    label.className = item.row % 2 === 0 ? "row even" : "row";
    label.textContent = item.group.labels[item.row];
    label.title = item.group.labels[item.row];
    return label;
  }

  /** @param {App} app @param {Group} group */
  header(app, group) {
    const label = document.createElement("button");
    label.type = "button";
    label.className = "group";
    label.setAttribute("aria-expanded", String(!group.collapsed));
    label.textContent = `${group.collapsed ? "\u25b8" : "\u25be"} ${group.title} (${group.keys.length})`;
    label.addEventListener("click", () => app.toggleGroup(group));
    return label;
  }
}
