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
  let first = 0;
  for (const group of layout.groups) {
    const parts = group.parts.map((part) => inflate(slices(chunks, meta.chunkBytes, part.offset, part.bytes)));
    for (const [k, part] of group.parts.entries()) {
      const bytes = await parts[k];
      const rows = () => columns[part.field].subarray(first, first + group.rows);
      while (!unpack(bytes, part, rows())) columns[part.field] = widened(columns[part.field]);
    }
    addUp(/** @type {Float64Array} */ (columns.start).subarray(first, first + group.rows));
    first += group.rows;
  }
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

/** @param {Uint8Array[]} pieces */
async function inflate(pieces) {
  const stream = new Blob(/** @type {BlobPart[]} */ (pieces)).stream();
  const plain = stream.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

/**
 * Puts byte planes together; false if a value does not fit into `out`.
 * @param {Uint8Array} bytes
 * @param {Part} part
 * @param {Column} out
 */
function unpack(bytes, part, out) {
  const n = out.length;
  if (bytes.length !== n * part.width + part.wide * 8) throw new Error(`column ${part.field} is damaged`);
  if (part.width === 1) out.set(bytes.subarray(0, n));
  else if (part.width === 2) for (let i = 0; i < n; i++) out[i] = bytes[i] | (bytes[n + i] << 8);
  else {
    for (let i = 0; i < n; i++) {
      out[i] = (bytes[i] | (bytes[n + i] << 8) | (bytes[2 * n + i] << 16) | (bytes[3 * n + i] << 24)) >>> 0;
    }
  }
  if (part.wide === 0) return true;
  const escape = 2 ** (8 * part.width) - 1;
  const wide = new DataView(bytes.buffer, bytes.byteOffset + n * part.width);
  for (let i = 0, at = 0; i < n; i++) {
    if (out[i] >>> 0 !== escape) continue;
    const value = wide.getInt32(at + 4, true) * 2 ** 32 + wide.getUint32(at, true);
    out[i] = value;
    if (out[i] !== value) return false;
    at += 8;
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
