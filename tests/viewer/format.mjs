// SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  callText, clockText, durationText, parseDuration, roundedText, secondsText, shownName, spanText,
} from "../../postprocess/viewer/data/format.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { storeOf } from "./support/store.mjs";

test("a duration is read in any unit, in microseconds without one", () => {
  const read = { "1": 100, "1.5us": 150, "2 µs": 200, "30ns": 3, ".5 ms": 5e4, "2s": 2e8, " 7 ns ": 1 };
  for (const [text, units] of Object.entries(read)) assert.equal(parseDuration(text), units, text);
  for (const text of ["", "x", "1 h", "-1", "1,5", "1e3"]) assert.ok(Number.isNaN(parseDuration(text)), text);
});

test("a duration is shown in the unit that suits it, and is read back", () => {
  const shown = [[0, "0 ns"], [99, "990 ns"], [100, "1 µs"], [12345, "123.45 µs"], [1e5, "1 ms"], [1e8, "1 s"], [-150, "-1.5 µs"]];
  for (const [units, text] of shown) {
    assert.equal(durationText(units), text);
    if (units >= 0) assert.equal(parseDuration(text), units);
  }
  assert.equal(durationText(1e5, false), "1.000 ms");
});

test("a time is exact in seconds and on the clock", () => {
  assert.equal(secondsText(4123456789), "41.23456789");
  assert.equal(secondsText(-1), "-0.00000001");
  assert.equal(clockText("2026-01-02_03:04:00", 6_100_000_001, 8), "2026-01-02 03:05:01.00000001");
  assert.equal(clockText("none", 150_000_000, 1), "1.5 s");
});

test("what would hide or turn a name is replaced", () => {
  assert.equal(shownName("a\u202eb\u0000c\u200d"), "a\ufffdb\ufffdc\ufffd");
  assert.equal(shownName(undefined), "");
});

test("a call is shown with its argument, and its value as what it means", () => {
  const call = (name, more) => callText(storeOf([{ start: 0, event: EVENT.SYSCALL, name, ...more }]), 0);
  assert.equal(call("read", { arg: 3, ret: 80 }), "read(3)=80");
  assert.equal(call("read", { arg: 3, ret: -11 }), "read(3)=EAGAIN");
  assert.equal(call("read", { arg: 3, ret: -512 }), "read(3)=ERESTARTSYS");
  assert.equal(call("read", { arg: 3 }), "read(3)...");
  assert.equal(call("exit", { arg: 0 }), "exit(0)");
  assert.equal(call("openat", { arg: 0xff9c, ret: 5 }), "openat(AT_FDCWD)=5");
  assert.equal(call("mmap", { ret: 0x7000 }), "mmap()=0x...00007000");
  assert.equal(call("brk", { ret: -4096 }), "brk()=0x...fffff000");
  // Of an address passed, the low bits are known.
  assert.deepEqual([call("futex", { arg: 0x48, ret: 0 }), call("mmap", { arg: 0, ret: 0x7000 }), call("open", { arg: 0x12345, ret: 3 })], ["futex(0x...0048)=0", "mmap(0x...0000)=0x...00007000", "open(0x...12345)=3"]);
});

test("a thread is called by its last name, and has its earlier ones beside that", () => {
  const user = (start, pid, name) => ({ start, dur: 5, event: EVENT.USER + pid, cpu: 0, pid, name });
  const label = (pid, name) => ({ start: 0, dur: 1, event: EVENT.ROW_LABEL, cpu: 0, pid, name });
  const { threads, earlier } = storeOf([
    user(0, 7, "bash.7"), label(7, "bash+redis.7"), user(5, 7, "redis.7"), user(10, 8, "make.8"), label(8, "make+g++.8"), user(15, 8, "g++.8"),
    user(20, 9, "a+b.9"), label(10, "sh+ls.10"), label(11, "sh+g++.11"), label(12, "x+y+z.12"), user(25, 12, "y+z.12"),
  ]);
  assert.deepEqual([...threads], [[7, "redis.7"], [8, "g++.8"], [9, "a+b.9"], [10, "ls.10"], [11, "g++.11"], [12, "y+z.12"]]);
  assert.deepEqual([...earlier], [[7, "bash"], [8, "make"], [10, "sh"], [11, "sh"], [12, "x"]]);
});

test("errors have the names of the traced machine, and of 16 bits those that are errors", () => {
  const call = (ret, meta) => callText(storeOf([{ start: 0, event: EVENT.SYSCALL, name: "read", ret }], meta), 0);
  assert.equal(call(-11, { errors: { 11: "EDEADLK" } }), "read()=EDEADLK");
  assert.equal(call(-11, { errors: { 12: "ENOMEM" } }), "read()=-11");
  assert.equal(call(0xfff5, { valueBits: 16 }), "read()=EAGAIN");
  assert.equal(call(0x8000, { valueBits: 16 }), "read()=32768");
});

test("a wakeup says from where and whom, to where and whom", () => {
  const store = storeOf([
    { start: 0, dur: 10, event: EVENT.USER + 7, cpu: 0, pid: 7, name: "ping" },
    { start: 0, dur: 10, event: EVENT.USER + 8, cpu: 1, pid: 8, name: "pong.8" },
    { start: 5, dur: 2, event: EVENT.WAKEUP_ARC, cpu: 0, pid: 7, arg: 1, ret: 8, name: "wakeup" },
  ]);
  assert.equal(spanText(store, 2), "0.00000005  wakeup  20 ns  CPU 0 → CPU 1  ping.7 → pong.8");
});

test("half of the last digit goes to the even one, as the terminal rounds", () => {
  const texts = [[1.125, 2], [1.375, 2], [0.5, 0], [1.5, 0], [2.5, 0], [2.675, 2], [-0.5, 0], [12.25, 1], [0.30000000000000004, 1], [77, 0]];
  assert.deepEqual(texts.map(([value, decimals]) => roundedText(value, decimals)), ["1.12", "1.38", "0", "2", "2", "2.67", "-0", "12.2", "0.3", "77"]);
});
