// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about what stands around the picture: look, notes, views, strip, table, figures.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// A function that runs in the page has its own EVENT, the same: the page's scripts share one scope.
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { clickIn, fillIn, openStart } from "./menu.mjs";

/** Colours may differ by this much, of 255, and this many of a thousand pixels by more than that: fonts are not the same everywhere. */
const COLOR_SLACK = 40;
const PIXEL_SLACK = 12;

const ask = (page, question, argument) => page.evaluate(question, argument);
const view = (page) => ask(page, () => __ku.view());
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const plot = (page) => page.locator("#overlay").boundingBox();
const ready = (page) => page.waitForFunction(() => window.__ku?.ready === true);

/** Waits until the address has followed the view, and the browser's history what was added. */
const rest = (page) => page.waitForFunction(() => {
  const { app } = __ku;
  return location.hash === addressOf(app) && JSON.stringify(history.state) === JSON.stringify(addedTo(app));
});

/** Presses a key that gives a file away, and returns the file's path and name. */
async function given(page, key, as) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press(key)]);
  if (as) await download.saveAs(as);
  return { path: as ?? (await download.path()), name: download.suggestedFilename() };
}

/** Shows the middle of the trace so that single spans are wide, and returns where a wide span of a row lies in the window. */
async function wideSpan(page, row = 0) {
  const box = await plot(page);
  const at = await ask(page, (row) => {
    const { begin, end } = __ku.view();
    __ku.show((begin + end) / 2, (begin + end) / 2 + 3000);
    const { t0, t1, width } = __ku.view();
    const place = __ku.rows().filter((r) => r.row >= 0)[row];
    for (let x = 50; x < width - 400; x += 3) {
      const hit = __ku.hit(x, place.y + place.h / 2);
      if (hit && hit.event >= EVENT.TRAP && hit.dur * (width / (t1 - t0)) > 30 && hit.start > t0) {
        const middle = ((hit.start + hit.dur / 2 - t0) / (t1 - t0)) * width;
        return { x: middle, y: place.y + place.h / 2, hit: __ku.hit(middle, place.y + place.h / 2) };
      }
    }
    return null;
  }, row);
  assert.ok(at?.hit, "no wide span in the middle of the trace");
  return { ...at, windowX: box.x + at.x, windowY: box.y + at.y };
}

async function shiftClick(page, x, y) {
  await page.keyboard.down("Shift");
  await page.mouse.click(x, y);
  await page.keyboard.up("Shift");
  await settle(page);
}

async function dragFromTo(page, [x0, y0], [x1, y1]) {
  await page.mouse.move(x0, y0);
  await page.mouse.down();
  await page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2);
  await page.mouse.move(x1, y1);
  await page.mouse.up();
  await settle(page);
}

/** Texts of the page, outside of the picture, that contrast less with their ground than is wanted; what is switched off may. */
const faintTexts = (page, wanted) => ask(page, (wanted) => {
  const numbers = (css) => css.match(/[\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], ground) => [r, g, b].map((value, k) => value * a + ground[k] * (1 - a));
  const hex = (color) => `#${color.map((value) => Math.round(value).toString(16).padStart(2, "0")).join("")}`;
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.textContent.trim() === "" || !element.checkVisibility({ visibilityProperty: true }) || element.closest("button:disabled, script")) continue;
    const around = [];
    for (let one = element; one; one = one.parentElement) around.unshift(one);
    const ground = around.reduce((below, one) => over(numbers(getComputedStyle(one).backgroundColor), below), [255, 255, 255]);
    const contrast = contrastOf(hex(over(numbers(getComputedStyle(element).color), ground)), hex(ground));
    if (contrast < wanted) faint.push(`${element.id || element.className || element.tagName}: ${node.textContent.trim().slice(0, 30)}: ${contrast}`);
  }
  return faint;
}, wanted);

export const tools = {
  async look(page) {
    const look = () => ask(page, () => __ku.look());
    const ground = () => ask(page, () => {
      const { picture } = __ku.app;
      return [getComputedStyle(document.body).backgroundColor, cssOf(picture.pixels[picture.pixels.length - 1])];
    });
    const hex = (css) => `#${css.match(/\d+/g).map((v) => Number(v).toString(16).padStart(2, "0")).join("")}`;
    const seen = new Set();
    // Something of all there is: a search, a row that is highlighted, the table.
    await ask(page, () => {
      __ku.app.highlightRow(__ku.app.groups[0], 1, false);
      __ku.app.find({ ...NOTHING, pattern: "read" });
      toggleList(__ku.app);
    });
    for (const [scheme, theme] of [["dark", "dark"], ["light", "light"]]) {
      await page.emulateMedia({ colorScheme: scheme });
      await settle(page);
      assert.equal((await look()).used, theme, "the system's theme is not followed");
    }
    for (let i = 0; i < 3; i++) {
      const before = (await look()).used;
      await page.keyboard.press("t");
      await settle(page);
      assert.notEqual((await look()).used, before, "T changes nothing");
      const [css, drawn] = await ground();
      assert.equal(hex(css), drawn, "page and picture differ in their ground");
      const { used } = await look();
      await ask(page, () => __ku.app.showHelp());
      assert.deepEqual(await faintTexts(page, used === "contrast" ? 7 : 4.5), [], used);
      await page.keyboard.press("Escape");
      seen.add(drawn);
    }
    assert.equal(seen.size, 3, "light, dark and high contrast have three grounds");
    assert.equal((await look()).theme, "auto");
    const shades = () => ask(page, () => __ku.app.palette.pixels.flat().length + String(__ku.app.palette.pixels[Kind.TRAP]));
    const usual = await shades();
    await page.keyboard.press("c");
    assert.notEqual(await shades(), usual, "C does not change the colours");
    const before = await plot(page);
    await page.keyboard.press(">");
    await settle(page);
    const size = () => ask(page, () => document.querySelector("header").getBoundingClientRect().height);
    const larger = await size();
    await page.keyboard.press("<");
    await settle(page);
    assert.ok(larger > (await size()) * 1.1, "> does not enlarge the text");
    assert.deepEqual(await plot(page), before);
    await page.locator("#view-open").click();
    await page.selectOption("#look-aspect", "2:1");
    await settle(page);
    const shaped = await plot(page);
    assert.ok(Math.abs(shaped.width / shaped.height - 2) < 0.02, JSON.stringify(shaped));
    const rows = await ask(page, () => [__ku.view().width, __ku.view().height]);
    assert.ok(Math.abs(rows[0] - shaped.width) <= 1 && Math.abs(rows[1] - shaped.height) <= 1, "the picture has another shape");
    await page.keyboard.press("Escape");
    await page.keyboard.press("x");
    assert.equal(await ask(page, () => getComputedStyle(document.querySelector("#base")).opacity), "0.3");
    await rest(page);
    await page.reload();
    await ready(page);
    assert.deepEqual(await look(), { theme: "auto", colors: "safe", text: "100", aspect: "2:1", fade: "yes", grid: "yes", wheel: "zoom", used: "light" });
    const lines = () => ask(page, () => {
      const { picture, palette } = __ku.app;
      return picture.backLine.filter((color) => color === palette.grid).length;
    });
    const gridded = await lines();
    await page.keyboard.press("g");
    await settle(page);
    assert.ok(gridded > 3 && (await lines()) === 0, `${gridded} grid lines, then ${await lines()}`);
    // Pointing still finds what is drawn when everything is larger.
    for (let i = 0; i < 4; i++) await page.keyboard.press(">");
    await page.keyboard.press("k");
    await settle(page);
    const zoom = await ask(page, () => __ku.app.look.zoom);
    assert.ok(zoom > 1.5);
    const box = await plot(page);
    const place = await ask(page, () => {
      const { begin, end, width } = __ku.view();
      __ku.show((begin + end) / 2, (begin + end) / 2 + 1200);
      const row = __ku.rows().find((r) => r.row === 0);
      return { x: width / 2, y: row.y + row.h / 2, hit: __ku.hit(width / 2, row.y + row.h / 2) };
    });
    await page.mouse.move(box.x + place.x * zoom, box.y + place.y * zoom);
    assert.equal((await page.locator("#hover").textContent()).split("   (")[0], place.hit.text);
    return {};
  },

  async notes(page) {
    const notes = () => ask(page, () => __ku.notes());
    const bubbles = () => ask(page, () => __ku.bubbles());
    const box = await plot(page);
    const span = await wideSpan(page);
    await shiftClick(page, span.windowX, span.windowY);
    let [note] = await notes();
    assert.deepEqual([note.i, note.group], [span.hit.i, "CPU"]);
    assert.ok(note.text.includes(span.hit.name), note.text);
    // What is typed then is its text, below what it says already.
    await page.keyboard.type("why?");
    await page.keyboard.press("Escape");
    assert.equal((await notes())[0].text, `${note.text}\nwhy?`);
    [note] = await notes();
    let [bubble] = await bubbles();
    // The panel has taken some of the plot's width.
    const { t0, t1, width } = await view(page);
    const tip = ((note.from - t0) / (t1 - t0)) * width;
    assert.ok(Math.abs(bubble.tipX - tip) < 1 && Math.abs(bubble.tipY - span.y) < 1, JSON.stringify([bubble, span]));
    // Is there ink in the bubble's edge?
    const inked = await ask(page, ({ x, y, w }) => {
      const copy = new OffscreenCanvas(w, 6).getContext("2d");
      copy.drawImage(__ku.app.overlay.canvas, -x, -y + 3);
      return copy.getImageData(0, 0, w, 6).data.some((v, k) => k % 4 === 3 && v > 200);
    }, { x: Math.round(bubble.x), y: Math.round(bubble.y), w: Math.round(bubble.w) });
    assert.ok(inked, "the note is not drawn");
    // The bubble follows a drag, its tip stays.
    const hold = [box.x + bubble.x + 10, box.y + bubble.y + 8];
    const range = await view(page);
    await dragFromTo(page, hold, [hold[0] + 80, hold[1] + 150]);
    const [moved] = await bubbles();
    assert.ok(Math.abs(moved.x - bubble.x - 80) < 2 && Math.abs(moved.y - bubble.y - 150) < 2, JSON.stringify([bubble, moved]));
    assert.equal(moved.tipX, bubble.tipX);
    assert.deepEqual(await view(page), range, "dragging a note moves the view");
    // The tip goes over to another span.
    const other = await wideSpan(page, 1);
    await ask(page, ([t0, t1]) => __ku.show(t0, t1), [range.t0, range.t1]);
    await settle(page);
    const [{ tipX, tipY }] = await bubbles();
    await dragFromTo(page, [box.x + tipX, box.y + tipY], [other.windowX, other.windowY]);
    [note] = await notes();
    assert.equal(note.i, (await ask(page, ([x, y]) => __ku.hit(x, y), [other.x, other.y])).i, "the tip does not go to the other span");
    // Text by keyboard: as text, whatever it is.
    await page.locator("#overlay").focus();
    await page.keyboard.press("m");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("</script><img src=x onerror=window.broken=1>\nwhy here?");
    await page.keyboard.press("Escape");
    assert.equal((await notes())[0].text, "</script><img src=x onerror=window.broken=1>\nwhy here?");
    [bubble] = await bubbles();
    await page.keyboard.press("Control+ArrowRight");
    await settle(page);
    assert.ok(Math.abs((await bubbles())[0].x - bubble.x - 8) < 0.01, "Ctrl and an arrow do not move the note");
    // A length is measured on the edges of spans, and kept.
    const edges = await wideSpan(page);
    await page.keyboard.down("Shift");
    const now = await view(page);
    const half = (edges.hit.dur * now.width) / (now.t1 - now.t0) / 2;
    await dragFromTo(page, [edges.windowX - half + 3, edges.windowY], [edges.windowX + half - 3, edges.windowY]);
    await page.keyboard.up("Shift");
    const measured = await ask(page, () => __ku.measured());
    assert.deepEqual([measured.from, measured.to], [edges.hit.start, edges.hit.start + edges.hit.dur], "measuring misses the edges");
    await page.keyboard.press("m");
    const lengths = (await notes()).filter((n) => n.to > n.from);
    assert.deepEqual(lengths.map((n) => [n.from, n.to]), [[measured.from, measured.to]]);
    assert.ok((await page.locator("#details table").count()) > 0, "the totals give way to the length that is kept");
    // Again, M edits its text; another length stands on a line of its own, and neither covers a note.
    await page.keyboard.press("m");
    await page.keyboard.type("the edges");
    await page.keyboard.press("Escape");
    assert.match((await notes()).find((n) => n.to > n.from).text, /^[\d.]+ (ns|\u00b5s|ms)\nthe edges$/);
    await ask(page, ({ from, to }) => {
      __ku.app.notes.addLength(from + 1, to);
      __ku.app.noteAddress();
    }, measured);
    await settle(page);
    const places = await bubbles();
    for (const a of places) {
      const over = places.filter((b) => b !== a && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h);
      assert.deepEqual(over, [], "notes cover each other");
    }
    // All of it outlives loading the page anew; then one goes.
    const all = await notes();
    await rest(page);
    await page.reload();
    await ready(page);
    assert.deepEqual(await notes(), all);
    await page.keyboard.press("n");
    await page.keyboard.press("Delete");
    assert.equal((await notes()).length, all.length - 1);
    assert.equal(await ask(page, () => window.broken), undefined);
    return { notes: all.length };
  },

  async copy(page, { folder, name }) {
    const state = () => ask(page, () => [__ku.view(), __ku.notes(), __ku.views(), __ku.look(), __ku.search().pattern]);
    const span = await wideSpan(page);
    await shiftClick(page, span.windowX, span.windowY);
    await page.keyboard.press("m");
    await page.keyboard.type("</script><!-- <b>");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Shift+Digit3");
    await page.keyboard.press("s");
    await page.keyboard.press("t");
    await page.fill("#pattern", "page_fault");
    await rest(page);
    const wanted = await state();
    const files = [];
    for (let round = 0; round < 2; round++) {
      const file = join(folder, `copy${round}.html`);
      const { name: suggested } = await given(page, "Control+s", file);
      assert.equal(suggested, name);
      await page.goto(pathToFileURL(file).href);
      await ready(page);
      const is = await state();
      for (const v of [wanted[0], is[0]]) for (const edge of ["t0", "t1"]) v[edge] = Math.round(v[edge]);
      assert.deepEqual(is, wanted);
      files.push(readFileSync(file, "utf8"));
    }
    assert.equal(files[0], files[1], "a copy of a copy is another page");
    await page.keyboard.press("Escape");
    await page.locator("#overlay").focus();
    await page.keyboard.press("0");
    await page.keyboard.press("3");
    await settle(page);
    const { t0, t1 } = await view(page);
    assert.ok(t0 < span.hit.start && t1 > span.hit.start && t1 - t0 < 4000, "a saved view is lost in the copy");
    return { bytes: files[0].length };
  },

  async kept(page, { notes: [{ text, span }], views }) {
    assert.deepEqual(await ask(page, () => __ku.views()), views);
    const notes = await ask(page, () => __ku.notes());
    assert.deepEqual(notes.map((note) => note.text), [text]);
    const { start, dur, cpu, pid, event } = await ask(page, (i) => __ku.span(i), notes[0].i);
    assert.deepEqual([start, dur, cpu, pid, event], span);
    await page.keyboard.press("n");
    await settle(page);
    assert.equal((await ask(page, () => __ku.bubbles())).length, 1, "the note stands nowhere");
    return { notes: notes.length };
  },

  async views(page) {
    const width = (v) => v.t1 - v.t0;
    const press = async (...keys) => {
      for (const key of keys) await page.keyboard.press(key);
      await settle(page);
      return view(page);
    };
    const whole = await view(page);
    const first = await press("w", "w", "d", "Shift+Digit1");
    await press("w", "w", "w", "Shift+Digit2");
    const shown = await press("1");
    assert.ok(Math.abs(shown.t0 - first.t0) <= 1 && Math.abs(shown.t1 - first.t1) <= 1, "1 does not show the first view");
    const second = await press("2");
    assert.ok(width(second) < width(first) / 2);
    assert.ok(Math.abs(width(await press("Backspace")) - width(first)) <= 2, "Backspace does not go back");
    await press("0");
    await clickIn(page, "view", "#back");
    assert.ok(Math.abs(width(await view(page)) - width(first)) <= 2, "the button does not go back from the whole");
    await page.locator("#view-open").click();
    await page.getByLabel("Name of view 2").fill("the <i>slow</i> one");
    await page.click("#save-view");
    await page.getByTitle("Forget view 1").click();
    assert.deepEqual((await ask(page, () => __ku.views())).map((v) => v.number), [2, 3]);
    await rest(page);
    await page.reload();
    await ready(page);
    assert.deepEqual((await ask(page, () => __ku.views())).map((v) => v.number), [2, 3]);
    assert.equal((await ask(page, () => __ku.views()))[0].name, "the <i>slow</i> one");
    assert.ok(width(whole) > 0);
    return {};
  },

  async strip(page) {
    const box = await page.locator("#overview").boundingBox();
    // The bars come to as much as the CPUs' spans do.
    const [busy, wanted] = await ask(page, () => {
      const { begin, end } = __ku.view();
      let busy = 0;
      for (let i = 0; i < __ku.counts.spans; i++) {
        const { event, pid, dur } = __ku.span(i);
        if (event >= EVENT.TRAP && !(event >= EVENT.USER && pid === 0) && !(event >= EVENT.LOST && event < EVENT.KERNEL)) busy += dur;
      }
      return [__ku.app.overview.busy, busy / ((end - begin) * __ku.counts.cpus)];
    });
    assert.ok(Math.abs(busy - wanted) < 1e-3, `${busy} busy, ${wanted} by its spans`);
    for (let i = 0; i < 6; i++) await page.keyboard.press("w");
    await page.mouse.click(box.x + box.width * 0.75, box.y + 10);
    await settle(page);
    const middle = (v) => ((v.t0 + v.t1) / 2 - v.begin) / (v.end - v.begin);
    assert.ok(Math.abs(middle(await view(page)) - 0.75) < 0.01, "a click does not move the view");
    await dragFromTo(page, [box.x + box.width * 0.75, box.y + 10], [box.x + box.width * 0.25, box.y + 10]);
    assert.ok(Math.abs(middle(await view(page)) - 0.25) < 0.01, "a drag does not move the view");
    // Ticks lie where matches begin, and nowhere else.
    await page.fill("#pattern", "^mark_");
    await settle(page);
    const ticks = await ask(page, () => {
      const { overview, search, store, view, palette } = __ku.app;
      const copy = new OffscreenCanvas(overview.canvas.width, 1).getContext("2d");
      copy.drawImage(overview.canvas, 0, -33);
      const seen = new Uint32Array(copy.getImageData(0, 0, overview.canvas.width, 1).data.buffer);
      const color = pixel(palette.css.measure);
      const wanted = new Set([...search.ids].map((i) => Math.floor(((store.start[i] - view.begin) / (view.end - view.begin)) * overview.width)));
      return { drawn: [...seen].flatMap((c, x) => (c === color ? [x] : [])), wanted: [...wanted] };
    });
    assert.ok(ticks.wanted.length > 3);
    assert.deepEqual(ticks.drawn, ticks.wanted.sort((a, b) => a - b));
    return { ticks: ticks.drawn.length };
  },

  /** What the page says of each system call. */
  async calls(page) {
    return ask(page, () => {
      const { store } = __ku.app;
      const { n, start, dur, pids, pid, events, event, kind } = store;
      const said = [];
      for (let i = 0; i < n; i++) {
        if (kind[i] === Kind.SYSCALL) said.push([start[i], dur[i], pids[pid[i]], events[event[i]], callText(store, i)]);
      }
      return said;
    });
  },

  /** Three spans of calls: a piece, the rest of it, and a call of unknown argument. */
  async returns(page) {
    const panel = async (i) => {
      await ask(page, (i) => __ku.app.select(i), i);
      return page.locator("#details").innerText();
    };
    const [piece, rest, begun] = [await panel(0), await panel(2), await panel(3)];
    assert.ok(piece.includes("write(16)...") && !/Returned/.test(piece), piece);
    assert.match(rest, /write\(16\)=9[^]*Returned\s+9\n/);
    assert.ok(begun.includes("write()=3") && !/Argument/.test(begun), begun);
    const found = (pattern) => ask(page, (pattern) => {
      __ku.app.find({ ...__ku.app.search.query, pattern });
      return __ku.search().count;
    }, pattern);
    const counts = [];
    for (const pattern of ["=0", "=null", "write\\(16\\)\\.\\.\\.", "=9", "write\\(\\)", "write\\("]) counts.push(await found(pattern));
    assert.deepEqual(counts, [0, 0, 1, 1, 1, 3]);
    await found("");
    const csv = await ask(page, () => csvOf(__ku.app, 0, 1e9).text());
    const columns = csv.trim().split("\r\n").slice(1).map((line) => line.split(",").slice(6, 8).join());
    assert.deepEqual(columns, ["16,", "0,0", "16,9", ",3"]);
    await ask(page, () => __ku.app.select(-1));
    await page.keyboard.press("v");
    await page.keyboard.press("0");
    await page.locator("#details", { hasText: "write(16)..." }).waitFor();
    const table = await page.locator("#details").innerText();
    assert.ok(table.includes("write(16)...") && table.includes("write()=3") && !table.includes("=0"), table);
    return {};
  },

  /** The chain of each wait: its times have one sign, and none if they are nothing. */
  /** The details of every kind of span in a trace of a stock kernel. */
  async stock(page, { unseen }) {
    const banner = await page.locator("#banner").textContent();
    for (const text of unseen) assert.ok(banner.includes(text), `${text}: ${banner}`);
    const shown = await ask(page, () => {
      const { app } = __ku;
      const { store } = app;
      const seen = {};
      for (let i = 0; i < store.n; i++) {
        const untimed = store.kind[i] === Kind.TRAP && store.dur[i] === 0;
        const kind = untimed ? "untimed" : store.kind[i];
        if ((seen[kind] ??= []).length >= 20) continue;
        app.select(i);
        const [said, ...lines] = [document.querySelector("#details p").textContent, ...document.querySelectorAll("#details th")];
        seen[kind].push({ said, lines: lines.map((line) => line.textContent), dur: durationText(store.dur[i]) });
      }
      return seen;
    });
    assert.ok(shown.untimed, "no fault of which the length is not known");
    for (const { said, lines } of shown.untimed) {
      assert.ok(!lines.includes("Duration") && !lines.includes("End"), lines.join());
      assert.match(said, /^The fault page_fault came on CPU \d+, while .*\.$/);
    }
    const { USER, SYSCALL, WAIT } = await ask(page, () => Kind);
    for (const kind of [USER, SYSCALL, WAIT]) {
      assert.ok(shown[kind]?.length > 0, `kind ${kind}`);
      for (const { said, lines, dur } of shown[kind]) assert.ok(said.includes(dur) && lines.includes("Duration"), said);
    }
    return {};
  },

  async signs(page) {
    const texts = await ask(page, () => {
      const { app } = __ku;
      const all = [];
      for (let i = 0; i < app.store.n && all.length < 300; i++) {
        if (app.store.kind[i] !== Kind.WAIT && app.store.kind[i] !== Kind.WAKEUP) continue;
        app.select(i);
        app.askWhy();
        for (const cell of document.querySelectorAll("#details table.chain td:first-child")) all.push(cell.textContent);
      }
      return all;
    });
    assert.ok(texts.length > 20, "no chains");
    for (const text of texts) assert.match(text, /^(0 ns|[\u2212+]\d[\d.]* (ns|\u00b5s|ms|s))$/);
    return {};
  },

  async broken(page, { folder, broken }) {
    for (const [k, what] of broken.entries()) {
      const other = await page.context().newPage();
      await other.goto(pathToFileURL(join(folder, `broken${k}.html`)).href);
      await other.waitForFunction(() => document.querySelector("#broken, #banner:not([hidden])") || window.__ku?.ready, null, { timeout: 20000 })
        .catch(() => assert.fail(`${what}: nothing is said`));
      const said = await other.evaluate(() => document.querySelector("#broken, #banner:not([hidden])")?.textContent ?? "");
      assert.match(said, /cannot be shown: .*Get a new copy|damaged/, what);
      await other.close();
    }
    // A browser that runs no program is told that it would have to.
    const still = await page.context().newPage();
    const session = await page.context().newCDPSession(still);
    await session.send("Emulation.setScriptExecutionDisabled", { value: true });
    await still.goto(page.url().split("#")[0]);
    assert.ok(await still.locator("noscript p").isVisible() && await still.locator("#opening").isHidden());
    await still.close();
    return { broken: broken.length };
  },

  async start(page) {
    const menu = page.locator("#start");
    const lines = menu.locator("button");
    const open = () => openStart(page);
    assert.ok(await menu.isHidden());
    await open();
    const texts = await lines.evaluateAll((all) => all.map((line) => [...line.childNodes].map((part) => part.textContent)));
    assert.deepEqual(texts.map(([words]) => words), ["The busiest moment", "The longest call", "The longest wait for a disk"]);
    assert.match(texts[0][1], /^[\d.]+% of all CPUs for [\d.]+ \S+, [\d.]+% in the whole trace$/);
    assert.match(texts[1][1], /^read of \S+\.\d+, 410 ns$/);
    assert.match(texts[2][1], /^\S+\.\d+, 5\.09 \u00b5s$/);
    const whole = await view(page);
    for (const [k, found] of [null, { event: EVENT.SYSCALL, dur: 41 }, { event: EVENT.WAIT_A + 3, dur: 509 }].entries()) {
      if (k > 0) await open();
      await lines.nth(k).click();
      await settle(page);
      assert.ok(await menu.isHidden(), "the menu stays open");
      const { t0, t1, begin, end } = await view(page);
      const seen = await ask(page, () => __ku.selected());
      if (found === null) {
        assert.equal(seen, null);
        assert.ok(t1 - t0 < (end - begin) / 10, "the busiest moment is most of the trace");
      } else {
        const { event, dur, start } = seen;
        assert.deepEqual({ event, dur }, found);
        assert.ok(start > t0 && start + dur < t1 && t1 - t0 < 10 * dur, "what is gone to does not fill the picture");
        const rows = await ask(page, () => __ku.rows());
        assert.ok(rows.some(({ group, row }) => group === "PID" && row >= 0), "the threads are not open");
      }
      await rest(page);
      await page.locator("#overlay").focus();
      await page.keyboard.press("Backspace");
      await settle(page);
      const { t0: from, t1: to } = await view(page);
      assert.ok(Math.abs(from - whole.t0) < 1 && Math.abs(to - whole.t1) < 1, "there is no way back");
    }
    return {};
  },

  async list(page) {
    await wideSpan(page);
    await page.keyboard.press("v");
    const wanted = await ask(page, () => {
      const { t0, t1 } = __ku.view();
      let count = 0;
      for (let i = 0; i < __ku.counts.spans; i++) {
        const { start, dur, event, cpu } = __ku.span(i);
        const wait = event >= EVENT.WAIT_A && event <= EVENT.WAIT_Z;
        if ((wait || (cpu >= 0 && event >= EVENT.TRAP && event !== EVENT.USER)) && start < t1 && start + dur > t0) count++;
      }
      return count;
    });
    const caption = await page.locator("#listed").textContent();
    assert.ok(caption.startsWith(`${wanted} spans, `), `${caption}: not ${wanted}`);
    assert.equal(await page.getByLabel("Kinds").locator("option:checked").textContent(), "all but idle");
    assert.deepEqual(await page.locator("#details th").allTextContents(), ["Span", "Thread", "CPU", "Start", "Duration", "Returned", "IPC"]);
    assert.equal(await page.locator("#details tbody tr").count(), wanted);
    await page.locator("#details tbody button").nth(2).click();
    assert.ok(await ask(page, () => __ku.selected()));
    await page.locator("#overlay").focus();
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#listed").isVisible(), "what was selected does not give way to the table");
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#details").isHidden());
    await page.keyboard.press("0");
    await page.keyboard.press("v");
    // The first lines are there at once; the others, which are below what is in sight, follow.
    const [first, room] = await ask(page, () => {
      __ku.app.showDetails();
      return [document.querySelectorAll("#details tbody tr").length, innerHeight];
    });
    assert.ok(first < 200 && 20 * first >= room, `${first} lines at first`);
    await page.locator("#details tbody tr").nth(199).waitFor();
    assert.equal(await page.locator("#details tbody tr").count(), 200, "the longest are not chosen");
    assert.match(await page.locator("#listed").textContent(), / spans, whole trace: /);
    await page.getByLabel("Where").selectOption("sight");
    await page.locator("#overlay").focus();
    await page.keyboard.press("w");
    await rest(page);
    assert.notEqual(await page.locator("#listed").textContent(), caption, "the table does not follow the view");
    return { wanted };
  },

  /** Whole calls: as many as the recorder counted, each leads to its first piece; and a table in the address. */
  async whole_calls(page) {
    await page.keyboard.press("v");
    await page.getByLabel("Kinds").selectOption("calls");
    await page.getByLabel("Where").selectOption("whole");
    // The recorder's own calls are listed once they are asked for.
    const recorders = () => ask(page, () => {
      const { list } = __ku.app;
      return [...list.collect()].filter((c) => threadText(list.spans, list.spans.pids[list.store.pid[c]]).startsWith("kutrace_control") && list.store.kind[c] === Kind.SYSCALL).length;
    });
    assert.equal(await recorders(), 0);
    await ask(page, () => __ku.cycle("recorder"));
    await page.waitForFunction(() => __ku.app.list.key === __ku.app.list.shown);
    assert.ok((await recorders()) > 0);
    const { made, counted } = await ask(page, () => {
      const { list, store: { meta: { counts }, names } } = __ku.app;
      const { store } = list;
      const made = {};
      // Of those that began before the trace, nobody has counted the start.
      for (let c = 0; c < store.n; c++) if (store.kind[c] === Kind.SYSCALL && store.arg[c] !== 0) made[names[store.name[c]]] = (made[names[store.name[c]]] ?? 0) + 1;
      return { made, counted: Object.fromEntries(Object.keys(made).map((name) => [name, counts[name]])) };
    });
    assert.ok(Object.keys(made).length > 20);
    assert.deepEqual(made, counted);
    assert.deepEqual(await page.locator("#details th").allTextContents(), ["Span", "Thread", "CPU", "Start", "Duration", "Own time", "Returned"]);
    assert.match(await page.locator("#listed").textContent(), /^[\d,]+ calls, whole trace: /);
    await page.locator("#details th button", { hasText: "Own time" }).click();
    const max = await ask(page, () => {
      const { list: { calls: { own, first } } } = __ku.app;
      const call = own.indexOf(Math.max(...own));
      return { own: alignedText(own[call]), first: first[call] };
    });
    assert.equal(await page.locator("#details tbody tr").first().locator("td").nth(5).textContent(), max.own);
    await page.locator("#details tbody button").first().click();
    await settle(page);
    assert.equal((await ask(page, () => __ku.selected())).i, max.first);
    await page.keyboard.press("Escape");
    // A duration is that of the whole, and what it returned is searched, too.
    await page.fill("#pattern", "epoll_wait.*=1");
    await fillIn(page, "options", "#min", "1 ms");
    await settle(page);
    const { listed, wanted } = await ask(page, () => {
      const { list } = __ku.app;
      const { store } = list;
      const wanted = [];
      for (let c = 0; c < store.n; c++) if (/epoll_wait.*=1/.test(callText(store, c)) && store.dur[c] >= 1e5) wanted.push(c);
      return { listed: [...list.collect()], wanted };
    });
    assert.ok(wanted.length > 0);
    assert.deepEqual(listed, wanted);
    await page.getByLabel("Group by", { exact: true }).selectOption("thread");
    await page.waitForFunction(() => location.hash.includes("table=calls&where=whole&by=thread"));
    const before = await page.locator("#details").textContent();
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.equal(await page.locator("#details").textContent(), before);
    // A piece says what its whole call was, and E selects that: what fits it and measures it is about all of it.
    const call = await ask(page, () => {
      const { list: { calls: { first, last, own } }, store, store: { start, dur } } = __ku.app;
      const c = first.findIndex((i, k) => last[k] !== i && store.kind[i] === Kind.SYSCALL && own[k] < start[last[k]] + dur[last[k]] - start[i]);
      __ku.app.select(last[c]);
      return { from: start[first[c]], to: start[last[c]] + dur[last[c]], own: durationText(own[c]) };
    });
    assert.ok((await page.locator("#details tr", { hasText: "Own time" }).textContent()).includes(call.own));
    await page.locator("#overlay").focus();
    await page.keyboard.press("e");
    await settle(page);
    const { t0, t1 } = await view(page);
    assert.ok(t0 <= call.from && t1 >= call.to, "E does not show all of the call");
    await page.keyboard.press("r");
    assert.deepEqual(await ask(page, () => __ku.measured()), { from: call.from, to: call.to });
    // So does an interrupt, on the row of its CPU, with what it interrupted.
    await ask(page, () => {
      const { store, search: { calls } } = __ku.app;
      const inCall = (c) => store.kind[calls.first[c]] === Kind.IRQ && store.kind[interruptedBy(store, __ku.app.groups[0], calls.first[c])] === Kind.SYSCALL;
      __ku.app.select(calls.first[Array.from({ length: calls.store.n }, (_, c) => c).find(inCall)]);
    });
    assert.match(await page.locator("#details .said").textContent(), /^The interrupt \S+ took .* on CPU \d, while \S+ (was in \w+\(\S*\)|ran)\.$/);
    return { calls: Object.keys(made).length };
  },

  /** The table against the spans themselves: order, groups, histogram, files. */
  async lists(page) {
    const lines = (what = "tbody tr") => page.locator(`#details ${what}`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    const caption = () => page.locator("#listed").textContent();
    await page.fill("#pattern", "kind:syscall,fault,user");
    await page.locator("#overlay").focus();
    await page.keyboard.press("v");
    await page.getByLabel("Where").selectOption("whole");
    // Each column sorts: the first lines are the first of all that is found, then the last.
    for (const [title, field] of [["Duration", "dur"], ["Start", "start"], ["CPU", "cpu"], ["Span", "name"], ["Returned", "ret"]]) {
      const sort = page.locator("#details th button", { hasText: title });
      if (title !== "Duration") await sort.click();
      for (const turn of [0, 1]) {
        const { shown, wanted, down } = await ask(page, (field) => {
          const { app } = __ku;
          const column = columnsOfSpans(app).find(({ title }) => title === app.list.sort);
          const { down } = app.list;
          const all = [...app.search.ids].map((i) => __ku.span(i)[field]).filter((v) => v !== null);
          all.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
          return { shown: firstInOrder(app.list.collect(), column, down).map((i) => __ku.span(i)[field]), wanted: all.slice(0, 200), down };
        }, field);
        assert.equal(shown.length, 200);
        assert.deepEqual(shown.slice(0, wanted.length), wanted, `${title}, ${turn}`);
        assert.equal(await page.locator("#details th[aria-sort]").getAttribute("aria-sort"), down ? "descending" : "ascending");
        await sort.click();
      }
    }
    // Any two groupings: exact counts, sums and ends, quantiles within a step.
    for (const by of [["name", "thread"], ["thread", "name"], ["cpu", ""], ["program", "cpu"]]) {
      await page.getByLabel("Group by", { exact: true }).selectOption(by[0]);
      await page.getByLabel("And by").selectOption(by[1]);
      const { is, wanted } = await ask(page, () => {
        const { app } = __ku;
        const { store: { dur }, list } = app;
        const ids = list.collect();
        const chosen = list.chosen.map(([, grouping]) => grouping);
        const groups = new Map();
        for (const i of ids) {
          const key = chosen.map(({ column, of, text }) => text(of[column[i]])).join();
          groups.set(key, [...(groups.get(key) ?? []), dur[i]]);
        }
        const wanted = [...groups].map(([key, durs]) => {
          durs.sort((a, b) => a - b);
          const at = (part) => durs[Math.ceil(part * durs.length) - 1];
          return [key, durs.length, durs.reduce((a, b) => a + b), durs[0], durs.at(-1), at(0.5), at(0.9), at(0.99)];
        });
        const pivot = new Pivot(app.store, ids, chosen);
        const is = pivot.groups.map((group, at) => [
          chosen.map(({ text }, which) => text(pivot.numberOf(at, which))).join(), group.count, group.sum, group.shortest, group.longest,
          group.quantile(0.5), group.quantile(0.9), group.quantile(0.99),
        ]);
        const order = (a, b) => (a[0] < b[0] ? -1 : 1);
        return { is: is.sort(order), wanted: wanted.sort(order) };
      });
      assert.deepEqual(is.map((group) => group.slice(0, 5)), wanted.map((group) => group.slice(0, 5)), by.join());
      for (const [k, group] of is.entries()) {
        for (let q = 5; q < 8; q++) assert.ok(Math.abs(group[q] - wanted[k][q]) <= wanted[k][q] / 60, `${group} is not ${wanted[k]}`);
      }
      assert.equal((await lines()).length, wanted.length);
      assert.equal(await page.locator("#details th[aria-sort]").textContent(), "Sum");
    }
    // Steps of durations join without a gap, up to hours.
    assert.ok(await ask(page, () => {
      for (let step = 1; step < STEPS - 1; step++) {
        if (stepOf(minOfStep(step)) !== step || stepOf(minOfStep(step + 1) - 1) !== step) return false;
      }
      return minOfStep(STEPS - 1) > 3600 * UNITS_PER_SECOND;
    }), "steps overlap");
    // A group leads to its spans.
    await page.getByLabel("Group by", { exact: true }).selectOption("name");
    await page.getByLabel("And by").selectOption("thread");
    const [group] = await lines();
    await page.locator("#details tbody button").first().focus();
    await page.keyboard.press("Enter");
    const { count, pattern } = await ask(page, () => __ku.search());
    assert.equal(count.toLocaleString("en"), group[2], pattern);
    assert.ok((await caption()).startsWith(`${group[2]} spans, matches only, whole trace: `), await caption());
    // By keys from line to line, there, and back to the line.
    await page.locator("#details th button", { hasText: "Duration" }).click();
    await page.locator("#details tbody button").first().focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "Enter"]) await page.keyboard.press(key);
    await settle(page);
    const shown = await ask(page, () => firstInOrder(__ku.app.list.collect(), columnsOfSpans(__ku.app).find(({ title }) => title === __ku.app.list.sort), __ku.app.list.down));
    assert.equal((await ask(page, () => __ku.selected())).i, shown[1]);
    const { t0, t1 } = await view(page);
    const { start } = await ask(page, () => __ku.selected());
    assert.ok(start >= t0 && start <= t1, "Enter does not go there");
    await page.keyboard.press("Escape");
    assert.equal(await ask(page, () => document.activeElement.closest("tr").rowIndex), 2);
    // Examples by duration: from the longest to the next shorter, and back.
    await ask(page, () => (__ku.app.list.line = -1));
    const byDuration = await ask(page, () => {
      const things = [];
      eachThing(__ku.app.store, () => __ku.app.search.calls, __ku.app.search.ids, (i, length) => things.push({ i, length }));
      return things.sort((a, b) => b.length - a.length || a.i - b.i).map(({ i }) => i);
    });
    const stepped = [];
    for (const key of ["j", "j", "j", "Shift+J"]) {
      await page.keyboard.press(key);
      stepped.push((await ask(page, () => __ku.selected())).i);
    }
    assert.deepEqual(stepped, [0, 1, 2, 1].map((k) => byDuration[k]));
    await page.keyboard.press("Escape");
    // A drag over the histogram keeps a part of it.
    await page.fill("#pattern", "kind:syscall,fault,user");
    await settle(page);
    const bars = await ask(page, () => barsOf(new Pivot(__ku.app.store, __ku.app.list.collect(), []).all));
    const whole = await ask(page, () => __ku.search().count);
    assert.equal(bars.reduce((sum, bar) => sum + bar.count, 0), whole);
    const box = await page.locator("#details svg").boundingBox();
    const [half] = bars.slice(bars.length >> 1);
    const [left, right] = [Math.log2(bars[0].from), Math.log2(bars.at(-1).to)];
    const x = box.x + (box.width * (Math.log2(half.from) - left)) / (right - left) + 1;
    await dragFromTo(page, [x, box.y + 20], [box.x + box.width - 1, box.y + 30]);
    const part = await ask(page, () => __ku.search());
    const above = bars.slice(bars.length >> 1).reduce((sum, bar) => sum + bar.count, 0);
    assert.ok(above > 0 && above < whole && part.count === above, `${part.count} are kept, ${above} lie there, of ${whole}`);
    await page.getByRole("button", { name: "All durations" }).click();
    assert.equal(await ask(page, () => __ku.search().count), whole);
    // What is copied and saved is what is listed.
    await ask(page, () => addEventListener("copy", (e) => (window.copied = e.clipboardData.getData("text/plain"))));
    await page.getByRole("button", { name: "Copy" }).click();
    const copied = (await ask(page, () => window.copied)).split("\n");
    assert.deepEqual(copied.slice(1), (await lines()).map((cells) => cells.join("\t")));
    const saved = async () => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
      return readFileSync(await download.path(), "utf8").trim().split("\r\n");
    };
    assert.equal((await saved()).length, whole + 1);
    await page.getByLabel("Group by", { exact: true }).selectOption("cpu");
    const [head, ...groups] = await saved();
    assert.equal(head, "cpu,count,sum_ns,shortest_ns,median_ns,p90_ns,p99_ns,longest_ns,ipc");
    assert.equal(groups.reduce((sum, line) => sum + Number(line.split(",")[1]), 0), whole);
    // Only one kind; and what is not searched at all.
    await page.getByLabel("Group by", { exact: true }).selectOption("");
    await page.getByLabel("Kinds").selectOption("fault");
    assert.ok((await lines()).every(([span]) => span.startsWith("page_fault")));
    return { whole };
  },

  async kinds(page) {
    const span = await wideSpan(page);
    const pattern = async () => (await ask(page, () => __ku.search())).pattern;
    await page.keyboard.down("Shift");
    await page.mouse.click(span.windowX, span.windowY, { button: "right" });
    assert.equal(await pattern(), `^${span.hit.name.replace(/[.-]/g, (c) => (c === "." ? "\\." : c))}$`);
    const one = await ask(page, () => __ku.search().count);
    const other = await ask(page, (name) => {
      const { t0, t1, width } = __ku.view();
      const row = __ku.rows().find((r) => r.row === 0);
      for (let x = 5; x < width; x += 2) {
        const hit = __ku.hit(x, row.y + row.h / 2);
        if (hit && hit.name !== name && hit.event >= EVENT.TRAP && hit.event < EVENT.SYSCALL) return { x, y: row.y + row.h / 2, t0, t1 };
      }
      return null;
    }, span.hit.name);
    const box = await plot(page);
    await page.mouse.click(box.x + other.x, box.y + other.y, { button: "right" });
    await page.keyboard.up("Shift");
    assert.match(await pattern(), /^\^.*\$\|\^.*\$$/, "the second does not join the first");
    const both = await ask(page, () => __ku.search());
    assert.ok(both.count > one && both.text.includes("total"), both.text);
    return { both: both.count };
  },

  async figure(page, { title }) {
    await ask(page, () => __ku.toggle("PID"));
    const span = await wideSpan(page);
    await shiftClick(page, span.windowX, span.windowY);
    await page.keyboard.press("Escape");
    await page.keyboard.press("i");
    const png = readFileSync((await given(page, "p")).path);
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    const { path } = await given(page, "Shift+P");
    const svg = readFileSync(path, "utf8");
    const size = await ask(page, () => figureSize(__ku.app));
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [2 * size.width, 2 * size.height]);
    // Both show the same: drawn at one size they hardly differ.
    const { texts, error, apart } = await ask(page, async ([svg, png]) => {
      const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
      const { width, height } = figureSize(__ku.app);
      const drawn = async (url) => {
        const image = new Image();
        image.src = url;
        await image.decode();
        const c = new OffscreenCanvas(2 * width, 2 * height).getContext("2d");
        c.drawImage(image, 0, 0, 2 * width, 2 * height);
        return c.getImageData(0, 0, 2 * width, 2 * height).data;
      };
      const one = await drawn(`data:image/svg+xml,${encodeURIComponent(svg)}`);
      const other = await drawn(`data:image/png;base64,${png}`);
      let apart = 0;
      for (let k = 0; k < one.length; k += 4) if (Math.abs(one[k] - other[k]) + Math.abs(one[k + 1] - other[k + 1]) > 120) apart++;
      return {
        texts: [...parsed.querySelectorAll("text")].map((t) => t.textContent), error: parsed.querySelector("parsererror")?.textContent,
        apart: apart / (4 * width * height),
      };
    }, [svg, png.toString("base64")]);
    assert.equal(error, undefined);
    assert.ok(texts.includes(title) && texts.includes("CPU 0") && texts.some((t) => t.includes("\u00b5s")), texts.join("|"));
    assert.ok(apart < 0.015, `${apart} of the pixels differ`);
    assert.ok(!/NaN|undefined/.test(svg), "the figure holds numbers that are none");
    return { png: png.length, svg: svg.length, apart };
  },

  async keyboard(page) {
    const settled = async (...keys) => {
      for (const key of keys) await page.keyboard.press(key);
      await settle(page);
    };
    const selected = () => ask(page, () => __ku.selected());
    const help = await ask(page, () => Object.keys(KEYS).concat(Object.keys(CHARACTERS), Object.keys(WITH_CONTROL)));
    await settled("?");
    const sheet = await page.locator("#help").textContent();
    const named = { BracketLeft: "[", BracketRight: "]", Escape: "Esc", ArrowLeft: "\u2190", ArrowRight: "\u2192",
      ArrowUp: "\u2191", ArrowDown: "\u2193", PageUp: "Page Up", PageDown: "Down", "-": "\u2212", "=": "+" };
    for (const key of help) {
      const shown = named[key] ?? key.replace(/^Key/, "").replace(/^Digit[1-9]$/, "1 \u2026 9");
      assert.ok(sheet.includes(shown), `${key} is not on the sheet`);
    }
    await settled("Escape", "w", "w", "w", "w", ".");
    const first = await selected();
    assert.ok(first, "nothing is selected by .");
    await settled(".", ".");
    const third = await selected();
    assert.ok(third.start >= first.start + first.dur && third.cpu === first.cpu);
    await settled(",");
    assert.ok((await selected()).start < third.start);
    await settled("]");
    const below = await selected();
    assert.equal(below.cpu, first.cpu + 1, "] does not go to the row below");
    assert.ok((await page.locator("#hover").textContent()).includes(below.name), "what is selected is not said");
    await settled("[", "r", "]", "Shift+R");
    const measured = await ask(page, () => __ku.measured());
    assert.ok(measured.to - measured.from > 0);
    await settled("z");
    const fitted = await view(page);
    assert.ok(Math.abs(fitted.t0 - measured.from) < 1 && Math.abs(fitted.t1 - measured.to) < 1, "Z does not show what is measured");
    await settled("m", "n", "Delete", ".", "m");
    assert.equal((await ask(page, () => __ku.notes())).length, 1);
    // Every control can be reached with Tab (names of rows with arrow keys from their group), is at least 20 pixels high, and says what it is.
    const controls = await ask(page, () => [...document.querySelectorAll("header :is(button, input), #labels .group, aside button")]
      .filter((e) => e.offsetParent && !e.disabled)
      .map((e) => ({ name: e.ariaLabel || e.title || e.textContent, height: e.getBoundingClientRect().height, tab: e.tabIndex })));
    for (const { name, height, tab } of controls) {
      assert.ok(name.trim() !== "" && tab === 0, name);
      assert.ok(height >= 20, `${name} is ${height} high`);
    }
    await ask(page, () => document.activeElement.blur());
    const reached = new Set();
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      reached.add(await ask(page, () => document.activeElement.id || document.activeElement.textContent));
    }
    for (const id of ["overlay", "pattern", "options-open", "view-open", "help-open"]) assert.ok(reached.has(id), `Tab does not reach ${id}`);
    await page.locator('[popovertarget="view"]').focus();
    await settled("Enter");
    assert.ok(await page.locator("#view").isVisible());
    // The arrow keys move in a menu.
    await page.waitForFunction(() => document.activeElement.textContent === "Start here");
    await settled("ArrowDown");
    assert.equal(await ask(page, () => document.activeElement.id), "whole");
    const notes = (await ask(page, () => __ku.notes())).length;
    await settled("Escape");
    assert.ok(!(await page.locator("#view").isVisible()));
    assert.equal((await ask(page, () => __ku.notes())).length, notes);
    return { keys: help.length };
  },

  async screenshots(page, { folder, bless, views }) {
    await page.setViewportSize({ width: 1200, height: 640 });
    await settle(page);
    const answers = {};
    for (const [name, { address, notes = [] }] of Object.entries(views)) {
      await ask(page, ([hash, notes]) => {
        const { app } = __ku;
        app.notes.all = [];
        showAddress(app, hash);
        const { t0, t1 } = __ku.view();
        for (const [wanted, group, dx, dy, text] of notes) {
          const spans = Array.from({ length: __ku.counts.spans }, (_, i) => __ku.span(i));
          const seen = spans.filter((s) => s.name === wanted && s.start > t0 && s.start + s.dur < t1);
          const { i, start, dur } = seen.reduce((longest, s) => (s.dur > longest.dur ? s : longest));
          const from = start + dur * 0.4;
          app.notes.all.push({ i, group, from, to: from, dx, dy, text });
        }
        app.drawNow();
      }, [address, notes]);
      await page.mouse.move(3, 3);
      await settle(page);
      const png = await page.screenshot();
      const file = join(folder, `${name}.png`);
      if (bless) writeFileSync(file, png);
      answers[name] = await ask(page, async ([is, was, slack]) => {
        const pixels = async (text) => {
          const image = new Image();
          image.src = `data:image/png;base64,${text}`;
          await image.decode();
          const c = new OffscreenCanvas(image.width, image.height).getContext("2d");
          c.drawImage(image, 0, 0);
          return c.getImageData(0, 0, image.width, image.height).data;
        };
        const [one, other] = [await pixels(is), await pixels(was)];
        if (one.length !== other.length) return 1000;
        let apart = 0;
        for (let k = 0; k < one.length; k += 4) {
          if ([0, 1, 2].some((c) => Math.abs(one[k + c] - other[k + c]) > slack)) apart++;
        }
        return (4000 * apart) / one.length;
      }, [png.toString("base64"), readFileSync(file).toString("base64"), COLOR_SLACK]);
      if (answers[name] > PIXEL_SLACK) {
        writeFileSync(join(folder, `../../../target/view-${name}.png`), png);
        assert.fail(`${name}: ${answers[name]} of 1000 pixels differ from ${file}; what was drawn is target/view-${name}.png`);
      }
    }
    return answers;
  },
};
