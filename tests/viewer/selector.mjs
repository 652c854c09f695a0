// SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";

import { exactly, NOTHING, patternWith, Search } from "../../postprocess/viewer/data/search.js";
import { readSelectors } from "../../postprocess/viewer/data/selector.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { more, storeOf } from "./support/store.mjs";

const STORE = storeOf([
  { start: 0, dur: 40, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "bash.7" },
  { start: 0, dur: 30, event: EVENT.USER + 8, cpu: 1, pid: 8, name: "redis.8", rpc: 5 },
  { start: 30, dur: 20, event: EVENT.SYSCALL, cpu: 1, pid: 8, name: "read", arg: 3, ret: -11, rpc: 5 },
  { start: 40, dur: 10, event: EVENT.SYSCALL, cpu: 0, pid: 7, name: "write", arg: 1, ret: 9 },
  { start: 50, dur: 90, event: EVENT.USER, cpu: 2, pid: 0, name: "-idle-" },
  { start: 60, dur: 5, event: EVENT.SYSCALL, cpu: 0, pid: 7, name: "read", arg: 3, ret: 80 },
]);

/** The spans that a query finds. */
function found(query) {
  const search = new Search(STORE, { active: false, shows: () => true });
  search.find({ ...NOTHING, ...(typeof query === "string" ? { pattern: query } : query) });
  assert.equal(search.error, "");
  for (let i = 0; i < STORE.n; i++) assert.equal(search.shows(i), !search.active || search.ids.includes(i), `${query}, ${i}`);
  return [...search.ids];
}

test("words say where, of whom and of what kind; together they narrow", () => {
  assert.deepEqual(found("cpu:0"), [0, 3, 5]);
  assert.deepEqual(found("cpu:1-"), [1, 2]);
  assert.deepEqual(found("pid:bash"), [0, 3, 5]);
  assert.deepEqual(found("pid:8,bash cpu:0-1 kind:syscall"), [2, 3, 5]);
  assert.deepEqual(found("rpc:5"), [1, 2]);
  assert.deepEqual(found("read cpu:1"), [2]);
  assert.deepEqual(found("kind:idle"), [4]);
});

test("a pattern is tried on names, with a parenthesis or an equals sign on calls", () => {
  assert.deepEqual(found("^r"), [1, 2, 5]);
  assert.deepEqual(found("=E"), [2]);
  assert.deepEqual(found("read\\(3\\)=80"), [5]);
  assert.deepEqual(found("idle"), [], "names with a dash need one");
  assert.deepEqual(found("-idle"), [4]);
  assert.deepEqual(found({ pattern: "READ", ignoreCase: true }), [2, 5]);
  assert.deepEqual(found({ pattern: "read", invert: true }), [0, 1, 3]);
});

test("durations bound what is found", () => {
  assert.deepEqual(found({ pattern: "", min: "100 ns", max: "300 ns" }), [1, 2, 3]);
  assert.deepEqual(found({ ...NOTHING }), []);
});

test("durations bound calls as wholes, of which any piece is found", () => {
  const piece = (start, dur, ret) => ({ start, dur, event: EVENT.SYSCALL, cpu: 0, pid: 7, name: "read", arg: 3, ret });
  const timer = { start: 10, dur: 5, event: EVENT.IRQ, cpu: 0, pid: 7, name: "timer" };
  const search = new Search(storeOf([piece(0, 10), timer, more(piece(15, 20, 1)), piece(40, 12, 2)]), { active: false });
  const ids = (asked) => {
    search.find({ ...NOTHING, ...asked });
    for (let i = 0; i < 4; i++) assert.equal(search.matches(i), search.ids.includes(i));
    return [...search.ids];
  };
  assert.deepEqual([ids({ pattern: "read", min: "300 ns" }), ids({ pattern: "read", max: "300 ns" }), ids({ max: "50 ns" })], [[0, 2], [3], [1]]);
  search.find({ ...NOTHING, pattern: "read", min: "300 ns" });
  assert.equal(search.text({ t0: 0, t1: 100 }), "Matches: 1 call (2 pieces), total 350 ns, own time 300 ns [350 ns..350 ns]");
  search.find({ ...NOTHING, pattern: "timer|read" });
  assert.match(search.text({ t0: 0, t1: 100 }), /^Matches: 2 calls and 1 interrupt \(4 pieces\), total 520 ns, own time 470 ns /);
  search.step(1, 12);
  assert.match(search.text({ t0: 0, t1: 40 }), /^Matches: 2 calls and 1 interrupt \(at 3 of 4 pieces\), .*; 2 start in sight, 400 ns$/);
});

test("what is wrong is said", () => {
  const wrong = (pattern) => readSelectors(STORE, pattern).error;
  assert.match(wrong("color:red"), /no selector color:/);
  assert.match(wrong("cpu:x"), /^cpu: takes numbers/);
  assert.match(wrong("kind:nothing"), /^kind: takes .*syscall/);
  assert.equal(wrong("a\\:b"), "");
  const search = new Search(STORE, { active: false });
  for (const [query, error] of [[{ pattern: "(" }, "not a regular expression"], [{ min: "long" }, "not a duration"]]) {
    search.find({ ...NOTHING, ...query });
    assert.equal(search.error, error);
    assert.equal(search.active, false);
  }
});

test("the pattern for one name matches that and no other", () => {
  for (const name of ["read", "a.b*c", "x cpu:0 y", "[x](y)", "tab\there"]) {
    const names = [name, `${name}x`, `x${name}`, name.replace(/[.*]/g, "z")];
    const store = storeOf([...new Set(names)].map((text, k) => ({ start: k, event: EVENT.SYSCALL, name: text })));
    const search = new Search(store, { active: false });
    search.find({ ...NOTHING, pattern: exactly(name) });
    assert.deepEqual([...search.ids].map((i) => store.names[store.name[i]]), [name], search.error);
  }
  assert.equal(patternWith("^a$", "^b$"), "^a$|^b$");
  assert.equal(patternWith("^a$|^b$", "^c$"), "^b$|^c$");
  assert.equal(patternWith("a", "^b$"), "^b$");
});

test("the next match comes after the one before, round the end", () => {
  const search = new Search(STORE, { active: false });
  search.find({ ...NOTHING, pattern: "read" });
  assert.deepEqual([search.step(1, 35), search.step(1, 35), search.step(1, 35), search.step(-1, 0)], [5, 2, 5, 2]);
  assert.match(search.text({ t0: 0, t1: 1e3 }), /^Matches: 1 of 2 calls, total 250 ns \[50 ns\.\.200 ns\]$/);
});

test("a field of what programs record is looked for by its value", () => {
  const store = storeOf([
    { start: 0, dur: 1, event: EVENT.PROGRAM_MARK, cpu: 0, pid: 7, name: "reply(status=200,path=/a)" },
    { start: 1, dur: 1, event: EVENT.PROGRAM_MARK, cpu: 0, pid: 7, name: "reply(status=20,path=/b)" },
    { start: 2, dur: 1, event: EVENT.PROGRAM_MARK, cpu: 1, pid: 8, name: "stored(user_id=200)" },
  ]);
  const search = new Search(store, { active: false, shows: () => true });
  const ids = (pattern) => {
    search.find({ ...NOTHING, pattern });
    assert.equal(search.error, "");
    return [...search.ids];
  };
  assert.deepEqual([ids("status:200"), ids("status:20,200"), ids("status:200,20 path:/b"), ids("user_id:200")], [[0], [0, 1], [1], [2]]);
  assert.match(readSelectors(store, "size:3").error, /no selector size:/);
});
