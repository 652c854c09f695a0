// SPDX-License-Identifier: BSD-3-Clause
// Files that the page saves: a table of spans, a figure, a copy of itself with all additions.

import { checksumOf } from "../data/decode.js";
import { valueOf } from "../data/format.js";
import { pngOf, svgOf } from "./figure.js";
import { addedTo, pristine } from "./added.js";
import { addressOf } from "./address.js";
/**
 * @import {Store} from "../data/decode.js"
 * @import {App} from "../main.js"
 */

/** Lines of a table joined into one string. */
const CSV_LINES = 20000;
const CSV_HEAD = "start_ns,dur_ns,cpu,pid,rpc,event,arg,ret,ipc,name\r\n";

/** Lets the browser save a file. @param {string} name @param {Blob} blob */
export function offer(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** A name for a file, from the title of the trace. @param {App} app @param {string} ending */
export function fileName(app, ending) {
  const words = app.store.meta.title.normalize("NFKD").replace(/[^a-zA-Z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${words || "kutrace"}.${ending}`;
}

/** A copy of the page with its notes, saved views and current view; it opens, and can be saved, like this one. @param {App} app */
function copyOf(app) {
  const added = /** @type {HTMLElement} */ (pristine.querySelector("#ku-added"));
  const json = JSON.stringify({ address: addressOf(app), ...addedTo(app) });
  added.textContent = json.replaceAll("<", "\\u003c");
  added.setAttribute("data-crc32", checksumOf(added.textContent));
  return new Blob(["<!doctype html>\n", pristine.outerHTML], { type: "text/html" });
}

/** @param {App} app */
export async function savePng(app) {
  offer(fileName(app, "png"), await pngOf(app));
}

/** @param {App} app */
export function saveSvg(app) {
  offer(fileName(app, "svg"), svgOf(app));
}

/** @param {App} app */
export function saveCopy(app) {
  offer(fileName(app, "html"), copyOf(app));
}

/**
 * All spans that overlap a range, only matches if there is a search, as CSV by RFC 4180; times count from the
 * trace's base minute.
 * @param {App} app
 * @param {number} from
 * @param {number} to
 */
export function csvOf({ store, search }, from, to) {
  const { n, start, dur } = store;
  const ids = new Uint32Array(n);
  let count = 0;
  for (let i = 0; i < n && start[i] < to; i++) {
    if (start[i] + dur[i] >= from && search.shows(i)) ids[count++] = i;
  }
  return csvOfSpans(store, ids.subarray(0, count));
}

/** Spans as CSV by RFC 4180. @param {Store} store @param {Uint32Array} ids */
export function csvOfSpans(store, ids) {
  const { start, dur, cpu, cpus, pid, pids, rpc, event, events, arg, ret, ipc, name } = store;
  const names = store.names.map((text) => `"${text.replaceAll('"', '""')}"`);
  const parts = [CSV_HEAD];
  let lines = [];
  const textOf = (/** @type {number} */ stored) => valueOf(stored) ?? "";
  for (const i of ids) {
    lines.push(`${start[i] * 10},${dur[i] * 10},${cpus[cpu[i]]},${pids[pid[i]]},${rpc[i]},${events[event[i]]},${textOf(arg[i])},${
      textOf(ret[i])},${ipc[i]},${names[name[i]]}\r\n`);
    if (lines.length === CSV_LINES) parts.push(lines.splice(0).join(""));
  }
  parts.push(lines.join(""));
  return new Blob(parts, { type: "text/csv" });
}
