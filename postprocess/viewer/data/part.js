// SPDX-License-Identifier: BSD-3-Clause
// From the compressed parts of columns to numbers, by workers, so that all of a machine's CPUs open a page.

/** Workers: more hardly help, since putting columns together is not shared. */
const WORKERS_MAX = 3;

/**
 * A part as it is stored; `sums` says that its values are differences, to be added up.
 * @typedef {{pieces: Uint8Array[], width: number, wide: number, rows: number, sums: boolean}} Packed
 * @typedef {Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | Float64Array} Column
 */

/**
 * Inflates a part, puts its byte planes together and the wide values where they belong: the smallest array that holds
 * them, an empty one for nothing but zeros, null if the part is damaged. It runs in workers, too, where the page's other
 * functions are not known.
 * @param {Packed} packed
 * @returns {Promise<Column | null>}
 */
export async function unpackPart({ pieces, width, wide, rows, sums }) {
  const plain = new Blob(/** @type {BlobPart[]} */ (pieces)).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(plain).arrayBuffer().catch(() => new ArrayBuffer(0));
  if (buffer.byteLength !== rows * width + wide * 8) return null;
  const bytes = new Uint8Array(buffer, 0, rows * width);
  let zeros = 0;
  while (zeros < bytes.length && bytes[zeros] === 0) zeros++;
  if (zeros === bytes.length) return new Uint8Array(0);
  const numbers = new DataView(buffer, rows * width);
  const wides = Array.from({ length: wide }, (_, k) => numbers.getInt32(8 * k + 4, true) * 2 ** 32 + numbers.getUint32(8 * k, true));
  const [one, two, three, four] = [0, 1, 2, 3].map((plane) => bytes.subarray(plane * rows, (plane + 1) * rows));
  const narrow = width === 1 ? one : width === 2 ? new Uint16Array(rows) : new Uint32Array(rows);
  if (width === 2) for (let i = 0; i < rows; i++) narrow[i] = one[i] | (two[i] << 8);
  if (width === 4) for (let i = 0; i < rows; i++) narrow[i] = one[i] | (two[i] << 8) | (three[i] << 16) | (four[i] << 24);
  const escape = 2 ** (8 * width) - 1;
  if (sums) {
    const values = new Float64Array(rows);
    let [sum, at] = [0, 0];
    for (let i = 0; i < rows; i++) values[i] = sum += narrow[i] === escape ? wides[at++] : narrow[i];
    return at === wide ? values : null;
  }
  let min = 0;
  let max = escape - 1;
  for (const value of wides) [min, max] = [Math.min(min, value), Math.max(max, value)];
  // A sign may fit into the bytes, if nothing fills them.
  if (width === 1 && min < 0 && max < escape) {
    max = 0;
    for (let i = 0; i < rows; i++) if (one[i] > max && one[i] < escape) max = one[i];
  }
  const array = min < 0
    ? [Int8Array, Int16Array, Int32Array].find((_, k) => -min <= 2 ** (8 << k) / 2 && max < 2 ** (8 << k) / 2)
    : [Uint8Array, Uint16Array, Uint32Array].find((_, k) => max < 2 ** (8 << k));
  const values = !array ? new Float64Array(narrow) : narrow instanceof array ? narrow : new array(narrow);
  let at = -1;
  for (const value of wides) {
    at = narrow.indexOf(escape, at + 1);
    if (at < 0) return null;
    values[at] = value;
  }
  return values;
}

/** What a worker does with each part that it is sent. */
const WORKER_SOURCE = `${unpackPart}
onmessage = async ({ data: { id, packed } }) => {
  const values = await unpackPart(packed);
  postMessage({ id, values }, values ? [values.buffer] : []);
};`;

export class Unpackers {
  constructor() {
    /** Parts under way. @type {Map<number, (values: Column | null) => void>} */
    this.waiting = new Map();
    /** @type {Worker[]} */
    this.workers = [];
    this.count = 0;
    const address = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    try {
      const max = Math.min(navigator.hardwareConcurrency || 1, WORKERS_MAX);
      for (let k = 0; k < max; k++) this.workers.push(this.start(address));
    } catch {
      // A browser without workers for pages from disk does it all itself.
    }
    this.address = address;
  }

  /** @param {string} address */
  start(address) {
    const worker = new Worker(address);
    worker.onmessage = ({ data: { id, values } }) => {
      this.waiting.get(id)?.(values);
      this.waiting.delete(id);
    };
    return worker;
  }

  /**
   * The values of a part. Its pieces go to a worker and are gone then; `again` makes them once more, if that fails.
   * @param {() => Packed} again
   * @returns {Promise<Column | null>}
   */
  unpack(again) {
    const id = this.count++;
    const worker = this.workers[id % this.workers.length];
    const packed = again();
    if (!worker) return unpackPart(packed);
    worker.postMessage({ id, packed }, packed.pieces.map((piece) => piece.buffer));
    return new Promise((done) => {
      this.waiting.set(id, done);
      worker.addEventListener("error", () => done(unpackPart(again())), { once: true });
    });
  }

  end() {
    for (const worker of this.workers) worker.terminate();
    URL.revokeObjectURL(this.address);
  }
}
