// SPDX-License-Identifier: BSD-3-Clause
// Packets that went from one machine to another.

import { machineOfCpu } from "./machines.js";
import { indexByKind } from "./rows.js";
import { EVENT, Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 */

/** What tells messages that programs saw from the kernel's packets of the same hash. */
const OF_PROGRAM = 2 ** 32;

/** A packet: the spans where it was sent and received. @typedef {{sent: number, received: number}} Crossing */

/**
 * The packets that went from a machine to another, by when they were sent. A hash that was sent or received more than
 * once is of several packets, and of none is known which it was.
 * @param {Store} store
 * @returns {Crossing[]}
 */
export function crossings(store) {
  const { cpu, cpus, event, events, arg, meta } = store;
  if (!meta.machines?.length) return [];
  /** @type {Map<number, {sent: number[], received: number[]}>} */
  const seen = new Map();
  const { first, ids } = indexByKind(store);
  for (const i of ids.subarray(first[Kind.PACKET], first[Kind.PACKET + 1])) {
    const number = events[event[i]];
    const ofProgram = number === EVENT.RX_USER || number === EVENT.TX_USER;
    const key = arg[i] + (ofProgram ? OF_PROGRAM : 0);
    const one = seen.get(key) ?? { sent: [], received: [] };
    seen.set(key, one);
    (number === EVENT.TX_PACKET || number === EVENT.TX_USER ? one.sent : one.received).push(i);
  }
  const machineOf = (/** @type {number} */ i) => machineOfCpu(meta, cpus[cpu[i]]);
  return [...seen.values()].filter(({ sent, received }) => sent.length === 1 && received.length === 1 && machineOf(sent[0]) !== machineOf(received[0]))
    .map(({ sent: [sent], received: [received] }) => ({ sent, received }))
    .sort((a, b) => store.start[a.sent] - store.start[b.sent]);
}
