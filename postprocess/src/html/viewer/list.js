// SPDX-License-Identifier: BSD-3-Clause
// The spans in sight as a table: for screen readers, and for whoever would rather read than look.
"use strict";

/** Lines of the table. */
const LIST_MOST = 200;

/**
 * The longest spans on the rows in sight, in order of time, and how many there are in all: those that are searched, if
 * something is, else those that are not idle.
 * @param {App} app
 */
function spansInSight(app) {
  const { store, view, search } = app;
  const { start, dur, kind } = store;
  /** @type {number[]} */
  let longest = [];
  let count = 0;
  // A span lies on the row of its CPU and on that of its thread.
  const counted = new Uint8Array((store.n + 7) >> 3);
  const shorten = () => {
    longest.sort((a, b) => dur[b] - dur[a]);
    longest.length = Math.min(longest.length, LIST_MOST);
  };
  for (const item of view.seen()) {
    const { group, row } = item;
    if (row < 0) continue;
    const { t0, t1 } = view.on(item);
    /** @type {[Index, number][]} */
    const indexes = [[group.exec, firstInRow(store, group.exec, row, t0)], [group.waits, firstInLane(group.waits, row, t0)]];
    for (const [{ first, ids }, from] of indexes) {
      for (let k = from; k < first[row + 1] && start[ids[k]] < t1; k++) {
        const i = ids[k];
        const bit = 1 << (i & 7);
        if (start[i] + dur[i] <= t0 || !search.shows(i) || (!search.active && isIdle(kind[i])) || (counted[i >> 3] & bit) !== 0) continue;
        counted[i >> 3] |= bit;
        count++;
        longest.push(i);
        if (longest.length === 20 * LIST_MOST) shorten();
      }
    }
  }
  shorten();
  return { count, spans: longest.sort((a, b) => start[a] - start[b]) };
}

/** Where something happened, in words. @param {Store} store @param {number} i */
function placeText(store, i) {
  const cpu = store.cpus[store.cpu[i]];
  const pid = store.pids[store.pid[i]];
  return [cpu >= 0 ? `CPU ${cpu}` : "", pid > 0 ? threadText(store, pid) : ""].filter((text) => text !== "").join(", ");
}

/** @param {App} app @param {HTMLElement} panel */
function showList(app, panel) {
  const { store, view, search } = app;
  const { count, spans } = spansInSight(app);
  const lines = spans.map((i) => [
    actionButton(callText(store, i), KIND_NAMES[store.kind[i]], () => app.select(i)), placeText(store, i),
    signedText(app.placeOf(i)[0] - view.t0), alignedText(store.dur[i]),
  ]);
  const table = tableOf(["Span", "Where", "Start", "Duration"], lines);
  table.classList.add("spans");
  const what = `${countText(count, "span")} on the rows in sight${search.active ? ", matches only" : ", idle left out"}`;
  table.createCaption().textContent = `${rangeText(view)}: ${what}${count > spans.length ? `; the ${spans.length} longest` : ""}. Start counts from the left edge.`;
  panel.replaceChildren(closeButton(() => toggleList(app)), textElement("h2", "What is in sight"), table);
}

/** @param {App} app */
function toggleList(app) {
  app.listing = !app.listing;
  app.notes.selected = null;
  if (app.listing) app.select(-1);
  else showDetails(app, byId("details"));
}
