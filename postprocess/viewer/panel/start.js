// SPDX-License-Identifier: BSD-3-Clause
// Start here: extremes of the trace in words, each a button that goes there.

import { callText, countText, durationText, shownName, threadText, trimmed } from "../data/format.js";
import { waitLetter, WAITS } from "../data/kind.js";
import { busiestOf, extremesOf } from "../data/start.js";
import { callOfSelected } from "./call.js";
import { toggleRequests } from "./requests.js";
import { SHORTEST } from "../view/view.js";
import { actionButton, byId, textElement } from "../dom.js";
/**
 * @import {Group} from "../data/groups.js"
 * @import {Extremes, Stretch} from "../data/start.js"
 * @import {App} from "../main.js"
 */

/** How much of a stretch is shown before and after it. */
const STRETCH_ROOM = 0.25;

/** Shows a stretch of time, and selects the span at its start on a row of a group, if there is one. @param {App} app @param {{i?: number, from: number, to: number}} stretch @param {Group} [group] */
function showStretch(app, { i = -1, from, to }, group) {
  const { view } = app;
  if (view.relative) app.toggleRelative();
  app.remember();
  // The panel takes its room first.
  app.select(i, group);
  app.call = callOfSelected(app);
  const room = Math.max((to - from) * STRETCH_ROOM, SHORTEST);
  view.show(from - room, to + room);
  if (group?.collapsed) app.toggleGroup(group);
  if (i >= 0) app.revealRow(i);
  app.viewChanged();
}

/**
 * What there is to look at: a line's words, its values, and what is shown.
 * @param {App} app
 * @param {Extremes} extremes
 * @returns {[string, string, Parameters<typeof showStretch>[1], Group?][]}
 */
function startLines({ store, groups, overview }, { waits, call, requests, stall, stalls }) {
  const [cpus, threads] = groups;
  const rpcs = groups.find(({ name }) => name === "RPC");
  const lengthOf = (/** @type {Stretch} */ { from, to }) => durationText(to - from);
  const thread = (/** @type {number} */ i) => threadText(store, store.pids[store.pid[i]]);
  /** @type {ReturnType<typeof startLines>} */
  const lines = [];
  const busiest = busiestOf(overview.user, overview.kernel);
  if (busiest) {
    const [from, to] = [busiest.from, busiest.to].map((k) => overview.begin + (k / overview.user.length) * overview.length);
    const percent = (/** @type {number} */ part) => `${trimmed(part * 100, 1)}%`;
    lines.push(["The busiest moment", `${percent(busiest.part)} of all CPUs for ${durationText(to - from)}, ${percent(overview.busy)} in the whole trace`, { from, to }]);
  }
  if (stall) {
    const often = stalls > 1 ? `, the longest of ${countText(stalls, "time")}` : "";
    lines.push(["A CPU stood still", `CPU ${store.cpus[store.cpu[stall.i]]} for ${lengthOf(stall)}${often}`, stall, cpus]);
  }
  requests.forEach((request, k) => {
    const label = rpcs ? rpcs.labels[rpcs.rowOf(request.i)] : "";
    lines.push([["The slowest request", "The second", "The third"][k], `${label}, ${lengthOf(request)}`, request, rpcs]);
  });
  if (call) lines.push(["The longest call", `${shownName(store.names[store.name[call.i]])} of ${thread(call.i)}, ${lengthOf(call)}`, call, threads]);
  for (const wait of waits) {
    const letter = waitLetter(store.events[store.event[wait.i]]);
    const word = WAITS.find(([of]) => of === letter)?.[2] ?? callText(store, wait.i);
    lines.push([`The longest wait for ${word}`, `${thread(wait.i)}, ${lengthOf(wait)}`, wait, threads]);
  }
  return lines;
}

/** Fills the menu when it is opened first: nobody waits for it while the page opens. @param {App} app */
export function listenToStart(app) {
  const menu = byId("start");
  /** @type {Extremes | null} */
  let extremes = null;
  menu.addEventListener("beforetoggle", (/** @type {ToggleEvent} */ e) => {
    if (e.newState !== "open") return;
    extremes ??= extremesOf(app.store, app.search.calls);
    const lines = startLines(app, extremes).map(([words, values, stretch, group]) => {
      const line = actionButton(words, "Go there", () => {
        menu.hidePopover();
        showStretch(app, stretch, group);
      });
      line.append(textElement("small", values));
      return line;
    });
    if (app.asked.carried) {
      const line = actionButton("Why requests are slow", "Show them", () => {
        menu.hidePopover();
        if (!app.asked.open) toggleRequests(app);
      });
      line.append(textElement("small", app.asked.carried.asked));
      lines.unshift(line);
    }
    menu.replaceChildren(...(lines.length > 0 ? lines : [textElement("p", "Nothing ran in this trace.")]));
  });
}
