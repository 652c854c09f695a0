// SPDX-License-Identifier: BSD-3-Clause
// Sums of causes over requests that overlap, against the same added up request by request; and what is ranked by them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { compare } from "../../postprocess/viewer/data/excess.js";
import { Requests } from "../../postprocess/viewer/data/requests.js";
import { numbersFrom } from "./support/store.mjs";

const CAUSES = Array.from({ length: 12 }, (_, k) => ({ kind: k % 3 === 0 ? "queue" : "user", text: k % 3 === 0 ? ["waiting for ", `program ${k}`, ", busy"] : [`cause ${k}`] }));

/** What they are compared by. */
const RULES = {
  excessMin: 0.2, timeMin: 20000, shareMin: 0.1, worth: 0.02, causes: 10, lookedAt: 500, names: 3, ofCpus: ["queue"], often: [1.5, 1, 2],
  pace: { unit: "instructions per cycle", scale: 16, cost: 0, other: 0.9 },
};

/** Requests of two threads, `under` of which are under way at a time; each part of their paths has a cause by chance. */
function made(n, under, seed) {
  const number = numbersFrom(seed);
  const columns = { pid: [], start: [], dur: [], parts: [], at: [], length: [], cause: [], cpu: [], culprit: [], work: [] };
  let end = 0;
  for (const pid of [7, 9]) {
    const times = Array.from({ length: n / 2 }, (_, k) => [1000 + 20 * k + number(10), k % 17 === 3 ? 0 : 20 * under + number(20 * under)]);
    times.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let to = -1;
    for (const [start, dur] of times) {
      if (start >= to) {
        if (to >= 0) fill();
        end = start;
        to = start + dur;
      }
      columns.pid.push(pid);
      columns.start.push(start);
      columns.dur.push(dur);
      to = Math.max(to, start + dur);
    }
    fill();
    function fill() {
      let parts = 0;
      for (let length; end < to; end += length, parts++) {
        length = Math.min(1 + number(9), to - end);
        const cause = number(CAUSES.length);
        const culprit = cause % 3 === 0 ? 1 + 100 + (cause === 0 ? 0 : number(2)) : 0;
        for (const [field, value] of Object.entries({ at: end, length, cause, cpu: 1 + number(3), culprit, work: length * number(60) })) columns[field].push(value);
      }
      columns.parts.push(parts);
    }
  }
  const threads = { 7: "a.7", 9: "b.9", 100: "hog.100", 101: "hog.101" };
  // A search through all spans for each part is for few.
  const spans = n > 1000 ? { start: [], cpu: [], cpus: [] } : stepped(columns);
  columns.steps ??= columns.length.map(() => 0);
  return new Requests({ asked: "some", causes: CAUSES, threads, sides: null, apart: false, unfinished: 0, rules: RULES, columns: [] }, Object.fromEntries(Object.entries(columns).map(([field, values]) => [field, Float64Array.from(values)])), spans);
}

/** Lets parts on CPU 1 end with the start of a span, in columns; the rest says how long it is. The spans, of several CPUs. */
function stepped(columns) {
  const { at, cpu, length } = columns;
  const onOne = (k) => cpu[k] === 2 && length[k] > 1;
  const all = at.flatMap((begin, k) => (onOne(k) ? [[begin + 1, 2], [begin + 1, 1], [begin + length[k], 2]] : []));
  all.sort((a, b) => a[0] - b[0]);
  columns.steps = at.map((begin, k) => (onOne(k) ? all.filter(([start, which]) => which === 2 && start > begin && start < begin + length[k]).length + 1 : 0));
  columns.length = length.filter((_, k) => !onOne(k));
  return { start: all.map(([start]) => start), cpu: all.map(([, which]) => which), cpus: [-1, 0, 1, 2] };
}

test("the sums over some requests are those of each of them together", () => {
  const requests = made(400, 6, 1);
  for (const [from, to] of [[0, 1e9], [130, 170], [0, 0], [200, 1e9]]) {
    const numbers = requests.between(from, to);
    assert.ok(numbers.length > 0 && numbers.every((r) => requests.dur[r] >= from && requests.dur[r] <= to));
    assert.equal(numbers.length, requests.dur.filter((dur) => dur >= from && dur <= to).length);
    const [times, parts, many] = [0, 1, 2].map(() => new Float64Array(CAUSES.length));
    for (const r of numbers) {
      const path = requests.dur[r] > 0 ? requests.pathOf(r) : [];
      assert.equal(path.reduce((sum, part) => sum + part.to - part.from, 0), requests.dur[r], "the parts of a path are its time");
      for (const { from, to, cause } of path) {
        times[cause] += to - from;
        parts[cause]++;
      }
      for (const cause of new Set(path.map((part) => part.cause))) many[cause]++;
    }
    const sums = requests.sum(numbers);
    assert.deepEqual([[...sums.times], [...sums.parts], [...sums.requests]], [[...times], [...parts], [...many]]);
    assert.equal(sums.time, times.reduce((sum, time) => sum + time, 0));
    const rest = requests.all.without(sums);
    const others = requests.sum(requests.byDuration.filter((r) => !numbers.includes(r)));
    assert.deepEqual([rest.count, rest.time, [...rest.times], [...rest.works]], [others.count, others.time, [...others.times], [...others.works]]);
  }
});

test("those with most of a cause come first, each with how much", () => {
  const requests = made(200, 4, 2);
  const timeOf = (r, cause) => requests.causesOf(r).find((its) => its.cause === cause)?.time ?? 0;
  for (const cause of [0, 5]) {
    const list = requests.withMost(requests.byDuration, cause, 10);
    assert.deepEqual(list.map(([r, time]) => time - timeOf(r, cause)), Array(10).fill(0));
    assert.equal(list[0][1], Math.max(...requests.byDuration.map((r) => timeOf(r, cause))));
    assert.ok(list.every(([, time], k) => k === 0 || time <= list[k - 1][1]));
  }
});

test("one thread that is to blame is named, several are their program", () => {
  const requests = made(200, 4, 3);
  const words = requests.causesOf(requests.byDuration.at(-1)).map((its) => its.words);
  assert.ok(words.includes("waiting for hog.100, busy"), words.join());
  const longest = requests.byDuration.slice(-20);
  const { causes } = compare(requests, longest, requests.sum(longest), requests.sum(requests.byDuration.slice(0, 20)));
  const queued = causes.filter(({ cause }) => cause % 3 === 0);
  assert.ok(queued.length > 1);
  for (const { cause, words, notes } of queued) {
    assert.equal(words, cause === 0 ? "waiting for hog.100, busy" : `waiting for program ${cause}, busy`);
    assert.equal(notes.some((note) => note.startsWith("2 threads: hog.10")), cause !== 0, notes.join());
    assert.ok(notes.some((note) => /^CPU \d \d+ %/.test(note)), notes.join());
  }
});

test("requests that take as long have nothing that stands out, quicker ones have less", () => {
  const requests = made(200, 4, 4);
  const same = requests.sum(requests.byDuration);
  assert.deepEqual(compare(requests, requests.byDuration, same, same).causes, []);
  const quick = requests.byDuration.slice(20, 40);
  const { excess, causes } = compare(requests, quick, requests.sum(quick), requests.sum(requests.byDuration.slice(-20)));
  assert.ok(excess < 0 && causes.length > 0 && causes.every(({ time, share }) => time < 0 && share > 0));
});

test("the causes of a part of 100,000 requests, 50 of them at a time, are there at once", () => {
  const requests = made(100_000, 50, 5);
  const times = Array.from({ length: 5 }, (_, k) => {
    const began = performance.now();
    const numbers = requests.between(1000, 1300 + 100 * k);
    const some = requests.sum(numbers);
    assert.ok(compare(requests, numbers, some, requests.all.without(some)).excess !== 0);
    return performance.now() - began;
  });
  // A tenth of a second on a quiet machine; what grows with the square of them would take minutes.
  assert.ok(Math.min(...times) < 1000, times.join());
});
