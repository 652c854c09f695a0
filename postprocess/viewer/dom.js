// SPDX-License-Identifier: BSD-3-Clause
// Finds and makes elements of the page, and converts the positions of events.

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/**
 * An element with text in it. All text from a trace passes through here or is set as textContent.
 * @param {string} tag
 * @param {string} text
 * @param {string} [className]
 */
export function textElement(tag, text, className) {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

/**
 * A button with an action.
 * @param {string} text
 * @param {string} title
 * @param {() => void} action
 */
export function actionButton(text, title, action) {
  const button = document.createElement("button");
  button.append(...breakable(text));
  button.type = "button";
  button.title = title;
  button.addEventListener("click", action);
  return button;
}

/** @param {() => void} action */
export function closeButton(action) {
  const button = actionButton("\u00d7", "Close (Esc)", action);
  button.className = "close";
  return button;
}

/**
 * A table of numbers; the first cell of each line names it.
 * @param {string[]} heads
 * @param {(string | Node)[][]} lines
 */
export function tableOf(heads, lines) {
  const table = document.createElement("table");
  table.className = "numbers";
  table.hidden = lines.length === 0;
  const head = table.createTHead().insertRow();
  head.append(...heads.map((text) => textElement("th", text)));
  addLines(table.createTBody(), lines);
  return table;
}

/** @param {HTMLTableSectionElement} body @param {(string | Node)[][]} lines */
function addLines(body, lines) {
  for (const cells of lines) {
    const line = body.insertRow();
    for (const cell of cells) line.insertCell().append(...(typeof cell === "string" ? breakable(cell) : [cell]));
  }
}

/** Minimum height of a table's line in pixels, unless the text size is reduced. */
const LINE_HEIGHT = 20;

/** Functions that add the remaining lines to tables that have only their first lines. @type {WeakMap<HTMLTableElement, () => void>} */
const OTHER_LINES = new WeakMap();

/**
 * A table that may have more lines than fit in a window: the rest follows once the first lines are on the screen, because laying out lines
 * takes longer than everything else about them.
 * @param {string[]} heads
 * @param {(string | Node)[][]} lines
 */
export function longTableOf(heads, lines) {
  const room = Math.ceil(innerHeight / LINE_HEIGHT);
  const table = tableOf(heads, lines.slice(0, room));
  OTHER_LINES.set(table, () => addLines(table.tBodies[0], lines.slice(room)));
  requestAnimationFrame(() => setTimeout(() => table.isConnected && completeTable(table)));
  return table;
}

/** Adds the remaining lines to such a table, if it does not have them yet. @param {HTMLTableElement} table */
export function completeTable(table) {
  OTHER_LINES.get(table)?.();
  OTHER_LINES.delete(table);
}

/** A text that may be broken before a call's returned value, but not within the name of a kind, such as `(-idle-)`. @param {string} text */
const breakable = (text) => text.split(/(?==)|(\(-[a-z-]+-\))/).filter((part) => part).flatMap((part, k) => {
  if (part.startsWith("(-")) return [textElement("span", part, "whole")];
  return k === 0 || !part.startsWith("=") ? [part] : [document.createElement("wbr"), part];
});

/** The distance of a wheel event in pixels. @param {WheelEvent} e @param {number} page */
export function wheelPixels(e, page) {
  const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? page : 1;
  return { x: e.deltaX * unit, y: e.deltaY * unit };
}

/** The position of an event on a canvas, in the canvas's own pixels regardless of the text size. @param {MouseEvent} e @param {HTMLElement} canvas */
export function pointOf(e, canvas) {
  const box = canvas.getBoundingClientRect();
  const zoom = box.width / canvas.clientWidth || 1;
  return { x: (e.clientX - box.left) / zoom, y: (e.clientY - box.top) / zoom };
}
