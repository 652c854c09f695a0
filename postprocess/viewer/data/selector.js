// SPDX-License-Identifier: BSD-3-Clause
// Selectors: words in the search box, such as `cpu:0,2-3` or `kind:syscall`, that restrict the place and the kind of spans,
// or `size:17`, the value of a field of a program's event. The remaining text is the pattern, and a match fulfils all of
// them. `\:` is a colon of a pattern, and so is one after a word that is not a selector but occurs in names: `trace:4b`.

import { valuesOf } from "./field.js";
import { threadText } from "./format.js";
import { Kind, KIND_NAMES } from "./tables.js";
import { targetCpus, targetThreads } from "./targets.js";
/**
 * @import {Store} from "./decode.js"
 * @import {Column} from "./part.js"
 */

/** A selector: a word and a colon, between spaces. */
export const SELECTOR = /(?<=^|\s)([a-z][a-z0-9_]*):(\S*)(?=\s|$)/g;

/** The words that `kind:` takes, and their kinds. */
export const KIND_WORDS = new Map(/** @type {[string, number[]][]} */ ([
  ["idle", [Kind.IDLE, Kind.LOW_POWER, Kind.C_EXIT]], ["user", [Kind.USER]], ["guest", [Kind.GUEST]],
  ["kernel", [Kind.SYSCALL, Kind.TRAP, Kind.IRQ, Kind.BH, Kind.KERNEL, Kind.SCHED]], ["syscall", [Kind.SYSCALL]],
  ["fault", [Kind.TRAP]], ["irq", [Kind.IRQ]], ["bh", [Kind.BH]], ["sched", [Kind.SCHED]], ["wait", [Kind.WAIT]],
  ["wakeup", [Kind.WAKEUP]], ["ipi", [Kind.IPI]], ["mark", [Kind.MARK]], ["event", [Kind.POINT]],
  ["sample", [Kind.SAMPLE]], ["freq", [Kind.FREQ]], ["lock", [Kind.LOCK]], ["queue", [Kind.QUEUE]], ["rpc", [Kind.RPC]],
  ["message", [Kind.MESSAGE]], ["packet", [Kind.PACKET]], ["lost", [Kind.LOST]], ["offline", [Kind.OFFLINE]], ["stalled", [Kind.STALLED]],
  ["stolen", [Kind.STEAL]],
]));

/** The word before the start of a trace's id, which also occurs in marks. */
const TRACE = "trace";

/** The count of RPC numbers, which have 16 bits. */
const RPC_NUMBERS = 1 << 16;

/** @typedef {"cpu" | "pid" | "rpc" | "kind" | "woken" | "to" | "name"} SelectorKey */
/** @typedef {(value: number) => boolean} NumberTest */

/**
 * By selector: the values that spans have, a test of them for one of the parts between commas (null if invalid), and
 * a description of valid parts.
 * @type {Map<string, {values: (store: Store) => ArrayLike<number>, test: (store: Store, part: string) => NumberTest | null, may: (store: Store) => string}>}
 */
const SELECTORS = new Map([
  ["cpu", { values: ({ cpus }) => cpus, test: (_, part) => rangeTest(part), may: () => "numbers, such as cpu:0,2-3" }],
  ["pid", { values: ({ pids }) => pids, test: threadTest, may: () => "numbers or parts of names, such as pid:1-99,bash" }],
  ["rpc", { values: () => Uint32Array.from({ length: RPC_NUMBERS }, (_, n) => n), test: (_, part) => rangeTest(part), may: () => "numbers, such as rpc:5 or rpc:1-" }],
  ["woken", { values: (store) => targetThreads(store).numbers, test: (store, part) => ofTargets(threadTest(store, part)), may: () => "numbers or parts of names, such as woken:1-99,bash" }],
  ["to", { values: (store) => targetCpus(store).numbers, test: (_, part) => ofTargets(rangeTest(part)), may: () => "numbers, such as to:0,2-3" }],
  ["kind", { values: () => Object.values(Kind), test: (_, part) => kindTest(part), may: ({ kinds }) => wordsOf(kinds) }],
]);

/** A test for `5`, `2-3` or `7-`. @param {string} part @returns {NumberTest | null} */
function rangeTest(part) {
  const [, from, dash, to] = /^(\d+)(?:(-)(\d*))?$/.exec(part) ?? [];
  if (from === undefined) return null;
  const max = !dash ? Number(from) : to === "" ? Infinity : Number(to);
  return (value) => value >= Number(from) && value <= max;
}

/** A test for the number of a thread, or a part of its present or a former name. @param {Store} store @param {string} part @returns {NumberTest | null} */
function threadTest(store, part) {
  return rangeTest(part) ?? (part === "" ? null : (pid) => threadText(store, pid).includes(part) || (store.earlier.get(pid)?.includes(part) ?? false));
}

/** A test that fails for spans without a target. @param {NumberTest | null} test @returns {NumberTest | null} */
const ofTargets = (test) => test && ((target) => target >= 0 && test(target));

/** @param {string} part @returns {NumberTest | null} */
function kindTest(part) {
  const kinds = KIND_WORDS.get(part);
  return kinds ? (kind) => kinds.includes(kind) : null;
}

/** The words for kinds that a trace has. @param {Set<number>} present */
function wordsOf(present) {
  return [...KIND_WORDS].flatMap(([word, kinds]) => (kinds.some((kind) => present.has(kind)) ? [word] : [])).join(", ");
}

/** The ids of OpenTelemetry traces that occur in names, by name; null if none does. @param {readonly string[]} names */
function tracesOf(names) {
  const fields = valuesOf(names, "trace_id");
  const traces = names.map((name, at) => (fields?.[at] ?? /\btrace:([0-9a-f]+)/i.exec(name)?.[1])?.toLowerCase());
  return traces.some((trace) => trace !== undefined) ? traces : null;
}

/** The spans selected by all selectors. */
export class Scope {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** 1 for each value selected, by RPC, by index of the CPU or thread, by kind, by the place of the woken thread or its CPU among such targets, by name; null for all. Labels of rows are never selected. @type {Record<SelectorKey, Uint8Array | null>} */
    this.takes = { cpu: null, pid: null, rpc: null, kind: null, woken: null, to: null, name: null };
    if (store.kinds.has(Kind.LABEL)) this.takes.kind = Uint8Array.from(KIND_NAMES, (_, kind) => (kind === Kind.LABEL ? 0 : 1));
    /** The selectors used. @type {Set<string>} */
    this.keys = new Set();
  }

  /**
   * Narrows the scope by one more selector; returns an error, empty if there is none, or null if it is text: a word that is not
   * a selector, but occurs in names.
   * @param {string} key @param {string} parts
   * @returns {string | null}
   */
  narrow(key, parts) {
    const { store, takes } = this;
    const selector = SELECTORS.get(key);
    const isTrace = key === TRACE;
    const values = selector ? null : isTrace ? tracesOf(store.names) : valuesOf(store.names, key);
    if (values) {
      const wanted = (isTrace ? parts.toLowerCase() : parts).split(",");
      return this.narrowNames(key, values, (value) => wanted.some((one) => (isTrace ? value.startsWith(one) : value === one)));
    }
    if (!selector && store.names.some((name) => name.includes(`${key}:`))) return null;
    if (!selector) return `no selector ${key}: \u2014 there are ${[...SELECTORS.keys()].join(": ")}: \u2014 as text write ${key}\\:`;
    const tests = parts.split(",").map((part) => selector.test(store, part));
    if (tests.includes(null)) return `${key}: takes ${selector.may(store)}`;
    const before = takes[/** @type {SelectorKey} */ (key)];
    takes[/** @type {SelectorKey} */ (key)] = Uint8Array.from(selector.values(store), (value, at) =>
      (before?.[at] !== 0 && tests.some((test) => test?.(value)) ? 1 : 0));
    this.keys.add(key);
    return "";
  }

  /** @param {string} field @param {(string | undefined)[]} values by name @param {(value: string) => boolean} isWanted */
  narrowNames(field, values, isWanted) {
    const before = this.takes.name;
    this.takes.name = Uint8Array.from(values, (value, at) => (before?.[at] !== 0 && value !== undefined && isWanted(value) ? 1 : 0));
    this.keys.add(field);
    return "";
  }

  /** @param {number} i */
  has(i) {
    const { takes: { kind, cpu, pid, rpc, woken, to, name }, store } = this;
    return (!woken || woken[targetThreads(store).column[i]] === 1) && (!to || to[targetCpus(store).column[i]] === 1)
      && (!kind || kind[store.kind[i]] === 1) && (!cpu || cpu[store.cpu[i]] === 1) && (!pid || pid[store.pid[i]] === 1)
      && (!rpc || rpc[rpcOf(store, i)] === 1) && (!name || name[store.name[i]] === 1);
  }

  /** Moves the selected spans to the front; returns how many. @param {Uint32Array} ids @param {number} count */
  keep(ids, count) {
    const { takes: { kind, cpu, pid, rpc, woken, to, name }, store } = this;
    if (woken) count = keepTaken(ids, count, targetThreads(store).column, woken);
    if (to) count = keepTaken(ids, count, targetCpus(store).column, to);
    if (kind) count = keepTaken(ids, count, store.kind, kind);
    if (cpu) count = keepTaken(ids, count, store.cpu, cpu);
    if (pid) count = keepTaken(ids, count, store.pid, pid);
    if (name) count = keepTaken(ids, count, store.name, name);
    if (!rpc) return count;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      ids[kept] = ids[k];
      kept += rpc[rpcOf(store, ids[k])];
    }
    return kept;
  }
}

/** The number of a span's RPC, 0 for none. @param {Store} store @param {number} i */
const rpcOf = ({ rpc }, i) => (rpc[i] > 0 ? rpc[i] & (RPC_NUMBERS - 1) : 0);

/**
 * Moves spans with a selected value in a column to the front; returns how many.
 * @param {Uint32Array} ids
 * @param {number} count
 * @param {Column} column
 * @param {Uint8Array} takes by value, 0 or 1, added up instead of tested: without a branch, no prediction can miss
 */
export function keepTaken(ids, count, column, takes) {
  let kept = 0;
  for (let k = 0; k < count; k++) {
    const i = ids[k];
    ids[kept] = i;
    kept += takes[column[i]];
  }
  return kept;
}

/**
 * Splits the typed text into selectors and the pattern.
 * @param {Store} store
 * @param {string} text
 * @returns {{scope: Scope, pattern: string, error: string}}
 */
export function readSelectors(store, text) {
  const scope = new Scope(store);
  let error = "";
  const rest = text.replace(SELECTOR, (word, key, parts) => {
    const wrong = scope.narrow(key, parts);
    error ||= wrong ?? "";
    return wrong === null ? word : "";
  });
  return { scope, pattern: scope.keys.size > 0 ? rest.trim() : rest, error };
}
