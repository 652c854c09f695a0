// SPDX-License-Identifier: BSD-3-Clause
// The interface for tests and scripts: `__ku`.

import { spanText, valueOf } from "./data/format.js";
import { titleOf } from "./data/sections.js";
import { hitAt } from "./draw/hit.js";
import { drawnBy } from "./draw/overlay.js";
/**
 * @import {Group} from "./data/groups.js"
 * @import {App} from "./main.js"
 */

/** @param {App} app */
export function handle(app) {
  const { store, view, search } = app;
  const describe = (/** @type {number} */ i) => ({
    i, start: store.start[i], dur: store.dur[i], cpu: store.cpus[store.cpu[i]], pid: store.pids[store.pid[i]],
    rpc: store.rpc[i], event: store.events[store.event[i]], arg: valueOf(store.arg[i]), ret: valueOf(store.ret[i]), ipc: store.ipc[i],
    name: store.names[store.name[i]], text: spanText(store, i),
  });
  return {
    app,
    counts: { spans: store.n, cpus: app.groups[0].keys.length, pids: app.groups[1].keys.length },
    view: () => ({ t0: view.t0, t1: view.t1, begin: view.begin, end: view.end, width: view.width, height: view.height, relative: view.relative }),
    show: (/** @type {number} */ t0, /** @type {number} */ t1) => {
      view.show(t0, t1);
      app.drawNow();
    },
    rows: () => view.items.map((item) => ({
      group: item.group.name, row: item.row, label: titleOf(item.group, item.row),
      y: view.top(item), h: item.h,
    })),
    toggle: (/** @type {string} */ name) => app.toggleGroup(/** @type {Group} */ (app.groups.find((g) => g.name === name))),
    span: describe,
    hit: (/** @type {number} */ x, /** @type {number} */ y) => {
      const hit = hitAt(app, x, y);
      return hit ? { ...describe(hit.i), others: hit.others } : null;
    },
    search: () => ({
      ...search.query, active: search.active, count: search.ids.length, total: search.ids.reduce((sum, i) => sum + store.dur[i], 0),
      current: search.current, text: search.text(view),
    }),
    selected: () => (app.selected >= 0 ? describe(app.selected) : null),
    measured: () => app.measured,
    notes: () => app.notes.all.map((note) => ({ ...note })),
    bubbles: () => app.notes.bubbles.map(({ note, ...place }) => ({ ...place, text: note.text })),
    views: () => app.views.list(),
    look: () => ({ ...app.look.parts, used: app.look.theme }),
    chain: () => (app.chain ?? []).map(({ arc, cause, wait }) => ({
      arc: describe(arc), cause: cause < 0 ? null : describe(cause), wait: wait < 0 ? null : describe(wait),
    })),
    layers: () => Object.fromEntries(app.layers.list.map(({ id, states, state }) => [id, states[state]])),
    cycle: (/** @type {string} */ id) => app.layers.cycle(id, 1),
    drawn: () => drawnBy(app.picture, app.overlay),
    draws: () => app.draws,
    lastDraw: () => app.lastDraw,
  };
}
