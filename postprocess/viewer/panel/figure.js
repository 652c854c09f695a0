// SPDX-License-Identifier: BSD-3-Clause
// The view as a figure for a paper or a mail: title, names of the rows, picture and overlay; as SVG or as PNG.

import { shownName } from "../data/format.js";
import { titleOf } from "../data/sections.js";
import { AXIS_HEIGHT, MARKS_HEIGHT } from "../view/view.js";
import { Overlay } from "../draw/overlay.js";
import { FONT, pixel } from "../draw/palette.js";
import { escapedXml, SvgContext } from "../draw/svg.js";
import { byId } from "../dom.js";
/**
 * @import {Picture} from "../draw/picture.js"
 * @import {App} from "../main.js"
 */

const FIGURE_TITLE = 34;
/** Device pixels per CSS pixel of a figure, regardless of the screen. */
const FIGURE_RATIO = 2;

/** Size of the figure in CSS pixels. @param {App} app */
function figureSize(app) {
  const labels = byId("labels").clientWidth;
  return { labels, width: labels + app.view.width, height: FIGURE_TITLE + app.view.height };
}

/**
 * Draws everything around the picture.
 * @param {App} app
 * @param {CanvasRenderingContext2D} c
 */
function drawFrame(app, c) {
  const { view, palette, axis } = app;
  const { labels, width, height } = figureSize(app);
  const write = (/** @type {string} */ text, /** @type {string} */ font, /** @type {string} */ color, /** @type {number} */ x, /** @type {number} */ y) => {
    c.font = `${font} ${FONT}`;
    c.fillStyle = color;
    c.fillText(text, x, y);
    return x + c.measureText(text).width;
  };
  c.textBaseline = "middle";
  c.fillStyle = palette.css.back;
  c.fillRect(0, 0, width, height);
  const end = write(byId("title").textContent, "bold 15px", palette.css.text, 10, FIGURE_TITLE / 2);
  write(byId("about").textContent, "11px", palette.css.dim, end + 14, FIGURE_TITLE / 2);
  write(axis.baseText, "11px", palette.css.dim, 10, height - AXIS_HEIGHT / 2);
  for (const item of view.seen()) {
    const y = FIGURE_TITLE + view.middle(item);
    if (y < FIGURE_TITLE + MARKS_HEIGHT || y > FIGURE_TITLE + MARKS_HEIGHT + view.rowsSeen) continue;
    if (item.row < 0) {
      write(titleOf(item.group, item.row), "bold 12px", palette.css.measure, 10, y);
      continue;
    }
    if (!item.named) continue;
    const text = shownName(item.group.labels[item.row]);
    c.font = `12px ${FONT}`;
    write(text, "12px", palette.css.text, Math.max(labels - 8 - c.measureText(text).width, 4), y);
  }
}

/**
 * Draws the picture at the figure's resolution for a while, then restores it for the screen.
 * @param {App} app
 * @param {(picture: Picture) => void} use
 */
function withSharpPicture(app, use) {
  const { picture, view } = app;
  const { ratio } = picture;
  picture.resize(view.width, view.height, FIGURE_RATIO);
  picture.draw(app.axis);
  use(picture);
  picture.resize(view.width, view.height, ratio);
  picture.draw(app.axis);
}

/** Draws the overlay with its own canvas. @param {App} app @param {any} canvas @param {number} ratio */
function drawOverlayOn(app, canvas, ratio) {
  const own = new Overlay(app, canvas);
  own.resize(app.view.width, app.view.height, ratio);
  own.draw(app.shown);
  app.notes.draw(own.context);
}

/** @param {App} app @returns {Promise<Blob>} */
export function pngOf(app) {
  const { width, height, labels } = figureSize(app);
  const sheet = document.createElement("canvas");
  sheet.width = width * FIGURE_RATIO;
  sheet.height = height * FIGURE_RATIO;
  const c = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
  c.scale(FIGURE_RATIO, FIGURE_RATIO);
  drawFrame(app, c);
  c.globalAlpha = app.look.strength;
  withSharpPicture(app, (picture) => c.drawImage(picture.canvas, labels, FIGURE_TITLE, app.view.width, app.view.height));
  c.globalAlpha = 1;
  const above = document.createElement("canvas");
  drawOverlayOn(app, above, FIGURE_RATIO);
  c.drawImage(above, labels, FIGURE_TITLE, app.view.width, app.view.height);
  app.drawNow();
  return new Promise((done, fail) => sheet.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png"));
}

/** @param {App} app */
export function svgOf(app) {
  const { width, height, labels } = figureSize(app);
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  const frame = new SvgContext(ruler, 1);
  drawFrame(app, /** @type {any} */ (frame));
  let picture = "";
  withSharpPicture(app, ({ pixels, w, h }) => (picture = rectanglesOf(pixels, w, h, pixel(app.palette.css.back))));
  const above = new SvgContext(ruler, FIGURE_RATIO);
  drawOverlayOn(app, above.canvas, FIGURE_RATIO);
  app.drawNow();
  const { view } = app;
  return new Blob([
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<title>${escapedXml(byId("title").textContent)}</title>`, ...frame.out,
    `<clipPath id="plot"><rect width="${view.width}" height="${view.height}"/></clipPath>`,
    `<g transform="translate(${labels} ${FIGURE_TITLE})" clip-path="url(#plot)">`,
    `<g transform="scale(${1 / FIGURE_RATIO})" shape-rendering="crispEdges" opacity="${app.look.strength}">${picture}</g>`,
    ...above.out, "</g></svg>\n",
  ], { type: "image/svg+xml" });
}

/**
 * A picture as rectangles, one path for each colour. Adjacent equal lines of pixels become one band.
 * @param {Uint32Array} pixels
 * @param {number} w
 * @param {number} h
 * @param {number} back skipped
 */
function rectanglesOf(pixels, w, h, back) {
  const line = (/** @type {number} */ y) => pixels.subarray(y * w, (y + 1) * w);
  const alike = (/** @type {number} */ a, /** @type {number} */ b) => {
    const [one, other] = [line(a), line(b)];
    for (let x = 0; x < w; x++) if (one[x] !== other[x]) return false;
    return true;
  };
  /** @type {Map<number, string[]>} */
  const paths = new Map();
  for (let y = 0; y < h;) {
    let below = y + 1;
    while (below < h && alike(y, below)) below++;
    const row = line(y);
    for (let x = 0; x < w;) {
      let right = x + 1;
      while (right < w && row[right] === row[x]) right++;
      if (row[x] !== back) {
        let path = paths.get(row[x]);
        if (!path) paths.set(row[x], (path = []));
        path.push(`M${x} ${y}h${right - x}v${below - y}h${x - right}z`);
      }
      x = right;
    }
    y = below;
  }
  return [...paths].map(([color, path]) => `<path fill="${cssOf(color)}" d="${path.join("")}"/>`).join("");
}

/** A pixel as CSS text. @param {number} color */
function cssOf(color) {
  const rgb = ((color & 0xff) << 16) | (color & 0xff00) | ((color >>> 16) & 0xff);
  return `#${rgb.toString(16).padStart(6, "0")}`;
}
