// SPDX-License-Identifier: BSD-3-Clause
// Elements of the page: how they are found and made, and where on them something happened.

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
 * A button that does something.
 * @param {string} text
 * @param {string} title
 * @param {() => void} action
 */
export function actionButton(text, title, action) {
  const button = /** @type {HTMLButtonElement} */ (textElement("button", text));
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
  const body = table.createTBody();
  for (const cells of lines) {
    const line = body.insertRow();
    for (const cell of cells) line.insertCell().append(cell);
  }
  return table;
}

/** Pixels a wheel event stands for. @param {WheelEvent} e @param {number} page */
export function wheelPixels(e, page) {
  const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? page : 1;
  return { x: e.deltaX * unit, y: e.deltaY * unit };
}

/** Where on a canvas something happened, in the canvas's own pixels however large the text is. @param {MouseEvent} e @param {HTMLElement} canvas */
export function pointOf(e, canvas) {
  const box = canvas.getBoundingClientRect();
  const zoom = box.width / canvas.clientWidth || 1;
  return { x: (e.clientX - box.left) / zoom, y: (e.clientY - box.top) / zoom };
}
