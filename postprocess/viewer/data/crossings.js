// SPDX-License-Identifier: BSD-3-Clause
// Packets that went from one machine to another.

import { valueOf } from "./format.js";
import { machineOfCpu } from "./machines.js";
import { indexByKind } from "./rows.js";
import { EVENT, Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 */

/** A packet: the spans where it was sent and received. @typedef {{sent: number, received: number}} Crossing */

/** Of events by which a packet or message is sent. @type {readonly number[]} */
const TX_EVENTS = Object.freeze([EVENT.TX_PACKET, EVENT.TX_USER, EVENT.TX_FLOW]);

/**
 * What tells a packet from others: its hash, and whether programs saw it; or its flow and sequence number. One of a flow
 * without data is like the one before it, and has none.
 * @param {Store} store
 * @param {number} i
 * @returns {string | null}
 */
function keyOf({ events, event, arg, ret, names, name }, i) {
  switch (events[event[i]]) {
    case EVENT.RX_USER: case EVENT.TX_USER: return `user ${arg[i]}`;
    case EVENT.RX_FLOW: case EVENT.TX_FLOW: return (valueOf(ret[i]) ?? 0) > 0 ? `${names[name[i]].split(".", 2)[1]} ${arg[i]}` : null;
    default: return String(arg[i]);
  }
}

/**
 * The packets that went from a machine to another, by when they were sent. A key that was sent or received more than
 * once is of several packets, and of none is known which it was.
 * @param {Store} store
 * @returns {Crossing[]}
 */
export function crossings(store) {
  const { cpu, cpus, event, events, meta } = store;
  if (!meta.machines?.length) return [];
  /** @type {Map<string, {sent: number[], received: number[]}>} */
  const seen = new Map();
  const { first, ids } = indexByKind(store);
  for (const i of ids.subarray(first[Kind.PACKET], first[Kind.PACKET + 1])) {
    const key = keyOf(store, i);
    if (key === null) continue;
    const one = seen.get(key) ?? { sent: [], received: [] };
    seen.set(key, one);
    (TX_EVENTS.includes(events[event[i]]) ? one.sent : one.received).push(i);
  }
  const machineOf = (/** @type {number} */ i) => machineOfCpu(meta, cpus[cpu[i]]);
  return [...seen.values()].filter(({ sent, received }) => sent.length === 1 && received.length === 1 && machineOf(sent[0]) !== machineOf(received[0]))
    .map(({ sent: [sent], received: [received] }) => ({ sent, received }))
    .sort((a, b) => store.start[a.sent] - store.start[b.sent]);
}
