// SPDX-License-Identifier: BSD-3-Clause
// The selected note: its text in the panel, and its keys.

import { actionButton, byId, closeButton, textElement } from "../dom.js";
/**
 * @import {Note} from "../draw/notes.js"
 * @import {App} from "../main.js"
 */

/** Shows the selected note: its text to edit, and its actions. @param {App} app @param {HTMLElement} panel @param {Note} note */
export function showNote(app, panel, note) {
  const text = document.createElement("textarea");
  text.value = note.text;
  text.rows = 5;
  text.maxLength = 1000;
  text.setAttribute("aria-label", "Text of the note");
  text.addEventListener("input", () => {
    note.text = text.value;
    app.overlayChanged();
    app.noteAddress();
  });
  text.addEventListener("keydown", (e) => e.key === "Escape" && byId("overlay").focus());
  // Typing starts on a new line, which is removed if it stays empty.
  text.addEventListener("focus", () => {
    if (text.value !== "" && !text.value.endsWith("\n")) text.value += "\n";
    text.setSelectionRange(text.value.length, text.value.length);
  });
  text.addEventListener("blur", () => (note.text = text.value = text.value.trimEnd()));
  panel.replaceChildren(
    closeButton(() => app.notes.select(null)), textElement("h2", note.to > note.from ? "Length" : "Note"), text,
    actionButton("Remove (Del)", "Remove this note", () => app.notes.remove(note)),
    textElement("p", "M edits the text, Ctrl and an arrow key moves the bubble, N goes to the next note."),
  );
}

/** Moves the selected note by pixels; returns whether there is one. @param {App} app @param {number} byX @param {number} byY */
export function nudgeNote(app, byX, byY) {
  const note = app.notes.selected;
  if (!note) return false;
  app.notes.move({ note, part: "bubble" }, byX, byY);
  app.noteAddress();
  return true;
}

/** Moves the focus to the text of the selected note. */
export function writeNote() {
  /** @type {HTMLElement | null} */ (document.querySelector("#details textarea"))?.focus();
}

/** Edits the text of the selected note; else adds a note on the selected span; else edits the note of the measured range, or adds it. @param {App} app */
export function annotate(app) {
  const { notes, selected, measured, view } = app;
  const kept = measured && notes.all.find((note) => note.from === measured.from && note.to === measured.to);
  if (notes.selected) writeNote();
  else if (selected >= 0) notes.addSpan(selected, (view.t0 + view.t1) / 2 + app.shiftOf(selected), undefined);
  else if (kept) {
    notes.select(kept);
    writeNote();
  } else if (measured && measured.to > measured.from && !view.relative) notes.addLength(measured.from, measured.to);
  app.noteAddress();
}
