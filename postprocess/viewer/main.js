// SPDX-License-Identifier: BSD-3-Clause
// Assembles the page: reads the data, owns the state, and draws only when something changed.

import { cannotBeShown } from "./guard.js";
import { Chains } from "./data/chain.js";
import { checkProgram, readStore } from "./data/decode.js";
import { shownName, trimmed } from "./data/format.js";
import { buildGroups, cycleGroup } from "./data/groups.js";
import { Focus, HighlightedRows } from "./data/highlight.js";
import { indexByKind, laneOfKind } from "./data/rows.js";
import { isFoldedAway, sectionOf } from "./data/sections.js";
import { exactly, NOTHING, patternWith, Search } from "./data/search.js";
import { Kind } from "./data/tables.js";
import { flagged } from "./data/values.js";
import { axisOf, rangeText } from "./view/axis.js";
import { rangeOfTime } from "./view/seek.js";
import { SHORTEST, View } from "./view/view.js";
import { hitAt } from "./draw/hit.js";
import { Labels } from "./draw/labels.js";
import { Layers } from "./draw/layers.js";
import { Look } from "./draw/look.js";
import { Notes } from "./draw/notes.js";
import { Overlay } from "./draw/overlay.js";
import { Overview } from "./draw/overview.js";
import { Picture } from "./draw/picture.js";
import { keepPristine } from "./panel/added.js";
import { addressOf, followAddress, showAddress } from "./panel/address.js";
import { Asked, listenToRequests } from "./panel/asked.js";
import { showBanner } from "./panel/banner.js";
import { showDetails } from "./panel/details.js";
import { fillHelp } from "./panel/help.js";
import { pressLegend, showLegend } from "./panel/legend.js";
import { showHover, showLines } from "./panel/lines.js";
import { Listing } from "./panel/listing.js";
import { listenToLook, lookChanged } from "./panel/look.js";
import { listenToPanel } from "./panel/panel.js";
import { listenToStart } from "./panel/start.js";
import { Views } from "./panel/views.js";
import { openThreads, showCallouts } from "./panel/welcome.js";
import { listenToPointer, listenToSearch, listenToTools, listenToWheel, showQuery } from "./input/input.js";
import { listenToKeys } from "./input/keys.js";
import { listenToOverview } from "./input/strip.js";
import { byId } from "./dom.js";
import { handle } from "./handle.js";
/**
 * @import {Call} from "./data/around.js"
 * @import {Step} from "./data/chain.js"
 * @import {Store} from "./data/decode.js"
 * @import {Group} from "./data/groups.js"
 * @import {Section} from "./data/sections.js"
 * @import {Query} from "./data/search.js"
 * @import {Shown} from "./draw/overlay.js"
 */

/** Minimum width in pixels of a span that the page goes to. */
const SEEN_MIN = 6;
/** Delay between the first picture and the search for deferred items, ms. */
const SEEN_FIRST = 200;

export class App {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    const kinds = indexByKind(store);
    this.groups = buildGroups(store, kinds);
    this.wakeups = laneOfKind(store, kinds, Kind.WAKEUP);
    this.ipis = laneOfKind(store, kinds, Kind.IPI);
    this.chains = new Chains(store, this.groups, this.wakeups);
    this.marks = flagged(store, laneOfKind(store, kinds, Kind.MARK));
    this.view = new View(store, this.groups[0].exec);
    this.highlight = new HighlightedRows(this.groups);
    this.search = new Search(store, this.highlight);
    this.focus = new Focus(store, this.search, this.highlight, this.groups[1]);
    this.look = new Look();
    this.layers = new Layers(this, () => (this.measured ? this.showDetails() : undefined, this.viewChanged()));
    this.picture = new Picture(this, byId("base"));
    this.overlay = new Overlay(this, byId("overlay"));
    this.labels = new Labels(this, byId("labels"), this);
    this.help = /** @type {HTMLDialogElement} */ (byId("help"));
    this.notes = new Notes(this, this);
    this.views = new Views(this.view, {
      now: () => addressOf(this), show: (address) => showAddress(this, address), changed: () => this.noteAddress(),
    });
    this.overview = new Overview(this, byId("overview"), () => this.asked.starts);
    this.axis = axisOf(store.meta.tracebase, this.view);
    /** The selected span, -1 for none. */
    this.selected = -1;
    /** The whole call, if it is selected. @type {Call | null} */
    this.call = null;
    /** The group of the row in which something was selected last. @type {Group | null} */
    this.home = null;
    /** The wakeups that led to the selected span, once requested. @type {Step[] | null} */
    this.chain = null;
    /** A range on the axis, from its earlier end. @type {{from: number, to: number} | null} */
    this.measured = null;
    /** True if the panel shows the table. */
    this.listing = false;
    this.list = new Listing(this);
    this.asked = new Asked(this);
    this.showArcs = true;
    this.showIpis = false;
    /** The position around which zooming by key happens. */
    this.pointer = 0;
    this.stale = { view: false, overlay: false };
    this.scheduled = false;
    /** Called when the contents of the address changed. */
    this.noteAddress = () => {};
    /** The number of times the picture was drawn, and the duration of the last, ms. */
    this.draws = 0;
    this.lastDraw = 0;
  }

  get palette() {
    return this.look.palette;
  }

  /** The current state to draw over the picture. @returns {Shown} */
  get shown() {
    const { axis, selected, call, measured, chain, showArcs, showIpis, asked: { path } } = this;
    return { axis, selected, call, measured, chain, path, showArcs, showIpis };
  }

  start() {
    byId("title").textContent = byId("title").title = shownName(this.store.meta.title);
    showBanner(this, byId("banner"));
    byId("empty").hidden = this.store.n > 0;
    fillHelp(this);
    this.layers.fill(byId("layers"));
    this.listen();
    lookChanged(this);
    this.takeSize();
    // An address determines the view; without one, the defaults apply.
    const { follow, shown } = followAddress(this);
    this.noteAddress = follow;
    if (!shown) openThreads(this);
    byId("busy").textContent = `${trimmed(this.overview.busy * 100, 1)}% busy`;
    this.drawNow();
    if (!shown) showCallouts(this);
    if (this.overlay.crossings.isDue) setTimeout(() => {
      this.overlay.crossings.find();
      this.viewChanged();
    }, SEEN_FIRST);
  }

  listen() {
    const overlay = byId("overlay");
    listenToWheel(this, overlay, byId("labels"));
    listenToPointer(this, overlay);
    listenToOverview(this, byId("overview"));
    listenToKeys(this);
    listenToLook(this);
    listenToPanel(this, byId("panel-edge"));
    listenToTools(this);
    listenToRequests(this);
    listenToStart(this);
    listenToSearch(this);
    byId("next-match").addEventListener("click", () => this.stepMatch(1));
    byId("previous-match").addEventListener("click", () => this.stepMatch(-1));
    byId("open-homes").addEventListener("click", () => this.search.closedHomes(this.groups).forEach((group) => this.toggleGroup(group)));
    byId("arcs").addEventListener("click", () => this.toggleArcs());
    byId("ipis").addEventListener("click", () => this.toggleIpis());
    byId("basetime").addEventListener("click", () => this.toggleRelative());
    byId("help-open").addEventListener("click", () => this.showHelp());
    new ResizeObserver(() => {
      if (this.takeSize()) this.drawNow();
    }).observe(byId("plot"));
  }

  /** Takes the size of the plot; false if it is unchanged. */
  takeSize() {
    const { view } = this;
    const { clientWidth: width, clientHeight: height } = byId("plot");
    if (width === 0 || height === 0) return false;
    const ratio = (window.devicePixelRatio || 1) * this.look.zoom;
    if (width === view.width && height === view.height && ratio === this.picture.ratio) return false;
    const isLower = height < view.height;
    view.width = width;
    view.height = height;
    this.pointer = Math.min(this.pointer || width / 2, width);
    this.picture.resize(width, height, ratio);
    this.overlay.resize(width, height, ratio);
    this.overview.resize(byId("overview").clientWidth, ratio);
    view.layOut(this.groups);
    if (isLower) this.keepInSight();
    return true;
  }

  /** Schedules a redraw after the range, the rows or the colours changed. */
  viewChanged() {
    this.stale.view = true;
    this.schedule();
  }

  /** Schedules a redraw of the overlay. */
  overlayChanged() {
    this.stale.overlay = true;
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (this.stale.view) {
        this.drawNow();
        this.noteAddress();
      } else if (this.stale.overlay) this.drawOverlay();
      this.stale.overlay = false;
    });
  }

  drawNow() {
    const began = performance.now();
    const { view } = this;
    this.stale.view = this.stale.overlay = false;
    view.chosen = this.asked.chosen;
    view.freshen(this.groups);
    this.axis = axisOf(this.store.meta.tracebase, view);
    this.picture.draw(this.axis);
    this.drawOverlay();
    this.overview.draw();
    this.labels.draw();
    showLines(this);
    this.draws++;
    this.lastDraw = performance.now() - began;
  }

  /** Draws the overlay over the picture. */
  drawOverlay() {
    this.overlay.draw(this.shown);
    this.notes.draw(this.overlay.context);
  }

  /** Updates the panel to the current selection, table or measured range. */
  showDetails() {
    showDetails(this, byId("details"));
  }

  /** Called when the view has rested for a while. */
  rested() {
    if (this.view.order(this.groups)) this.viewChanged();
    byId("overlay").ariaLabel = `Timeline: ${rangeText(this.view)}`;
    showLegend(this, byId("legend"));
    if (!this.listing || this.selected >= 0) return;
    this.list.range = null;
    // An unchanged list is not replaced: the user may be dragging over it.
    if (this.list.key !== this.list.shown) this.showDetails();
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    showHover(this, x < 0 ? null : hitAt(this, x, y));
  }

  /** @param {number} i @param {Group} [group] the group of the row that it is on */
  select(i, group) {
    this.selected = this.view.kept = i;
    this.home = group ?? this.home;
    this.notes.selected = this.call = this.chain = null;
    this.showDetails();
    this.overlayChanged();
  }

  /** Shows the totals of a range, or closes them. @param {{from: number, to: number} | null} range */
  measure(range) {
    this.measured = range;
    // The totals of the range take the place of requests in the panel.
    if (range) this.asked.open = false;
    this.select(-1);
  }

  /** Updates the page after a note was selected or deselected. */
  noteSelected() {
    this.selected = this.view.kept = -1;
    this.chain = null;
    this.showDetails();
    this.overlayChanged();
  }

  /** The span under a point of the picture. @param {number} x @param {number} y */
  hitAt(x, y) {
    return hitAt(this, x, y);
  }

  /** Remembers the view for the way back. */
  remember() {
    this.views.remember();
  }

  /** The group on whose row a span is shown: that of the last selection, if it is open and has the span. @param {number} i */
  homeOf(i) {
    const having = this.groups.filter((g) => !g.hidden && g.rowOf(i) >= 0);
    const open = having.filter((g) => !g.collapsed);
    return open.find((g) => g === this.home) ?? open[0] ?? having[0];
  }

  /** The shift in time of a span on the row where it is shown. @param {number} i */
  shiftOf(i) {
    const home = this.homeOf(i);
    return home ? this.view.shiftOf(home, home.rowOf(i)) : 0;
  }

  /** The range on the axis of a span, or of the call selected with it. @param {number} i @returns {[number, number]} */
  placeOf(i) {
    const shift = this.shiftOf(i);
    if (this.call && i === this.selected) return [this.call.from - shift, this.call.to - shift];
    const from = this.store.start[i] - shift;
    return [from, from + this.store.dur[i]];
  }

  /** Zooms to the selected span, or the call selected with it, and scrolls to its row; without a selection, to the measured range. */
  fitSelection() {
    const { selected, view } = this;
    if (selected < 0) {
      this.fitMeasured();
      return;
    }
    this.views.remember();
    const [from, to] = this.placeOf(selected);
    const room = Math.max((to - from) * 0.1, SHORTEST / 2);
    view.show(from - room, to + room);
    this.revealRow(selected);
    this.viewChanged();
  }

  fitMeasured() {
    if (!this.measured) return;
    this.views.remember();
    this.view.show(this.measured.from, this.measured.to);
    this.viewChanged();
  }

  /** @param {Query} query */
  find(query) {
    const range = rangeOfTime(this.view, this.store.meta.tracebase, query.pattern);
    this.search.find(range ? NOTHING : query);
    if (range && this.view.relative) this.toggleRelative();
    if (range) this.view.show(range.from, range.to);
    showQuery(query);
    pressLegend(query, byId("legend"));
    this.showDetails();
    this.viewChanged();
  }

  /** Searches for all spans of one name. @param {number} name its index */
  searchName(name) {
    this.find({ ...NOTHING, pattern: patternWith(this.search.query.pattern, exactly(this.store.names[name])) });
  }

  /** @param {number} direction */
  stepMatch(direction) {
    const { begin, end, t0, t1, relative } = this.view;
    const i = this.search.step(direction, direction > 0 ? (relative ? begin : t0) : (relative ? end : t1));
    if (i >= 0) this.goTo(i);
  }

  /** Follows the wakeups back from the selected span. */
  askWhy() {
    if (this.selected < 0) return;
    this.chain = this.chains.leadingTo(this.selected);
    this.showDetails();
    this.overlayChanged();
  }

  /** Selects a span and scrolls it into view. @param {number} i */
  goTo(i) {
    this.bringIntoSight(i);
    this.select(i);
  }

  /** @param {number} i */
  bringIntoSight(i) {
    const { view } = this;
    const [from, to] = this.placeOf(i);
    const middle = (from + to) / 2;
    const dur = Math.max(to - from, 1);
    this.views.remember();
    // A span that is visible where it is does not move.
    if (from < view.t0 || to > view.t1 || dur * view.scale < SEEN_MIN) {
      const span = Math.min(Math.max(view.t1 - view.t0, dur * 1.5), (dur * view.width) / SEEN_MIN);
      view.show(middle - span / 2, middle + span / 2);
    }
    this.revealRow(i);
    this.viewChanged();
  }

  /** Scrolls the row of the selection, or of the request shown, into view: there may be less room for rows than before. */
  keepInSight() {
    const group = this.selected < 0 ? undefined : this.homeOf(this.selected);
    const item = this.selected < 0 ? this.asked.item : group && this.view.itemsOf.get(group)?.[group.rowOf(this.selected)];
    if (item) this.view.reveal(item);
  }

  /** Scrolls a row of a span into view, opening its group if no open group has it. @param {number} i */
  revealRow(i) {
    const group = this.homeOf(i);
    if (!group) return;
    if (group.collapsed) this.toggleGroup(group);
    const section = sectionOf(group, group.rowOf(i));
    if (section && isFoldedAway(group, group.rowOf(i))) this.toggleSection(section);
    this.view.kept = i;
    if (this.view.chosen?.group === group && !this.view.chosen.rows.includes(group.rowOf(i))) {
      this.asked.allThreads = true;
      this.view.chosen = null;
    }
    this.view.freshen(this.groups);
    const item = this.view.itemsOf.get(group)?.[group.rowOf(i)];
    if (item) this.view.reveal(item);
  }

  /** @param {Group} group */
  toggleGroup(group) {
    cycleGroup(group);
    this.view.order(this.groups);
    this.view.layOut(this.groups);
    this.viewChanged();
  }

  /** Folds or opens a section of rows. @param {Section} section */
  toggleSection(section) {
    section.folded = !section.folded;
    this.view.layOut(this.groups);
    this.viewChanged();
  }

  /** Pins a row above all others, or unpins it. @param {Group} group @param {number} row */
  pinRow(group, row) {
    this.view.pin(group, row);
    this.view.layOut(this.groups);
    this.viewChanged();
  }

  /** Toggles the highlight of a row; with `alike`, also of all rows with similar names. @param {Group} group @param {number} row @param {boolean} alike */
  highlightRow(group, row, alike) {
    if (alike) this.highlight.toggleAlike(group, row);
    else this.highlight.toggle(group, row);
    this.search.highlightChanged();
    this.view.layOut(this.groups);
    this.viewChanged();
  }

  /** Switches between rows that count time from their own start and a common time. A measured range is valid in one of these only. */
  toggleRelative() {
    this.views.remember();
    this.view.toggleRelative(this.groups);
    this.measured = null;
    this.showDetails();
    this.viewChanged();
  }

  toggleArcs() {
    this.showArcs = !this.showArcs;
    byId("arcs").ariaPressed = String(this.showArcs);
    showLegend(this, byId("legend"));
    this.overlayChanged();
  }

  toggleIpis() {
    this.showIpis = !this.showIpis;
    byId("ipis").ariaPressed = String(this.showIpis);
    showLegend(this, byId("legend"));
    this.overlayChanged();
  }

  toggleLegend() {
    byId("legend").hidden = !byId("legend").hidden;
    byId("toggle-legend").ariaPressed = String(!byId("legend").hidden);
    showLegend(this, byId("legend"));
  }

  startSearch() {
    byId("pattern").focus();
    byId("pattern").select();
  }

  showHelp() {
    this.help.showModal();
  }

  forgetSearch() {
    this.find({ ...NOTHING, ignoreCase: this.search.query.ignoreCase });
  }
}

async function main() {
  checkProgram(document);
  const [store] = await Promise.all([readStore(document), keepPristine()]);
  for (const element of document.querySelectorAll("script.ku-data")) element.remove();
  const app = new App(store);
  app.start();
  byId("opening").remove();
  Object.assign(/** @type {any} */ (window).__ku, handle(app), { ready: true, readyAt: performance.now() });
}

/** @type {any} */ (window).__ku = { ready: false };
/** @type {any} */ (window).__ku.whenReady = main().catch((e) => {
  cannotBeShown(e.message);
  throw e;
});
