// SPDX-License-Identifier: BSD-3-Clause
// Numbers, times and spans as text.
"use strict";

/** Units of 10 ns, the page's unit of time, in a second. */
const UNITS_PER_SECOND = 1e8;

/** Names of errno values on Linux, by number. */
const ERRNO = (
  " EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST " +
  "EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE " +
  "EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP 41 ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH " +
  "ENOCSI EL2HLT EBADE EBADR EXFULL ENOANO EBADRQC EBADSLT 58 EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE " +
  "ENOLINK EADV ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD " +
  "ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT " +
  "EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH " +
  "ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN " +
  "EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE " +
  "ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON"
).split(" ");

/** Steps of the IPC code: instructions per cycle, in words. */
const IPC_TEXT = Object.freeze([
  "0", "1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8", "1", "1.25", "1.5", "1.75", "2", "2.5", "3", "3.5+",
]);

/** Steps of the LLC code: last-level cache misses, in words. */
const LLC_TEXT = Object.freeze([
  "0", "1+", "8+", "16+", "32+", "64+", "128+", "256+", "512+", "1024+", "2048+", "4096+", "8192+", "16384+", "32768+",
  "65536+",
]);

/**
 * A name as it can be shown: control and direction characters would let it disguise itself.
 * @param {string | undefined} name
 */
function shownName(name) {
  return (name ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

/**
 * A duration, in the unit that suits it.
 * @param {number} units
 */
function durationText(units) {
  const ns = Math.abs(units) * 10;
  const sign = units < 0 ? "-" : "";
  if (ns < 1e3) return `${sign}${trimmed(ns, 0)} ns`;
  if (ns < 1e6) return `${sign}${trimmed(ns / 1e3, 2)} \u00b5s`;
  if (ns < 1e9) return `${sign}${trimmed(ns / 1e6, 3)} ms`;
  return `${sign}${trimmed(ns / 1e9, 4)} s`;
}

/** Nanoseconds in each unit that can be typed. @type {Record<string, number>} */
const TYPED_UNITS = Object.freeze({ ns: 1, us: 1e3, "\u00b5s": 1e3, ms: 1e6, s: 1e9 });

/**
 * A duration as people type it, a number and a unit, microseconds if there is none; NaN if it is something else.
 * @param {string} text
 */
function parseDuration(text) {
  const [, number, unit] = /^\s*(\d+\.?\d*|\.\d+)\s*(ns|us|\u00b5s|ms|s)?\s*$/.exec(text) ?? [];
  return Math.round((Number(number) * TYPED_UNITS[unit ?? "us"]) / 10);
}

/** @param {number} value @param {number} decimals */
function trimmed(value, decimals) {
  const text = value.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/**
 * A time as seconds after the trace's base minute, exactly.
 * @param {number} units
 */
function secondsText(units) {
  const sign = units < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(units) / UNITS_PER_SECOND);
  const part = Math.round(Math.abs(units) - whole * UNITS_PER_SECOND);
  return `${sign}${whole}.${String(part).padStart(8, "0")}`;
}

/**
 * The base minute of a trace in ms since 1970, or nothing.
 * @param {string} tracebase as YYYY-MM-DD_hh:mm:ss
 * @returns {number | null}
 */
function baseMillis(tracebase) {
  const ms = Date.parse(`${tracebase.replace("_", "T")}Z`);
  return Number.isFinite(ms) ? ms : null;
}

/**
 * A time as date and clock of the traced machine, to `digits` decimals of the second (cut, not rounded).
 * @param {string} tracebase
 * @param {number} units
 * @param {number} digits
 */
function clockText(tracebase, units, digits) {
  const base = baseMillis(tracebase);
  const whole = Math.floor(units / UNITS_PER_SECOND);
  const part = Math.floor(units - whole * UNITS_PER_SECOND);
  const decimals = digits > 0 ? `.${String(part).padStart(8, "0").slice(0, digits)}` : "";
  const date = base === null ? null : new Date(base + whole * 1000);
  if (date === null || Number.isNaN(date.getTime())) return `${whole}${decimals} s`;
  return `${date.toISOString().slice(0, 19).replace("T", " ")}${decimals}`;
}

/**
 * The value a system call returned: errors by name.
 * @param {number} ret the low 16 bits, or a whole negative number
 */
function returnText(ret) {
  const error = ret < 0 ? -ret : ret > 0xffff - ERRNO.length && ret <= 0xffff ? 0x10000 - ret : 0;
  if (error === 0) return String(ret);
  const name = ERRNO[error];
  return name && name.startsWith("E") ? name : String(-error);
}

/**
 * A span's name with its argument and return value, as far as its kind has them.
 * @param {Store} store
 * @param {number} i
 */
function callText(store, i) {
  const name = shownName(store.names[store.name[i]]);
  const kind = store.kind[i];
  if (kind === Kind.SYSCALL) return `${name}(${store.arg[i]})=${returnText(store.ret[i])}`;
  if (kind === Kind.FREQ) return `${name} ${store.arg[i]} MHz`;
  if (kind === Kind.MESSAGE) return `${name} ${store.arg[i].toLocaleString("en")} bytes`;
  if (kind === Kind.LOST && store.arg[i] > 0) return `${name} ${store.arg[i].toLocaleString("en")} events`;
  if (kind === Kind.TRAP || kind === Kind.IRQ || kind === Kind.BH || kind === Kind.POINT) {
    return store.arg[i] === 0 ? name : `${name}(${store.arg[i]})`;
  }
  return name;
}

/**
 * Everything about a span in one line.
 * @param {Store} store
 * @param {number} i
 */
function spanText(store, i) {
  const parts = [secondsText(store.start[i]), callText(store, i), durationText(store.dur[i])];
  const cpu = store.cpus[store.cpu[i]];
  const pid = store.pids[store.pid[i]];
  const kind = store.kind[i];
  if (kind === Kind.WAKEUP || kind === Kind.IPI) {
    parts.push(`CPU ${cpu} \u2192 CPU ${store.arg[i]}`);
    if (kind === Kind.WAKEUP) parts.push(`${threadText(store, pid)} \u2192 ${threadText(store, store.ret[i])}`);
    return parts.join("  ");
  }
  if (cpu >= 0) parts.push(`CPU ${cpu}`);
  if (pid > 0) parts.push(threadText(store, pid));
  if (store.rpc[i] > 0) parts.push(`RPC ${store.rpc[i] & 0xffff}`);
  if (isExecution(kind)) parts.push(...counterTexts(store, i).map(([what, value]) => `${what} ${value}`));
  return parts.join("  ");
}

/**
 * What was counted during a span, by the flags of the trace: pairs of what and value. Two counters share one code, two
 * bits each.
 * @param {Store} store
 * @param {number} i
 * @returns {[string, string][]}
 */
function counterTexts(store, i) {
  const code = store.ipc[i] & 15;
  switch (store.meta.flags & 0xa0) {
    case 0x80: return [["IPC", IPC_TEXT[code]]];
    case 0x20: return [["LLC misses", LLC_TEXT[code]]];
    case 0xa0: return [["IPC", `${IPC_TEXT[code & 12]}+`], ["LLC misses", `${["0", "8", "64", "512"][code & 3]}+`]];
    default: return [];
  }
}

/**
 * A thread as name.pid.
 * @param {Store} store
 * @param {number} pid
 */
function threadText(store, pid) {
  if (pid === 0) return "idle";
  return shownName(store.threads.get(pid) ?? `pid.${pid}`);
}
