// SPDX-License-Identifier: BSD-3-Clause
// Text forms of numbers, times and spans.

import { counterTexts } from "./counters.js";
import { isExecution, SYSCALL32, VALUE } from "./kind.js";
import { machineOfCpu, machineOfThread, ownNumber } from "./machines.js";
import { ERRNO, Kind } from "./tables.js";
/** @import {Cgroup, Meta, Store} from "./decode.js" */

/** Units of 10 ns, the page's unit of time, in a second. */
export const UNITS_PER_SECOND = 1e8;

/** Linux's internal return values of a call interrupted by a signal, which restarts it or returns EINTR. @type {Record<number, string>} */
const RESTARTS = Object.freeze({ 512: "ERESTARTSYS", 513: "ERESTARTNOINTR", 514: "ERESTARTNOHAND", 516: "ERESTART_RESTARTBLOCK" });

/** The greatest error number. */
const ERRNO_MAX = 4095;
/** Calls that end their thread. */
const NEVER_RETURN = new Set(["exit", "exit_group"]);
/** Calls that return addresses, or the contents of a register, of which a trace has the low 32 bits. */
const RETURN_ADDRESSES = new Set(["mmap", "mmap2", "mremap", "brk", "shmat", "map_shadow_stack", "rt_sigreturn", "sigreturn"]);
/** Calls that return numbers of more than 32 bits. */
const RETURN_LONG = new Set(["lseek", "times"]);
/** Calls that cannot fail: a value that looks like an error is an address. */
const NEVER_FAIL = new Set(["brk"]);
/** Calls whose first argument is a folder or AT_FDCWD, in addition to those called `...at`. */
const TAKE_FOLDERS = new Set([
  "openat2", "renameat2", "faccessat2", "fchmodat2", "fstatat64", "utimensat_time64", "statx", "open_tree", "move_mount",
  "fspick", "mount_setattr",
]);
/** Calls called `...at` whose first argument is something else. */
const TAKE_NO_FOLDERS = new Set(["symlinkat", "shmat", "fstat", "stat", "lstat", "oldstat", "oldlstat", "oldfstat", "ustat"]);
const AT_FDCWD = -100;
/** Calls whose first argument is an address: of a path, of a structure, or of a mapping. */
const TAKE_ADDRESSES = new Set((
  "access acct add_key adjtimex brk capget capset chdir chmod chown chroot clone3 creat delete_module execve fsopen futex futex_requeue futex_wait " +
  "futex_waitv futex_wake get_mempolicy getcpu getcwd getrandom getresgid getresuid gettimeofday getxattr init_module landlock_create_ruleset lchown " +
  "lgetxattr link listmount listxattr llistxattr lremovexattr lsetxattr lstat lstat64 madvise map_shadow_stack mbind memfd_create mincore mkdir mknod " +
  "mlock mlock2 mmap mmap2 mount mprotect mq_open mq_unlink mremap msync munlock munmap nanosleep oldlstat oldolduname oldstat olduname open " +
  "perf_event_open pipe pipe2 pivot_root pkey_mprotect poll ppoll readlink remap_file_pages removexattr rename request_key rmdir rseq rt_sigpending " +
  "rt_sigsuspend set_mempolicy_home_node set_robust_list set_tid_address setdomainname sethostname settimeofday setxattr shmdt sigaltstack sigpending " +
  "stat stat64 statfs statfs64 statmount stime swapoff swapon symlink symlinkat sysinfo time times truncate truncate64 umount umount2 uname unlink " +
  "uselib utime utimes"
).split(" "));

/** Control characters, and those that change the text direction or have no width. */
export const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * A name that is safe to show: some characters would let it disguise itself.
 * @param {string | undefined} name
 */
export function shownName(name) {
  return (name ?? "").replace(UNSEEN, "\ufffd");
}

/**
 * A duration, in the unit that suits it.
 * @param {number} units
 * @param {boolean} [trim] true to drop trailing zeros
 */
export function durationText(units, trim = true) {
  const ns = Math.abs(units) * 10;
  const text = (/** @type {number} */ value, /** @type {number} */ decimals, /** @type {string} */ unit) =>
    `${units < 0 ? "-" : ""}${trim ? trimmed(value, decimals) : value.toFixed(decimals)} ${unit}`;
  if (ns < 1e3) return text(ns, 0, "ns");
  if (ns < 1e6) return text(ns / 1e3, 2, "\u00b5s");
  if (ns < 1e9) return text(ns / 1e6, 3, "ms");
  return text(ns / 1e9, 4, "s");
}

/** A duration for a column: with all its decimals, so that decimal points line up. @param {number} units */
export const alignedText = (units) => durationText(units, false);

/** A signed time difference, for a column. @param {number} units */
export const signedText = (units) => `${units < 0 ? "\u2212" : units > 0 ? "+" : ""}${alignedText(Math.abs(units))}`;

/** Nanoseconds per unit, for the units that can be typed. @type {Record<string, number>} */
const TYPED_UNITS = Object.freeze({ ns: 1, us: 1e3, "\u00b5s": 1e3, ms: 1e6, s: 1e9 });

/**
 * Parses a duration as typed: a number and a unit, microseconds by default; NaN for anything else.
 * @param {string} text
 */
export function parseDuration(text) {
  const [, number, unit] = /^\s*(\d+\.?\d*|\.\d+)\s*(ns|us|\u00b5s|ms|s)?\s*$/.exec(text) ?? [];
  return Math.round((Number(number) * TYPED_UNITS[unit ?? "us"]) / 10);
}

/** A count with its noun. @param {number} n @param {string} thing the noun in the singular */
export const countText = (n, thing) => `${n.toLocaleString("en")} ${n === 1 ? thing : thing.replace(/half$/, "halve")}${n === 1 ? "" : "s"}`;

/** @param {number} value @param {number} decimals */
export function trimmed(value, decimals) {
  const text = value.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Further digits after those shown, which distinguish exactly half of the last digit from more. */
const DIGITS_BEHIND = 25;

/** A number with this many decimals, rounding half to even, as the terminal tools do. @param {number} value @param {number} decimals */
export function roundedText(value, decimals) {
  const exact = value.toFixed(decimals + DIGITS_BEHIND);
  const isHalf = exact.slice(-DIGITS_BEHIND) === "5".padEnd(DIGITS_BEHIND, "0");
  const cut = exact.slice(0, -DIGITS_BEHIND).replace(/\.$/, "");
  return isHalf && /[02468]$/.test(cut) ? cut : value.toFixed(decimals);
}

/**
 * A time as seconds after the trace's base minute, exact.
 * @param {number} units
 */
export function secondsText(units) {
  const sign = units < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(units) / UNITS_PER_SECOND);
  const part = Math.round(Math.abs(units) - whole * UNITS_PER_SECOND);
  return `${sign}${whole}.${String(part).padStart(8, "0")}`;
}

/**
 * The base minute of a trace in ms since 1970, or null.
 * @param {string} tracebase as YYYY-MM-DD_hh:mm:ss
 * @returns {number | null}
 */
export function baseMillis(tracebase) {
  const ms = Date.parse(`${tracebase.replace("_", "T")}Z`);
  return Number.isFinite(ms) ? ms : null;
}

/**
 * A time as date and time of day on the traced machine, to `digits` decimals of the second (truncated, not rounded).
 * @param {string} tracebase
 * @param {number} units
 * @param {number} digits
 */
export function clockText(tracebase, units, digits) {
  const base = baseMillis(tracebase);
  const whole = Math.floor(units / UNITS_PER_SECOND);
  const part = Math.floor(units - whole * UNITS_PER_SECOND);
  const decimals = digits > 0 ? `.${String(part).padStart(8, "0").slice(0, digits)}` : "";
  const date = base === null ? null : new Date(base + whole * 1000);
  if (date === null || Number.isNaN(date.getTime())) return `${whole}${decimals} s`;
  return `${date.toISOString().slice(0, 19).replace("T", " ")}${decimals}`;
}

/**
 * Decodes a value of the columns `arg` and `ret`; null for none.
 * @param {number} stored
 */
export const valueOf = (stored) => (stored === 0 ? null : stored > 0 ? stored - 1 : stored);

/** The name of an error number on the traced machine. @param {Meta} meta @param {number} error */
function errorText({ errors }, error) {
  const known = Object.keys(errors).length > 0 ? errors[error] : ERRNO[error];
  const name = known ?? RESTARTS[error];
  return name?.startsWith("E") ? name : String(-error);
}

/** A number of which only the low bits are known, with at least this many digits. @param {number} value @param {number} digits */
const lowBits = (value, digits) => `0x...${(value >>> 0).toString(16).padStart(digits, "0")}`;
/** Hexadecimal digits of a returned value, and of an argument. */
const VALUE_DIGITS = 8;
const ARGUMENT_DIGITS = 4;

/**
 * The value that a system call returned at the end of a span; null if it did not return there, or the value is unknown.
 * @param {Store} store
 * @param {number} i
 */
export function returnText(store, i) {
  const { meta, names, name, kind, ret, events, event } = store;
  const value = kind[i] === Kind.SYSCALL ? valueOf(ret[i]) : null;
  if (value === null) return null;
  if (meta.valueBits < 32) {
    // A 16-bit value in the range of errors is taken for an error, like in the original.
    const error = value < 0 ? -value : value > 0xffff - ERRNO.length && value <= 0xffff ? 0x10000 - value : 0;
    return error > 0 ? errorText(meta, error) : String(value);
  }
  const call = names[name[i]];
  if (value < 0 && value >= -ERRNO_MAX && !NEVER_FAIL.has(call)) return errorText(meta, -value);
  const whole = events[event[i]] >= SYSCALL32;
  if (RETURN_ADDRESSES.has(call)) return whole ? `0x${(value >>> 0).toString(16)}` : lowBits(value, VALUE_DIGITS);
  // The recorder keeps values that fit into eight bits whole.
  const cut = value < 0 || (RETURN_LONG.has(call) && value > 127);
  return cut && !whole ? lowBits(value, VALUE_DIGITS) : String(cut ? value >>> 0 : value);
}

/**
 * The first argument of a system call; empty if unknown.
 * @param {Store} store
 * @param {number} i
 */
function argumentText(store, i) {
  const value = valueOf(store.arg[i]);
  if (value === null) return "";
  const call = store.names[store.name[i]];
  const folder = TAKE_FOLDERS.has(call) || (call.endsWith("at") && !TAKE_NO_FOLDERS.has(call));
  // The trace has the low 16 or 32 bits of the argument.
  if (folder && [AT_FDCWD & 0xffff, AT_FDCWD >>> 0, AT_FDCWD].includes(value)) return "AT_FDCWD";
  return takesAddress(store, i) ? lowBits(value, ARGUMENT_DIGITS) : String(value);
}

/** True if the first argument of a span is an address, of which the low bits are known. @param {Store} store @param {number} i */
export const takesAddress = ({ kind, names, name }, i) => kind[i] === Kind.SYSCALL && TAKE_ADDRESSES.has(names[name[i]]);

/** A system call with its argument, such as `read(3)`. @param {Store} store @param {number} i */
export const calledText = (store, i) => `${shownName(store.names[store.name[i]])}(${argumentText(store, i)})`;

/** A system call with its argument and returned value, or `...` if it has not returned. @param {Store} store @param {number} i */
function systemCallText(store, i) {
  const returned = returnText(store, i);
  const end = returned !== null ? `=${returned}` : NEVER_RETURN.has(store.names[store.name[i]]) ? "" : "...";
  return `${calledText(store, i)}${end}`;
}

/**
 * A span's name with its argument and return value, if its kind has them.
 * @param {Store} store
 * @param {number} i
 */
export function callText(store, i) {
  const name = shownName(store.names[store.name[i]]);
  const kind = store.kind[i];
  if (kind === Kind.SYSCALL) return systemCallText(store, i);
  const arg = valueOf(store.arg[i]) ?? 0;
  if (store.events[store.event[i]] === VALUE) return `${name}=${arg}`;
  if (kind === Kind.FREQ) return `${name} ${arg} MHz`;
  if (kind === Kind.MESSAGE) return `${name} ${arg.toLocaleString("en")} bytes`;
  if (kind === Kind.LOST && arg > 0) return `${name} ${arg.toLocaleString("en")} events`;
  if (kind === Kind.TRAP || kind === Kind.IRQ || kind === Kind.BH || kind === Kind.POINT) return arg === 0 ? name : `${name}(${arg})`;
  return name;
}

/**
 * How often spans of this name began in the whole trace, including those that the page no longer has; empty if unknown.
 * @param {Store} store
 * @param {number} name
 */
export function timesText({ meta, names }, name) {
  const { counts } = meta;
  return counts && Object.hasOwn(counts, names[name]) ? counts[names[name]].toLocaleString("en") : "";
}

/**
 * Everything about a span, in one line.
 * @param {Store} store
 * @param {number} i
 */
export function spanText(store, i) {
  const parts = [secondsText(store.start[i]), callText(store, i), durationText(store.dur[i])];
  const cpu = store.cpus[store.cpu[i]];
  const pid = store.pids[store.pid[i]];
  const kind = store.kind[i];
  if (kind === Kind.WAKEUP || kind === Kind.IPI) {
    parts.push(`${cpuText(store, cpu)} \u2192 ${cpuText(store, valueOf(store.arg[i]) ?? -1)}`);
    if (kind === Kind.WAKEUP) parts.push(`${threadText(store, pid)} \u2192 ${threadText(store, wokenBy(store, i))}`);
    return parts.join("  ");
  }
  if (cpu >= 0) parts.push(cpuText(store, cpu));
  if (pid > 0) parts.push(threadText(store, pid));
  if (store.rpc[i] > 0) parts.push(`RPC ${store.rpc[i] & 0xffff}`);
  if (isExecution(kind)) parts.push(...counterTexts(store, i).map(([what, value]) => `${what} ${value}`));
  return parts.join("  ");
}

/** The thread that a wakeup wakes. @param {Store} store @param {number} i */
export const wokenBy = (store, i) => valueOf(store.ret[i]) ?? -1;

/** The process of a thread: the number of its first thread. @param {Store} store @param {number} pid */
export const processOf = ({ meta }, pid) => meta.processes?.[pid] ?? pid;

/**
 * The control groups of a trace by thread: a process is found by its first thread; a thread in another group is listed itself.
 * @param {Store} store
 * @returns {(pid: number) => Cgroup | undefined} the group of any thread, if known
 */
export function cgroupsOf(store) {
  const groups = new Map((store.meta.cgroups ?? []).flatMap((group) => group.pids.map((pid) => [pid, group])));
  return (pid) => groups.get(pid) ?? groups.get(processOf(store, pid));
}

/**
 * A thread as name.pid.
 * @param {Store} store
 * @param {number} pid
 */
export function threadText(store, pid) {
  if (pid === 0) return "idle";
  const machine = machineOfThread(store.meta, pid);
  const thread = shownName(store.threads.get(pid) ?? `pid.${pid}`);
  if (!machine) return thread;
  // Show the number that the thread has on its machine.
  const own = thread.endsWith(`.${pid}`) ? `${thread.slice(0, -`${pid}`.length)}${ownNumber(pid)}` : thread;
  return `${shownName(machine.name)}: ${own}`;
}

/** The name of a CPU, including its machine if there are several. @param {Store} store @param {number} cpu */
export function cpuText({ meta }, cpu) {
  const machine = machineOfCpu(meta, cpu);
  return machine ? `${shownName(machine.name)} CPU ${cpu - machine.first_cpu}` : `CPU ${cpu}`;
}
