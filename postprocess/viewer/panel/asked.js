// SPDX-License-Identifier: BSD-3-Clause
// The requests that are shown: which of them, how an address names them, and how the picture gets there.

import { secondsText, shownName, UNITS_PER_SECOND } from "../data/format.js";
import { Events } from "../data/events.js";
import { slowAgainstNormal } from "../data/excess.js";
import { threadsOf } from "../data/groups.js";
import { readRequests } from "../data/requests.js";
import { pristine } from "./added.js";
import { byId } from "../dom.js";
/**
 * @import {Requests} from "../data/requests.js"
 * @import {RequestPath} from "../draw/path.js"
 * @import {View} from "../view/view.js"
 * @import {App} from "../main.js"
 */

/** Room shown before and after a request, as a part of it. */
const REQUEST_ROOM = 0.05;

/** The state of the panel of requests. */
export class Asked {
  open = false;
  /** The chosen range of durations; null to compare the slow requests with the normal ones. @type {{from: number, to: number} | null} */
  part = null;
  /** The request shown; -1 for none. */
  request = -1;
  /** The request named in an address, until it is searched for: its thread, start and end. @type {{pid: number, from: number, to: number} | null} */
  named = null;
  /** True if the request named in an address is to fill the picture. */
  fills = false;
  /** Whether all threads have rows while a request is shown, not only those of its path. */
  allThreads = false;
  /** The cause whose requests are listed; -1 for all. */
  cause = -1;
  /** The requests, once read from the page's data. @type {Requests | null} */
  requests = null;
  /** The error of reading them. */
  error = "";
  /** @type {Promise<void> | null} */
  reading = null;
  /** The path drawn, and the number of its request. @type {{of: number, path: RequestPath, pids: number[]} | null} */
  drawn = null;
  /** The comparison of slow with normal requests, once computed: it never changes. @type {ReturnType<typeof slowAgainstNormal>} */
  sides = null;
  /** The events of the slowest requests, or of those in the chosen range, and the starts of these requests, in order. @type {{part: Asked["part"], events: Events, starts: Float64Array} | null} */
  grouped = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.carried = app.store.meta.requests;
  }

  /** Reads the page's requests, on demand so that opening the page is not delayed. */
  read() {
    if (!this.carried) return Promise.resolve();
    const chunks = [...pristine.querySelectorAll("script.ku-data")].map((element) => element.textContent ?? "");
    this.reading ??= readRequests(this.carried, chunks, this.app.store.meta.chunkBytes, this.app.store).then(
      (requests) => {
        this.requests = requests;
      },
      (e) => (this.error = e.message),
    ).then(() => {
      this.goToNamed();
      this.app.showDetails();
      this.app.viewChanged();
    });
    return this.reading;
  }

  /** @param {Requests} requests */
  sidesOf(requests) {
    return (this.sides ??= slowAgainstNormal(requests));
  }

  /** The events of the requests in a range of durations, else of the slow ones, or of all if none are slow. @param {Requests} requests @param {Asked["part"]} part */
  eventsOf(requests, part = this.part) {
    if (!this.grouped || this.grouped.part !== part) {
      const { byDuration, sides } = requests;
      const numbers = part ? requests.between(part.from, part.to) : sides ? byDuration.subarray(sides[0].start, sides[0].end) : byDuration;
      const starts = Float64Array.from(numbers, (number) => requests.start[number]).sort();
      this.grouped = { part, events: new Events(requests, numbers), starts };
    }
    return this.grouped.events;
  }

  /** The starts of the requests that the open panel compares with others. */
  get starts() {
    return this.open && this.grouped ? this.grouped.starts : [];
  }

  /** Shows the request named in an address; if the page does not carry it, its time and the row of its thread. */
  goToNamed() {
    const { app, named, requests, error, fills } = this;
    if (!named || error !== "") return;
    this.named = null;
    const number = requests ? requests.numberOf(named) : -1;
    if (number >= 0) {
      this.request = number;
    } else if (!this.part) this.open = false;
    // The panel takes its room first.
    app.showDetails();
    if (fills || number < 0) fillWith(app, named.pid, named.from, named.to);
  }

  /** The critical path of the request shown. @returns {RequestPath | null} */
  get path() {
    const { requests, request, open } = this;
    if (!open || !requests || request < 0) return null;
    if (this.drawn?.of !== request) {
      const parts = requests.pathOf(request).map((part) => ({
        ...part, kind: requests.causes[part.cause].kind, words: shownName(requests.wordsOf(part)),
      }));
      const pid = requests.pid[request];
      this.drawn = { of: request, path: { pid, parts }, pids: [...new Set([pid, ...parts.map(({ culprit }) => culprit)])] };
    }
    return this.drawn.path;
  }

  /** The rows of the threads that the path of the request shown leads through, in its order, unless all are to be seen. @returns {View["chosen"]} */
  get chosen() {
    const { path, drawn, allThreads, app: { groups } } = this;
    const group = threadsOf(groups);
    if (!path || !drawn || allThreads || group.sections.length > 0) return null;
    return { group, rows: drawn.pids.flatMap((pid) => group.rowOfKey.get(pid) ?? []) };
  }

  /** The row of the thread whose request is shown, if that row is visible. */
  get item() {
    const { requests, request, open, app: { groups, view } } = this;
    const threads = threadsOf(groups);
    const row = open && requests && request >= 0 ? threads.rowOfKey.get(requests.pid[request]) : undefined;
    return row === undefined ? undefined : view.itemsOf.get(threads)?.[row];
  }

  /** The part of the address about requests. */
  get address() {
    const { open, part, request, requests } = this;
    return { requests: open ? (part ? `${part.from}..${part.to}` : "all") : "", request: open && requests && request >= 0 ? nameOf(requests, request) : "", threads: open && this.allThreads ? "all" : "" };
  }

  /** Takes the state from an address. @param {URLSearchParams} address */
  take(address) {
    const text = address.get("requests");
    const [, pid, start, end] = /^(\d+)@(-?[\d.]+)\.\.(-?[\d.]+)$/.exec(address.get("request") ?? "") ?? [];
    this.open = (text !== null || pid !== undefined) && this.carried !== undefined;
    const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(text ?? "") ?? [];
    this.part = from ? { from: Number(from), to: Number(to) } : null;
    this.request = this.cause = -1;
    const units = (/** @type {string} */ seconds) => Math.round(Number(seconds) * UNITS_PER_SECOND);
    this.named = pid === undefined ? null : { pid: Number(pid), from: units(start), to: units(end) };
    this.fills = !address.has("t");
    this.allThreads = address.get("threads") === "all";
    if (this.open) this.app.listing = false;
  }

  /** Goes to the request named in an address, once everything else of the address is shown. */
  taken() {
    if (!this.named) return;
    if (this.carried && !this.requests) {
      this.read();
      return;
    }
    this.goToNamed();
  }

  /** Undoes one thing: the request, the cause, the range of durations, the panel. */
  back() {
    if (this.request >= 0) this.request = -1;
    else if (this.cause >= 0) this.cause = -1;
    else if (this.part) this.part = null;
    else this.open = false;
    this.changed();
  }

  changed() {
    this.app.showDetails();
    byId("details").scrollTop = 0;
    this.app.viewChanged();
  }
}

/** @param {App} app */
export function toggleRequests(app) {
  const { asked } = app;
  if (!asked.carried) return;
  asked.open = !asked.open;
  asked.request = -1;
  app.listing = false;
  app.notes.selected = null;
  app.select(-1);
  app.viewChanged();
}

/** Shows the button if there are requests. @param {App} app */
export function listenToRequests(app) {
  byId("requests").hidden = !app.asked.carried;
  byId("requests").addEventListener("click", () => toggleRequests(app));
}

/** A request in the form of the address. @param {Requests} requests @param {number} number */
const nameOf = ({ pid, start, dur }, number) => `${pid[number]}@${secondsText(start[number])}..${secondsText(start[number] + dur[number])}`;

/** Goes to a request, which then fills the picture, with CPUs and threads. @param {App} app @param {number} number */
export function goToRequest(app, number) {
  const { asked, view } = app;
  const { requests } = asked;
  if (!requests) return;
  app.remember();
  if (view.relative) app.toggleRelative();
  asked.request = number;
  app.select(-1);
  byId("details").scrollTop = 0;
  const start = requests.start[number];
  fillWith(app, requests.pid[number], start, start + requests.dur[number]);
}

/** Fills the picture with a range of a thread's time, with CPUs and threads. @param {App} app @param {number} pid @param {number} from @param {number} to */
function fillWith(app, pid, from, to) {
  const { view, groups } = app;
  const threads = threadsOf(groups);
  for (const group of [groups[0], threads]) if (group.collapsed) app.toggleGroup(group);
  showTime(app, from, to);
  // Scroll to the top, as long as that shows the thread's row.
  view.chosen = app.asked.chosen;
  view.order(groups);
  view.scrollTo(0);
  view.layOut(groups);
  const row = threads.rowOfKey.get(pid);
  const item = row === undefined ? undefined : view.itemsOf.get(threads)?.[row];
  if (item) view.reveal(item);
}

/** Shows a range of time with some room before and after. @param {App} app @param {number} from @param {number} to */
export function showTime(app, from, to) {
  // A whole number, as the address has it.
  const room = Math.max(Math.round((to - from) * REQUEST_ROOM), 5);
  app.view.show(from - room, to + room);
  app.viewChanged();
}
