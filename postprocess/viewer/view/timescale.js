// SPDX-License-Identifier: BSD-3-Clause
// Conversion between times and pixels: a range of time over a width.

export class TimeScale {
  /** @param {number} t0 @param {number} t1 @param {number} width in CSS pixels */
  constructor(t0, t1, width) {
    this.t0 = t0;
    this.t1 = t1;
    this.width = width;
  }

  /** Pixels per unit of time. */
  get scale() {
    return this.width / (this.t1 - this.t0);
  }

  /** @param {number} time */
  x(time) {
    return (time - this.t0) * this.scale;
  }

  /** @param {number} x */
  time(x) {
    return this.t0 + x / this.scale;
  }
}
