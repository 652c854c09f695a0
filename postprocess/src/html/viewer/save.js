// SPDX-License-Identifier: BSD-3-Clause
// Files the page gives away: a table of spans.
"use strict";

/** Lines of a table made into one string. */
const CSV_LINES = 20000;
const CSV_HEAD = "start_ns,dur_ns,cpu,pid,rpc,event,arg,ret,ipc,name\r\n";

/** Gives a file to the browser to save. @param {string} name @param {Blob} blob */
function offer(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/**
 * All spans that reach into a range, or those of them that are searched, as RFC 4180 has it; times count from the
 * trace's base minute.
 * @param {App} app
 * @param {number} from
 * @param {number} to
 */
function csvOf(app, from, to) {
  const { store, search } = app;
  const { n, start, dur, cpu, cpus, pid, pids, rpc, event, events, arg, ret, ipc, name } = store;
  const names = store.names.map((text) => `"${text.replaceAll('"', '""')}"`);
  const parts = [CSV_HEAD];
  let lines = [];
  for (let i = 0; i < n && start[i] < to; i++) {
    if (start[i] + dur[i] < from || !search.shows(i)) continue;
    lines.push(`${start[i] * 10},${dur[i] * 10},${cpus[cpu[i]]},${pids[pid[i]]},${rpc[i]},${events[event[i]]},${arg[i]},${
      ret[i]},${ipc[i]},${names[name[i]]}\r\n`);
    if (lines.length === CSV_LINES) parts.push(lines.splice(0).join(""));
  }
  parts.push(lines.join(""));
  return new Blob(parts, { type: "text/csv" });
}
