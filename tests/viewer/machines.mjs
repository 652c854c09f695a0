// SPDX-License-Identifier: BSD-3-Clause
// Several machines: what their CPUs and threads are called, and which packets went from one to another.
import assert from "node:assert/strict";
import { test } from "node:test";

import { crossings } from "../../postprocess/viewer/data/crossings.js";
import { cpuText, threadText } from "../../postprocess/viewer/data/format.js";
import { buildGroups, foldedThreads } from "../../postprocess/viewer/data/groups.js";
import { machineOfCpu } from "../../postprocess/viewer/data/machines.js";
import { ordersOf } from "../../postprocess/viewer/data/order.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { storeOf } from "./support/store.mjs";

const machines = [
  { name: "web", first_cpu: 0, clock: "web: the clock of all", within: 0 },
  { name: "db", first_cpu: 4, clock: "db = web + 1.000000 s + 0.0 ppm, within 0.8 us", within: 80 },
];
const db = (pid) => 2 ** 22 + pid;
const user = (start, cpu, pid, name) => ({ start, dur: 10, event: EVENT.USER + (pid & 0xffff), cpu, pid, name });
const packet = (start, cpu, event, arg) => ({ start, dur: 1, event, cpu, pid: 1, arg, name: "packet" });

test("CPUs and threads are called after their machines, if there are several", () => {
  const spans = [user(0, 0, 7, "nginx.7"), user(0, 5, db(7), "postgres.7")];
  const one = storeOf(spans);
  assert.equal(cpuText(one, 5), "CPU 5");
  assert.equal(threadText(one, 7), "nginx.7");
  const store = storeOf(spans);
  store.meta.machines = machines;
  const [cpus, threads] = buildGroups(store, indexByKind(store));
  assert.deepEqual(cpus.labels, ["web CPU 0", "db CPU 1"]);
  assert.deepEqual(threads.labels, ["web: nginx.7", "db: postgres.7"]);
  assert.equal(machineOfCpu(store.meta, 3), machines[0]);
  assert.equal(machineOfCpu(store.meta, 99), machines[1]);
});

test("by machine, each has one row for all its threads, and only several machines are offered", () => {
  const spans = [user(0, 0, 7, "nginx.7"), user(5, 1, 8, "nginx.8"), user(7, 5, db(7), "postgres.7")];
  const store = storeOf(spans);
  assert.equal(ordersOf(store).includes("machine"), false);
  store.meta.machines = machines;
  assert.equal(ordersOf(store).includes("machine"), true);
  const [, threads] = buildGroups(store, indexByKind(store));
  const folded = foldedThreads(store, threads, "machine");
  assert.deepEqual([folded.name, folded.labels], ["MACHINE", ["web (2)", "db"]]);
  assert.deepEqual([[...folded.exec.first], [...folded.exec.ids]], [[0, 2, 3], [0, 1, 2]]);
});

test("a packet of a flow crosses by its flow and sequence number, and only with data", () => {
  const { TX_FLOW, RX_FLOW } = EVENT;
  const flow = (start, cpu, event, arg, ret) => {
    const way = event === TX_FLOW ? "tx" : "rx";
    return { ...packet(start, cpu, event, arg), ret, name: `${way}.40112>6379#0000beef` };
  };
  const store = storeOf([
    flow(10, 0, TX_FLOW, 1, 30), flow(20, 4, RX_FLOW, 1, 30),
    flow(30, 0, TX_FLOW, 31, 0), flow(35, 4, RX_FLOW, 31, 0),
    flow(40, 0, TX_FLOW, 61, 5), { ...flow(45, 0, TX_FLOW, 61, 5), name: "retx.40112>6379#0000beef" }, flow(50, 4, RX_FLOW, 61, 5),
    flow(60, 0, TX_FLOW, 91, 5), { ...flow(65, 4, RX_FLOW, 91, 5), name: "rx.40112>6379#0000cafe" },
  ]);
  store.meta.machines = machines;
  const times = crossings(store).map(({ sent, received }) => [store.start[sent], store.start[received]]);
  assert.deepEqual(times, [[10, 20]]);
});

test("a packet crosses from where it was sent once to where it was received once, on another machine", () => {
  const { TX_PACKET, RX_PACKET, TX_USER } = EVENT;
  const store = storeOf([
    packet(10, 0, TX_PACKET, 1), packet(20, 4, RX_PACKET, 1),
    packet(30, 4, TX_PACKET, 2), packet(35, 1, RX_PACKET, 2),
    packet(40, 0, TX_PACKET, 3), packet(41, 0, TX_PACKET, 3), packet(45, 4, RX_PACKET, 3),
    packet(50, 0, TX_PACKET, 4), packet(51, 1, RX_PACKET, 4),
    packet(60, 0, TX_USER, 5), packet(61, 4, RX_PACKET, 5),
  ]);
  assert.deepEqual(crossings(store), []);
  store.meta.machines = machines;
  const times = crossings(store).map(({ sent, received }) => [store.start[sent], store.start[received]]);
  assert.deepEqual(times, [[10, 20], [30, 35]]);
});
