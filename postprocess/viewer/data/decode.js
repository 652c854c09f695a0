// SPDX-License-Identifier: BSD-3-Clause
// From the page's data elements to typed arrays: one array per column, for all spans.
//
// The layout is that of postprocess/src/sink/page/columns.rs: groups of rows, each with one compressed part per column;
// a part is byte planes of narrow values, with all ones standing for one of the wide values after them.

import { valueOf } from "./format.js";
import { KERNEL_EVENTS, kindOfEvent, kindOfUser } from "./kind.js";
import { ownNumber } from "./machines.js";
import { Unpackers } from "./part.js";
import { Kind, KIND_NAMES } from "./tables.js";
/**
 * @import {Machine} from "./machines.js"
 * @import {Column} from "./part.js"
 * @import {Carried} from "./requests.js"
 */

/** The newest version of the data this viewer can read. */
const PAGE_VERSION = 2;
/** The columns. */
const COLUMNS = Object.freeze(["start", "dur", "cpu", "pid", "rpc", "event", "arg", "ret", "ipc", "name"]);

/** A control group: its path, its short name, and its threads. @typedef {{path: string, short: string, pids: number[]}} Cgroup */

/**
 * @typedef {{field: string, width: number, wide: number, offset: number, bytes: number}} Part
 * @typedef {{rows: number, parts: Part[]}} PartGroup
 * @typedef {{rows: number, cpus: number[], pids: number[], events: number[], groups: PartGroup[]}} Layout
 * @typedef {{version: number, chunkBytes: number, title: string, tracebase: string, cpuModel: string, host: string,
 *   kernel: string, valueBits: number, errors: Record<string, string>, counts?: Record<string, number>, processes?: Record<string, number>, cgroups?: Cgroup[], flags: number, mbitSec: number, randomid: number, lost: number, quality: string[],
 *   unseen?: string[], counted?: string[], machines?: Machine[],
 *   entries: number, entryNs: number, savedViews: [string, Record<string, any>][], names: string[],
 *   layout: Layout, requests?: Carried}} Meta
 */

/**
 * All spans, ordered by start, then longest first. Times count 10 ns from the base minute; `cpu`, `pid` and `event`
 * are indexes into `cpus`, `pids` and `events`; `valueOf` decodes `arg` and `ret`; `link` connects spans that belong together, as
 * described in postprocess/src/sink/page/links.rs; `kinds` is the set of kinds present;
 * `earlier` has, by thread, the names before its last one, joined by plus signs.
 * @typedef {{n: number, start: Float64Array, dur: Column, cpu: Column, pid: Column, rpc: Column, event: Column,
 *   arg: Column, ret: Column, ipc: Column, name: Column, link: Column, kind: Uint8Array, kinds: Set<number>, names: string[], cpus: number[],
 *   pids: number[], events: number[], threads: Map<number, string>, earlier: Map<number, string>, meta: Meta, counts: Counts}} Store
 */

/** Spans of execution by index of CPU and of thread, and all spans by kind. @typedef {{cpu: Uint32Array, pid: Uint32Array, kind: Uint32Array}} Counts */

/**
 * Reads the page's data, each group as soon as the browser's parser is past its last element.
 * @param {Document} page
 * @returns {Promise<Store>}
 */
export async function readStore(page) {
  /** @type {Meta} */
  const meta = JSON.parse(checkedText(page.getElementById("ku-meta")));
  if (meta.version !== PAGE_VERSION) throw new Error(`its data have version ${meta.version}, not ${PAGE_VERSION}`);
  const { layout } = meta;
  /** @type {Record<string, Column>} */
  const columns = {};
  for (const field of COLUMNS) columns[field] = new Uint8Array(0);
  const sorter = new Sorter(layout);
  const unpackers = new Unpackers();
  /** @type {string[]} */
  const chunks = [];
  const started = async (/** @type {PartGroup | undefined} */ group) => {
    const end = Math.max(0, ...(group?.parts ?? []).map((part) => part.offset + part.bytes));
    await readUpTo(page, Math.ceil(end / meta.chunkBytes), chunks);
    return group?.parts.map((part) => unpackers.unpack(() => ({
      pieces: piecesOf(chunks, meta.chunkBytes, part.offset, part.bytes), width: part.width, wide: part.wide,
      rows: group.rows, sums: part.field === "start",
    }))) ?? [];
  };
  let first = 0;
  let next = started(layout.groups[0]);
  for (const [g, group] of layout.groups.entries()) {
    const now = await next;
    next = started(layout.groups[g + 1]);
    const taken = [];
    for (const [k, { field }] of group.parts.entries()) {
      const values = await now[k];
      if (!values) throw new Error(`its data are damaged, or not all there (column ${field})`);
      columns[field] = g === 0 ? emptyColumn(layout, field, values) : withRoomFor(columns[field], values, first);
      // A column of zeros takes no memory: the system allocates pages only when they are written.
      if (values.length > 0) columns[field].set(values, first);
      taken.push(values);
    }
    unpackers.giveBack(taken);
    sorter.add(columns, first, first + group.rows);
    first += group.rows;
    /** @type {HTMLProgressElement} */ (page.getElementById("progress")).value = first / layout.rows;
  }
  unpackers.end();
  columns.link = takeLinks(columns.ipc);
  return /** @type {Store} */ (/** @type {unknown} */ ({
    n: layout.rows, ...columns, names: meta.names, cpus: layout.cpus, pids: layout.pids, events: layout.events, meta,
    kind: sorter.kind, kinds: sorter.kinds, counts: sorter.counts, ...sorter.named(columns.name, meta.names),
  }));
}

/** Moves the links of the spans out of the bits above their IPC codes. @param {Column} ipc @returns {Column} */
function takeLinks(ipc) {
  const link = new /** @type {any} */ (ipc.constructor)(ipc.length);
  for (let i = 0; i < ipc.length; i++) {
    const both = ipc[i];
    if (both === 0) continue;
    link[i] = both >> 4;
    ipc[i] = both & 15;
  }
  return link;
}

/**
 * Reads the first data elements once the parser is past them, except those already read: each read copies an element's whole text.
 * @param {Document} page
 * @param {number} count
 * @param {string[]} chunks their texts
 */
async function readUpTo(page, count, chunks) {
  const elements = page.getElementsByClassName("ku-data");
  while (count > 0 && !elements[count - 1]?.nextElementSibling && page.readyState === "loading") {
    await new Promise((done) => {
      const observer = new MutationObserver(done);
      observer.observe(page.body, { childList: true });
      // In a truncated page, the last element has no next sibling.
      page.addEventListener("readystatechange", done, { once: true });
    });
  }
  if (elements.length < count) throw new Error("some of its data are missing");
  while (chunks.length < count) chunks.push(elements[chunks.length].textContent ?? "");
}

/** The text of an element; throws if it does not match its checksum. @param {Element | null} element */
export function checkedText(element) {
  const text = element?.textContent ?? "";
  if (element?.getAttribute("data-crc32") !== checksumOf(text)) throw new Error("it is cut or damaged");
  return text;
}

/** Throws if the page's program or style does not match its checksum. @param {Document} page */
export function checkProgram(page) {
  const parts = [...page.querySelectorAll("script:not([type]), head > style")];
  if (parts.length === 0) throw new Error("its program is missing");
  parts.forEach(checkedText);
}

/** The contribution of each byte to a checksum. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

/** The CRC-32 of a text, the variant of gzip, in hexadecimal. @param {string} text */
export function checksumOf(text) {
  let sum = -1;
  const bytes = new TextEncoder().encode(text);
  for (let k = 0; k < bytes.length; k++) sum = CRC_TABLE[(sum ^ bytes[k]) & 255] ^ (sum >>> 8);
  return (~sum >>> 0).toString(16).padStart(8, "0");
}

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
function bytesOfBase64(text) {
  const direct = /** @type {any} */ (Uint8Array).fromBase64;
  if (direct) return direct.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * A column for all rows, created from its first values: as wide as its widest part, so that it is seldom widened later.
 * @param {Layout} layout
 * @param {string} field
 * @param {Column} values
 * @returns {Column}
 */
function emptyColumn(layout, field, values) {
  const widths = layout.groups.flatMap((group) => group.parts.filter((part) => part.field === field).map((part) => part.width));
  // The numbers of a list may all be narrow except those at its end, which come last.
  const list = { cpu: layout.cpus, pid: layout.pids, event: layout.events }[field] ?? [];
  const widest = Math.max(...widths, list.length > 255 ? 2 : 1);
  const like = widest === 1 ? values : withRoomFor(widest === 2 ? new Uint16Array(0) : new Uint32Array(0), values, 0);
  return new /** @type {any} */ (like.constructor)(layout.rows);
}

/**
 * A column that also has room for the given values: the column itself, or a wider copy of its contents so far.
 * @param {Column} column
 * @param {Column} values
 * @param {number} filled
 * @returns {Column}
 */
function withRoomFor(column, values, filled) {
  if (values.length === 0) return column;
  const has = [column, values].map((array) => ({ bytes: array.BYTES_PER_ELEMENT, sign: !(array.constructor.name.startsWith("U")) }));
  const sign = has.some((array) => array.sign);
  // An unsigned type needs twice the bytes to become signed.
  const bytes = Math.max(...has.map((array) => array.bytes * (sign && !array.sign ? 2 : 1)));
  const arrays = sign ? { 1: Int8Array, 2: Int16Array, 4: Int32Array } : { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };
  const array = /** @type {Record<number, any>} */ (arrays)[bytes] ?? Float64Array;
  if (column instanceof array) return column;
  const wider = new array(column.length);
  wider.set(column.subarray(0, filled));
  return wider;
}

/**
 * The pieces of the chunks that make up a range of the data, each in its own memory. Three bytes are four characters.
 * @param {string[]} chunks
 * @param {number} chunkBytes
 * @param {number} offset
 * @param {number} bytes
 */
export function piecesOf(chunks, chunkBytes, offset, bytes) {
  const pieces = [];
  for (let at = offset; at < offset + bytes;) {
    const inChunk = at % chunkBytes;
    const take = Math.min(chunkBytes - inChunk, offset + bytes - at);
    const text = chunks[Math.floor(at / chunkBytes)].slice(Math.floor(inChunk / 3) * 4, Math.ceil((inChunk + take) / 3) * 4);
    pieces.push(bytesOfBase64(text).subarray(inChunk % 3, (inChunk % 3) + take));
    at += take;
  }
  return pieces;
}

/** Classifies spans, group by group: their kinds, the count of each, and the names of threads. */
export class Sorter {
  /** @param {Layout} layout */
  constructor({ rows, cpus, pids, events }) {
    this.cpus = cpus;
    this.pids = pids;
    this.events = events;
    this.byEvent = Uint8Array.from(events, kindOfEvent);
    this.kind = new Uint8Array(rows);
    /** @type {Counts} */
    this.counts = { cpu: new Uint32Array(cpus.length), pid: new Uint32Array(pids.length), kind: new Uint32Array(KIND_NAMES.length) };
    /** By thread: its first span with the thread's name, of user code or of a kernel thread; and its last row label. */
    this.user = new Int32Array(pids.length).fill(-1);
    this.label = new Int32Array(pids.length).fill(-1);
  }

  /** @param {Record<string, Column>} columns @param {number} first @param {number} end */
  add({ event, cpu, pid, arg }, first, end) {
    const { kind, byEvent, user, label, cpus, pids, events, counts } = this;
    for (let i = first; i < end; i++) {
      let k = byEvent[event[i]];
      if (k === Kind.USER) {
        k = kindOfUser(events[event[i]], pids[pid[i]], valueOf(arg[i]));
        if (k === Kind.USER && user[pid[i]] < 0) user[pid[i]] = i;
      } else if (k === Kind.KERNEL) {
        if (events[event[i]] >= KERNEL_EVENTS && user[pid[i]] < 0) user[pid[i]] = i;
      } else if (k === Kind.LABEL) label[pid[i]] = i;
      // Time in a queue is on no CPU; the event of entering one is.
      else if (k === Kind.QUEUE && cpus[cpu[i]] >= 0) k = Kind.POINT;
      kind[i] = k;
      counts.kind[k]++;
      if (k > Kind.SCHED) continue;
      counts.cpu[cpu[i]]++;
      counts.pid[pid[i]]++;
    }
  }

  /** The kinds present in the trace. */
  get kinds() {
    return new Set([...this.counts.kind.keys()].filter((k) => this.counts.kind[k] > 0));
  }

  /**
   * The name of each thread: from its first span that has the name, or the last of several names. A row label has all names of a thread, joined by plus signs, which names may
   * contain, too: the last name is one that the thread ran under, or else what follows the last plus sign before a letter.
   * @param {Column} name
   * @param {string[]} names
   */
  named(name, names) {
    const ran = new Set(this.label.some((i) => i >= 0) ? names : []);
    /** @type {Map<number, string>} */
    const earlier = new Map();
    const threads = new Map(this.pids.map((number, p) => {
      const i = this.label[p] >= 0 ? this.label[p] : this.user[p];
      const text = i >= 0 ? names[name[i]] : "pid";
      const isNamed = [number, ownNumber(number)].some((own) => text.endsWith(`.${own}`));
      const whole = isNamed ? text : `${text}.${number}`;
      if (this.label[p] < 0) return /** @type {[number, string]} */ ([number, whole]);
      const ends = [...whole.matchAll(/\+/g)].map((plus) => Number(plus.index));
      const at = ends.find((end) => ran.has(whole.slice(end + 1))) ?? ends.findLast((end) => /^[^.+]/.test(whole.slice(end + 1))) ?? -1;
      if (at > 0) earlier.set(number, whole.slice(0, at));
      return [number, whole.slice(at + 1)];
    }));
    return { threads, earlier };
  }
}
