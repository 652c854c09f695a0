// SPDX-License-Identifier: BSD-3-Clause
// A summary of any run of execution spans, from sums over blocks of 8, 64, 512 ... of them.
//
// One tree covers the lists of all rows of a group, end to end. Blocks that extend over the border between two rows
// do no harm: a run is within one row, and only blocks inside the run are used. The sums of blocks have a precision of 24 bits,
// far more than a pixel can show; exact totals are computed from the spans (totals.js).

import { isIdle } from "./kind.js";
import { seekStart } from "./rows.js";
import { Kind } from "./tables.js";
/** @import {Store} from "./decode.js" */

/** Spans in a block of the lowest level, and blocks in a block of the next, also as a power of two. */
export const FAN = 8;
export const FAN_BITS = 3;
/** Distance in spans, as a power of two, between the starts that are copied into a dense array for a faster search. */
const STRIDE_BITS = 6;
/** A block is small if a run has at least this many of them. */
const ROUGH = 16;

/** Bits of a child's number, and the number for no child. */
const NIBBLE = 4;
const NO_CHILD = 15;

/**
 * The summary of a run of spans: time by mode, and a representative span for user and for kernel mode (-1 if there is
 * none): the longest of the block that has most of that time.
 */
export class Summary {
  idle = 0;
  user = 0;
  kernel = 0;
  userSpan = -1;
  kernelSpan = -1;
  /** The blocks with most time so far, and their levels; spans are of level 0. */
  userMax = -1;
  userAt = 0;
  userLevel = 0;
  kernelMax = -1;
  kernelAt = 0;
  kernelLevel = 0;

  clear() {
    this.idle = this.user = this.kernel = 0;
    this.userMax = this.kernelMax = -1;
  }

  /** @param {number} time @param {number} level @param {number} at */
  addUser(time, level, at) {
    this.user += time;
    if (time <= this.userMax) return;
    this.userMax = time;
    this.userAt = at;
    this.userLevel = level;
  }

  /** @param {number} time @param {number} level @param {number} at */
  addKernel(time, level, at) {
    this.kernel += time;
    if (time <= this.kernelMax) return;
    this.kernelMax = time;
    this.kernelAt = at;
    this.kernelLevel = level;
  }
}

/**
 * Sums of the blocks of one level. A byte of `longest` has the number of the child with most of the block's user time in its
 * low nibble, and of that with most kernel time in the high one.
 * @typedef {{idle: Float32Array, user: Float32Array, kernel: Float32Array, longest: Uint8Array}} Level
 */

export class SummaryTree {
  /**
   * @param {Store} store
   * @param {Uint32Array} ids spans, by row and then in order of time
   */
  constructor(store, ids) {
    this.store = store;
    this.ids = ids;
    this.starts = new Float64Array(Math.ceil(ids.length / (1 << STRIDE_BITS)));
    for (let k = 0; k < this.starts.length; k++) this.starts[k] = store.start[ids[k << STRIDE_BITS]];
    /** @type {Level[]} */
    this.levels = [];
    for (let count = Math.floor(ids.length / FAN); count > 0; count = Math.floor(count / FAN)) {
      const level = {
        idle: new Float32Array(count), user: new Float32Array(count), kernel: new Float32Array(count), longest: new Uint8Array(count),
      };
      const below = this.levels.at(-1);
      if (below) addBlocks(level, below);
      else addSpans(level, store, ids);
      this.levels.push(level);
    }
  }

  /**
   * The end of a run, moved down to the border of a block that is small compared with the run: such a run is summed up
   * from few blocks, and the spans cut off begin the next run.
   * @param {number} from
   * @param {number} to
   */
  static roundedEnd(from, to) {
    let block = 1;
    while (block * FAN * ROUGH <= to - from) block *= FAN;
    return to - (to % block);
  }

  /**
   * The first position from `from` on, below `to`, whose span starts at `time` or later, like `seekStart`; both positions are in one row.
   * @param {number} from
   * @param {number} to
   * @param {number} time
   */
  seek(from, to, time) {
    const { starts, ids, store: { start } } = this;
    let low = (from >>> STRIDE_BITS) + 1;
    const last = (to - 1) >>> STRIDE_BITS;
    if (low > last || starts[low] >= time) return seekStart(start, ids, from, Math.min(low << STRIDE_BITS, to), time);
    let step = 1;
    while (low + step <= last && starts[low + step] < time) {
      low += step;
      step *= 2;
    }
    for (let high = Math.min(low + step, last + 1); high - low > 1;) {
      const middle = (low + high) >>> 1;
      if (starts[middle] < time) low = middle;
      else high = middle;
    }
    return seekStart(start, ids, (low << STRIDE_BITS) + 1, Math.min((low + 1) << STRIDE_BITS, to), time);
  }

  /**
   * Sums up positions `from` to `to` (exclusive) of the list.
   * @param {number} from
   * @param {number} to
   * @param {Summary} out
   */
  query(from, to, out) {
    out.clear();
    let low = from;
    let high = to;
    for (let level = 0; low < high; level++) {
      const top = level === this.levels.length;
      for (; low < high && (top || (low & (FAN - 1)) !== 0); low++) this.add(level, low, out);
      for (; low < high && (high & (FAN - 1)) !== 0;) this.add(level, --high, out);
      low >>>= FAN_BITS;
      high >>>= FAN_BITS;
    }
    out.userSpan = out.userMax < 0 ? -1 : this.longestOf(out.userLevel, out.userAt, 0);
    out.kernelSpan = out.kernelMax < 0 ? -1 : this.longestOf(out.kernelLevel, out.kernelAt, NIBBLE);
    return out;
  }

  /** Adds a block of a level, level 0 being the spans themselves. @param {number} level @param {number} at @param {Summary} out */
  add(level, at, out) {
    if (level === 0) this.addSpan(at, out);
    else this.addBlock(level, at, out);
  }

  /** @param {number} at @param {Summary} out */
  addSpan(at, out) {
    const i = this.ids[at];
    const kind = this.store.kind[i];
    const dur = this.store.dur[i];
    if (isIdle(kind)) out.idle += dur;
    else if (kind <= Kind.STALLED) out.addUser(dur, 0, at);
    else out.addKernel(dur, 0, at);
  }

  /** @param {number} level @param {number} at @param {Summary} out */
  addBlock(level, at, out) {
    const { idle, user, kernel, longest } = this.levels[level - 1];
    out.idle += idle[at];
    if ((longest[at] & NO_CHILD) !== NO_CHILD) out.addUser(user[at], level, at);
    if (longest[at] >>> NIBBLE !== NO_CHILD) out.addKernel(kernel[at], level, at);
  }

  /** The span that represents a block: the longest child of the longest child, and so on. @param {number} level @param {number} at @param {number} shift to the nibble of the mode */
  longestOf(level, at, shift) {
    for (; level > 0; level--) at = at * FAN + ((this.levels[level - 1].longest[at] >>> shift) & NO_CHILD);
    return this.ids[at];
  }
}

/** Sums up blocks of spans. @param {Level} level @param {Store} store @param {Uint32Array} ids */
function addSpans({ idle, user, kernel, longest }, { kind, dur }, ids) {
  for (let block = 0; block < longest.length; block++) {
    let idleTime = 0;
    let userTime = 0;
    let userMax = -1;
    let userChild = NO_CHILD;
    let kernelTime = 0;
    let kernelMax = -1;
    let kernelChild = NO_CHILD;
    for (let child = 0; child < FAN; child++) {
      const i = ids[block * FAN + child];
      const d = dur[i];
      if (kind[i] <= Kind.C_EXIT) idleTime += d;
      else if (kind[i] <= Kind.STALLED) {
        userTime += d;
        if (d > userMax) {
          userMax = d;
          userChild = child;
        }
      } else {
        kernelTime += d;
        if (d > kernelMax) {
          kernelMax = d;
          kernelChild = child;
        }
      }
    }
    // Pages that are never written take no memory: threads have no idle time.
    if (idleTime > 0) idle[block] = idleTime;
    user[block] = userTime;
    kernel[block] = kernelTime;
    longest[block] = userChild | (kernelChild << NIBBLE);
  }
}

/** Sums up blocks of blocks. @param {Level} level @param {Level} below */
function addBlocks(level, below) {
  for (const sort of /** @type {const} */ (["idle", "user", "kernel"])) addTimes(level[sort], below[sort]);
  for (let block = 0; block < level.longest.length; block++) {
    level.longest[block] = longestChild(below.user, below.longest, 0, block) | (longestChild(below.kernel, below.longest, NIBBLE, block) << NIBBLE);
  }
}

/** @param {Float32Array} times by block @param {Float32Array} below */
function addTimes(times, below) {
  for (let block = 0; block < times.length; block++) {
    let sum = 0;
    for (let child = block * FAN; child < (block + 1) * FAN; child++) sum += below[child];
    if (sum > 0) times[block] = sum;
  }
}

/** The child of a block with most time in a mode, NO_CHILD if none has a span in it. @param {Float32Array} times @param {Uint8Array} longest @param {number} shift @param {number} block */
function longestChild(times, longest, shift, block) {
  let max = -1;
  let which = NO_CHILD;
  for (let child = 0; child < FAN; child++) {
    const at = block * FAN + child;
    if (((longest[at] >>> shift) & NO_CHILD) === NO_CHILD || times[at] <= max) continue;
    max = times[at];
    which = child;
  }
  return which;
}
