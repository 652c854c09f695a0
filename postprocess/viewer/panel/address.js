// SPDX-License-Identifier: BSD-3-Clause
// The view in the address of the page: a bookmark, or an address sent with the file, restores the view.
//
// `#t=41.1..41.4&open=CPU,PID&find=read&min=20`: the range in seconds from the base minute, the open groups,
// the search; `#request=121@8.11756..8.13955`, as `kutrace_control why` prints it: a request, which fills the picture; then the table or the requests shown, pinned and highlighted rows, the layers, the scrolled rows, whether rows count from their own starts, and the
// look, if they differ from the defaults. If the range or the groups are absent or malformed, they stay unchanged.
// Additions to the page (notes, saved views) go with the address into the browser's history, so that they survive
// a reload of the page.

import { secondsText, UNITS_PER_SECOND } from "../data/format.js";
import { litText, rowsOfText, rowsText, showLit } from "../data/highlight.js";
import { ofOriginal } from "../data/original.js";
import { foldAsSaid, foldedText } from "../data/sections.js";
import { LOOK_PARTS, LOOKS } from "../draw/look.js";
import { addedTo, broughtAlong, takeAdded } from "./added.js";
import { lookChanged } from "./look.js";
/** @import {App} from "../main.js" */

/** Time that a view must rest before the address follows it, ms. */
const ADDRESS_REST = 250;

/** @param {App} app */
export function addressOf(app) {
  const { view, groups, search } = app;
  const { pattern, min, max, invert, ignoreCase } = search.query;
  const open = groups.filter((group) => !group.collapsed).map((group) => group.name);
  const parts = { t: `${secondsText(Math.round(view.t0))}..${secondsText(Math.round(view.t1))}`, open: open.join() };
  const look = LOOK_PARTS.filter((part) => app.look.parts[part] !== LOOKS[part][0]).map((part) => [part, app.look.parts[part]]);
  const query = { from: view.relative ? "rows" : "", rows: view.scroll > 0 ? String(Math.round(view.scroll)) : "", find: pattern, min: min, max: max, not: invert ? "1" : "", case: ignoreCase ? "ignore" : "" };
  const rows = { ...app.list.address(app.listing), ...app.asked.address, pin: rowsText(view.pins), fold: foldedText(groups), lit: litText(groups), only: groups.filter((group) => group.onlyLit).map((group) => group.name).join(), draw: app.layers.text() };
  const said = Object.entries({ ...rows, ...query }).filter(([, value]) => value !== "");
  // Readable for people: characters without another meaning there are not escaped.
  return `#${new URLSearchParams([...Object.entries(parts), ...said, ...look])}`.replaceAll("%2C", ",").replaceAll("%40", "@");
}

/** Shows the view of an address. @param {App} app @param {string} hash */
export function showAddress(app, hash) {
  const { view, groups } = app;
  const parts = new URLSearchParams(hash.slice(1));
  // The layers come first, since they determine the groups.
  app.layers.take(parts.get("draw") ?? "");
  const open = parts.get("open")?.split(",");
  if (open) for (const group of groups) group.collapsed = !open.includes(group.name);
  foldAsSaid(groups, parts.get("fold") ?? "");
  view.pins = rowsOfText(groups, parts.get("pin") ?? "");
  showLit(app.highlight, parts.get("lit") ?? "", parts.get("only") ?? "");
  app.listing = app.list.take(parts);
  app.asked.take(parts);
  const relative = parts.get("from") === "rows";
  if (relative !== view.relative) app.measured = null;
  view.relative = relative;
  const [t0, t1] = (parts.get("t") ?? "").split("..").map((text) => Math.round(Number(text) * UNITS_PER_SECOND));
  // The panel takes its room from the range in sight, so it comes first.
  app.showDetails();
  if (t0 < t1) view.show(t0, t1);
  view.order(groups);
  view.layOut(groups);
  view.scrollTo(Number(parts.get("rows")) || 0);
  for (const part of LOOK_PARTS) app.look.set(part, parts.get(part) ?? LOOKS[part][0]);
  lookChanged(app);
  app.find({
    pattern: parts.get("find") ?? "", min: parts.get("min") ?? "", max: parts.get("max") ?? "",
    invert: parts.has("not"), ignoreCase: parts.get("case") === "ignore",
  });
  app.asked.taken();
}

/** Lets the address follow the view, and the view an address that is entered; returns whether it has shown one. @param {App} app */
export function followAddress(app) {
  const brought = { ...ofOriginal(app.store), ...broughtAlong(app) };
  takeAdded(app, history.state ?? brought);
  const address = location.hash !== "" ? location.hash : brought.address;
  const shown = typeof address === "string";
  if (shown) showAddress(app, address);
  // By now the page may have replaced the entered address by its own.
  window.addEventListener("hashchange", (e) => showAddress(app, new URL(e.newURL).hash));
  let timer = 0;
  const follow = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(addedTo(app), "", addressOf(app));
      app.rested();
    }, ADDRESS_REST);
  };
  return { follow, shown };
}
