// SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { checkedText, checksumOf } from "../../postprocess/viewer/data/decode.js";
import { unpackPart as unpack } from "../../postprocess/viewer/data/part.js";
import { numbersFrom } from "./support/store.mjs";

/** Memory that earlier parts have left, as they left it. */
const spare = [];

/** What comes of a part, a copy: its memory is used again. */
async function unpackPart(part) {
  const values = await unpack(part, spare);
  const copy = values && values.slice();
  if (values?.length > 0) spare.push(values.buffer);
  const alone = await unpack(part);
  assert.deepEqual(alone, copy);
  if (alone?.length > 0) assert.ok(alone.buffer.byteLength < 8 * part.rows + 8 * part.wide + 1, "it keeps memory that it does not need");
  return copy;
}

/** Packs values as docs of postprocess/src/sink/page/columns.rs say: byte planes, what is too wide after them. */
function packed(values, width, sums) {
  const escape = 2 ** (8 * width) - 1;
  const wides = values.filter((value) => value < 0 || value >= escape);
  const planes = Buffer.alloc(values.length * width);
  values.forEach((value, row) => {
    const stored = value < 0 || value >= escape ? escape : value;
    for (let plane = 0; plane < width; plane++) planes[plane * values.length + row] = Math.floor(stored / 2 ** (8 * plane)) % 256;
  });
  const wide = Buffer.alloc(wides.length * 8);
  wides.forEach((value, k) => wide.writeBigInt64LE(BigInt(value), 8 * k));
  return { pieces: [gzipSync(Buffer.concat([planes, wide]))], width, wide: wides.length, rows: values.length, sums };
}

test("values come back whatever their width and sign", async () => {
  const number = numbersFrom(1);
  for (const width of [1, 2, 4]) {
    for (const largest of [2, 200, 60000, 4e9]) {
      const values = Array.from({ length: 500 }, (_, k) => (k % 50 === 7 ? number(2 * largest) - largest : number(Math.min(largest, 2 ** (8 * width) - 2))));
      values.push(2 ** 40, -(2 ** 40), 2 ** (8 * width) - 1);
      for (const some of [values, values.filter((value) => value >= 0), values.slice(0, 490)]) {
        assert.deepEqual([...await unpackPart(packed(some, width, false))], some, `width ${width}, to ${largest}`);
      }
    }
  }
});

test("differences are added up, and nothing but zeros takes no room", async () => {
  const steps = [5, 0, 255, 3, 2 ** 35, 1];
  let sum = 0;
  assert.deepEqual([...await unpackPart(packed(steps, 1, true))], steps.map((step) => (sum += step)));
  assert.equal((await unpackPart(packed([0, 0, 0], 2, false))).length, 0);
});

test("values are in the smallest array that has room for them", async () => {
  const arrayFor = async (values, width) => (await unpackPart(packed(values, width, false))).constructor;
  assert.equal(await arrayFor([1, 200], 1), Uint8Array);
  assert.equal(await arrayFor([1, -100], 1), Int8Array);
  assert.equal(await arrayFor([200, -100], 1), Int16Array);
  assert.equal(await arrayFor([1, 60000], 2), Uint16Array);
  assert.equal(await arrayFor([1, 2 ** 40], 4), Float64Array);
});

test("a part that is cut or not what it says is refused", async () => {
  const part = packed([1, 2, 300, 4], 1, false);
  assert.equal(await unpackPart({ ...part, pieces: [part.pieces[0].subarray(0, 20)] }), null);
  assert.equal(await unpackPart({ ...part, rows: 3 }), null);
  assert.equal(await unpackPart({ ...packed([1, 2, 3, 4, 5, 6, 7, 8], 1, false), wide: 0, rows: 7 }), null);
});

test("a text is checked by its checksum", () => {
  // From the catalogue of CRCs: the check value of CRC-32/ISO-HDLC.
  assert.equal(checksumOf("123456789"), "cbf43926");
  const element = (sum) => ({ textContent: "abc", getAttribute: () => sum });
  assert.equal(checkedText(element(checksumOf("abc"))), "abc");
  for (const damaged of [element("00000000"), element(null), null]) assert.throws(() => checkedText(damaged), /cut or damaged/);
});
