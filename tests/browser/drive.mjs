// SPDX-License-Identifier: BSD-3-Clause
// Scenarios on pages, in one browser. Each line of the input names one, `{"scenario":...,"file":...,"expected":...}`; a
// line of the output has its result, `{"answer":...}`, or what was wrong, `{"error":...}`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// A function that runs in the page has its own EVENT, the same: the page's scripts share one scope.
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { budget } from "./budget.mjs";
import { assertCounted, search } from "./search.mjs";
import { tools } from "./tools.mjs";
import { drawn } from "./drawn.mjs";
import { filters } from "./filters.mjs";
import { frame } from "./frame.mjs";
import { requests } from "./requests.mjs";
import { machines } from "./machines.mjs";
import { clickIn, fillIn, inMenu } from "./menu.mjs";
import { small } from "./small.mjs";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href);

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--no-first-run", "--disable-quic",
];

/** Everything the page did that it must not do. */
const faults = [];

/** Shorthand for the page's own answers. */
const ask = (page, question, argument) => page.evaluate(question, argument);
const view = (page) => ask(page, () => __ku.view());
/** Waits until what was asked for is drawn. */
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
/** Where the plot lies in the window. */
const plot = (page) => page.locator("#overlay").boundingBox();

const scenarios = {
  ...budget,
  ...search,
  ...tools,
  ...drawn,
  ...frame,
  ...filters,
  ...requests,
  ...machines,
  ...small,

  async open(page, expected) {
    const counts = await ask(page, () => __ku.counts);
    if (expected.spans !== undefined) assert.equal(counts.spans, expected.spans);
    assert.equal(await page.locator("#empty").isVisible(), expected.empty === true);
    const banner = await page.locator("#banner").textContent();
    for (const text of expected.banner ?? []) assert.ok(banner.includes(text), banner);
    assert.ok(await ask(page, () => __ku.whenReady.then(() => true)));
    await page.keyboard.press("d");
    await settle(page);
    const draws = await ask(page, () => __ku.draws());
    await page.waitForTimeout(300);
    assert.equal(await ask(page, () => __ku.draws()), draws, "the page draws without a reason");
    return { counts, draws };
  },

  async wheel(page) {
    const box = await plot(page);
    const x = Math.round(box.width * 0.3);
    await page.mouse.move(box.x + x, box.y + box.height / 2);
    const timeAt = (v) => v.t0 + ((v.t1 - v.t0) * x) / v.width;
    const before = await view(page);
    for (let i = 0; i < 200; i++) {
      const was = await view(page);
      if (was.t1 - was.t0 <= 10) break;
      await page.mouse.wheel(0, -400);
      await settle(page);
      const is = await view(page);
      assert.ok(is.t1 - is.t0 < was.t1 - was.t0, "the wheel does not zoom");
      assert.ok(Math.abs(timeAt(is) - timeAt(was)) <= (was.t1 - was.t0) / was.width, "the pointer's time moved");
    }
    const deepest = await view(page);
    assert.ok(Math.abs(deepest.t1 - deepest.t0 - 10) < 1e-6, "single entries are not reached");
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, 100);
    await page.keyboard.up("Shift");
    await settle(page);
    assert.ok((await view(page)).t0 > deepest.t0, "Shift and the wheel do not pan");
    for (let i = 0; i < 80; i++) await page.mouse.wheel(0, 400);
    await settle(page);
    const after = await view(page);
    assert.ok(after.t0 <= before.begin && after.t1 >= before.end, "the whole trace is not reached");
    return { deepest };
  },

  async keys(page) {
    const width = (v) => v.t1 - v.t0;
    const press = async (key) => {
      await page.keyboard.press(key);
      await settle(page);
      return view(page);
    };
    const whole = await view(page);
    await press("w");
    let was = await press("w");
    assert.ok(width(was) < width(whole) / 2, "W does not zoom in");
    for (const [key, holds] of [
      ["d", (is) => is.t0 > was.t0], ["a", (is) => is.t0 < was.t0], ["ArrowRight", (is) => is.t0 > was.t0],
      ["ArrowLeft", (is) => is.t0 < was.t0], ["s", (is) => width(is) > width(was)], ["+", (is) => width(is) < width(was)],
      ["-", (is) => width(is) > width(was)], ["0", (is) => width(is) === width(whole)],
    ]) {
      const is = await press(key);
      assert.ok(holds(is), `${key}: ${JSON.stringify([was, is])}`);
      was = is;
    }
    await press("?");
    assert.ok(await page.locator("#help").isVisible(), "? does not open the help");
    await press("Escape");
    assert.ok(!(await page.locator("#help").isVisible()), "Esc does not close the help");
    await press("/");
    await page.keyboard.type("page_fault");
    await settle(page);
    assert.equal(width(await view(page)), width(whole), "typing in the search box moves the view");
    const found = await ask(page, () => __ku.search());
    if (found.count > 1) {
      await press("Enter");
      await press("Enter");
      assert.equal((await ask(page, () => __ku.search())).current, 1);
      assert.deepEqual(await ask(page, () => [...document.querySelectorAll("#patterns option")].map((o) => o.value)), ["page_fault"]);
      await press("Shift+Enter");
      assert.equal((await ask(page, () => __ku.search())).current, 0);
      const selected = await ask(page, () => __ku.selected());
      assert.equal(selected.name, "page_fault");
      await page.locator("#overlay").focus();
      const fit = await press("f");
      assert.ok(fit.t0 <= selected.start && fit.t1 >= selected.start + selected.dur, "F misses the selection");
      assert.ok(width(fit) <= selected.dur * 1.3 + 20, "F does not come close");
    }
    await press("Escape");
    assert.equal(await ask(page, () => __ku.selected()), null);
    assert.equal((await ask(page, () => __ku.search())).active, true, "Esc undoes two things at once");
    await press("Escape");
    assert.equal((await ask(page, () => __ku.search())).active, false);
    await press("i");
    assert.equal(await page.locator("#ipis").getAttribute("aria-pressed"), "true");
    return {};
  },

  async search(page, expected) {
    const answers = [];
    const inverted = () => page.locator("#invert").getAttribute("aria-pressed");
    for (const { pattern, min, max, invert, count, total } of expected.searches) {
      await page.fill("#pattern", pattern);
      await fillIn(page, "options", "#min", min);
      await fillIn(page, "options", "#max", max);
      if ((await inverted()) !== String(invert)) await clickIn(page, "options", "#invert");
      await settle(page);
      const found = await ask(page, () => __ku.search());
      assert.deepEqual([pattern, found.count, found.total], [pattern, count, count > 0 ? total : found.total]);
      await assertCounted(page, found.text);
      answers.push(found.text);
    }
    await fillIn(page, "options", "#min", "soon");
    await settle(page);
    assert.equal(await page.locator("#matches").textContent(), "not a duration");
    for (const id of ["#min", "#max"]) await fillIn(page, "options", id, "");
    await page.fill("#pattern", "[");
    await settle(page);
    assert.equal(await page.locator("#matches").textContent(), "not a regular expression");
    await page.fill("#pattern", "^PAGE_FAULT$");
    assert.equal((await ask(page, () => __ku.search())).count, 0);
    await clickIn(page, "options", "#ignore-case");
    assert.equal((await ask(page, () => __ku.search())).count, expected.searches[1].count);
    return answers;
  },

  async hit(page, expected) {
    assert.ok(expected.hits.length > 0);
    const box = await plot(page);
    for (const span of expected.hits) {
      const { start, dur } = span;
      await ask(page, ([t0, t1]) => __ku.show(t0, t1), [start - dur - 5, start + 2 * dur + 5]);
      const { t0, t1, width } = await view(page);
      const row = (await ask(page, () => __ku.rows())).find((r) => r.label === `CPU ${span.cpu}`);
      const at = { x: ((start + dur / 2 - t0) / (t1 - t0)) * width, y: row.y + row.h * 0.3 };
      const hit = await ask(page, ({ x, y }) => __ku.hit(x, y), at);
      for (const key of Object.keys(span)) assert.equal(hit?.[key], span[key], `${key} of ${JSON.stringify([span, hit])}`);
      await page.mouse.move(box.x + at.x, box.y + at.y);
      const hover = await page.locator("#hover").textContent();
      assert.ok(hover.includes(span.name), hover);
      for (const text of expected.texts ?? []) assert.ok(hover.includes(text), `${text} in ${hover}`);
    }
    return { hits: expected.hits.length };
  },

  async picture(page) {
    const { begin, end } = await view(page);
    await ask(page, ([t0, t1]) => __ku.show(t0, t1), [begin + (end - begin) * 0.5, begin + (end - begin) * 0.5 + 1500]);
    const seen = await ask(page, () => {
      const canvas = document.getElementById("base");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const pixel = (x, y) => data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3).join();
      const { t0, t1, width } = __ku.view();
      const seen = [];
      for (const row of __ku.rows().filter((r) => r.row >= 0)) {
        for (let x = 3; x < width - 3; x += 7) {
          const middle = Math.floor(row.y + row.h / 2);
          const hit = __ku.hit(x + 0.5, middle);
          const edges = hit ? [hit.start, hit.start + hit.dur].map((t) => ((t - t0) / (t1 - t0)) * width) : [];
          if (!hit || hit.event < 0 || edges.some((edge) => Math.abs(edge - x) < 3)) continue;
          const zones = [0, 0.2, 0.38].map((part) => pixel(x, Math.floor(middle + part * row.h)));
          seen.push({ x, event: hit.event, pid: hit.pid, zones, back: pixel(x, Math.floor(row.y + 1)) });
        }
      }
      return seen;
    });
    const kinds = new Set();
    for (const { x, event, pid, zones, back } of seen) {
      const reached = zones.map((zone) => zone !== back);
      if (event >= EVENT.LOST && event < EVENT.KERNEL) continue;
      const kind = event >= EVENT.USER ? (pid > 0 ? "user" : "idle") : "kernel";
      const wanted = { idle: [true, false, false], user: [true, true, false], kernel: [true, true, true] }[kind];
      assert.deepEqual(reached, wanted, `${kind} at ${x}: ${zones}, ground ${back}`);
      kinds.add(kind);
    }
    assert.deepEqual([...kinds].sort(), ["idle", "kernel", "user"]);
    return { pixels: seen.length };
  },

  async dashes(page, { spans }) {
    for (const [t0, t1] of spans) {
      await ask(page, ([from, to]) => __ku.show(from, to), [t0, t1]);
      const drawn = await ask(page, () => {
        const { picture, palette } = __ku.app;
        const row = __ku.rows().find((r) => r.row === 0);
        const y = Math.floor(row.y + row.h / 2);
        const line = picture.pixels.subarray(y * picture.w, (y + 1) * picture.w);
        return line.filter((pixel) => pixel === palette.pixels[Kind.LOW_POWER][0]).length / picture.w;
      });
      assert.ok(drawn > 0.5 && drawn < 0.7, `${drawn} of the line drawn from ${t0} to ${t1}`);
    }
    return {};
  },

  async pointer(page) {
    const box = await plot(page);
    await page.keyboard.press("w");
    await page.keyboard.press("w");
    await settle(page);
    const was = await view(page);
    const y = box.y + 80;
    await page.mouse.move(box.x + 500, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 400, y, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    const moved = await view(page);
    const expected = was.t0 + (100 * (was.t1 - was.t0)) / was.width;
    assert.ok(Math.abs(moved.t0 - expected) < (was.t1 - was.t0) / was.width, "dragging does not pan");
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 100, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 300, y, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    const measured = await ask(page, () => __ku.measured());
    const length = (200 * (moved.t1 - moved.t0)) / moved.width;
    // Each end may snap to the edge of a span.
    assert.ok(Math.abs(measured.to - measured.from - length) < length / 10, "Shift-drag does not measure");
    await page.mouse.click(box.x + 500, box.y + 60);
    if (await ask(page, () => __ku.selected())) assert.ok(await page.locator("#details").isVisible());
    const rows = () => ask(page, () => __ku.rows().length);
    const before = await rows();
    await page.locator("#labels .group").last().click();
    await settle(page);
    assert.ok((await rows()) > before, "a click on a group does not open it");
    return { rows: await rows() };
  },

  async totals(page) {
    const box = await plot(page);
    const { begin, end } = await view(page);
    await ask(page, ([t0, t1]) => __ku.show(t0, t1), [begin + (end - begin) * 0.4, begin + (end - begin) * 0.42]);
    const drag = async () => {
      await page.keyboard.down("Shift");
      await page.mouse.move(box.x + 900, box.y + 80);
      await page.mouse.down();
      await page.mouse.move(box.x + 200, box.y + 80, { steps: 4 });
      await page.mouse.up();
      await page.keyboard.up("Shift");
    };
    const lines = (head) => ask(page, (wanted) => {
      const table = [...document.querySelectorAll("#details .numbers")].find((t) => t.tHead.rows[0].cells[0].textContent === wanted);
      return [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    }, head);
    const names = async () => (await lines("Name")).map(([name, count, own]) => [name, count, own]);
    // The same sums by looking at every span of the trace.
    const wanted = (pattern) => ask(page, (source) => {
      const { from, to } = __ku.measured();
      const names = new Map();
      let longest = 0;
      for (let i = 0; i < __ku.counts.spans; i++) {
        const { start, dur, name, event } = __ku.span(i);
        if (event < EVENT.TRAP || start >= to || start + dur <= from || !new RegExp(source).test(name)) continue;
        const sum = names.get(name) ?? { name, count: 0, time: 0 };
        sum.count++;
        const inside = Math.min(start + dur, to) - Math.max(start, from);
        sum.time += inside;
        if (!name.startsWith("-idle")) longest = Math.max(longest, inside);
        names.set(name, sum);
      }
      const sums = [...names.values()].sort((a, b) => b.time - a.time);
      return { names: sums.slice(0, 20).map((s) => [wordedName(s.name), s.count.toLocaleString("en"), alignedText(s.time)]), longest: alignedText(longest) };
    }, pattern);
    await drag();
    const all = await wanted(".");
    assert.deepEqual(await names(), all.names);
    assert.equal((await lines("Longest"))[0][2], all.longest);
    for (const [cpu, ...parts] of await lines("CPU")) {
      const sum = parts.reduce((total, part) => total + (parseFloat(part) || 0), 0);
      assert.ok(Math.abs(sum - 100) < 0.3, `${cpu} is described for ${sum}% of the range`);
    }
    const name = all.names.find(([text]) => text.includes("page_fault"))[0];
    await page.getByRole("button", { name, exact: true }).first().click();
    assert.equal((await ask(page, () => __ku.search())).pattern, `^${name}$`);
    assert.deepEqual(await names(), (await wanted(`^${name}$`)).names);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    const csv = readFileSync(await download.path(), "utf8").split("\r\n");
    assert.equal(csv.length, 2 + Number(all.names.find(([text]) => text === name)[1].replace(",", "")));
    assert.ok(csv[1].endsWith(`,"${name}"`), csv[1]);
    await page.locator("#details .numbers").nth(4).getByRole("button").first().click();
    const selected = await ask(page, () => __ku.selected());
    assert.equal(selected.name, name);
    // A span that reaches over an end counts with its part inside, where the longest are listed, too.
    await ask(page, ({ start, dur }) => __ku.app.measure({ from: start + Math.floor(dur / 2), to: start + dur }), selected);
    const [first] = await lines("Longest");
    assert.deepEqual(first.slice(2), await ask(page, (dur) => [alignedText(dur - Math.floor(dur / 2)), `of ${alignedText(dur)}`], selected.dur));
    await page.locator("#overlay").focus();
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#details").isHidden(), "Esc leaves the totals");
    await ask(page, (i) => __ku.app.select(i), selected.i);
    await page.keyboard.press("h");
    assert.equal((await ask(page, () => __ku.search())).pattern, `^${name}$`);
    return { names: all.names.length };
  },

  async chain(page, { chains }) {
    await page.locator("#overlay").focus();
    // Pixels of the path's colour in a part of the overlay, read from a copy.
    const drawn = (part) => ask(page, ([x, y, w, h]) => {
      const { canvas } = __ku.app.overlay;
      const copy = new OffscreenCanvas(w ?? canvas.width, h ?? canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, -x, -y);
      const pixels = new Uint32Array(copy.getImageData(0, 0, copy.canvas.width, copy.canvas.height).data.buffer);
      return pixels.filter((color) => color === pixel(__ku.app.palette.css.chain)).length;
    }, part ?? [0, 0]);
    for (const [name, start, steps] of chains) {
      await ask(page, (wanted) => {
        const spans = Array.from({ length: __ku.counts.spans }, (_, i) => __ku.span(i));
        __ku.app.select(spans.find((s) => s.name === wanted[0] && s.start === wanted[1]).i);
      }, [name, start]);
      await page.keyboard.press("b");
      await settle(page);
      const chain = await ask(page, () => __ku.chain());
      assert.deepEqual(chain.map((s) => [s.arc.start, s.cause?.name ?? null, s.wait?.name ?? null]), steps, `from ${name}`);
      assert.equal(await page.locator("#details .chain tr").count(), steps.length);
      assert.equal((await drawn()) > 0, steps.length > 0, `from ${name}`);
      if (steps.length < 2) continue;
      // From the arrival of the first wakeup to the second, the row of the thread between them carries a line.
      const { t0, t1, width } = await view(page);
      const row = (await ask(page, () => __ku.rows())).find((r) => r.label === "CPU 1");
      const x = Math.round(((1180 - t0) / (t1 - t0)) * width);
      assert.equal(await drawn([x, Math.floor(row.y + row.h * (0.5 + 0.42) + 1), 1, 1]), 1, `from ${name}: no path along the row of a.21`);
      // It keeps clear of the names in the spans, and stays as long as it is asked for, whatever is searched.
      assert.equal(await drawn([x, Math.floor(row.y + row.h * 0.2), 1, Math.floor(row.h * 0.6)]), 0, `from ${name}: the path runs through names`);
      for (const pattern of ["write", ""]) await page.fill("#pattern", pattern);
      assert.equal(await page.locator("#details .chain tr").count(), steps.length, "a search takes the steps away");
      await page.locator("#overlay").focus();
    }
    const text = await ask(page, () => document.querySelector("#details").textContent);
    assert.ok(text.includes("Nothing woke this thread before"), text);
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal(await drawn(), 0);
    return {};
  },

  async address(page) {
    const { begin, end } = await view(page);
    const shown = () => ask(page, () => {
      const { t0, t1 } = __ku.view();
      const { pattern, min, invert, ignoreCase, count } = __ku.search();
      return { t0, t1, open: __ku.rows().filter((r) => r.row === 0).map((r) => r.group), pattern, min, invert, ignoreCase, count };
    });
    await page.keyboard.press("w");
    await page.locator("#labels .group").last().click();
    await clickIn(page, "options", "#ignore-case");
    await page.fill("#pattern", "PAGE_|&=#é");
    await fillIn(page, "options", "#min", "20 ns");
    await page.waitForFunction(() => location.hash.includes("min=20"));
    const was = await shown();
    assert.ok(was.count > 0 && was.open.length === 2 && was.t1 - was.t0 < end - begin, JSON.stringify(was));
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    const is = await shown();
    const range = [is.t0, is.t1];
    for (const time of ["t0", "t1"]) {
      assert.ok(Math.abs(is[time] - was[time]) <= 1, `${time}: ${is[time]}, before ${was[time]}`);
      delete is[time];
      delete was[time];
    }
    assert.deepEqual(is, was);
    assert.equal(await page.locator("#pattern").inputValue(), was.pattern);
    await ask(page, () => (location.hash = "#t=nothing..&open=CPU&find=read&not=1"));
    await page.waitForFunction(() => __ku.search().pattern === "read");
    const entered = await shown();
    assert.deepEqual([entered.open, entered.invert, entered.min], [["CPU"], true, ""]);
    assert.deepEqual([entered.t0, entered.t1], range, "a damaged range moves the view");
    return {};
  },

  async scroll(page, expected) {
    const first = () => ask(page, () => __ku.rows().find((r) => r.row === 0).y);
    assert.equal((await ask(page, () => __ku.rows())).length, expected.rows + 1);
    const was = await first();
    const labels = await page.locator("#labels").boundingBox();
    await page.mouse.move(labels.x + 20, labels.y + 200);
    await page.mouse.wheel(0, 500);
    await settle(page);
    assert.equal(await first(), was - 500, "the wheel over the labels does not scroll");
    const box = await plot(page);
    await page.mouse.move(box.x + 200, box.y + 200);
    await page.keyboard.down("Alt");
    await page.mouse.wheel(0, -200);
    await page.keyboard.up("Alt");
    await settle(page);
    assert.equal(await first(), was - 300, "Alt and the wheel do not scroll");
    // As others have it, if one wants: the wheel scrolls, with Ctrl it zooms.
    await inMenu(page, "view", () => page.selectOption("#look-wheel", "rows"));
    await page.keyboard.press("Escape");
    const range = await view(page);
    await page.mouse.move(box.x + 200, box.y + 200);
    await page.mouse.wheel(0, -100);
    await settle(page);
    assert.equal(await first(), was - 200, "the wheel does not scroll");
    assert.deepEqual(await view(page), range);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await settle(page);
    assert.ok((await view(page)).t1 - (await view(page)).t0 < range.t1 - range.t0, "Ctrl and the wheel do not zoom");
    return {};
  },

  async hostile(page, { name, thread }) {
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    assert.equal(await page.locator("#title").textContent(), name);
    assert.equal(await page.title(), name);
    const labels = await page.locator("#labels .row").allTextContents();
    assert.ok(labels.includes(thread), labels.join());
    const row = (await ask(page, () => __ku.rows())).find((r) => r.group === "PID" && r.row === 0);
    const box = await plot(page);
    await page.mouse.click(box.x + box.width * 0.25, box.y + row.y + row.h / 2);
    assert.ok((await page.locator("#hover").textContent()).includes(thread));
    assert.equal(await page.locator("#details h2").textContent(), thread);
    assert.ok((await page.locator("#banner").textContent()).includes(name));
    assert.equal(await page.locator("img").count(), 0, "a name became an element");
    assert.equal(await ask(page, () => window.broken), undefined, "a name ran as a script");
    return {};
  },

  async bench(page) {
    return ask(page, async () => {
      const { begin, end } = __ku.view();
      const times = [];
      const wholeTimes = [];
      for (let i = 0; i < 100; i++) {
        const whole = i % 5 === 0;
        const span = (end - begin) / (whole ? 1 : 10 ** (1 + (i % 4)));
        const at = begin + (end - begin - span) * ((i * 0.618) % 1);
        const began = performance.now();
        __ku.show(at, at + span);
        (whole ? wholeTimes : times).push(performance.now() - began);
        await new Promise((done) => requestAnimationFrame(done));
      }
      const p95 = (list) => Math.round(list.sort((a, b) => a - b)[Math.floor(list.length * 0.95)] * 10) / 10;
      return { openMs: Math.round(__ku.readyAt), redrawP95Ms: p95(times), wholeP95Ms: p95(wholeTimes) };
    });
  },
};

/** Runs a scenario on a page, in a context that knows nothing of those before. */
async function run(browser, { scenario, file, expected }) {
  faults.length = 0;
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 } });
  try {
    const page = Object.assign(await context.newPage(), { launched: { chromium, flags: FLAGS } });
    const url = pathToFileURL(resolve(file)).href;
    const { folder } = expected;
    /** The page itself, those that the scenario opens, and what the page has made itself: its workers. */
    const allowed = (asked) => asked.split("#")[0] === url || asked.startsWith("blob:null/") || (folder && asked.startsWith(pathToFileURL(folder).href));
    page.on("console", (m) => faults.push(`console: ${m.text()}`));
    page.on("pageerror", (e) => faults.push(`error: ${e.stack}`));
    page.on("request", (r) => !allowed(r.url()) && faults.push(`request: ${r.url()}`));
    page.on("dialog", (d) => faults.push(`dialog: ${d.message()}`) && d.dismiss());
    await page.addInitScript(() => {
      window.__violations = [];
      // When the first full picture is on the screen: in the frame after the one it was drawn for.
      document.addEventListener("DOMContentLoaded", () => __ku.whenReady.then(() => requestAnimationFrame(() => {
        const frame = new MessageChannel();
        frame.port1.onmessage = () => (window.__painted = performance.now());
        frame.port2.postMessage(0);
      })));
      document.addEventListener("securitypolicyviolation", (e) => window.__violations.push(e.violatedDirective));
    });
    if (expected.older) await page.addInitScript(() => {
      delete Uint8Array.fromBase64;
      delete window.Worker;
    });
    // As a bookmark opens it: what is shown to somebody who opens a page for the first time has a scenario of its own.
    await page.goto(expected.first ? url : `${url}#open=CPU,NET`);
    await page.waitForFunction(() => window.__ku?.ready === true, null, { timeout: 60000 });
    const answer = await scenarios[scenario](page, expected);
    faults.push(...(await ask(page, () => window.__violations.map((v) => `violation: ${v}`))));
    assert.deepEqual(faults, []);
    return answer;
  } finally {
    await context.close();
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
try {
  for await (const line of createInterface({ input: process.stdin })) {
    const done = await run(browser, JSON.parse(line)).then((answer) => ({ answer }), (error) => ({ error: `${error.stack}` }));
    console.log(JSON.stringify(done));
  }
} finally {
  await browser.close();
}
