// SPDX-License-Identifier: BSD-3-Clause
// From the compressed parts of columns to numbers, by workers, so that all of a machine's CPUs open a page.
"use strict";

/** Workers: more hardly help, since putting columns together is not shared. */
const WORKERS_MOST = 3;

/**
 * The values of a part: `narrow` of each row, all ones for those that stand in `wide`, in order.
 * @typedef {{narrow: Uint8Array | Uint16Array | Uint32Array, wide: Float64Array}} Values
 * @typedef {{pieces: Uint8Array[], width: number, wide: number, rows: number}} Packed
 */

/**
 * Inflates a part and puts its byte planes together; nothing if it is damaged. It runs in workers, too, where the page's
 * other functions are not known.
 * @param {Packed} packed
 * @returns {Promise<Values | null>}
 */
async function unpackPart({ pieces, width, wide, rows }) {
  const plain = new Blob(/** @type {BlobPart[]} */ (pieces)).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const buffer = await new Response(plain).arrayBuffer().catch(() => new ArrayBuffer(0));
  if (buffer.byteLength !== rows * width + wide * 8) return null;
  const bytes = new Uint8Array(buffer);
  const numbers = new DataView(buffer, rows * width);
  const wides = Float64Array.from({ length: wide }, (_, k) => numbers.getInt32(8 * k + 4, true) * 2 ** 32 + numbers.getUint32(8 * k, true));
  if (width === 1) return { narrow: bytes.subarray(0, rows), wide: wides };
  const [one, two, three, four] = [0, 1, 2, 3].map((plane) => bytes.subarray(plane * rows, (plane + 1) * rows));
  const narrow = width === 2 ? new Uint16Array(rows) : new Uint32Array(rows);
  if (width === 2) for (let i = 0; i < rows; i++) narrow[i] = one[i] | (two[i] << 8);
  else for (let i = 0; i < rows; i++) narrow[i] = one[i] | (two[i] << 8) | (three[i] << 16) | (four[i] << 24);
  return { narrow, wide: wides };
}

/** What a worker does with each part that it is sent. */
const WORKER_SOURCE = `${unpackPart}
onmessage = async ({ data: { id, packed } }) => {
  const values = await unpackPart(packed);
  postMessage({ id, values }, values ? [values.narrow.buffer, values.wide.buffer] : []);
};`;

class Unpackers {
  constructor() {
    /** Parts under way. @type {Map<number, (values: Values | null) => void>} */
    this.waiting = new Map();
    /** @type {Worker[]} */
    this.workers = [];
    this.count = 0;
    const address = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    try {
      const most = Math.min(navigator.hardwareConcurrency || 1, WORKERS_MOST);
      for (let k = 0; k < most; k++) this.workers.push(this.start(address));
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

  /** @param {Packed} packed @returns {Promise<Values | null>} */
  unpack(packed) {
    const id = this.count++;
    const worker = this.workers[id % this.workers.length];
    if (!worker) return unpackPart(packed);
    const pieces = packed.pieces.map((piece) => piece.slice());
    worker.postMessage({ id, packed: { ...packed, pieces } }, pieces.map((piece) => piece.buffer));
    return new Promise((done) => {
      this.waiting.set(id, done);
      worker.addEventListener("error", () => done(unpackPart(packed)), { once: true });
    });
  }

  end() {
    for (const worker of this.workers) worker.terminate();
    URL.revokeObjectURL(this.address);
  }
}
