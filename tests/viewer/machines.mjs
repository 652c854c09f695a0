// SPDX-License-Identifier: BSD-3-Clause
// Several machines: what their CPUs and threads are called, and which packets went from one to another.
import assert from "node:assert/strict";
import { test } from "node:test";

import { crossings } from "../../postprocess/viewer/data/crossings.js";
import { cpuText, threadText } from "../../postprocess/viewer/data/format.js";
import { buildGroups, foldedThreads, foldsOf } from "../../postprocess/viewer/data/groups.js";
import { machineOfCpu } from "../../postprocess/viewer/data/machines.js";
import { indexByKind } from "../../postprocess/viewer/data/rows.js";
import { foldAsSaid, foldedText } from "../../postprocess/viewer/data/sections.js";
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { View } from "../../postprocess/viewer/view/view.js";
import { storeOf } from "./support/store.mjs";

const machines = [
  { name: "web", first_cpu: 0, clock: "web: its clock is used for all", within: 0 },
  { name: "db", first_cpu: 4, clock: "db = web + 1.000000 s + 0.0 ppm, within 0.8 us", within: 80 },
];
const db = (pid) => 2 ** 22 + pid;
const user = (start, cpu, pid, name) => ({ start, dur: 10, event: EVENT.USER + (pid & 0xffff), cpu, pid, name });
const packet = (start, cpu, event, arg) => ({ start, dur: 1, event, cpu, pid: 1, arg, name: "packet" });

/** When each packet between machines was sent and received. */
function timesOf(store) {
  const { sent, received } = crossings(store);
  return [...sent].map((i, k) => [store.start[i], store.start[received[k]]]);
}

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
  // Recorded names have the number that tells threads of all machines apart.
  const merged = storeOf([user(0, 0, 7, "nginx.7"), user(0, 5, db(7), `postgres.${db(7)}`)]);
  merged.meta.machines = machines;
  assert.equal(threadText(merged, db(7)), "db: postgres.7");
  assert.equal(machineOfCpu(store.meta, 3), machines[0]);
  assert.equal(machineOfCpu(store.meta, 99), machines[1]);
});

test("by machine, each has one row for all its threads, and only several machines are offered", () => {
  const spans = [user(0, 0, 7, "nginx.7"), user(5, 1, 8, "nginx.8"), user(7, 5, db(7), "postgres.7")];
  const store = storeOf(spans);
  assert.equal(foldsOf(store).includes("machine"), false);
  store.meta.machines = machines;
  assert.equal(foldsOf(store).includes("machine"), true);
  const [, threads] = buildGroups(store, indexByKind(store));
  const folded = foldedThreads(store, threads, "machine");
  assert.deepEqual([folded.name, folded.labels], ["MACHINE", ["web (2)", "db"]]);
  assert.deepEqual([[...folded.exec.first], [...folded.exec.ids]], [[0, 2, 3], [0, 1, 2]]);
});

test("a guest's CPU stands under its host's thread that runs it, with what each of them does", () => {
  const wait = (start, pid) => ({ start, dur: 5, event: EVENT.WAIT_A, cpu: -1, pid, name: "wait_a" });
  const spans = [user(0, 0, 7, "qemu.7"), user(0, 5, db(9), "postgres.9"), user(10, 1, 8, "qemu.8"), user(10, 4, db(9), "postgres.9"),
    wait(20, 7), wait(20, db(9))];
  const store = storeOf(spans);
  store.meta.machines = machines;
  assert.equal(buildGroups(store, indexByKind(store)).length, 2);
  store.meta.machines = [machines[0], { ...machines[1], inside: { host: 0, threads: [8, 7] } }];
  const groups = buildGroups(store, indexByKind(store));
  const guests = groups[2];
  assert.deepEqual([guests.name, guests.labels], ["GUEST", ["web: qemu.8", "\u2514 db CPU 0", "web: qemu.7", "\u2514 db CPU 1"]]);
  const starts = (row) => [...guests.exec.ids.subarray(guests.exec.first[row], guests.exec.first[row + 1])].map((i) => [store.start[i], store.cpus[store.cpu[i]]]);
  assert.deepEqual([0, 1, 2, 3].map(starts), [[[10, 1]], [[10, 4]], [[0, 0]], [[0, 5]]]);
  assert.deepEqual([...guests.waits.first], [0, 0, 0, 1, 1]);
  // The group stands next to the CPUs.
  const view = new View(store, groups[0].exec);
  view.layOut(groups);
  assert.deepEqual(view.items.filter(({ row }) => row < 0).map(({ group }) => group.name), ["CPU", "CPU", "CPU", "GUEST", "PID"]);
});

const standing = (view) => view.items.map(({ group, row }) => `${group.name} ${row}`);

test("the CPUs of each machine have a header, and fold under it; a packet then ends there", () => {
  const store = storeOf([user(0, 0, 7, "nginx.7"), user(0, 2, 8, "nginx.8"), user(0, 5, db(7), "postgres.7")]);
  const one = buildGroups(store, indexByKind(store));
  assert.deepEqual(one[0].sections, []);
  store.meta.machines = machines;
  const groups = buildGroups(store, indexByKind(store));
  const [cpus] = groups;
  assert.deepEqual(cpus.sections.map(({ title, about, from, to }) => [title, about, from, to]),
    [["web", machines[0].clock, 0, 2], ["db", machines[1].clock, 2, 3]]);
  const view = new View(store, cpus.exec);
  view.height = 600;
  view.layOut(groups);
  assert.deepEqual(standing(view), ["CPU -1", "CPU -2", "CPU 0", "CPU 1", "CPU -3", "CPU 2", "PID -1"]);
  const ends = view.items.map(({ y, h }) => y + h);
  assert.deepEqual(view.items.map(({ y }) => y), [0, ...ends.slice(0, -1)]);
  assert.equal(view.rowsHeight, ends.at(-1));
  assert.equal(foldedText(groups), "");
  foldAsSaid(groups, "CPU.0");
  assert.equal(foldedText(groups), "CPU.0");
  view.layOut(groups);
  assert.deepEqual(standing(view), ["CPU -1", "CPU -2", "CPU -3", "CPU 2", "PID -1"]);
  assert.equal(view.placeOf(cpus, 1), undefined);
  assert.equal(view.placeOrStandIn(cpus, 1), view.items[1]);
  assert.equal(view.placeOrStandIn(cpus, 2), view.items[3]);
  foldAsSaid(groups, "");
  assert.deepEqual(cpus.sections.map(({ folded }) => folded), [false, false]);
});

test("what a guest does folds under its host's thread, which stays", () => {
  const store = storeOf([user(0, 0, 7, "qemu.7"), user(0, 5, db(9), "postgres.9"), user(10, 1, 8, "qemu.8"), user(10, 4, db(9), "postgres.9")]);
  store.meta.machines = [machines[0], { ...machines[1], inside: { host: 0, threads: [8, 7] } }];
  const groups = buildGroups(store, indexByKind(store));
  const guests = groups[2];
  const view = new View(store, groups[0].exec);
  view.height = 600;
  foldAsSaid(groups, "GUEST.1,CPU.0,CPU.1");
  view.layOut(groups);
  assert.deepEqual(standing(view), ["CPU -1", "CPU -2", "CPU -3", "GUEST -1", "GUEST 0", "GUEST 1", "GUEST 2", "PID -1"]);
  assert.equal(view.placeOrStandIn(guests, 3), view.placeOf(guests, 2));
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
  const times = timesOf(store);
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
  assert.deepEqual(timesOf(store), []);
  store.meta.machines = machines;
  const times = timesOf(store);
  assert.deepEqual(times, [[10, 20], [30, 35]]);
});
