// SPDX-License-Identifier: BSD-3-Clause
// Packets that went from one machine to another.

import { valueOf } from "./format.js";
import { machineOfCpu } from "./machines.js";
import { EVENT, Kind } from "./tables.js";
/**
 * @import {Store} from "./decode.js"
 */

/** Packets in the order of sending: the spans where each was sent and received. @typedef {{sent: Uint32Array, received: Uint32Array}} Crossed */

/** Events that send a packet or message. @type {readonly number[]} */
const TX_EVENTS = Object.freeze([EVENT.TX_PACKET, EVENT.TX_USER, EVENT.TX_FLOW]);

/** The first part of a packet's key, before its argument: the hash seen by the kernel, or that seen by programs; the numbers of flows follow. */
const [HASH, USER_HASH, FLOWS] = [0, 1, 2];
/** Arguments below this are combined with the first part of the key into one number. */
const ARGUMENTS = 2 ** 32;
/** Markers in place of a span: none yet, or more than one. */
const [NONE_YET, SEVERAL] = [-1, -2];

/** Keys that distinguish packets: by hash, and whether programs saw it; or by flow and sequence number. */
class Keys {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** The number of a flow, by the name of a span. @type {Map<number, number>} */
    this.flowOfName = new Map();
    /** @type {Map<string, number>} */
    this.flows = new Map();
  }

  /** The key of a packet, null if it has none: a packet of a flow without data has the same number as the one before it. @param {number} i */
  of(i) {
    const { events, event, arg, ret } = this.store;
    switch (events[event[i]]) {
      case EVENT.RX_USER: case EVENT.TX_USER: return keyWith(USER_HASH, arg[i]);
      case EVENT.RX_FLOW: case EVENT.TX_FLOW: return (valueOf(ret[i]) ?? 0) > 0 ? keyWith(this.flowOf(i), arg[i]) : null;
      default: return keyWith(HASH, arg[i]);
    }
  }

  /** @param {number} i */
  flowOf(i) {
    const { names, name } = this.store;
    const known = this.flowOfName.get(name[i]);
    if (known !== undefined) return known;
    const text = names[name[i]].split(".", 2)[1];
    const flow = this.flows.get(text) ?? FLOWS + this.flows.size;
    this.flows.set(text, flow);
    this.flowOfName.set(name[i], flow);
    return flow;
  }
}

/** @param {number} before @param {number} arg */
const keyWith = (before, arg) => (arg >= 0 && arg < ARGUMENTS ? before * ARGUMENTS + arg : `${before} ${arg}`);

/**
 * The packets that went from one machine to another, in the order of sending. A key that was sent or received more than
 * once belongs to several packets that cannot be told apart, so these are skipped.
 * @param {Store} store
 * @returns {Crossed}
 */
export function crossings(store) {
  const { cpu, cpus, event, events, kind, counts, meta } = store;
  if (!meta.machines?.length) return { sent: new Uint32Array(0), received: new Uint32Array(0) };
  const most = counts.kind[Kind.PACKET];
  const [sent, received] = [new Int32Array(most).fill(NONE_YET), new Int32Array(most).fill(NONE_YET)];
  const keys = new Keys(store);
  const isSent = events.map((number) => TX_EVENTS.includes(number));
  /** @type {Map<number | string, number>} */
  const places = new Map();
  for (let i = kind.indexOf(Kind.PACKET); i >= 0; i = kind.indexOf(Kind.PACKET, i + 1)) {
    const key = keys.of(i);
    if (key === null) continue;
    let place = places.get(key);
    if (place === undefined) places.set(key, (place = places.size));
    const list = isSent[event[i]] ? sent : received;
    list[place] = list[place] === NONE_YET ? i : SEVERAL;
  }
  const machineOf = cpus.map((number) => machineOfCpu(meta, number));
  // Spans are in the order of their start, and so are most packets in that of their keys; a packet that was received first has an early key.
  const found = new Uint32Array(places.size);
  let count = 0;
  for (let k = 0; k < places.size; k++) {
    if (sent[k] >= 0 && received[k] >= 0 && machineOf[cpu[sent[k]]] !== machineOf[cpu[received[k]]]) found[count++] = k;
  }
  const order = found.subarray(0, count);
  if (order.some((k, n) => n > 0 && sent[k] < sent[order[n - 1]])) order.sort((a, b) => sent[a] - sent[b]);
  return { sent: Uint32Array.from(order, (k) => sent[k]), received: Uint32Array.from(order, (k) => received[k]) };
}
