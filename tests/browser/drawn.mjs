// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about what is drawn on the rows; `drive.mjs` runs them.
import assert from "node:assert/strict";

// A function that runs in the page has its own EVENT, the same: the page's scripts share one scope.
import { EVENT } from "../../postprocess/viewer/data/tables.js";
import { choose, cycled, fillIn, stateOf } from "./menu.mjs";

const ask = (page, question, argument) => page.evaluate(question, argument);
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const rowsOf = async (page, group) => (await ask(page, () => __ku.rows())).filter((r) => r.group === group && r.row >= 0);
/** Spans of one event number, by start. */
const spansOf = (page, event, name) => ask(page, ([wanted, called]) => {
  const spans = Array.from({ length: __ku.counts.spans }, (_, i) => __ku.span(i));
  return spans.filter((s) => s.event === wanted && (!called || s.name === called));
}, [event, name]);
/** Shows a span with as much room on both sides as it is long. */
const showSpan = (page, { start, dur }) => ask(page, ([t0, t1]) => __ku.show(t0, t1), [start - dur, start + 2 * dur]);
/** What lies under the middle of a span at a part of a row's height. */
const hitOn = (page, { start, dur }, row, part) => ask(page, ([time, y]) => {
  const { t0, t1, width } = __ku.view();
  return __ku.hit(((time - t0) / (t1 - t0)) * width, y);
}, [start + dur / 2, row.y + row.h * part]);
/** Colours, as #rrggbb, of the device pixels of a canvas in a column of CSS pixels, from y0 to y1. */
const column = (page, canvas, x, y0, y1) => ask(page, ([id, at, from, to]) => {
  const source = document.getElementById(id);
  const ratio = __ku.app.picture.ratio;
  const copy = new OffscreenCanvas(1, Math.max(Math.round((to - from) * ratio), 1)).getContext("2d", { willReadFrequently: true });
  copy.drawImage(source, -Math.floor(at * ratio), -Math.round(from * ratio));
  const { data } = copy.getImageData(0, 0, 1, copy.canvas.height);
  return Array.from({ length: data.length / 4 }, (_, k) =>
    data[4 * k + 3] === 0 ? "" : `#${[0, 1, 2].map((c) => data[4 * k + c].toString(16).padStart(2, "0")).join("")}`);
}, [canvas, x, y0, y1]);
const xOf = (page, time) => ask(page, (t) => __ku.app.view.x(t), time);

export const drawn = {
  async layers(page, { dials }) {
    const drawnNow = () => ask(page, () => __ku.drawn());
    const click = async (id, shift) => {
      await cycled(page, id, shift ? -1 : 1);
      await settle(page);
      return drawnNow();
    };
    const whole = await drawnNow();
    assert.ok(whole.samples > 0, "no samples");
    const [sample] = (await spansOf(page, EVENT.PC_USER)).filter((s) => s.pid > 0);
    const [row] = await rowsOf(page, "CPU");
    assert.equal((await hitOn(page, sample, row, 0.08))?.event, EVENT.PC_USER, "no sample above the row");
    const [freq] = (await spansOf(page, EVENT.FREQUENCY)).filter((s) => s.cpu === 0 && s.arg === 3600);
    assert.equal((await hitOn(page, freq, row, 0.97))?.event, EVENT.FREQUENCY, "no frequency below the row");
    const colors = await column(page, "base", await xOf(page, freq.start + freq.dur / 2), row.y + row.h - 8, row.y + row.h - 1);
    assert.ok(colors.slice(1).every((color) => color === "#3da35d"), `the highest frequency looks like ${colors}`);
    assert.equal((await click("samples")).samples > 0, true, "samples of idle are not drawn");
    const idle = await ask(page, () => __ku.app.picture.strips.roomy.map(({ i }) => __ku.span(i).pid));
    assert.ok(idle.every((pid) => pid === 0), idle.join());
    assert.equal((await click("samples")).samples, 0);
    assert.notEqual((await hitOn(page, sample, row, 0.08))?.event, EVENT.PC_USER);
    await click("samples", true);
    assert.equal((await ask(page, () => __ku.layers())).samples, "idle");
    await click("freq");
    assert.notEqual((await hitOn(page, freq, row, 0.97))?.event, EVENT.FREQUENCY, "the frequency stays");
    const marks = (state) => state.spots.filter((s) => s.y0 === 0).length;
    const text = await click("marks");
    assert.ok(marks(text) > 0 && marks(text) < marks(whole), "numbers are not left out");
    await click("marks");
    assert.equal(marks(await click("marks")), 0, "marks stay");
    assert.equal(await page.locator("#layer-counters").count(), dials ? 1 : 0);
    if (!dials) return {};
    const [call] = await spansOf(page, EVENT.SYSCALL, "read");
    await showSpan(page, call);
    const all = (await drawnNow()).dials;
    assert.ok(all > 0, "no dials");
    const kernel = (await click("counters")).dials;
    const user = (await click("counters")).dials;
    assert.ok(kernel > 0 && user > 0 && kernel + user === all, `${kernel} and ${user} of ${all}`);
    assert.equal((await click("counters")).dials, 0);
    return { all, kernel, user };
  },

  async resources(page) {
    const groups = [...new Set((await ask(page, () => __ku.rows())).map((r) => r.group))];
    assert.deepEqual(groups, ["CPU", "PID", "RPC", "RES", "NET"]);
    for (const group of ["PID", "RPC", "RES"]) await ask(page, (name) => __ku.toggle(name), group);
    await settle(page);
    assert.deepEqual((await rowsOf(page, "RPC")).map((r) => r.label), ["lookup.7"]);
    assert.deepEqual((await rowsOf(page, "RES")).map((r) => r.label), ["lock table", "queue work", "resource disk"]);
    const named = async (group, text) => (await rowsOf(page, group)).find((r) => r.label.includes(text));
    const spotsOf = async (i) => (await ask(page, () => __ku.drawn())).spots.filter((s) => s.i === i);
    /** A span is found where it is drawn, on the rows that it belongs to and on no other. */
    const onRows = async (span, rows) => {
      await showSpan(page, span);
      await settle(page);
      const spots = await spotsOf(span.i);
      const under = [];
      for (const spot of spots) {
        const [x, y] = [(Math.max(spot.x0, 0) + spot.x1) / 2, (spot.y0 + spot.y1) / 2];
        under.push((await ask(page, () => __ku.rows())).find((r) => y >= r.y && y < r.y + r.h).label);
        assert.equal((await ask(page, (at) => __ku.hit(...at), [x, y]))?.i, span.i, `${span.name} is not found at ${x}, ${y}`);
      }
      assert.deepEqual(under.sort(), rows.sort(), span.name);
    };
    const [held] = await spansOf(page, EVENT.LOCK_HELD);
    const [tried] = await spansOf(page, EVENT.LOCK_WAITED, "~table");
    assert.equal(held.name, "=table");
    await onRows(held, ["worker.51", "lock table"]);
    await onRows((await spansOf(page, EVENT.LOCK_WAITED)).find((s) => s.pid === 50), ["server.50", "lock table"]);
    assert.ok(tried);
    const [queued] = (await spansOf(page, EVENT.ENQUEUE)).filter((s) => s.cpu < 0);
    await onRows(queued, ["lookup.7", "queue work"]);
    await onRows((await spansOf(page, EVENT.RPC_RECEIVED))[0], ["lookup.7", "messages"]);
    await onRows((await spansOf(page, EVENT.RPC_SENT))[0], ["lookup.7", "messages"]);
    await onRows((await spansOf(page, EVENT.RX_PACKET))[0], ["messages"]);
    // What comes in slopes down, what goes out slopes up.
    for (const [event, slopes] of [[EVENT.RPC_RECEIVED, 1], [EVENT.RPC_SENT, -1]]) {
      const [message] = await spansOf(page, event);
      await showSpan(page, message);
      await settle(page);
      const row = await named("NET", "messages");
      const lit = async (part) => {
        const x = await xOf(page, message.start + message.dur * part);
        const colors = await column(page, "overlay", x, row.y, row.y + row.h);
        return colors.findIndex((color) => color !== "");
      };
      assert.equal(Math.sign((await lit(0.7)) - (await lit(0.2))), slopes, `slope of ${event}`);
    }
    const [execution] = (await spansOf(page, EVENT.SYSCALL + 1, "write"));
    await showSpan(page, execution);
    assert.equal((await hitOn(page, execution, await named("RPC", "lookup"), 0.5))?.name, "write");
    await ask(page, () => __ku.cycle("locks"));
    await showSpan(page, held);
    await settle(page);
    assert.equal((await spotsOf(held.i)).length, 1, "switched off, locks stay on the rows of threads");
    return {};
  },

  async curves(page) {
    const [exit] = (await spansOf(page, EVENT.IDLE_EXIT)).filter((s) => s.cpu === 0);
    await showSpan(page, exit);
    await settle(page);
    const [row] = await rowsOf(page, "CPU");
    const { above, below } = await ask(page, () => __ku.app.view.items.find((item) => item.row === 0));
    const middle = row.y + above + (row.h - above - below) / 2;
    let crests = 0;
    const from = await xOf(page, exit.start);
    const to = await xOf(page, exit.start + exit.dur);
    for (let x = from + 1; x < to; x++) {
      const at = (await column(page, "overlay", x, middle - 8, middle + 8)).flatMap((color, y) => (color ? [y - 8] : []));
      if (at.some((y) => y <= -4)) crests++;
    }
    assert.ok(crests > 10 && crests < (to - from) * 0.7, `${crests} of ${to - from} columns reach the crest of a wave`);
    const lost = (await spansOf(page, EVENT.LOST)).at(-1);
    await showSpan(page, lost);
    assert.equal((await hitOn(page, lost, (await rowsOf(page, "CPU"))[1], 0.5))?.name, "-lost-");
    assert.equal((await ask(page, () => __ku.drawn())).overheads, 0, `recording is drawn from afar: ${JSON.stringify([lost, await ask(page, () => __ku.view())])}`);
    const [call] = await spansOf(page, EVENT.SYSCALL + 39);
    await ask(page, (t) => __ku.show(t - 20, t + 20), call.start);
    await settle(page);
    const near = await ask(page, () => __ku.drawn());
    assert.ok(near.overheads >= 3, `${near.overheads} entries`);
    // The strip shows the parts of all time, whether what is absent is shorter than a column or longer.
    const strips = await ask(page, () => [3, 5, 50, 1000].map((columns) => {
      const { overview, groups: [cpus], store } = __ku.app;
      overview.sumUp(cpus, columns);
      const sums = { user: new Float64Array(columns), kernel: new Float64Array(columns) };
      const step = overview.length / columns;
      for (let i = 0; i < store.n; i++) {
        if (!isExecution(store.kind[i]) || isIdle(store.kind[i]) || isAbsent(store.kind[i]) || cpus.rowOf(i) < 0) continue;
        const sort = sums[isKernel(store.kind[i]) ? "kernel" : "user"];
        const at = Math.min(Math.floor((store.start[i] - overview.begin) / step), columns - 1);
        // What is shorter than a column counts where it begins.
        if (store.dur[i] < step) sort[at] += store.dur[i];
        else for (let k = at; k < columns; k++) sort[k] += Math.max(Math.min(store.start[i] + store.dur[i] - overview.begin, (k + 1) * step) - Math.max(store.start[i] - overview.begin, k * step), 0);
      }
      const all = step * cpus.keys.length;
      return Math.max(...["user", "kernel"].flatMap((sort) => [...sums[sort]].map((time, k) => Math.abs(time / all - overview[sort][k]))));
    }));
    assert.ok(strips.every((error) => error < 1e-6), strips.join());
    const about = await page.locator("#about").textContent();
    assert.match(about, /recording took about 0?\.?\d/);
    return { crests, overheads: near.overheads };
  },

  async stolen(page) {
    await ask(page, () => __ku.toggle("PID"));
    const [call] = await spansOf(page, EVENT.SYSCALL + 39);
    const [taken, later] = await spansOf(page, EVENT.STEAL);
    const rows = await rowsOf(page, "CPU");
    const threads = await rowsOf(page, "PID");
    assert.match(await page.locator("#labels .row", { hasText: "redis-benchmark.7" }).getAttribute("title"), /^redis-benchmark\.7, earlier kutrace_control: /);
    const css = await ask(page, (i) => ({ ...__ku.app.palette.css, call: __ku.app.palette.color(__ku.app.store, i) }), call.i);
    for (const row of [rows[0], threads[0]]) {
      assert.equal((await hitOn(page, taken, row, 0.5))?.i, taken.i, "the hatching is not found");
      assert.equal((await hitOn(page, taken, row, 0.2))?.i, call.i, "what it lies over is not found beside it");
    }
    // What ran keeps the edges of its height, in its own colour.
    const height = async (over, part) => {
      const inked = (await column(page, "overlay", await xOf(page, over.start + over.dur / 2), rows[0].y, rows[0].y + rows[0].h)).filter((color) => color !== "").length;
      assert.ok(inked > rows[0].h * 0.2 && inked < rows[0].h * 2 * part, `${over.name}: ${inked} of ${rows[0].h}`);
    };
    await height(taken, 0.42);
    await height(later, 0.27);
    const isRed = (color) => Number.parseInt(color.slice(1, 3), 16) > 1.4 * Number.parseInt(color.slice(3, 5), 16);
    const reds = async (over) => {
      const x = await xOf(page, over.start + over.dur * 0.75);
      const middle = rows[0].y + rows[0].h / 2;
      return (await Promise.all([0, 1, 2, 3, 4, 5].map((k) => column(page, "overlay", x + k, middle - 5, middle + 5)))).flat().filter((color) => color !== "" && isRed(color)).length;
    };
    const [stalled] = await spansOf(page, EVENT.STALLED);
    assert.ok((await reds(taken)) > 10 && (await reds(stalled)) > 5);
    // A search greys both, as all else.
    await page.fill("#pattern", "^prog");
    await settle(page);
    assert.deepEqual([await reds(taken), await reds(stalled)], [0, 0]);
    await page.fill("#pattern", "");
    // The name of what runs is on its own ground.
    await ask(page, ({ start, dur }) => __ku.show(start + dur / 4, start + dur / 2), taken);
    await settle(page);
    const { top, middle } = await ask(page, () => {
      const [item] = __ku.app.view.items.filter((one) => one.row === 0);
      return { top: __ku.app.view.top(item), middle: __ku.app.view.middle(item) };
    });
    assert.ok(middle > top);
    const ground = await column(page, "overlay", 3, middle - 6, middle + 6);
    assert.ok(ground.every((color) => color === css.call), `${ground}, not ${css.call}`);
    // In a table, a call that is too long continues in another line before what it returned, and nowhere else.
    await page.setViewportSize({ width: 1280, height: 720 });
    await ask(page, () => {
      __ku.app.list.what = "calls";
      toggleList(__ku.app);
    });
    const calls = await page.locator("#details tbody td:first-child button").evaluateAll((all) => all.map((one) => one.innerHTML));
    assert.ok(calls.some((text) => text.includes("=")) && calls.every((text) => /^[^=]*(<wbr>=[^=]+)?$/.test(text)), calls.join());
    return {};
  },

  async highlight(page) {
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    const label = (text) => page.locator("#labels .row", { hasText: text });
    const header = (text) => page.locator("#labels .group", { hasText: text });
    const click = async (locator, options) => {
      await locator.click(options);
      await settle(page);
    };
    /** The part of a row's pixels that is neither ground nor grey. */
    const colored = (group, row) => ask(page, ([name, wanted]) => {
      const { picture, palette, view, axis } = __ku.app;
      const item = view.items.find((it) => it.group.name === name && it.row === wanted);
      if (!item) return null;
      const y = Math.round((view.top(item) + item.h * 0.4) * picture.ratio);
      const line = picture.pixels.subarray(y * picture.w, (y + 1) * picture.w);
      const dull = (p) => {
        const rgb = [p & 255, (p >> 8) & 255, (p >> 16) & 255];
        return Math.max(...rgb) - Math.min(...rgb) < 24;
      };
      return line.filter((p) => !dull(p)).length / (picture.w - axis.ticks.length) + 0 * palette.back;
    }, [group, row]);
    const all = [await colored("CPU", 0), await colored("CPU", 1), await colored("PID", 0)];
    assert.ok(all.every((part) => part > 0.4), all.join());
    await click(label("worker.1001"));
    assert.equal(await label("worker.1001").getAttribute("aria-pressed"), "true");
    assert.ok((await colored("PID", 1)) > 0.4 && (await colored("CPU", 1)) > 0.4, "the highlighted thread loses its colour");
    assert.equal(await colored("PID", 0), 0, "other threads keep their colour");
    assert.equal(await colored("CPU", 0), 0, "other CPUs keep their colour");
    await click(header("Threads"));
    assert.deepEqual((await rowsOf(page, "PID")).map((r) => r.label), ["worker.1001"]);
    assert.ok((await header("Threads").textContent()).endsWith("(1 of 4)"));
    assert.match(await header("Threads").getAttribute("title"), /highlighted/);
    await click(header("Threads"));
    assert.equal((await rowsOf(page, "PID")).length, 0);
    assert.equal(await header("Threads").getAttribute("aria-expanded"), "false");
    await click(header("Threads"));
    assert.equal((await rowsOf(page, "PID")).length, 4);
    await click(label("worker.1001"), { button: "right" });
    assert.equal(await page.locator("#labels .lit").count(), 0, "rows named alike stay highlighted");
    await click(label("CPU 2"), { button: "right" });
    assert.equal(await page.locator("#labels .lit").count(), 4, "not all rows named alike are highlighted");
    await label("CPU 2").press("Enter");
    await settle(page);
    assert.equal(await page.locator("#labels .lit").count(), 3, "the keyboard does not highlight");
    assert.equal(await colored("CPU", 2), 0);
    await page.keyboard.press("ArrowDown");
    assert.equal(await ask(page, () => document.activeElement.textContent), "CPU 3", "the arrow keys do not move");
    await page.locator("#overlay").focus();
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal(await page.locator("#labels .lit").count(), 0);
    assert.ok((await colored("CPU", 2)) > 0.4);
    // While something is searched, only that keeps its colour on a highlighted row.
    await click(label("worker.1001"));
    await page.fill("#pattern", "^page_fault$");
    await settle(page);
    const both = await colored("CPU", 1);
    assert.ok(both > 0 && both < all[1], `${both} of ${all[1]}`);
    assert.equal(await colored("CPU", 0), 0);
    // And only what lies there is counted, now and when the rows change.
    const found = () => ask(page, () => __ku.search());
    const lit = await found();
    assert.ok(lit.count === 300 && lit.text.startsWith("Matches on highlighted rows: 300 calls, total"), lit.text);
    await click(label("worker.1002"));
    assert.equal((await found()).count, 600);
    await click(label("worker.1001"), { button: "right" });
    const every = await found();
    assert.ok(every.count === 1200 && every.text.startsWith("Matches: 1,200 calls, total"), every.text);
    return { all, both };
  },

  async arcs(page) {
    const drawnNow = () => ask(page, () => __ku.app.overlay.arcs.drawn.map((arc) => ({ ...arc, event: __ku.span(arc.i).event })));
    const events = async () => (await drawnNow()).map((arc) => arc.event).sort();
    /** Three quarters of the way along an arc there is ink, and the arc is found. */
    const found = async (event) => {
      const { i, x0, x1, y0, y1 } = (await drawnNow()).find((arc) => arc.event === event);
      const rows = await rowsOf(page, "CPU");
      assert.ok(Math.abs(y0 - rows[0].y - rows[0].h / 2) < 1 && Math.abs(y1 - rows[1].y - rows[1].h / 2) < 1, "the ends are not on their rows");
      const [x, y] = [x0 / 16 + (15 * x1) / 16, (7 * y0) / 16 + (9 * y1) / 16];
      assert.equal((await ask(page, (at) => __ku.hit(...at), [x, y]))?.i, i, `nothing at ${x}, ${y}`);
      assert.ok((await column(page, "overlay", x, y - 5, y + 5)).some((color) => color !== ""), `no ink at ${x}, ${y}`);
    };
    assert.deepEqual(await events(), [-3]);
    await found(-3);
    await page.keyboard.press("i");
    await settle(page);
    assert.deepEqual(await events(), [-3, -7]);
    await found(-7);
    await page.keyboard.press("u");
    await settle(page);
    assert.deepEqual(await events(), [-7]);
    // The legend opens on demand, and has what is in sight.
    assert.ok(await page.locator("#legend").isHidden());
    await page.keyboard.press("l");
    assert.deepEqual(await page.locator("#legend button").allTextContents(), ["idle", "IPI"]);
    await page.keyboard.press("u");
    const legend = await page.locator("#legend button").allTextContents();
    assert.deepEqual(legend, ["idle", "wakeup", "IPI"]);
    await fillIn(page, "options", "#min", "10 ns");
    await page.locator("#legend button", { hasText: "wakeup" }).click();
    await settle(page);
    assert.deepEqual(await ask(page, () => [__ku.search().pattern, __ku.search().count]), ["kind:wakeup", 1]);
    // It is pressed, and leaves alone what else was asked for.
    assert.equal(await page.locator("#legend button", { hasText: "wakeup" }).getAttribute("aria-pressed"), "true");
    assert.equal(await page.inputValue("#min"), "10 ns");
    assert.match(await page.locator("#legend button", { hasText: "wakeup" }).getAttribute("title"), /^from the waker/);
    await fillIn(page, "options", "#min", "");
    await page.locator("#legend button", { hasText: "wakeup" }).click();
    await settle(page);
    assert.equal((await ask(page, () => __ku.search())).active, false, "a second click does not end the search");
    await page.keyboard.press("l");
    assert.ok(await page.locator("#legend").isHidden(), "L does not hide the legend");
    return {};
  },

  async tags(page) {
    const { begin } = await ask(page, () => __ku.view());
    await ask(page, (t) => __ku.show(t, t + 40_000), begin);
    const tags = async (state) => {
      await cycled(page, "names");
      await settle(page);
      assert.equal(await stateOf(page, "names"), state);
      return ask(page, () => __ku.drawn().tags.map((i) => __ku.span(i)));
    };
    const threads = await tags("threads");
    assert.deepEqual(threads.map((s) => s.name).sort(), ["worker.1000", "worker.1001", "worker.1002", "worker.1003"]);
    const starts = await ask(page, () => __ku.app.groups[0].exec.ids.length && [0, 1, 2, 3].map((row) => {
      const { ids, first } = __ku.app.groups[0].exec;
      return [...ids.subarray(first[row], first[row + 1])].map((i) => __ku.span(i)).find((s) => s.name.startsWith("worker")).start;
    }));
    // The first of a thread, or the longest of those that share its pixel.
    for (const { cpu, start } of threads) assert.ok(start >= starts[cpu] && start < starts[cpu] + 1500, `CPU ${cpu}: ${start}, first ${starts[cpu]}`);
    const all = await tags("all");
    assert.ok(all.length > threads.length && new Set(all.map((s) => s.event)).size > 1, `${all.length} tags`);
    assert.deepEqual(await tags("inside"), []);
    return { threads: threads.length, all: all.length };
  },

  async columns(page) {
    return ask(page, async () => {
      let seed = 7;
      const random = (max) => (seed = (seed * 16807) % 2147483647) % max;
      // As postprocess/src/sink/page/pack.rs stores them.
      const packed = async (list, width, sums) => {
        const escape = 2 ** (8 * width) - 1;
        const wides = list.filter((v) => v < 0 || v >= escape);
        const bytes = new Uint8Array(list.length * width + 8 * wides.length);
        list.forEach((v, i) => {
          for (let plane = 0; plane < width; plane++) bytes[plane * list.length + i] = Math.floor((wides.includes(v) ? escape : v) / 256 ** plane) % 256;
        });
        wides.forEach((v, k) => new DataView(bytes.buffer).setBigInt64(list.length * width + 8 * k, BigInt(v), true));
        const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
        const piece = new Uint8Array(await new Response(stream).arrayBuffer());
        return unpackPart({ pieces: [piece], width, wide: wides.length, rows: list.length, sums });
      };
      const groups = [[0, 0], [1, 254], [-1, 3], [-1, 200], [300, 5], [-129, 7], [65535, 1], [-1, 40000], [2 ** 32 - 1, 0], [2 ** 40, -5], [255, 0]];
      const lists = groups.map(([one, other]) => Array.from({ length: 50 }, () => (random(3) ? one : other)));
      const sorts = [];
      for (const [g, list] of lists.entries()) {
        for (const width of [1, 2, 4]) {
          const values = await packed(list, width, false);
          const is = values.length > 0 ? [...values] : list.map(() => 0);
          if (is.join() !== list.join()) throw new Error(`${width}: ${is}, not ${list}`);
          const sum = await packed(list, width, true);
          const added = list.map((_, i) => list.slice(0, i + 1).reduce((a, b) => a + b));
          if ((sum.length > 0 ? [...sum] : list.map(() => 0)).join() !== added.join()) throw new Error(`sums ${sum}`);
          // Any two groups of a column, in this order.
          for (const after of lists) {
            const next = await packed(after, width, false);
            const first = new values.constructor(100);
            first.set(values);
            const column = withRoomFor(first, next, 50);
            column.set(next, 50);
            if ([...column].join() !== [...list, ...after].join()) throw new Error(`${[...column]}, not ${[list, after]}`);
          }
          if (width === 1) sorts[g] = values.constructor.name;
        }
      }
      if (await packed([1, 2], 1, false).then((v) => v.constructor.name) !== "Uint8Array") throw new Error("small values take more than a byte");
      const cut = await unpackPart({ pieces: [new Uint8Array([1, 2, 3])], width: 1, wide: 0, rows: 5, sums: false });
      if (cut !== null) throw new Error("damage is not seen");
      return { sorts };
    });
  },

  async hiding(page) {
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    assert.equal((await rowsOf(page, "PID")).length, 120);
    await ask(page, () => __ku.show(105_000, 125_000));
    const labels = async () => (await rowsOf(page, "PID")).map((r) => r.label);
    assert.deepEqual(await labels(), ["short-lived.110", "short.111", "short-lived.112"]);
    await settle(page);
    assert.ok((await page.locator("#labels .group").last().textContent()).includes("3 of 120"));
    await page.locator("#labels .row", { hasText: "short.111" }).click();
    await ask(page, () => __ku.show(305_000, 315_000));
    assert.deepEqual(await labels(), ["short.111", "short-lived.130", "short.131"], "a highlighted row hides");
    await cycled(page, "rows");
    await settle(page);
    assert.equal((await labels()).length, 120);
    assert.equal((await rowsOf(page, "CPU")).length, 1);
    // A row in sight stays where it is while others above it hide.
    await cycled(page, "rows");
    await ask(page, () => {
      __ku.show(100_000, 900_000);
      __ku.app.view.scrollRows(1e9);
      __ku.app.drawNow();
    });
    const last = async () => (await rowsOf(page, "PID")).find((r) => r.label === "short.189").y;
    const was = await last();
    const scrolled = await ask(page, () => __ku.app.view.scroll);
    assert.ok(scrolled > 100, "the rows do not scroll");
    await ask(page, () => __ku.show(115_000, 905_000));
    assert.ok(Math.abs((await last()) - was) <= 20, `the row moved from ${was} to ${await last()}`);
    // Ctrl and the wheel over the names make rows higher, around the one under the pointer.
    const rowAt = () => page.locator("#labels .row", { hasText: "short.183" }).boundingBox();
    const before = await rowAt();
    await page.mouse.move(before.x + 20, before.y + before.height / 2);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await settle(page);
    const after = await rowAt();
    assert.ok(after.height > before.height * 1.5, `a row of ${before.height} pixels is ${after.height} high`);
    const apart = after.y + after.height / 2 - before.y - before.height / 2;
    assert.ok(Math.abs(apart) <= 2, `the row under the pointer moves by ${apart}`);
    return {};
  },

  async asleep(page) {
    await ask(page, () => __ku.toggle("PID"));
    const shows = async (t0, t1) => {
      await ask(page, ([from, to]) => __ku.show(from, to), [t0, t1]);
      return (await rowsOf(page, "PID")).map((r) => r.label);
    };
    const all = [50, 51, 52, 53, 54].map((pid) => `worker.${pid}`);
    assert.deepEqual(await shows(15_000, 25_000), all);
    for (const state of ["programs", "that run"]) {
      await cycled(page, "rows", -1);
      assert.equal(await stateOf(page, "rows"), state);
    }
    await settle(page);
    assert.deepEqual(await shows(15_000, 25_000), ["worker.51", "worker.52"]);
    assert.ok((await page.locator("#labels .group").last().textContent()).includes("2 of 5"));
    assert.deepEqual(await shows(20_000, 30_000), ["worker.52"], "what ends or begins at an edge runs in sight");
    assert.equal((await rowsOf(page, "CPU")).length, 1);
    await page.waitForFunction(() => location.hash.includes("draw=rows.2"));
    // What the page goes to can be seen, until something else is selected; so can highlighted rows.
    const wait = (await spansOf(page, EVENT.WAIT_A + 13)).find((s) => s.pid === 54);
    await ask(page, (i) => __ku.app.goTo(i), wait.i);
    assert.deepEqual(await shows(15_000, 25_000), ["worker.51", "worker.52", "worker.54"]);
    await page.keyboard.press("Escape");
    assert.deepEqual(await shows(15_000, 25_000), ["worker.51", "worker.52"]);
    await page.locator("#labels .row", { hasText: "worker.51" }).click();
    assert.deepEqual(await shows(32_000, 38_000), ["worker.51", "worker.53"]);
    return {};
  },

  async held(page) {
    const heights = async () => (await rowsOf(page, "CPU")).map((r) => r.h);
    const before = await heights();
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    assert.deepEqual(await heights(), before, "CPUs lose height to five threads");
    for (let back = 0; back < 2; back++) await cycled(page, "rows", -1);
    await settle(page);
    const box = await page.locator("#overlay").boundingBox();
    const labels = async () => (await rowsOf(page, "PID")).map((r) => r.label);
    const worker = async (pid) => (await rowsOf(page, "PID")).find((r) => r.label === `worker.${pid}`);
    const { y, h } = await worker(53);
    const at = y + Math.round(h * 0.7);
    /** Turns the wheel where worker.53 runs; its row must still be there, the pointer on the same part of it. */
    const turn = async (by, shown) => {
      await page.mouse.wheel(0, by);
      await page.waitForFunction((shown) => __ku.rows().filter((r) => r.group === "PID" && r.row >= 0).map((r) => r.label).join() === shown.join(), shown.map((pid) => `worker.${pid}`));
      await settle(page);
      const now = await worker(53);
      assert.ok(Math.abs(now.y + 0.7 * now.h - at) <= 2, `at ${at} is not the row of ${JSON.stringify(now)}`);
      assert.equal((await page.locator("#labels .row", { hasText: "worker.53" }).boundingBox()).y - box.y, now.y);
      assert.deepEqual(await heights(), before);
    };
    const x = await ask(page, () => __ku.app.view.x(35_000));
    await page.mouse.move(box.x + x, box.y + at);
    await turn(-1000, [53]);
    assert.ok((await ask(page, () => __ku.app.view.scroll)) < 0, "the row needs no room above it");
    assert.equal((await ask(page, (at) => __ku.hit(__ku.app.view.x(35_000), at), at))?.name, "worker.53");
    await turn(1000, [50, 51, 52, 53, 54]);
    // It stays even where it sleeps, until the pointer leaves it.
    await page.mouse.move(box.x + (await ask(page, () => __ku.app.view.x(15_000))), box.y + at);
    await turn(-1000, [51, 53]);
    await page.mouse.move(box.x + x, box.y + 5);
    await page.keyboard.press("a");
    await settle(page);
    assert.ok(!(await labels()).includes("worker.53"));
    assert.equal(await ask(page, () => __ku.app.view.scroll), 0);
    return {};
  },

  async ordered(page) {
    const menu = page.locator("#layer-order");
    await ask(page, () => __ku.toggle("PID"));
    await ask(page, () => __ku.show(22_000, 33_000));
    const standing = (...pids) => page.waitForFunction((wanted) =>
      __ku.rows().filter((r) => r.group === "PID" && r.row >= 0).map((r) => r.label).join() === wanted, pids.map((pid) => `worker.${pid}`).join());
    await standing(50, 51, 52, 53, 54);
    assert.deepEqual(await menu.locator("option").allTextContents(), ["number", "CPU time", "first run", "name", "process"]);
    await choose(page, "order", "CPU time");
    await standing(52, 53, 50, 51, 54);
    // The names stand beside their rows, and a click finds what is drawn there.
    await settle(page);
    const box = await page.locator("#overlay").boundingBox();
    const second = (await rowsOf(page, "PID"))[1];
    assert.equal((await page.locator("#labels .row", { hasText: "worker.53" }).boundingBox()).y - box.y, second.y);
    assert.equal((await ask(page, (y) => __ku.hit(__ku.app.view.x(31_500), y), second.y + second.h / 2))?.name, "worker.53");
    await page.waitForFunction(() => location.hash.includes("draw=order.1"));
    // Once the range rests, the order is that of what is in sight now. The keys are the picture's.
    await page.keyboard.press("0");
    await standing(50, 51, 52, 53, 54);
    await ask(page, () => {
      __ku.show(41_000, 52_000);
      __ku.app.viewChanged();
    });
    await standing(54, 50, 51, 52, 53);
    // An address brings its order along.
    await ask(page, () => (location.hash = "#t=0.0002..0.0003&open=CPU,PID&draw=order.3"));
    await standing(50, 51, 52, 53, 54);
    assert.equal(await menu.inputValue(), "name");
    await choose(page, "order", "process");
    await standing(52, 53, 51, 54, 50);
    // Folded, processes stand in the place of threads, and what is done with the page is about their rows.
    await choose(page, "order", "number");
    const fold = page.locator("#layer-fold");
    assert.deepEqual(await fold.locator("option").allTextContents(), ["none", "kernel threads", "process"]);
    await choose(page, "fold", "process");
    await page.keyboard.press("0");
    await settle(page);
    const labels = async (group) => (await rowsOf(page, group)).map((r) => r.label);
    const folded = ["worker.52", "worker.53 (2)", "worker.54 (2)"];
    assert.deepEqual([await labels("PID"), await labels("PROC")], [[], folded]);
    await ask(page, () => {
      const { app } = __ku;
      const i = app.store.kind.findIndex((kind, k) => kind === Kind.USER && app.store.pids[app.store.pid[k]] === 52);
      app.goTo(i);
    });
    assert.equal(await ask(page, () => __ku.app.homeOf(__ku.app.selected).name), "CPU");
    await ask(page, () => __ku.toggle("CPU"));
    assert.equal(await ask(page, () => __ku.app.homeOf(__ku.app.selected).name), "PROC");
    await page.waitForFunction(() => location.hash.includes("PROC") && location.hash.includes("draw=fold.2"));
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.deepEqual([await labels("PID"), await labels("PROC")], [[], folded]);
    // They have an order, too.
    await page.keyboard.press("0");
    await settle(page);
    await choose(page, "order", "CPU time");
    await settle(page);
    assert.deepEqual([(await labels("PROC")).toSorted(), (await labels("PROC")).at(-1)], [folded.toSorted(), "worker.52"]);
    await choose(page, "order", "number");
    await choose(page, "fold", "none");
    await settle(page);
    assert.deepEqual([(await labels("PID")).length, await labels("PROC")], [5, []]);
    return {};
  },

  async relative(page) {
    for (const group of ["PID", "RPC", "RES"]) await ask(page, (name) => __ku.toggle(name), group);
    await settle(page);
    const press = async (key) => {
      await page.keyboard.press(key);
      await settle(page);
    };
    const drawnNow = () => ask(page, () => __ku.drawn());
    const flags = async () => (await drawnNow()).spots.filter((s) => s.y0 === 0).length;
    const before = await ask(page, () => __ku.view());
    assert.deepEqual([(await drawnNow()).arcs > 0, (await flags()) > 0], [true, true]);
    const rowOf = async (group, text) => (await rowsOf(page, group)).find((r) => r.label.includes(text));
    /** Where a time lies on a row that begins at another. */
    const placeOf = (time, begin) => ask(page, (t) => {
      const { t0, t1, begin, width } = __ku.view();
      return ((t + begin - t0) / (t1 - t0)) * width;
    }, time - begin);
    const all = await ask(page, () => Array.from({ length: __ku.counts.spans }, (_, i) => __ku.span(i)));
    const threads = [[50, 1000], [51, 5000]];
    /** Everything on the rows of both threads, and on those of what they work for, is found where it is from the start. */
    const found = async () => {
      const { width } = await ask(page, () => __ku.view());
      const seen = (x) => x >= 0 && x < width;
      let count = 0;
      for (const [pid, begin] of threads) {
        for (const [group, label] of [["PID", `.${pid}`], ["RPC", `rpc.${pid - 47}`]]) {
          const row = await rowOf(group, label);
          for (const span of all.filter((s) => s.pid === pid && ["write", "page_fault", `worker.${pid}`].includes(s.name))) {
            const x = await placeOf(span.start + span.dur / 2, begin);
            if (!seen(x)) continue;
            count++;
            const hit = await ask(page, (at) => __ku.hit(...at), [x, row.y + row.h / 2]);
            assert.equal(hit?.i, span.i, `${span.name} of ${pid} on ${label}: ${JSON.stringify(hit)} at ${x}`);
          }
        }
        const { y, h } = await rowOf("PID", `.${pid}`);
        const wait = all.find((s) => s.pid === pid && s.event === EVENT.WAIT_A + 3);
        const x = await placeOf(wait.start + wait.dur / 2, begin);
        assert.equal((await ask(page, (at) => __ku.hit(...at), [x, y + h / 2]))?.i, wait.i);
        const { spots } = await drawnNow();
        for (const event of [EVENT.LOCK_HELD, EVENT.MARK_A]) {
          const span = all.find((s) => s.pid === pid && s.event === event);
          const at = await placeOf(span.start + span.dur / 2, begin);
          if (!seen(at)) continue;
          count++;
          const spot = spots.find((s) => s.i === span.i && s.y0 >= y && s.y1 <= y + h);
          assert.ok(spot && spot.x0 <= at + 1 && spot.x1 >= at - 1, `${span.name} of ${pid}: ${JSON.stringify([spot, at])}`);
        }
      }
      return count;
    };
    await page.click("#basetime");
    await settle(page);
    assert.match(await page.locator("#basetime").textContent(), /^Each row/);
    assert.equal(await page.locator("#basetime").getAttribute("aria-pressed"), "true");
    assert.deepEqual([(await drawnNow()).arcs, await flags(), await page.locator("#arcs").isDisabled()], [0, 0, true]);
    assert.ok((await ask(page, () => __ku.app.axis.ticks.map((tick) => tick.label))).includes("0 \u00b5s"));
    assert.equal(await found(), 20);
    // Threads that did the same look the same, whenever that was.
    const shapes = await ask(page, () => {
      const { picture, palette, view } = __ku.app;
      const grounds = [palette.back, palette.row, palette.grid];
      return view.seen().filter((item) => item.group.name === "PID" && item.row >= 0).map((item) =>
        [0, 0.2, 0.38].map((part) => {
          const y = Math.round((view.middle(item) + part * view.bodyHeight(item)) * picture.ratio);
          const line = picture.pixels.subarray(y * picture.w, (y + 1) * picture.w);
          return Array.from(line, (color) => (grounds.includes(color) ? " " : "#")).join("");
        }));
    });
    assert.equal(shapes.length, 2);
    assert.deepEqual(shapes[0], shapes[1]);
    assert.ok(new Set(shapes[0]).size === 3 && shapes[0].every((line) => line.includes("#")), shapes[0].join("\n"));
    // Zooming and moving keep it so, at the pointer's place.
    const box = await page.locator("#overlay").boundingBox();
    await page.mouse.move(box.x + (await placeOf(700, 0)), box.y + 100);
    await page.mouse.wheel(0, -400);
    await press("d");
    assert.ok((await ask(page, () => __ku.view())).t1 < before.t1);
    await press("a");
    const nearer = await found();
    assert.ok(nearer > 4 && nearer < 20, `${nearer} in sight`);
    await press("0");
    // The text below, the panel and a note belong to the place on the row.
    const write = all.find((s) => s.pid === 51 && s.name === "write");
    const { y, h } = await rowOf("PID", ".51");
    const pointAt = async () => [box.x + (await placeOf(write.start + write.dur / 2, 5000)), box.y + y + h / 2];
    await page.mouse.move(...(await pointAt()));
    assert.match(await page.locator("#hover").textContent(), /write.* 3 \u00b5s after the row/);
    await page.mouse.click(...(await pointAt()));
    await settle(page);
    assert.match(await page.locator("#details").textContent(), /3 \u00b5s after the row/);
    await press("m");
    const [bubble] = await ask(page, () => __ku.bubbles());
    const under = () => ask(page, (tip) => __ku.hit(...tip), [bubble.tipX, bubble.tipY]);
    assert.equal((await under())?.i, write.i, "the note points elsewhere");
    await page.locator("#overlay").focus();
    // Above the note's tip; the panel has taken some of the width.
    const [x, tipY] = await pointAt();
    await page.mouse.click(x, tipY - 8);
    await press("f");
    const near = await ask(page, () => __ku.view());
    assert.ok(near.t1 - near.t0 < 3 * write.dur, "F does not come close");
    assert.equal((await ask(page, (row) => __ku.hit(__ku.view().width / 2, row.y + row.h / 2), await rowOf("PID", ".51")))?.i, write.i);
    await press(".");
    assert.deepEqual(await ask(page, () => [__ku.selected().name, __ku.selected().pid]), ["page_fault", 51]);
    await press("[");
    assert.deepEqual(await ask(page, () => [__ku.selected().name, __ku.selected().pid]), ["page_fault", 50]);
    // A length has no totals: it is another time on each row.
    await press("r");
    assert.match(await page.locator("#details h2").textContent(), /^1 \u00b5s$/);
    assert.equal(await page.locator("#details table").count(), 0);
    await press("Escape");
    await page.fill("#pattern", "^page_fault$");
    await page.locator("#overlay").focus();
    for (const pid of [50, 51]) {
      await press("Enter");
      assert.equal(await ask(page, () => __ku.selected().pid), pid);
      const row = await rowOf("PID", `.${pid}`);
      const x = await placeOf(550, 0);
      assert.equal((await ask(page, (point) => __ku.hit(...point), [x, row.y + row.h / 2]))?.pid, pid, "the match is out of sight");
    }
    await press("Escape");
    // It outlives the page, and ends where it began.
    await page.waitForFunction(() => location.hash.includes("from=rows"));
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    await press("0");
    assert.equal(await found(), 20);
    await press("o");
    assert.deepEqual([(await drawnNow()).arcs > 0, await ask(page, () => __ku.view().relative)], [true, false]);
    await press("o");
    await press("w");
    await press("o");
    const after = await ask(page, () => __ku.view());
    assert.deepEqual([after.t0, after.t1].map(Math.round), [before.t0, before.t1].map(Math.round), "not back where it began");
    return {};
  },

  async stripes(page) {
    /** The colours of a span's column, from its middle to the edge of its row's body, once for each run. */
    const columns = () => ask(page, () => {
      const { picture, view } = __ku.app;
      const item = view.items.find((it) => it.row === 0);
      const middle = Math.round(view.middle(item) * picture.ratio);
      const half = Math.floor((view.bodyHeight(item) / 2) * picture.ratio);
      return Array.from({ length: __ku.counts.spans }, (_, i) => {
        const { start, dur, name } = __ku.span(i);
        const x = Math.round(view.x(start + dur / 2) * picture.ratio);
        const at = (away) => picture.pixels[(middle + away) * picture.w + x];
        const [down, up] = [[], []];
        for (let away = 0; away < half; away++) {
          down.push(at(away));
          up.push(at(-1 - away));
        }
        const runs = down.filter((color, k) => k === 0 || color !== down[k - 1]);
        return { name, wide: dur > 100, runs, even: down.join() === up.join() };
      });
    });
    const contrasts = [];
    for (const theme of ["light", "dark", "contrast"]) {
      for (const colors of ["usual", "safe"]) {
        await ask(page, (address) => (location.hash = address), `#theme=${theme}&colors=${colors}`);
        await page.waitForFunction((look) => [__ku.look().used, __ku.look().colors].join() === look, `${theme},${colors}`);
        await settle(page);
        const seen = await columns();
        assert.ok(seen.every((column) => column.even), `${theme}: the halves of a span differ`);
        const wide = seen.filter((column) => column.wide);
        // From the middle: the span, a stripe, the span, a stripe, the span, the ground.
        for (const { name, runs } of wide) {
          const own = name === "-sched-" ? 2 : 6;
          assert.equal(runs.length, own, `${theme}, ${name}: ${runs.map((c) => c.toString(16))}`);
          if (own === 2) continue;
          assert.ok(runs[2] === runs[0] && runs[4] === runs[0], `${theme}, ${name}: its own colour is broken`);
          for (const stripe of [runs[1], runs[3]]) {
            const apart = [0, 8, 16].reduce((sum, c) => sum + Math.abs(((stripe >> c) & 255) - ((runs[0] >> c) & 255)), 0);
            contrasts.push(apart);
            assert.ok(apart >= 30, `${theme}, ${name}: a stripe like its span, ${apart}`);
          }
        }
        const looks = wide.map((column) => column.runs.join());
        const alike = wide.filter((_, k) => looks.indexOf(looks[k]) !== k).map((column) => column.name);
        assert.deepEqual(alike, [], `${theme}, ${colors}: look like others`);
        for (const { runs } of seen.filter((column) => !column.wide)) assert.equal(runs.length, 2, "stripes in a narrow span");
      }
    }
    // What is not searched has none, what is keeps its own.
    const stripes = (name) => columns().then((seen) => seen.find((column) => column.name === name).runs.length);
    await page.fill("#pattern", "^call3$");
    await settle(page);
    assert.deepEqual([await stripes("call3"), await stripes("call4")], [6, 2]);
    return { min: Math.min(...contrasts) };
  },

  async morse(page) {
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    const seen = await ask(page, () => {
      const { picture, view, palette } = __ku.app;
      const dot = MORSE_DOT * picture.ratio;
      return view.seen().filter((item) => item.group.name === "PID" && item.row >= 0).map((item) => {
        const y = Math.round(view.middle(item) * picture.ratio) + 1;
        const line = picture.pixels.subarray(y * picture.w, (y + 1) * picture.w);
        const i = item.group.waits.ids[item.group.waits.first[item.row]];
        const color = palette.waitPixel(__ku.app.store, i);
        const end = Math.round(view.x(1_000_100 - 100_000) * picture.ratio);
        let text = "";
        for (let x = end - 140; x < end; x++) text += line[x] === color ? "#" : " ";
        const codes = text.trim().split(/ {5,}/).map((code) =>
          code.split(/ +/).map((stroke) => (stroke.length === dot ? "." : stroke.length === 3 * dot ? "-" : "?")).join(""));
        return { name: __ku.span(i).name, codes };
      });
    });
    const morse = { c: "-.-.", d: "-..", k: "-.-", l: ".-..", m: "--", n: "-.", p: ".--.", s: "...", t: "-", z: "--.." };
    assert.ok(seen.length >= 20, `${seen.length} rows`);
    for (const { name, codes } of seen) {
      const code = morse[name.at(-1)];
      if (code) assert.deepEqual(codes, [code, code, code], name);
      assert.equal(codes.length, 3, name);
    }
    return { rows: seen.length };
  },

  async dots(page) {
    const dotted = () => ask(page, () => {
      const { picture, palette, view } = __ku.app;
      const item = view.items.find((it) => it.row === 0);
      const y = Math.round((view.top(item) + item.h) * picture.ratio) - 1;
      return picture.pixels.subarray(y * picture.w, (y + 1) * picture.w).filter((p) => p === palette.dots).length / picture.w;
    });
    const far = await dotted();
    assert.ok(far > 0.2 && far < 0.5, `${far} of the pixels below a row`);
    const { begin } = await ask(page, () => __ku.view());
    await ask(page, (t) => __ku.show(t, t + 900), begin);
    assert.equal(await dotted(), 0, "dots where nothing is hidden");
    return { far };
  },

  async reach(page) {
    return ask(page, () => {
      let seed = 1;
      const random = (max) => (seed = (seed * 16807) % 2147483647) % max;
      let found = 0;
      for (let round = 0; round < 60; round++) {
        const n = random(700);
        const store = { start: new Float64Array(n), dur: new Float64Array(n) };
        for (let i = 0, at = 0; i < n; i++) {
          store.start[i] = at += random(5);
          store.dur[i] = random(20) === 0 ? random(3000) : random(9);
        }
        const ids = Uint32Array.from({ length: n }, (_, i) => i);
        const reach = new IntervalIndex(store, { first: Uint32Array.of(0, n), ids, maxEnd: new Float64Array(n) });
        for (let k = 0; k < 20; k++) {
          const from = random(n + 1);
          const to = from + random(n - from + 1);
          const [time, min] = [random(2 * n + 1), random(2) * random(600)];
          const wanted = [...ids].filter((i) => i >= from && i < to && store.dur[i] >= min && store.start[i] + store.dur[i] > time);
          const got = reach.find(from, to, time, min);
          if (got.join() !== wanted.join()) throw new Error(`${from}..${to} after ${time}, ${min} and more: ${got}, not ${wanted}`);
          found += got.length;
        }
      }
      return { found };
    });
  },

  async exported(page) {
    const { savedViews, tracebase } = await ask(page, () => __ku.app.store.meta);
    assert.equal(tracebase, "2021-10-28_14:01:00");
    assert.deepEqual(savedViews.map(([name, { xleft_ts }]) => [name, xleft_ts]), [["&#x21d0;", undefined], ["&#x2780;", 49.418952]]);
    const [callout] = await spansOf(page, -4);
    assert.deepEqual([callout.name, callout.arg, callout.ret], ["look here", 60, -2]);
    const [note] = await ask(page, () => __ku.app.notes.all);
    assert.deepEqual([note.text, note.from, note.dx < 100 && note.dy < 0], ["look here", callout.start, true]);
    assert.ok(await ask(page, () => __ku.app.notes.tipOf(__ku.app.notes.all[0])), "the callout stands nowhere");
    await page.keyboard.press("1");
    await settle(page);
    const { t0, t1 } = await ask(page, () => __ku.view());
    assert.deepEqual([t0, t1].map(Math.round), [4941895200, 4941896000]);
    assert.equal(await page.locator("#view-list input").first().inputValue(), "\u2780");
    return {};
  },

  async remembered(page) {
    const said = () => ask(page, () => ({
      lit: __ku.app.groups.flatMap((g) => g.labels.filter((_, row) => g.lit[row])), layers: __ku.layers(),
      rows: __ku.rows().map((r) => r.label),
    }));
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    await page.locator("#labels .row", { hasText: "worker.51" }).click();
    await page.locator("#labels .group", { hasText: "Threads" }).click();
    await cycled(page, "counters");
    await cycled(page, "marks");
    await page.waitForFunction(() => ["lit=", "only=", "draw=", "counters", "marks"].every((part) => location.hash.includes(part)));
    const was = await said();
    assert.deepEqual(was.lit, ["worker.51"]);
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.deepEqual(await said(), was);
    assert.equal(await stateOf(page, "counters"), "kernel");
    await ask(page, () => (location.hash = "#lit=CPU.7-NO.1-PID.x&only=PID&draw=marks.9-no.1-freq"));
    await page.waitForFunction(() => !__ku.app.highlight.active);
    assert.equal((await said()).layers.marks, "all");
    return {};
  },
};
