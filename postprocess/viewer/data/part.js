// SPDX-License-Identifier: BSD-3-Clause
// From the compressed parts of columns to numbers, by workers, so that all of a machine's CPUs open a page.

/** Workers: more hardly help, since putting columns together is not shared. */
const WORKERS_MAX = 3;

/**
 * A part as it is stored; `sums` says that its values are differences, to be added up.
 * @typedef {{pieces: Uint8Array<ArrayBuffer>[], width: number, wide: number, rows: number, sums: boolean}} Packed
 * @typedef {Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | Float64Array} Column
 */

/**
 * Inflates a part, puts its byte planes together and the wide values where they belong: the smallest array that holds
 * them, an empty one for nothing but zeros, null if the part is damaged. It runs in workers, too, where the page's other
 * functions are not known.
 * @param {Packed} packed
 * @param {ArrayBuffer[]} [spare] memory that is free, for whoever gives it back: new memory takes longer than all that is done with it
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
    // A Blob of the pieces would go to the browser's process and come back.
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
  // A loop for each width meets one sort of array: one for all would be many times slower.
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
  // A sign may fit into the bytes, if nothing fills them.
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
  // Whatever sort of integers it holds, its bits are those of one of three.
  /** @type {Record<number, any>} */
  const unsigned = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };
  const bits = array === Float64Array ? values : new unsigned[array.BYTES_PER_ELEMENT](values.buffer, 0, rows);
  for (let k = 0; k < wide; k++) bits[places[k]] = wides[k];
  let sum = 0;
  if (sums) for (let i = 0; i < rows; i++) values[i] = sum += values[i];
  return values;
}

/** What a worker does with each part that it is sent, and with memory that it gets back. */
const WORKER_SOURCE = `${unpackPart}
const spare = [];
onmessage = async ({ data: { id, packed, back } }) => {
  if (back) return spare.push(...back);
  const values = await unpackPart(packed, spare);
  postMessage({ id, values }, values ? [values.buffer] : []);
};`;

export class Unpackers {
  constructor() {
    /** Parts under way. @type {Map<number, (values: Column | null) => void>} */
    this.waiting = new Map();
    /** @type {Worker[]} */
    this.workers = [];
    this.count = 0;
    /** Memory that is free, where there are no workers. @type {ArrayBuffer[]} */
    this.spare = [];
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
    if (!worker) return unpackPart(packed, this.spare);
    worker.postMessage({ id, packed }, packed.pieces.map((piece) => piece.buffer));
    return new Promise((done) => {
      this.waiting.set(id, done);
      worker.addEventListener("error", () => done(unpackPart(again(), this.spare)), { once: true });
    });
  }

  /** Gives back the memory of values that are not needed any more. @param {Column[]} columns */
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
