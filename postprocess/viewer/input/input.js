// SPDX-License-Identifier: BSD-3-Clause
// Pointer, wheel and search box, and their actions on the view.

import { timeOfRange } from "../view/seek.js";
import { hitAt } from "../draw/hit.js";
import { toggleList } from "../panel/list.js";
import { writeNote } from "../panel/note.js";
import { saveCopy, savePng, saveSvg } from "../panel/save.js";
import { showWhole } from "../panel/views.js";
import { byId, pointOf, wheelPixels } from "../dom.js";
/**
 * @import {Query} from "../data/search.js"
 * @import {Notes} from "../draw/notes.js"
 * @import {App} from "../main.js"
 */

/** Pixels that a pointer may move between press and release of a click. */
const CLICK_SLACK = 4;
/** Pixels within which measuring snaps to the edge of a span. */
const SNAP = 6;

/** @param {App} app @param {HTMLCanvasElement} canvas @param {HTMLElement} labels */
export function listenToWheel(app, canvas, labels) {
  const { view } = app;
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const { x, y } = wheelPixels(e, view.height);
    if (e.altKey || (app.look.parts.wheel === "rows" && !e.ctrlKey && !e.shiftKey && Math.abs(x) <= Math.abs(y))) view.scrollRows(y);
    else if (e.shiftKey) view.pan(x + y);
    else if (Math.abs(x) > Math.abs(y)) view.pan(x);
    else view.zoom(Math.exp(-y * (e.ctrlKey ? 0.01 : 0.0025)), pointOf(e, canvas).x);
    app.viewChanged();
  }, { passive: false });
  labels.addEventListener("wheel", (e) => {
    e.preventDefault();
    const { y } = wheelPixels(e, view.height);
    if (e.ctrlKey) view.zoomRows(Math.exp(-y * 0.0025), pointOf(e, canvas).y, app.groups);
    else view.scrollRows(y);
    app.viewChanged();
  }, { passive: false });
}

/** The time on the axis at a point, or the edge of the span there if it is near. @param {App} app @param {number} x @param {number} y */
function snappedTime(app, x, y) {
  const { store, view } = app;
  const hit = hitAt(app, x, y);
  const start = hit ? store.start[hit.i] - (hit.item?.shift ?? 0) : 0;
  const edges = hit ? [start, start + store.dur[hit.i]] : [];
  const away = (/** @type {number} */ time) => Math.abs(view.x(time) - x);
  const [nearest] = edges.sort((a, b) => away(a) - away(b));
  return nearest !== undefined && away(nearest) <= SNAP ? nearest : view.time(x);
}

/** A place on a canvas. @typedef {{x: number, y: number}} Point */
/**
 * A press of the pointer: `note` is the note it took, `from` the time at which measuring began.
 * @typedef {{x: number, y: number, lastX: number, lastY: number, shift: boolean, moved: boolean, from: number,
 *   note: ReturnType<Notes["at"]>}} Press
 */

/** @param {App} app @param {HTMLCanvasElement} canvas */
export function listenToPointer(app, canvas) {
  const { view, notes } = app;
  /** @type {Press | null} */
  let press = null;
  /** The positions of the pointers that are down. @type {Map<number, Point>} */
  const down = new Map();
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    canvas.setPointerCapture(e.pointerId);
    canvas.focus({ preventScroll: true });
    const { x, y } = pointOf(e, canvas);
    // A finger sends no move before its press.
    app.pointer = x;
    view.pointerY = y;
    down.set(e.pointerId, { x, y });
    if (down.size > 1) {
      press = null;
      return;
    }
    press = { x, y, lastX: x, lastY: y, shift: e.shiftKey, moved: false, from: snappedTime(app, x, y), note: notes.at(x, y) };
  });
  canvas.addEventListener("pointermove", (e) => {
    const { x, y } = pointOf(e, canvas);
    app.pointer = x;
    view.pointerY = y;
    const before = [...down.values()];
    if (down.has(e.pointerId)) down.set(e.pointerId, { x, y });
    if (before.length > 1) {
      pinch(app, before, [...down.values()]);
      return;
    }
    if (!press) {
      app.hover(x, y);
      canvas.style.cursor = notes.at(x, y) ? "move" : "";
      return;
    }
    press.moved ||= Math.hypot(x - press.x, y - press.y) > CLICK_SLACK;
    if (press.moved) drag(app, press, x, y);
  });
  for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) canvas.addEventListener(end, (e) => down.delete(e.pointerId));
  canvas.addEventListener("pointerup", () => {
    if (press?.moved) dragged(app, press);
    else if (press) clicked(app, press, press.x, press.y);
    press = null;
  });
  canvas.addEventListener("pointercancel", () => (press = null));
  canvas.addEventListener("pointerleave", () => {
    app.pointer = view.width / 2;
    view.pointerY = -1;
    app.hover(-1, -1);
  });
  canvas.addEventListener("contextmenu", (e) => {
    if (!e.shiftKey) return;
    e.preventDefault();
    const { x, y } = pointOf(e, canvas);
    const hit = hitAt(app, x, y);
    if (hit) app.searchName(app.store.name[hit.i]);
  });
}

/** Handles two fingers: the place between them stays between them. @param {App} app @param {Point[]} before @param {Point[]} after */
function pinch(app, [a, b], [c, d]) {
  const { view } = app;
  const [before, after] = [Math.hypot(a.x - b.x, a.y - b.y), Math.hypot(c.x - d.x, c.y - d.y)];
  view.zoom(after / Math.max(before, 1), (a.x + b.x) / 2, (c.x + d.x) / 2);
  view.scrollRows((a.y + b.y - c.y - d.y) / 2);
  app.viewChanged();
}

/** @param {App} app @param {Press} press @param {number} x @param {number} y */
function drag(app, press, x, y) {
  const { view } = app;
  const [byX, byY] = [x - press.lastX, y - press.lastY];
  if (press.note) {
    app.notes.move(press.note, byX, byY, { x, y });
  } else if (press.shift) {
    const to = snappedTime(app, x, y);
    app.measured = { from: Math.min(press.from, to), to: Math.max(press.from, to) };
    app.overlayChanged();
  } else {
    view.pan(-byX);
    view.scrollRows(-byY);
    app.viewChanged();
  }
  press.lastX = x;
  press.lastY = y;
}

/** Handles the end of a drag. @param {App} app @param {Press} press */
function dragged(app, press) {
  if (press.note) app.notes.select(press.note.note);
  else if (press.shift) app.measure(app.measured);
  app.noteAddress();
}

/** Handles a press and release in one place. @param {App} app @param {Press} press @param {number} x @param {number} y */
function clicked(app, press, x, y) {
  if (press.note) {
    app.notes.select(press.note.note);
    return;
  }
  const hit = hitAt(app, x, y);
  const item = hit?.item && hit.item.row >= 0 ? hit.item : null;
  if (!press.shift) app.select(hit?.i ?? -1, item?.group);
  else if (hit) {
    app.notes.addSpan(hit.i, (item ? app.view.on(item) : app.view).time(x), item?.group);
    writeNote();
  }
  app.noteAddress();
}

/** The text fields of the search, named like the parts of a query. */
const FIELDS = /** @type {const} */ (["pattern", "min", "max"]);

/** Maximum number of recent patterns that the search box offers. */
const PATTERNS_MAX = 20;

/** Adds a pattern to the recent ones, latest first. @param {string} pattern */
function keepPattern(pattern) {
  const before = [...byId("patterns").children].map((option) => option.value);
  const kept = [...new Set([pattern, ...before])].filter((text) => text !== "").slice(0, PATTERNS_MAX);
  byId("patterns").replaceChildren(...kept.map((text) => Object.assign(document.createElement("option"), { value: text })));
}

/** @param {App} app */
export function listenToSearch(app) {
  const find = () => app.find({
    pattern: typedPattern(app), min: byId("min").value, max: byId("max").value,
    invert: byId("invert").ariaPressed === "true", ignoreCase: byId("ignore-case").ariaPressed === "true",
  });
  for (const id of FIELDS) {
    byId(id).addEventListener("input", find);
    byId(id).addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter") {
        byId("options").hidePopover();
        keepPattern(byId("pattern").value);
        app.stepMatch(e.shiftKey ? -1 : 1);
        // Return the keyboard to the picture, unless the search found nothing: then typing continues.
        if (app.search.ids.length > 0 || !app.search.active) byId("overlay").focus();
      }
      // In the other fields, it closes their menu.
      if (e.key === "Escape" && id === "pattern") {
        app.forgetSearch();
        byId("overlay").focus();
      }
    });
  }
  byId("pattern").addEventListener("focus", () => app.search.prepare());
  for (const id of ["invert", "ignore-case"]) {
    byId(id).addEventListener("click", () => {
      byId(id).ariaPressed = String(byId(id).ariaPressed !== "true");
      find();
    });
  }
}

/** The typed pattern, with `@@` replaced by the visible time range. @param {App} app */
function typedPattern(app) {
  const { value } = byId("pattern");
  return value === "@@" && !app.view.relative ? timeOfRange(app.view) : value;
}

/** Shows a query in the controls. @param {Query} query */
export function showQuery(query) {
  for (const part of FIELDS) byId(part).value = query[part];
  byId("invert").ariaPressed = String(query.invert);
  byId("ignore-case").ariaPressed = String(query.ignoreCase);
  // What is in use shows while the menu is closed.
  const used = [query.invert && "not", query.ignoreCase && "Aa", query.min !== "" && `\u2265 ${query.min}`, query.max !== "" && `\u2264 ${query.max}`];
  const text = used.filter((one) => one).join(" ");
  byId("options-open").textContent = text || "\u2026";
  byId("options-open").ariaPressed = String(text !== "");
}

/** Buttons of a menu that leave it open. */
const STAY_OPEN = Object.freeze(["save-view", "toggle-legend"]);

/** Connects the buttons of the header and of its menus. @param {App} app */
export function listenToTools(app) {
  /** @type {Record<string, () => unknown>} */
  const actions = {
    whole: () => showWhole(app), back: () => app.views.back(), "save-view": () => app.views.save(),
    list: () => toggleList(app), "save-copy": () => saveCopy(app), "save-svg": () => saveSvg(app),
    "save-png": () => savePng(app), "toggle-legend": () => app.toggleLegend(),
  };
  const menu = byId("view");
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", () => {
    if (menu.contains(byId(id)) && !STAY_OPEN.includes(id)) {
      menu.hidePopover();
      byId("overlay").focus();
    }
    action();
  });
  listenToMenus();
}

/** Lets the arrow keys move through open menus, as Tab does. */
function listenToMenus() {
  for (const menu of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".menu"))) menu.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    const { target } = e;
    // In the list of states of a menu, these keys choose.
    if (!step || !(target instanceof HTMLButtonElement)) return;
    e.preventDefault();
    e.stopPropagation();
    const controls = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll("button:enabled, select, input")]);
    controls[(controls.indexOf(target) + step + controls.length) % controls.length].focus();
  });
  for (const menu of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".menu"))) menu.addEventListener("toggle", (e) => {
    if (/** @type {ToggleEvent} */ (e).newState === "open" && document.activeElement?.getAttribute("popovertarget") === menu.id) {
      /** @type {HTMLElement | null} */ (menu.querySelector("button:enabled, input"))?.focus();
    }
  });
}
