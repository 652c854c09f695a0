// SPDX-License-Identifier: BSD-3-Clause
// The keyboard: the action of each key. The help sheet (`?`), panel/help.js, lists them for users.

import { ROW_MIN } from "../view/view.js";
import { selectCall } from "../panel/call.js";
import { askFilters, stepDuration, toggleList } from "../panel/list.js";
import { changeLook } from "../panel/look.js";
import { annotate, nudgeNote } from "../panel/note.js";
import { toggleRequests } from "../panel/asked.js";
import { saveCopy, savePng, saveSvg } from "../panel/save.js";
import { measureSelected } from "../panel/totals.js";
import { showWhole, VIEWS_MAX } from "../panel/views.js";
import { forget } from "./forget.js";
import { pinSelected, stepRow, stepSpan } from "./step.js";
/** @import {App} from "../main.js" */

/** Factor of a zoom by key. */
const KEY_ZOOM = 1.5;
/** Share of the width by which a key pans. */
const KEY_PAN = 0.15;
/** Pixels by which a key moves a note. */
const KEY_NUDGE = 8;

/** Actions by physical key, so that all layouts agree. @type {Record<string, (app: App, shift: boolean) => void>} */
const KEYS = {
  KeyW: (app) => app.view.zoom(KEY_ZOOM, app.pointer),
  KeyS: (app) => app.view.zoom(1 / KEY_ZOOM, app.pointer),
  KeyA: (app, shift) => app.view.pan(-app.view.width * (shift ? 1 : KEY_PAN)),
  KeyD: (app, shift) => app.view.pan(app.view.width * (shift ? 1 : KEY_PAN)),
  ArrowLeft: (app) => app.view.pan(-app.view.width * KEY_PAN),
  ArrowRight: (app) => app.view.pan(app.view.width * KEY_PAN),
  ArrowUp: (app) => app.view.scrollRows(-3 * ROW_MIN),
  ArrowDown: (app) => app.view.scrollRows(3 * ROW_MIN),
  PageUp: (app) => app.view.scrollRows(-app.view.rowsRoom),
  PageDown: (app) => app.view.scrollRows(app.view.rowsRoom),
  Home: (app) => app.view.scrollTo(0),
  End: (app) => app.view.scrollTo(Infinity),
  BracketLeft: (app) => stepRow(app, -1),
  BracketRight: (app) => stepRow(app, 1),
  KeyF: (app) => app.fitSelection(),
  KeyZ: (app) => app.fitMeasured(),
  KeyB: (app) => app.askWhy(),
  KeyE: (app) => selectCall(app),
  KeyH: (app) => app.selected >= 0 && app.searchName(app.store.name[app.selected]),
  KeyR: (app, shift) => measureSelected(app, shift),
  KeyM: (app) => annotate(app),
  KeyN: (app, shift) => app.notes.step(shift ? -1 : 1),
  Delete: (app) => app.notes.selected && app.notes.remove(app.notes.selected),
  Backspace: (app) => app.views.back(),
  KeyY: (app) => pinSelected(app),
  KeyV: (app, shift) => (shift ? askFilters(app) : toggleList(app)),
  KeyQ: (app) => toggleRequests(app),
  KeyJ: (app, shift) => stepDuration(app, shift ? -1 : 1),
  KeyO: (app) => app.toggleRelative(),
  KeyU: (app) => app.toggleArcs(),
  KeyI: (app) => app.toggleIpis(),
  KeyL: (app) => app.toggleLegend(),
  KeyT: (app) => changeLook(app, "theme", 1),
  KeyC: (app) => changeLook(app, "colors", 1),
  KeyX: (app) => changeLook(app, "fade", 1),
  KeyG: (app) => changeLook(app, "grid", 1),
  KeyK: (app) => changeLook(app, "aspect", 1),
  KeyP: (app, shift) => (shift ? saveSvg(app) : savePng(app)),
};
for (let number = 1; number <= VIEWS_MAX; number++) {
  KEYS[`Digit${number}`] = (app, shift) => (shift ? app.views.save(number) : app.views.restore(number));
}

/** Actions by the character typed, wherever a layout has it. @type {Record<string, (app: App) => void>} */
const CHARACTERS = {
  "+": (app) => app.view.zoom(KEY_ZOOM, app.pointer),
  "=": (app) => app.view.zoom(KEY_ZOOM, app.pointer),
  "-": (app) => app.view.zoom(1 / KEY_ZOOM, app.pointer),
  "0": (app) => showWhole(app),
  ",": (app) => stepSpan(app, -1),
  ".": (app) => stepSpan(app, 1),
  "<": (app) => changeLook(app, "text", -1),
  ">": (app) => changeLook(app, "text", 1),
  "/": (app) => app.startSearch(),
  "?": (app) => app.showHelp(),
  Enter: (app) => app.stepMatch(1),
  Escape: forget,
};

/** Actions with Ctrl, by physical key. @type {Record<string, (app: App) => unknown>} */
const WITH_CONTROL = {
  KeyF: (app) => app.startSearch(),
  KeyS: (app) => saveCopy(app),
  ArrowLeft: (app) => nudgeNote(app, -KEY_NUDGE, 0),
  ArrowRight: (app) => nudgeNote(app, KEY_NUDGE, 0),
  ArrowUp: (app) => nudgeNote(app, 0, -KEY_NUDGE),
  ArrowDown: (app) => nudgeNote(app, 0, KEY_NUDGE),
};

/** True if an element handles a key itself. @param {EventTarget | null} target @param {string} key */
function takesKey(target, key) {
  if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return true;
  // A menu keeps the focus after a choice, and has no use for Esc.
  if (target instanceof HTMLSelectElement) return key !== "Escape";
  return target instanceof HTMLButtonElement && (key === "Enter" || key === " ");
}

/** @param {App} app */
export function listenToKeys(app) {
  document.addEventListener("keydown", (e) => {
    if (takesKey(e.target, e.key) && !(e.ctrlKey && e.code === "KeyS")) return;
    if (e.altKey || app.help.open) return;
    if (e.key === "Escape" && document.querySelector(":popover-open")) return;
    if (e.ctrlKey || e.metaKey) {
      const action = WITH_CONTROL[e.code];
      if (!action || action(app) === false) return;
      e.preventDefault();
      return;
    }
    /** @type {((app: App, shift: boolean) => void) | undefined} */
    const byCharacter = e.key === "Enter" && e.shiftKey ? () => app.stepMatch(-1) : CHARACTERS[e.key];
    const action = byCharacter ?? KEYS[e.code];
    if (!action) return;
    e.preventDefault();
    action(app, e.shiftKey);
    app.viewChanged();
  });
}
