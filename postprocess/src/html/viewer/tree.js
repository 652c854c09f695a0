// SPDX-License-Identifier: BSD-3-Clause
// A summary of any run of execution spans, from sums over blocks of 8, 64, 512 ... of them.
//
// One tree covers the lists of all rows of a group, end to end. Blocks that reach over the border between two rows
// do no harm: a run lies in one row, and only blocks inside the run are used. The sums of blocks are kept with 24 bits,
// far more than a pixel can show; exact totals are taken from the spans (totals.js).
"use strict";

/** Spans in a block of the lowest level, and blocks in a block of the next. */
const FAN = 8;
const FAN_BITS = 3;
/** A block is small if a run has so many of them. */
const ROUGH = 16;

/**
 * What a run of spans comes to: time by mode, and a span that stands for user and one for kernel mode (-1 if there is
 * none): the longest of the block that has most of that time.
 */
class Summary {
  idle = 0;
  user = 0;
  kernel = 0;
  userSpan = -1;
  kernelSpan = -1;
  userMost = -1;
  kernelMost = -1;

  clear() {
    this.idle = this.user = this.kernel = 0;
    this.userSpan = this.kernelSpan = this.userMost = this.kernelMost = -1;
  }

  /** @param {number} time @param {number} span */
  addUser(time, span) {
    this.user += time;
    if (time <= this.userMost) return;
    this.userMost = time;
    this.userSpan = span;
  }

  /** @param {number} time @param {number} span */
  addKernel(time, span) {
    this.kernel += time;
    if (time <= this.kernelMost) return;
    this.kernelMost = time;
    this.kernelSpan = span;
  }
}

class SummaryTree {
  /**
   * @param {Store} store
   * @param {Uint32Array} ids spans, by row and then in order of time
   */
  constructor(store, ids) {
    this.store = store;
    this.ids = ids;
    /** @type {{idle: Float32Array, user: Float32Array, kernel: Float32Array, userSpan: Int32Array,
     *   kernelSpan: Int32Array}[]} */
    this.levels = [];
    const summary = new Summary();
    for (let count = Math.floor(ids.length / FAN); count > 0; count = Math.floor(count / FAN)) {
      const level = {
        idle: new Float32Array(count), user: new Float32Array(count), kernel: new Float32Array(count),
        userSpan: new Int32Array(count), kernelSpan: new Int32Array(count),
      };
      const below = this.levels.length;
      for (let block = 0; block < count; block++) {
        summary.clear();
        for (let k = block * FAN; k < (block + 1) * FAN; k++) {
          this.add(below, k, summary);
        }
        level.idle[block] = summary.idle;
        level.user[block] = summary.user;
        level.kernel[block] = summary.kernel;
        level.userSpan[block] = summary.userSpan;
        level.kernelSpan[block] = summary.kernelSpan;
      }
      this.levels.push(level);
    }
  }

  /**
   * The end of a run, moved down to the border of a block that is small against the run: such a run is summed up
   * from few blocks, and what is left out begins the next.
   * @param {number} from
   * @param {number} to
   */
  static roundedEnd(from, to) {
    let block = 1;
    while (block * FAN * ROUGH <= to - from) block *= FAN;
    return to - (to % block);
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
    return out;
  }

  /** Adds a block of a level, level 0 being the spans themselves. @param {number} level @param {number} at @param {Summary} out */
  add(level, at, out) {
    if (level === 0) this.addSpan(this.ids[at], out);
    else this.addBlock(level - 1, at, out);
  }

  /** @param {number} i @param {Summary} out */
  addSpan(i, out) {
    const kind = this.store.kind[i];
    const dur = this.store.dur[i];
    if (isIdle(kind)) out.idle += dur;
    else if (kind <= Kind.LOST) out.addUser(dur, i);
    else out.addKernel(dur, i);
  }

  /** @param {number} level @param {number} block @param {Summary} out */
  addBlock(level, block, out) {
    const sums = this.levels[level];
    out.idle += sums.idle[block];
    if (sums.userSpan[block] >= 0) out.addUser(sums.user[block], sums.userSpan[block]);
    if (sums.kernelSpan[block] >= 0) out.addKernel(sums.kernel[block], sums.kernelSpan[block]);
  }
}
