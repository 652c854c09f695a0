// SPDX-License-Identifier: BSD-3-Clause
// The "Start here" menu: extremes of the trace in words, each a button that goes there.

import { countText, durationText, shownName, threadText, trimmed } from "../data/format.js";
import { busiestOf, extremesOf, REQUESTS_MAX } from "../data/start.js";
import { wordOf } from "../data/words.js";
import { callOfSelected } from "./call.js";
import { goToRequest, toggleRequests } from "./asked.js";
import { SHORTEST } from "../view/view.js";
import { actionButton, byId, textElement } from "../dom.js";
/**
 * @import {Group} from "../data/groups.js"
 * @import {Extremes, Stretch} from "../data/start.js"
 * @import {App} from "../main.js"
 */

/** Room shown before and after a stretch, as a part of it. */
const STRETCH_ROOM = 0.25;

/** Shows a stretch of time, and selects the span at its start on a row of a group, if given. @param {App} app @param {{i?: number, from: number, to: number}} stretch @param {Group} [group] */
function showStretch(app, { i = -1, from, to }, group) {
  const { view } = app;
  if (view.relative) app.toggleRelative();
  app.remember();
  // Select first, since the panel takes its room.
  app.select(i, group);
  app.call = callOfSelected(app);
  if (app.call) app.showDetails();
  const room = Math.max((to - from) * STRETCH_ROOM, SHORTEST);
  view.show(from - room, to + room);
  if (group?.collapsed) app.toggleGroup(group);
  if (i >= 0) app.revealRow(i);
  app.viewChanged();
}

/**
 * Lines of the menu: words, values, and the stretch to show.
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
    lines.push([`The longest wait for ${wordOf(store.names[store.name[wait.i]])}`, `${thread(wait.i)}, ${lengthOf(wait)}`, wait, threads]);
  }
  return lines;
}

/** A line of the menu: its words, its values below them, and the action that shows it. @param {string} words @param {string} values @param {() => void} show */
function startLine(words, values, show) {
  const line = actionButton(words, "Go there", () => {
    byId("view").hidePopover();
    show();
  });
  line.append(textElement("small", values));
  return line;
}

/** Lines for the slowest of the page's requests, and one for all of them. @param {App} app */
function requestLines(app) {
  const { asked } = app;
  const { carried, requests } = asked;
  if (!carried) return [];
  const open = (/** @type {() => void} */ then) => () => {
    if (!asked.open) toggleRequests(app);
    then();
  };
  // One per event.
  const slowest = requests ? asked.eventsOf(requests, null).list.slice(0, REQUESTS_MAX).map(({ longest: number }, k) => {
    const [first] = requests.causesOf(number);
    const mostly = first ? `, mostly ${shownName(first.words)}` : "";
    const values = `${shownName(requests.thread(requests.pid[number]))}, ${durationText(requests.dur[number])}${mostly}`;
    return startLine(["The slowest request", "The second", "The third"][k], values, open(() => goToRequest(app, number)));
  }) : [];
  return [startLine("Why requests are slow", carried.asked, open(() => {})), ...slowest];
}

/** Fills the menu when it is opened, so that opening the page is not delayed. @param {App} app */
export function listenToStart(app) {
  const menu = byId("start");
  /** @type {Extremes | null} */
  let extremes = null;
  const fill = () => {
    extremes ??= extremesOf(app.store, app.search.calls);
    // Requests carried by the page take precedence over those from marks.
    const known = app.asked.carried ? { ...extremes, requests: [] } : extremes;
    const lines = [
      ...requestLines(app), ...startLines(app, known).map(([words, values, stretch, group]) => startLine(words, values, () => showStretch(app, stretch, group))),
    ];
    menu.replaceChildren(...(lines.length > 0 ? lines : [textElement("p", "Nothing ran in this trace.")]));
  };
  menu.addEventListener("beforetoggle", (/** @type {ToggleEvent} */ e) => {
    if (e.newState !== "open") return;
    fill();
    if (app.asked.carried && !app.asked.requests) app.asked.read().then(fill);
  });
}
