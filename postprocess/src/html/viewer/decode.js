// SPDX-License-Identifier: BSD-3-Clause
// From the page's data elements to typed arrays: one array per column, for all spans.
//
// The layout is that of postprocess/src/html/columns.rs: groups of rows, each with one compressed part per column;
// a part is byte planes of narrow values, all ones standing for one of the wide values behind them.
"use strict";

/** The newest version of the data this viewer can read. */
const PAGE_VERSION = 1;

/**
 * @typedef {{field: string, width: number, wide: number, offset: number, bytes: number}} Part
 * @typedef {{rows: number, parts: Part[]}} PartGroup
 * @typedef {{rows: number, cpus: number[], pids: number[], events: number[], groups: PartGroup[]}} Layout
 * @typedef {{version: number, chunkBytes: number, title: string, tracebase: string, cpuModel: string, host: string,
 *   kernel: string, flags: number, mbitSec: number, randomid: number, lost: number, quality: string[],
 *   entries: number, entryNs: number, savedViews: [string, Record<string, any>][], names: string[],
 *   layout: Layout}} Meta
 * @typedef {Uint8Array | Uint16Array | Uint32Array | Int16Array | Int32Array | Float64Array} Column
 */

/**
 * All spans, ordered by start, then longest first. Times count 10 ns from the base minute; `cpu`, `pid` and `event`
 * are indexes into `cpus`, `pids` and `events`; `kinds` are those that any span has.
 * @typedef {{n: number, start: Float64Array, dur: Column, cpu: Column, pid: Column, rpc: Column, event: Column,
 *   arg: Column, ret: Column, ipc: Column, name: Column, kind: Uint8Array, kinds: Set<number>, names: string[], cpus: number[],
 *   pids: number[], events: number[], threads: Map<number, string>, meta: Meta}} Store
 */

/**
 * Reads the page's data and drops the elements that held it.
 * @param {Document} page
 * @returns {Promise<Store>}
 */
async function readStore(page) {
  /** @type {Meta} */
  const meta = JSON.parse(page.getElementById("ku-meta")?.textContent ?? "{}");
  if (meta.version > PAGE_VERSION) throw new Error(`the data have version ${meta.version}, newer than this viewer`);
  const elements = [...page.querySelectorAll("script.ku-data")];
  const chunks = elements.map((element) => {
    const bytes = bytesOfBase64(element.textContent ?? "");
    element.remove();
    return bytes;
  });
  const { layout } = meta;
  /** @type {Record<string, Column>} */
  const columns = {};
  for (const field of ["start", "dur", "cpu", "pid", "rpc", "event", "arg", "ret", "ipc", "name"]) {
    columns[field] = emptyColumn(layout, field);
  }
  const unpackers = new Unpackers();
  const started = (/** @type {PartGroup | undefined} */ group) => group?.parts.map((part) => unpackers.unpack({
    pieces: slices(chunks, meta.chunkBytes, part.offset, part.bytes), width: part.width, wide: part.wide, rows: group.rows,
  })) ?? [];
  let first = 0;
  let next = started(layout.groups[0]);
  for (const [g, group] of layout.groups.entries()) {
    const now = next;
    next = started(layout.groups[g + 1]);
    for (const [k, part] of group.parts.entries()) {
      const values = await now[k];
      if (!values) throw new Error(`column ${part.field} is damaged`);
      const rows = () => columns[part.field].subarray(first, first + group.rows);
      while (!fill(rows(), values, part)) columns[part.field] = widened(columns[part.field]);
    }
    addUp(/** @type {Float64Array} */ (columns.start).subarray(first, first + group.rows));
    first += group.rows;
  }
  unpackers.end();
  const store = /** @type {Store} */ (/** @type {unknown} */ ({
    n: layout.rows, ...columns, names: meta.names, cpus: layout.cpus, pids: layout.pids, events: layout.events, meta,
    kind: new Uint8Array(layout.rows), kinds: new Set(), threads: new Map(),
  }));
  classify(store);
  nameThreads(store);
  return store;
}

/** @param {string} text @returns {Uint8Array} */
function bytesOfBase64(text) {
  const direct = /** @type {any} */ (Uint8Array).fromBase64;
  if (direct) return direct.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * The smallest array that may hold a column: sums of differences need doubles, RPCs can be negative; values too wide for
 * their part mostly fit into 32 bits.
 * @param {Layout} layout
 * @param {string} field
 * @returns {Column}
 */
function emptyColumn(layout, field) {
  const parts = layout.groups.flatMap((group) => group.parts.filter((part) => part.field === field));
  const wide = parts.some((part) => part.wide > 0);
  const small = parts.every((part) => part.width === 1);
  if (field === "rpc" && wide) return small ? new Int16Array(layout.rows) : new Int32Array(layout.rows);
  if (field === "start") return new Float64Array(layout.rows);
  const width = wide ? 4 : Math.max(1, ...parts.map((part) => part.width));
  return width === 1 ? new Uint8Array(layout.rows) : width === 2 ? new Uint16Array(layout.rows)
    : new Uint32Array(layout.rows);
}

/** The same values where wider ones have room. @param {Column} column @returns {Column} */
function widened(column) {
  return column instanceof Int16Array ? Int32Array.from(column) : Float64Array.from(column);
}

/**
 * The pieces of the chunks that make up a range of the data.
 * @param {Uint8Array[]} chunks
 * @param {number} chunkBytes
 * @param {number} offset
 * @param {number} bytes
 */
function slices(chunks, chunkBytes, offset, bytes) {
  const pieces = [];
  for (let at = offset; at < offset + bytes;) {
    const inChunk = at % chunkBytes;
    const take = Math.min(chunkBytes - inChunk, offset + bytes - at);
    pieces.push(chunks[Math.floor(at / chunkBytes)].subarray(inChunk, inChunk + take));
    at += take;
  }
  return pieces;
}

/**
 * Puts the values of a part into a column; false if one of them does not fit there.
 * @param {Column} out
 * @param {Values} values
 * @param {Part} part
 */
function fill(out, { narrow, wide }, part) {
  out.set(narrow);
  const escape = 2 ** (8 * part.width) - 1;
  let i = -1;
  for (const value of wide) {
    i = narrow.indexOf(escape, i + 1);
    if (i < 0) throw new Error(`column ${part.field} is damaged`);
    out[i] = value;
    if (out[i] !== value) return false;
  }
  return true;
}

/** Turns differences into sums. @param {Float64Array} values */
function addUp(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) values[i] = sum += values[i];
}

/** @param {Store} store */
function classify(store) {
  const { n, kind, event, cpu, pid, arg, events, cpus, pids } = store;
  const byEvent = Uint8Array.from(events, kindOfEvent);
  const present = new Uint8Array(KIND_NAMES.length);
  for (let i = 0; i < n; i++) {
    const k = byEvent[event[i]];
    if (k === Kind.USER) kind[i] = kindOfUser(events[event[i]], pids[pid[i]], arg[i]);
    // Time in a queue lies on no CPU; the event of entering one does.
    else kind[i] = k === Kind.QUEUE && cpus[cpu[i]] >= 0 ? Kind.POINT : k;
    present[kind[i]] = 1;
  }
  for (const [k, is] of present.entries()) if (is === 1) store.kinds.add(k);
}

/**
 * Names every thread: by its row label if it has one, else by its first user-mode span.
 * @param {Store} store
 */
function nameThreads(store) {
  const { n, kind, pid, name, names, pids, threads } = store;
  const label = new Int32Array(pids.length).fill(-1);
  const user = new Int32Array(pids.length).fill(-1);
  for (let i = 0; i < n; i++) {
    if (kind[i] === Kind.USER && user[pid[i]] < 0) user[pid[i]] = name[i];
    else if (kind[i] === Kind.LABEL) label[pid[i]] = name[i];
  }
  for (const [p, number] of pids.entries()) {
    const text = names[label[p] >= 0 ? label[p] : user[p]] ?? "pid";
    threads.set(number, text.endsWith(`.${number}`) ? text : `${text}.${number}`);
  }
}
