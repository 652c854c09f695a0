// SPDX-License-Identifier: BSD-3-Clause
// Pointer, wheel and keyboard: what each does to the view.
"use strict";

/** Pixels a pointer may move between press and release of a click. */
const CLICK_SLACK = 4;
/** Factor of a zoom by key. */
const KEY_ZOOM = 1.5;
/** Part of the width that a key moves. */
const KEY_PAN = 0.15;

/** Pixels a wheel event stands for. @param {WheelEvent} e @param {number} page */
function wheelPixels(e, page) {
  const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? page : 1;
  return { x: e.deltaX * unit, y: e.deltaY * unit };
}

/** @param {App} app @param {HTMLCanvasElement} canvas @param {HTMLElement} labels */
function listenToWheel(app, canvas, labels) {
  const { view } = app;
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const { x, y } = wheelPixels(e, view.height);
    if (e.altKey) view.scrollRows(y);
    else if (e.shiftKey) view.pan(x + y);
    else if (Math.abs(x) > Math.abs(y)) view.pan(x);
    else view.zoom(Math.exp(-y * (e.ctrlKey ? 0.01 : 0.0025)), e.offsetX);
    app.viewChanged();
  }, { passive: false });
  labels.addEventListener("wheel", (e) => {
    e.preventDefault();
    view.scrollRows(wheelPixels(e, view.height).y);
    app.viewChanged();
  }, { passive: false });
}

/** @param {App} app @param {HTMLCanvasElement} canvas */
function listenToPointer(app, canvas) {
  const { view } = app;
  /** @type {{x: number, y: number, lastX: number, lastY: number, measures: boolean, moved: boolean} | null} */
  let press = null;
  canvas.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    canvas.setPointerCapture(e.pointerId);
    canvas.focus({ preventScroll: true });
    press = { x: e.offsetX, y: e.offsetY, lastX: e.offsetX, lastY: e.offsetY, measures: e.shiftKey, moved: false };
  });
  canvas.addEventListener("pointermove", (e) => {
    app.pointer = e.offsetX;
    if (!press) {
      app.hover(e.offsetX, e.offsetY);
      return;
    }
    press.moved ||= Math.hypot(e.offsetX - press.x, e.offsetY - press.y) > CLICK_SLACK;
    if (!press.moved) return;
    if (press.measures) {
      const [from, to] = [press.x, e.offsetX].sort((a, b) => a - b);
      app.measured = { from: view.time(from), to: view.time(to) };
      app.overlayChanged();
    } else {
      view.pan(press.lastX - e.offsetX);
      view.scrollRows(press.lastY - e.offsetY);
      app.viewChanged();
    }
    press.lastX = e.offsetX;
    press.lastY = e.offsetY;
  });
  canvas.addEventListener("pointerup", (e) => {
    if (press?.moved && press.measures) app.measure(app.measured);
    else if (press && !press.moved) app.select(hitAt(app, e.offsetX, e.offsetY)?.i ?? -1);
    press = null;
  });
  canvas.addEventListener("pointercancel", () => (press = null));
  canvas.addEventListener("pointerleave", () => {
    app.pointer = view.width / 2;
    app.hover(-1, -1);
  });
}

/** What each key does, by physical key. @type {Record<string, (app: App, shift: boolean) => void>} */
const KEYS = {
  KeyW: (app) => app.view.zoom(KEY_ZOOM, app.pointer),
  KeyS: (app) => app.view.zoom(1 / KEY_ZOOM, app.pointer),
  KeyA: (app, shift) => app.view.pan(-app.view.width * (shift ? 1 : KEY_PAN)),
  KeyD: (app, shift) => app.view.pan(app.view.width * (shift ? 1 : KEY_PAN)),
  ArrowLeft: (app) => app.view.pan(-app.view.width * KEY_PAN),
  ArrowRight: (app) => app.view.pan(app.view.width * KEY_PAN),
  ArrowUp: (app) => app.view.scrollRows(-3 * ROW_LEAST),
  ArrowDown: (app) => app.view.scrollRows(3 * ROW_LEAST),
  PageUp: (app) => app.view.scrollRows(-app.view.rowsSeen),
  PageDown: (app) => app.view.scrollRows(app.view.rowsSeen),
  KeyF: (app) => app.fitSelection(),
  KeyB: (app) => app.askWhy(),
  KeyH: (app) => app.selected >= 0 && app.searchName(app.store.name[app.selected]),
  KeyU: (app) => app.toggleArcs(),
  KeyI: (app) => app.toggleIpis(),
  KeyL: (app) => app.toggleLegend(),
};

/** The same by the character typed, wherever a layout has it. @type {Record<string, (app: App) => void>} */
const CHARACTERS = {
  "+": (app) => app.view.zoom(KEY_ZOOM, app.pointer),
  "=": (app) => app.view.zoom(KEY_ZOOM, app.pointer),
  "-": (app) => app.view.zoom(1 / KEY_ZOOM, app.pointer),
  "0": (app) => app.view.showWhole(),
  "/": (app) => app.startSearch(),
  "?": (app) => app.showHelp(),
  Enter: (app) => app.stepMatch(1),
  Escape: (app) => app.clear(),
};

/** @param {App} app */
function listenToKeys(app) {
  document.addEventListener("keydown", (e) => {
    if (e.target instanceof HTMLInputElement || e.target instanceof HTMLButtonElement && e.key === "Enter") return;
    if (e.altKey || app.help.open) return;
    if (e.ctrlKey || e.metaKey) {
      if (e.code !== "KeyF") return;
      app.startSearch();
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

/** The text fields of the search, named as the parts of a query. */
const FIELDS = /** @type {const} */ (["pattern", "least", "most"]);

/** @param {App} app */
function listenToSearch(app) {
  const find = () => app.find({
    pattern: byId("pattern").value, least: byId("least").value, most: byId("most").value,
    invert: byId("invert").ariaPressed === "true", ignoreCase: byId("ignore-case").ariaPressed === "true",
  });
  for (const id of FIELDS) {
    byId(id).addEventListener("input", find);
    byId(id).addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter") app.stepMatch(e.shiftKey ? -1 : 1);
      if (e.key === "Escape") app.clear();
    });
  }
  for (const id of ["invert", "ignore-case"]) {
    byId(id).addEventListener("click", () => {
      byId(id).ariaPressed = String(byId(id).ariaPressed !== "true");
      find();
    });
  }
}

/** Shows in the controls what is searched. @param {Query} query */
function showQuery(query) {
  for (const part of FIELDS) byId(part).value = query[part];
  byId("invert").ariaPressed = String(query.invert);
  byId("ignore-case").ariaPressed = String(query.ignoreCase);
}
