// SPDX-License-Identifier: BSD-3-Clause
// Decodes the compressed parts of columns to numbers, in workers, so that opening a page uses all CPUs of a machine.

/** Maximum number of workers: more hardly help, since assembling the columns is not parallel. */
const WORKERS_MAX = 3;

/**
 * A part as stored; with `sums`, its values are differences to be added up.
 * @typedef {{pieces: Uint8Array<ArrayBuffer>[], width: number, wide: number, rows: number, sums: boolean}} Packed
 * @typedef {Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | Float64Array} Column
 */

/**
 * Inflates a part, joins its byte planes and puts the wide values in their places: the smallest array that holds
 * them, an empty one if all are zero, null if the part is damaged. It also runs in workers, which do not have the page's other
 * functions.
 * @param {Packed} packed
 * @param {ArrayBuffer[]} [spare] free memory to reuse, if the caller gives memory back: allocating takes longer than all the work on it
 * @returns {Promise<Column | null>}
 */
export async function unpackPart({ pieces, width, wide, rows, sums }, spare) {
  /** @type {(bytes: number) => ArrayBuffer} */
  const memory = (bytes) => {
    const k = spare?.findIndex((one) => one.byteLength >= bytes) ?? -1;
    return (k < 0 ? undefined : spare?.splice(k, 1)[0]) ?? new ArrayBuffer(Math.max(bytes, spare ? rows * 8 : 0));
  };
  const size = rows * width + wide * 8;
  const buffer = memory(size);
  const room = new Uint8Array(buffer, 0, size);
  let filled = 0;
  try {
    // A Blob of the pieces would make a round trip to the browser's process.
    const { writable, readable } = new DecompressionStream("gzip");
    const packed = writable.getWriter();
    const written = Promise.all([...pieces.map((piece) => packed.write(piece)), packed.close()]);
    written.catch(() => {});
    const plain = readable.getReader();
    for (let step = await plain.read(); !step.done; step = await plain.read()) {
      room.set(step.value, filled);
      filled += step.value.length;
    }
  } catch {
    return null;
  }
  if (filled !== size) return null;
  const bytes = room.subarray(0, rows * width);
  let zeros = 0;
  while (zeros < bytes.length && bytes[zeros] === 0) zeros++;
  if (zeros === bytes.length) {
    spare?.push(buffer);
    return new Uint8Array(0);
  }
  const numbers = new DataView(buffer, rows * width);
  const wides = new Float64Array(wide);
  const [one, two, three, four] = [0, 1, 2, 3].map((plane) => bytes.subarray(plane * rows, (plane + 1) * rows));
  const escape = 2 ** (8 * width) - 1;
  let min = 0;
  let max = escape - 1;
  for (let k = 0; k < wide; k++) {
    const value = numbers.getInt32(8 * k + 4, true) * 2 ** 32 + numbers.getUint32(8 * k, true);
    wides[k] = value;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  // Each loop for one width sees one type of array: a single loop for all would be many times slower.
  const places = new Uint32Array(wide + 1);
  /** @type {Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer>} */
  let narrow = one;
  let found = 0;
  if (width === 1) {
    for (let i = 0; wide > 0 && i < rows; i++) if (one[i] === 0xff) places[found++] = i;
  } else if (width === 2) {
    narrow = new Uint16Array(memory(rows * 2), 0, rows);
    for (let i = 0; i < rows; i++) {
      const value = one[i] | (two[i] << 8);
      narrow[i] = value;
      if (value === 0xffff) places[found++] = i;
    }
  } else {
    narrow = new Uint32Array(memory(rows * 4), 0, rows);
    for (let i = 0; i < rows; i++) {
      const value = one[i] | (two[i] << 8) | (three[i] << 16) | (four[i] << 24);
      narrow[i] = value;
      if (value === -1) places[found++] = i;
    }
  }
  if (found !== wide) return null;
  // Negative wide values may fit into the same bytes, if no narrow value needs the top bit.
  if (width === 1 && min < 0 && max < escape) {
    max = 0;
    for (let i = 0; i < rows; i++) if (one[i] > max && one[i] < escape) max = one[i];
  }
  const array = sums ? Float64Array : (min < 0
    ? [Int8Array, Int16Array, Int32Array].find((_, k) => -min <= 2 ** (8 << k) / 2 && max < 2 ** (8 << k) / 2)
    : [Uint8Array, Uint16Array, Uint32Array].find((_, k) => max < 2 ** (8 << k))) ?? Float64Array;
  /** @type {Column} */
  let values = narrow;
  if (!(narrow instanceof array)) {
    values = new array(memory(rows * array.BYTES_PER_ELEMENT), 0, rows);
    values.set(narrow);
    if (narrow !== one) spare?.push(narrow.buffer);
  }
  if (values !== one) spare?.push(buffer);
  // For any type of integers, the bits are those of one of three unsigned types.
  /** @type {Record<number, any>} */
  const unsigned = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };
  const bits = array === Float64Array ? values : new unsigned[array.BYTES_PER_ELEMENT](values.buffer, 0, rows);
  for (let k = 0; k < wide; k++) bits[places[k]] = wides[k];
  let sum = 0;
  if (sums) for (let i = 0; i < rows; i++) values[i] = sum += values[i];
  return values;
}

/** The program of a worker: unpacks each part sent to it, and takes back memory. */
const WORKER_SOURCE = `${unpackPart}
const spare = [];
onmessage = async ({ data: { id, packed, back } }) => {
  if (back) return spare.push(...back);
  const values = await unpackPart(packed, spare);
  postMessage({ id, values }, values ? [values.buffer] : []);
};`;

export class Unpackers {
  constructor() {
    /** Parts being unpacked. @type {Map<number, (values: Column | null) => void>} */
    this.waiting = new Map();
    /** @type {Worker[]} */
    this.workers = [];
    this.count = 0;
    /** Free memory, if there are no workers. @type {ArrayBuffer[]} */
    this.spare = [];
    const address = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    try {
      const max = Math.min(navigator.hardwareConcurrency || 1, WORKERS_MAX);
      for (let k = 0; k < max; k++) this.workers.push(this.start(address));
    } catch {
      // Without workers (some browsers refuse them to pages from disk) the page unpacks all parts itself.
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
   * The values of a part. Its pieces are transferred to a worker and lost to the page; `again` makes them once more if the worker fails.
   * @param {() => Packed} again
   * @returns {Promise<Column | null>}
   */
  unpack(again) {
    const id = this.count++;
    const worker = this.workers[id % this.workers.length];
    const packed = again();
    if (!worker) return unpackPart(packed, this.spare);
    worker.postMessage({ id, packed }, packed.pieces.map((piece) => piece.buffer));
    return new Promise((done) => {
      this.waiting.set(id, done);
      worker.addEventListener("error", () => done(unpackPart(again(), this.spare)), { once: true });
    });
  }

  /** Gives back the memory of values no longer needed. @param {Column[]} columns */
  giveBack(columns) {
    const back = columns.filter(({ length }) => length > 0).map(({ buffer }) => /** @type {ArrayBuffer} */ (buffer));
    const worker = this.workers[this.count % this.workers.length];
    if (worker) worker.postMessage({ back }, back);
    else this.spare.push(...back);
  }

  end() {
    for (const worker of this.workers) worker.terminate();
    URL.revokeObjectURL(this.address);
    this.spare = [];
  }
}
