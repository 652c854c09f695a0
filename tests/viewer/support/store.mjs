// SPDX-License-Identifier: BSD-3-Clause
// Spans as the page has them once it has read its data.
import { Sorter } from "../../../postprocess/viewer/data/decode.js";
import { EVENT } from "../../../postprocess/viewer/data/tables.js";

const META = { tracebase: "2026-01-02_03:04:00", valueBits: 32, errors: {}, flags: 0, quality: [], lost: 0 };

/** A value that may be missing, as the columns `arg` and `ret` have it. */
const stored = (value) => (value === undefined ? 0 : value < 0 ? value : value + 1);

/**
 * The store of spans `{start, dur, event, name, cpu, pid, rpc, arg, ret, link}`, ordered by start; times count 10 ns.
 * What a span does not say is 0, CPU and thread -1, argument and value none; a wakeup came out of what its CPU executed.
 */
export function storeOf(spans, meta = {}) {
  const column = (of) => Float64Array.from(spans, of);
  const listed = (of) => {
    const values = [...new Set(spans.map(of))].sort((a, b) => a - b);
    return [values, Uint16Array.from(spans, (span) => values.indexOf(of(span)))];
  };
  const names = [...new Set(spans.map(({ name = "" }) => name))];
  const [cpus, cpu] = listed((span) => span.cpu ?? -1);
  const [pids, pid] = listed((span) => span.pid ?? -1);
  const [events, event] = listed((span) => span.event);
  const columns = {
    start: column(({ start }) => start), dur: column(({ dur = 0 }) => dur), cpu, pid, event,
    rpc: column(({ rpc = 0 }) => rpc), arg: column(({ arg }) => stored(arg)), ret: column(({ ret }) => stored(ret)),
    ipc: column(({ ipc = 0 }) => ipc), link: column(({ event, link }) => link ?? (event === EVENT.WAKEUP_ARC ? 1 : 0)), name: Uint16Array.from(spans, ({ name = "" }) => names.indexOf(name)),
  };
  const sorter = new Sorter({ rows: spans.length, cpus, pids, events });
  sorter.add(columns, 0, spans.length);
  const { kind, kinds, counts } = sorter;
  return {
    n: spans.length, ...columns, names, cpus, pids, events, kind, kinds, counts,
    ...sorter.named(columns.name, names), meta: { ...META, ...meta },
  };
}

/** A piece that continues the call of its kind that began last of its thread or CPU. */
export const more = (piece) => ({ ...piece, link: 1 });

/** Numbers that look random, the same in every run: below `n` each. */
export function numbersFrom(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}
