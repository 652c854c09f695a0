// SPDX-License-Identifier: BSD-3-Clause
// A canvas that records drawing as SVG, with those parts of the 2-D context that the overlay uses.

/** A number of pixels as a short text. @param {number} value */
const short = (value) => String(Math.round(value * 100) / 100);
/** @param {string} text */
export const escapedXml = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** The state that save() stores. */
class SvgState {
  fillStyle = "#000000";
  strokeStyle = "#000000";
  lineWidth = 1;
  lineCap = "butt";
  lineJoin = "miter";
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign = "start";
  textBaseline = "alphabetic";
  /** @type {number[]} */
  dash = [];
  /** Number of elements open for clipping. */
  clips = 0;
  matrix = [1, 0, 0, 1, 0, 0];
}

export class SvgContext extends SvgState {
  /** @param {CanvasRenderingContext2D} ruler used to measure text @param {number} ratio pixels of a canvas per pixel of the figure */
  constructor(ruler, ratio) {
    super();
    this.ruler = ruler;
    this.ratio = ratio;
    /** Bitmaps from which parts are drawn. @type {Map<HTMLCanvasElement, string>} */
    this.sheets = new Map();
    /** @type {string[]} */
    this.out = [];
    this.path = "";
    this.clipsMade = 0;
    /** @type {SvgState[]} */
    this.states = [];
  }

  /** The canvas of the context, with the members that the page uses. */
  get canvas() {
    return { width: 0, height: 0, getContext: () => this };
  }

  save() {
    this.states.push(Object.assign(new SvgState(), this.state()));
    this.clips = 0;
  }

  restore() {
    const state = this.states.pop();
    if (!state) return;
    this.out.push("</g>".repeat(this.clips));
    Object.assign(this, state);
  }

  state() {
    /** @type {Record<string, unknown>} */
    const state = {};
    for (const key of Object.keys(new SvgState())) state[key] = /** @type {any} */ (this)[key];
    return state;
  }

  /** @param {number[]} m */
  setTransform(...m) {
    this.matrix = m.map((v) => v / this.ratio);
  }

  /** @param {number} a @param {number} b @param {number} c @param {number} d @param {number} e @param {number} f */
  transform(a, b, c, d, e, f) {
    const [A, B, C, D, E, F] = this.matrix;
    this.matrix = [A * a + C * b, B * a + D * b, A * c + C * d, B * c + D * d, A * e + C * f + E, B * e + D * f + F];
  }

  /** @param {number} x @param {number} y */
  translate(x, y) {
    this.transform(1, 0, 0, 1, x, y);
  }

  /** @param {number} x @param {number} y */
  scale(x, y) {
    this.transform(x, 0, 0, y, 0, 0);
  }

  /** @param {number} angle */
  rotate(angle) {
    this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0);
  }

  clearRect() {}

  beginPath() {
    this.path = "";
  }

  closePath() {
    this.path += "Z";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path += `${this.path === "" ? "M" : "L"}${short(x)} ${short(y)}`;
  }

  /** @param {number[]} points */
  quadraticCurveTo(...points) {
    this.path += `Q${points.map(short).join(" ")}`;
  }

  /** @param {number[]} points */
  bezierCurveTo(...points) {
    this.path += `C${points.map(short).join(" ")}`;
  }

  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  rect(x, y, w, h) {
    this.path += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}Z`;
  }

  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {number} r */
  roundRect(x, y, w, h, r) {
    const corner = (/** @type {number} */ dx, /** @type {number} */ dy) => `a${r} ${r} 0 0 1 ${short(dx)} ${short(dy)}`;
    this.path += `M${short(x + r)} ${short(y)}h${short(w - 2 * r)}${corner(r, r)}v${short(h - 2 * r)}${corner(-r, r)}h${
      short(2 * r - w)}${corner(-r, -r)}v${short(2 * r - h)}${corner(r, -r)}Z`;
  }

  /** @param {number} x @param {number} y @param {number} r @param {number} from @param {number} to @param {boolean} [left] */
  arc(x, y, r, from, to, left = false) {
    this.ellipse(x, y, r, r, 0, from, to, left);
  }

  /**
   * @param {number} x @param {number} y @param {number} rx @param {number} ry @param {number} turn
   * @param {number} from @param {number} to @param {boolean} [left]
   */
  ellipse(x, y, rx, ry, turn, from, to, left = false) {
    const whole = 2 * Math.PI;
    let sweep = left ? from - to : to - from;
    sweep = sweep >= whole ? whole : ((sweep % whole) + whole) % whole;
    const at = (/** @type {number} */ angle) => {
      const [px, py] = [rx * Math.cos(angle), ry * Math.sin(angle)];
      return [x + px * Math.cos(turn) - py * Math.sin(turn), y + px * Math.sin(turn) + py * Math.cos(turn)];
    };
    const [x0, y0] = at(from);
    this.lineTo(x0, y0);
    // An arc in two halves, since an SVG arc whose end equals its start is not drawn.
    for (const part of [0.5, 1]) {
      const [px, py] = at(from + (left ? -1 : 1) * sweep * part);
      this.path += `A${short(rx)} ${short(ry)} ${short((turn * 180) / Math.PI)} 0 ${left ? 0 : 1} ${short(px)} ${short(py)}`;
    }
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }

  /** Attributes of every element: its opacity and its transformation. */
  get common() {
    const [a, b, c, d, e, f] = this.matrix;
    const moved = a !== 1 || b !== 0 || c !== 0 || d !== 1 || e !== 0 || f !== 0;
    const alpha = this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
    return `${alpha}${moved ? ` transform="matrix(${this.matrix.map((v) => Math.round(v * 1e4) / 1e4).join(" ")})"` : ""}`;
  }

  fill() {
    if (this.path !== "") this.out.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.common}/>`);
  }

  stroke() {
    if (this.path === "") return;
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const cap = this.lineCap === "butt" ? "" : ` stroke-linecap="${this.lineCap}"`;
    const join = this.lineJoin === "miter" ? "" : ` stroke-linejoin="${this.lineJoin}"`;
    this.out.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"${
      dash}${cap}${join}${this.common}/>`);
  }

  clip() {
    const id = `clip${++this.clipsMade}`;
    this.out.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`);
    this.clips++;
  }

  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  fillRect(x, y, w, h) {
    if (w <= 0 || h <= 0) return;
    this.out.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${this.fillStyle}"${this.common}/>`);
  }

  /**
   * Draws a part of a small bitmap, which is written to the output once.
   * @param {HTMLCanvasElement} sheet
   * @param {number[]} part x, y, width and height in the sheet, then the same in the figure
   */
  drawImage(sheet, ...part) {
    let id = this.sheets.get(sheet);
    if (!id) {
      id = `sheet${this.sheets.size}`;
      this.sheets.set(sheet, id);
      this.out.push(`<defs><image id="${id}" width="${sheet.width}" height="${sheet.height}" href="${sheet.toDataURL()}"/></defs>`);
    }
    const [sx, sy, sw, sh, x, y, w, h] = part.map(short);
    this.out.push(`<svg x="${x}" y="${y}" width="${w}" height="${h}" viewBox="${sx} ${sy} ${sw} ${sh}"><use href="#${id}"/></svg>`);
  }

  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  strokeRect(x, y, w, h) {
    const before = this.path;
    this.path = "";
    this.rect(x, y, w, h);
    this.stroke();
    this.path = before;
  }

  /** @param {string} text */
  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign];
    const baseline = { middle: "central", top: "text-before-edge", bottom: "text-after-edge" }[this.textBaseline];
    const style = `font:${this.font.replace(/"/g, "'")};white-space:pre`;
    this.out.push(`<text x="${short(x)}" y="${short(y)}" fill="${this.fillStyle}" style="${style}"${
      anchor ? ` text-anchor="${anchor}"` : ""}${baseline ? ` dominant-baseline="${baseline}"` : ""}${this.common}>${escapedXml(text)}</text>`);
  }
}
