// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about the frame that the picture stands in: windows of any size, the panel, fingers, steps back, contrast.
import assert from "node:assert/strict";

// A function that runs in the page has its own EVENT, the same: the page's scripts share one scope.
import { EVENT } from "../../postprocess/viewer/data/tables.js";

const ask = (page, question, argument) => page.evaluate(question, argument);
const view = (page) => ask(page, () => __ku.view());
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const plot = (page) => page.locator("#overlay").boundingBox();
const heights = (page, group) => ask(page, (group) => __ku.rows().filter((r) => r.group === group && r.row >= 0).map((r) => r.h), group);

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
}

/** A place on the first row, between two parts of the width, under which there is execution that is not idle. */
const spanBetween = (page, from, to) => ask(page, ([from, to]) => {
  const row = __ku.rows().find((r) => r.row === 0);
  const { width } = __ku.view();
  for (let x = Math.round(width * from); x < width * to; x++) {
    const hit = __ku.hit(x, row.y + row.h / 2);
    if (hit && hit.event >= EVENT.TRAP && hit.event !== EVENT.USER) return { x, y: row.y + row.h / 2, i: hit.i };
  }
  return null;
}, [from, to]);

const zoomed = (page) => ask(page, () => {
  const { begin, end } = __ku.view();
  __ku.show((begin + end) / 2, (begin + end) / 2 + 3000);
});

export const frame = {
  async sheet(page) {
    for (const [width, height] of [[1600, 900], [1280, 720], [800, 500], [400, 700]]) {
      await page.setViewportSize({ width, height });
      await press(page, "?");
      const { wide, left, top, inside } = await ask(page, () => {
        const sheet = document.querySelector("#help");
        const outer = sheet.getBoundingClientRect();
        const within = [...sheet.querySelectorAll("h2, .close")].map((e) => e.getBoundingClientRect());
        return {
          wide: sheet.scrollWidth - sheet.clientWidth, left: sheet.scrollLeft, top: sheet.scrollTop,
          inside: within.every((box) => box.left >= outer.left && box.right <= outer.right && box.top >= outer.top && box.bottom <= outer.bottom),
        };
      });
      assert.deepEqual([wide, left, top, inside], [0, 0, 0, true], `${width}x${height}`);
      await press(page, "Escape");
    }
    return {};
  },

  async narrow(page) {
    await page.fill("#pattern", "page_fault");
    for (const [width, height, text] of [[1600, 900, 100], [1600, 900, 200], [1600, 900, 175], [1280, 720, 100], [1200, 800, 100], [1024, 768, 100], [960, 700, 100], [800, 400, 100], [400, 700, 100]]) {
      await page.setViewportSize({ width, height });
      await ask(page, (text) => {
        __ku.app.look.set("text", String(text));
        lookChanged(__ku.app);
      }, text);
      await settle(page);
      const { scroll, outside, over, plot } = await ask(page, () => {
        const controls = [...document.querySelectorAll("header :is(button, input, output, select)")].filter((e) => e.offsetParent).map((e) => [e.id || e.textContent, e.getBoundingClientRect()]);
        const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
        return {
          scroll: [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight],
          outside: controls.filter(([, box]) => box.left < 0 || box.right > innerWidth + 1).map(([name]) => name),
          over: controls.flatMap(([a, one], k) => controls.slice(k + 1).filter(([, other]) => meet(one, other)).map(([b]) => `${a} ${b}`)),
          plot: document.querySelector("#plot").getBoundingClientRect().height / innerHeight,
        };
      });
      assert.deepEqual([scroll, outside, over], [[0, 0], [], []], `${width}x${height}, text ${text}%`);
      // What was found is read in full, even with the numbers of a large trace.
      const cut = await ask(page, () => {
        const matches = byId("matches");
        matches.textContent = "Matches: 2,345,678 calls (at 1,234,567 of 9,876,543 pieces), total 123.4568 s, own time 12.3456 s [440 ns..23.0661 s]; 1,234,567 start in sight, 123.456 ms";
        return [matches.scrollWidth - matches.clientWidth, matches.scrollHeight - matches.clientHeight];
      });
      if (text === 100 && width !== 800) assert.deepEqual(cut, [0, 0], `${width}x${height}: what was found is cut`);
      if (text === 100 && height >= 700) assert.ok(plot > 0.45, `${width}x${height}: the picture has ${plot} of the height`);
    }
    return {};
  },

  async panel(page) {
    const box = await plot(page);
    await zoomed(page);
    const before = await view(page);
    const ticks = () => ask(page, () => __ku.app.axis.ticks.map(({ time, label }) => [Math.round(__ku.app.view.x(time)), label]));
    const marks = await ticks();
    const at = await spanBetween(page, 0.2, 0.6);
    await page.mouse.click(box.x + at.x, box.y + at.y);
    await settle(page);
    const open = await view(page);
    assert.ok(open.width < before.width - 200, "the panel takes no room");
    assert.equal((await ask(page, ({ x, y }) => __ku.hit(x, y), at))?.i, at.i, "what was clicked is elsewhere");
    assert.deepEqual(await ticks(), marks.filter(([x]) => x <= open.width), "ticks have moved");
    // Wider by its edge, with the same times at the same places; double click: as it was.
    const edge = await page.locator("#panel-edge").boundingBox();
    await page.mouse.move(edge.x + 3, edge.y + 200);
    await page.mouse.down();
    await page.mouse.move(edge.x - 97, edge.y + 200, { steps: 5 });
    await page.mouse.up();
    await page.locator("#panel-edge").press("ArrowLeft");
    await settle(page);
    const wider = await view(page);
    assert.ok(Math.abs(open.width - wider.width - 124) <= 8, `${open.width}, then ${wider.width}`);
    assert.ok(Math.abs(wider.t0 - before.t0) < 1e-6);
    assert.deepEqual(await ticks(), marks.filter(([x]) => x <= wider.width));
    const now = await page.locator("#panel-edge").boundingBox();
    await page.mouse.dblclick(now.x + 3, now.y + 100);
    await settle(page);
    assert.equal((await view(page)).width, open.width);
    await page.locator("#overlay").focus();
    await press(page, "Escape");
    const after = await view(page);
    assert.deepEqual([after.width, after.t0, Math.round(after.t1)], [before.width, before.t0, Math.round(before.t1)], "the picture is not as it was");
    // A span that lies where the panel comes is seen beside it.
    const last = await spanBetween(page, 0.9, 1);
    await page.mouse.click(box.x + last.x, box.y + last.y);
    await settle(page);
    const [from] = await ask(page, (i) => __ku.app.placeOf(i), last.i);
    const { t0, t1 } = await view(page);
    assert.ok(from >= t0 && from < t1, "the panel covers what was selected");
    // Numbers are not cut off, however long names are.
    await ask(page, () => __ku.app.measure({ from: __ku.view().begin, to: __ku.view().end }));
    await settle(page);
    assert.equal(await ask(page, () => document.querySelector("#details").scrollWidth - document.querySelector("#details").clientWidth), 0);
    return {};
  },

  async pinch(page) {
    const session = await page.context().newCDPSession(page);
    const box = await plot(page);
    const touch = (type, ...points) => session.send("Input.dispatchTouchEvent", {
      type, touchPoints: points.map(([x, y], id) => ({ x: box.x + x, y: box.y + y, id })),
    });
    const before = await view(page);
    const timeAt = ({ t0, t1, width }, x) => t0 + ((t1 - t0) * x) / width;
    await touch("touchStart", [400, 100]);
    await touch("touchStart", [400, 100], [600, 100]);
    for (let k = 1; k <= 10; k++) await touch("touchMove", [400 - 10 * k, 100], [600 + 10 * k, 100]);
    await touch("touchEnd");
    await settle(page);
    const near = await view(page);
    assert.ok(Math.abs((before.t1 - before.t0) / (near.t1 - near.t0) - 2) < 0.01, JSON.stringify([before, near]));
    for (const [was, is] of [[400, 300], [600, 700]]) {
      assert.ok(Math.abs(timeAt(near, is) - timeAt(before, was)) < (near.t1 - near.t0) / 500, "a finger has left its time");
    }
    // One finger moves in time.
    await touch("touchStart", [400, 100]);
    for (let k = 1; k <= 5; k++) await touch("touchMove", [400 + 20 * k, 100]);
    await touch("touchEnd");
    await settle(page);
    const moved = await view(page);
    assert.ok(Math.abs(timeAt(moved, 500) - timeAt(near, 400)) < (near.t1 - near.t0) / 500, "a finger does not move the picture");
    return {};
  },

  async opening(page) {
    assert.equal(await page.locator("#opening").count(), 0);
    const alive = () => ask(page, () => [...document.querySelectorAll("button, input, canvas")].filter((e) => e.checkVisibility({ visibilityProperty: true })).length);
    assert.ok((await alive()) > 10);
    // As the page was while it came.
    const said = await ask(page, () => {
      const opening = pristine.querySelector("#opening").cloneNode(true);
      document.body.prepend(opening);
      return [pristine.querySelector("body").firstElementChild.id, opening.checkVisibility({ visibilityProperty: true }), opening.textContent];
    });
    assert.deepEqual(said.slice(0, 2), ["opening", true]);
    assert.match(said[2], /^Opening\b.*cut or damaged/);
    assert.equal(await alive(), 0, "buttons that do nothing look as if they did");
    await ask(page, () => byId("opening").remove());
    return {};
  },

  async closed(page) {
    const button = page.locator("#open-homes");
    // Whatever is found, nothing moves where it is said.
    for (const [width, height] of [[1600, 900], [1280, 720], [1200, 640]]) {
      await page.setViewportSize({ width, height });
      await page.fill("#pattern", "");
      await settle(page);
      const before = await plot(page);
      for (const pattern of ["kind:syscall", "kind:wait", "[", "no such name"]) {
        await page.fill("#pattern", pattern);
        await settle(page);
        assert.deepEqual(await plot(page), before, `${width}x${height}, ${pattern}`);
      }
    }
    await page.fill("#pattern", "kind:syscall");
    await settle(page);
    assert.ok(await button.isHidden());
    await page.fill("#pattern", "kind:wait");
    await settle(page);
    assert.equal(await button.textContent(), "Show in Threads");
    assert.deepEqual(await heights(page, "PID"), []);
    await button.click();
    await settle(page);
    assert.equal((await heights(page, "PID")).length, 4);
    assert.ok(await button.isHidden());
    await page.fill("#pattern", "no such name");
    await settle(page);
    assert.ok(await button.isHidden(), "nothing is found nowhere");
    return {};
  },

  async steps(page) {
    const state = () => ask(page, () => ({
      chain: document.querySelector("#details .chain") !== null, selected: __ku.selected()?.name ?? null, listing: __ku.app.listing,
      measured: __ku.measured() !== null, search: __ku.search().pattern, lit: __ku.app.highlight.active,
    }));
    await page.locator("#labels .row").first().click();
    await press(page, "/");
    await page.keyboard.type("^page_fault$");
    await press(page, "Enter");
    // The keys are the picture's now.
    await press(page, "r", ".", "b");
    const wanted = { chain: true, selected: (await state()).selected, listing: false, measured: true, search: "^page_fault$", lit: true };
    assert.ok(wanted.selected);
    assert.deepEqual(await state(), wanted);
    for (const [what, value] of [["chain", false], ["selected", null], ["measured", false], ["search", ""], ["lit", false]]) {
      await press(page, "Escape");
      wanted[what] = value;
      assert.deepEqual(await state(), wanted, `Esc, for ${what}`);
    }
    // In the box it forgets the search and nothing else; one that finds nothing is typed on.
    await press(page, ".", "/");
    await page.keyboard.type("nothing so");
    await press(page, "Enter");
    await page.keyboard.type("x");
    assert.equal((await state()).search, "nothing sox");
    await press(page, "Escape");
    const { search, selected } = await state();
    assert.ok(search === "" && selected !== null, "Esc in the box loses what is selected");
    await press(page, "v");
    assert.equal((await state()).listing, true, "the keys are not given back");
    // After a choice of the table, too.
    await page.getByLabel("Kinds").selectOption("fault");
    await page.getByLabel("Kinds").focus();
    await press(page, "Escape");
    assert.equal((await state()).listing, false);
    return {};
  },

  async whole(page) {
    const empty = ({ t0, t1, begin, end }) => Math.max(begin - t0, t1 - end) / (t1 - t0);
    const box = await plot(page);
    await page.mouse.move(box.x + 900, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + 300, box.y + 100, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    assert.ok(empty(await view(page)) < 0.02, "a drag moves half of the trace out of sight");
    const half = await ask(page, () => {
      const { begin, end } = __ku.view();
      __ku.show(end - (end - begin) / 20, end + (end - begin) / 20);
      return __ku.view();
    });
    assert.ok(Math.abs(empty(half) - 0.5) < 0.01, "the end of the trace does not come to the middle");
    // A match that can be seen stays where it is.
    await zoomed(page);
    await page.fill("#pattern", "^page_fault$");
    const before = await view(page);
    await page.locator("#pattern").press("Enter");
    await settle(page);
    const after = await view(page);
    const { start } = await ask(page, () => __ku.selected());
    assert.ok(start >= before.t0 && start < after.t1 && after.t0 === before.t0, JSON.stringify([before, after, start]));
    // What is most worth knowing comes first, and a tick is named from the second or so that it lies in.
    assert.match(await page.locator("#about").textContent(), /^[\d,]+ spans/);
    const axis = await ask(page, () => {
      const { tracebase } = __ku.app.store.meta;
      const { baseText, ticks } = axisOf(tracebase, Object.assign(new View(__ku.app.store, __ku.app.groups[0].exec), { width: 1000, t0: 6e8 - 0.05, t1: 6e8 + 10.05 }));
      return [baseText.slice(-12), ticks[0].label, ticks.at(-1).label];
    });
    assert.deepEqual(axis, ["03:04, 6 s +", "0 ns", "100 ns"]);
    return {};
  },

  async heights(page) {
    const before = await heights(page, "CPU");
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    assert.deepEqual(await heights(page, "CPU"), before);
    assert.ok((await heights(page, "PID")).every((h) => h >= 18));
    return { before };
  },

  /** What delayed all else: a line for each in the banner, and a button that leads to the longest. */
  async delays(page, { lines }) {
    const parts = page.locator("#banner > span");
    assert.equal(await page.locator("#banner").isVisible(), lines.length > 0);
    if (lines.length > 1) await page.locator("#banner .unfold").click();
    assert.equal(await parts.count(), lines.length);
    for (const [k, [text, longest, start]] of lines.entries()) {
      assert.ok((await parts.nth(k).textContent()).startsWith(text), await parts.nth(k).textContent());
      const button = parts.nth(k).getByRole("button");
      assert.equal(await button.textContent(), `The longest: ${longest}`);
      await button.click();
      await settle(page);
      const selected = await ask(page, () => ({ ...__ku.selected(), inSight: __ku.view() }));
      assert.deepEqual([selected.start, longest], [start, await ask(page, (dur) => durationText(dur), selected.dur)]);
      assert.ok(selected.start < selected.inSight.t1 && selected.start + selected.dur > selected.inSight.t0, `${text}: not in sight`);
    }
    return { lines: lines.length };
  },

  /** Rows that are pinned stay where they are, and are drawn and found there. */
  async pins(page) {
    const pinned = () => ask(page, () => __ku.app.view.seen().filter((item) => item.pinned).map((item) => [item.group.labels[item.row], __ku.app.view.top(item)]));
    await ask(page, () => __ku.toggle("PID"));
    await settle(page);
    const labels = await page.locator("#labels .row").allTextContents();
    const thread = labels.find((text) => text.startsWith("worker"));
    await page.locator("#labels .row", { hasText: thread }).click({ modifiers: ["Shift"] });
    await page.locator("#labels .row", { hasText: "CPU 2" }).click({ modifiers: ["Shift"] });
    await settle(page);
    const places = await pinned();
    assert.deepEqual(places.map(([label]) => label), [thread, "CPU 2"]);
    assert.deepEqual((await page.locator("#labels .row").allTextContents()).slice(0, 2), [thread, "CPU 2"]);
    assert.equal(await page.locator("#labels .row", { hasText: thread }).count(), 1, "it is there twice");
    assert.equal(await ask(page, () => __ku.app.highlight.active), false, "it is highlighted, too");
    // What lies there is what the row has.
    const box = await plot(page);
    const hits = await ask(page, ([x, places]) => places.map(([, y]) => __ku.hit(x, y + 22)).map((hit) => [hit?.cpu, hit?.pid]), [box.width * 0.4, places]);
    assert.equal(hits[1][0], 2, JSON.stringify(hits));
    assert.equal(`worker.${hits[0][1]}`, thread);
    for (const key of ["End", "w", "w", "Home"]) {
      await press(page, key);
      assert.deepEqual(await pinned(), places, key);
    }
    await ask(page, () => __ku.toggle("PID"));
    await page.waitForFunction(() => location.hash.includes("pin=PID.") && location.hash.includes("-CPU.2"));
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.deepEqual(await pinned(), places);
    // The key lets the row of what is selected go.
    await page.mouse.click(box.x + box.width * 0.4, box.y + places[1][1] + 22);
    await press(page, "y");
    assert.deepEqual((await pinned()).map(([label]) => label), [thread]);
    return { places };
  },

  /** A page that is opened for the first time, by a file's name alone. */
  async first(page, { threads, callouts }) {
    const isOpen = () => ask(page, () => !__ku.app.groups[1].collapsed);
    const boxes = () => page.locator(".callout").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
    assert.equal(await isOpen(), threads);
    const shown = await boxes();
    assert.equal(shown.length, callouts);
    if (callouts === 0) return {};
    const { width, height } = page.viewportSize();
    const data = await ask(page, () => document.querySelector("#timeline").getBoundingClientRect().bottom);
    for (const [k, { left, top, right, bottom }] of shown.entries()) {
      assert.ok(left >= 0 && top >= data && right <= width && bottom <= height, `callout ${k} is cut, or lies on the data`);
      const apart = shown.slice(k + 1).every((other) => other.top >= bottom || other.left >= right);
      assert.ok(apart, `callout ${k} lies on another`);
    }
    // They stay beside the data until they are closed.
    await press(page, "w");
    const { t0, begin } = await ask(page, () => __ku.view());
    assert.ok(t0 > begin, "the key was lost");
    assert.ok(await page.locator("#welcome").isVisible());
    await press(page, "Escape");
    assert.ok(await page.locator("#welcome").isHidden());
    // Neither this page nor another shows them again.
    await page.waitForFunction(() => location.hash !== "");
    await ask(page, () => history.replaceState(null, "", location.pathname));
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.deepEqual([await isOpen(), (await boxes()).length], [threads, 0]);
    return { shown };
  },

  async forced(page) {
    const look = () => ask(page, () => ["#arcs", "#ipis"].map((id) => getComputedStyle(document.querySelector(id)).backgroundColor));
    await page.emulateMedia({ forcedColors: "active" });
    const [on, off] = await look();
    assert.notEqual(on, off, "on looks as off");
    await press(page, "i");
    assert.deepEqual(await look(), [on, on]);
    // What leads somewhere differs from what does not.
    await press(page, "v");
    const [link, text] = await ask(page, () => ["td button", "td:nth-child(2)"].map((one) => getComputedStyle(document.querySelector(`#details ${one}`)).color));
    assert.notEqual(link, text);
    await press(page, "v");
    // The picture is dark where the reader's colours are, whatever contrast they want.
    const theme = async (colorScheme, contrast) => {
      await page.emulateMedia({ forcedColors: "active", colorScheme, contrast });
      await settle(page);
      return ask(page, () => [__ku.app.look.theme, document.documentElement.dataset.theme]);
    };
    assert.deepEqual(await theme("light", "more"), ["light", "light"]);
    assert.deepEqual(await theme("dark", "no-preference"), ["contrast", "contrast"]);
    return {};
  },

  /** A tap selects where the finger is, and what it selected stays in sight though the panel takes its place. */
  async phone(page) {
    await page.setViewportSize({ width: 400, height: 800 });
    await page.emulateMedia({ media: "print" });
    for (const id of ["#found", "#find", "nav"]) assert.ok(await page.locator(id).isHidden(), `${id} is printed`);
    await page.emulateMedia({ media: "screen" });
    await ask(page, () => {
      if (__ku.app.groups[1].collapsed) __ku.toggle("PID");
      __ku.show(6_000_000_000, 6_000_003_000);
      __ku.app.viewChanged();
    });
    await settle(page);
    const session = await page.context().newCDPSession(page);
    const box = await plot(page);
    const { x, y, i } = await ask(page, () => {
      const row = __ku.rows().filter((r) => r.group === "PID" && r.row >= 0 && r.y + r.h < __ku.app.view.height - 24).at(-1);
      const y = row.y + row.h / 2;
      for (let x = 10; x < __ku.view().width; x++) {
        const hit = __ku.hit(x, y);
        if (hit && hit.cpu >= 0 && hit.event >= EVENT.TRAP) return { x, y, i: hit.i };
      }
    });
    await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: box.x + x, y: box.y + y }] });
    assert.deepEqual(await ask(page, () => [__ku.app.pointer, __ku.app.view.pointerY].map(Math.round)), [x, y].map(Math.round));
    await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await settle(page);
    const { selected, item, room } = await ask(page, () => {
      const { app } = __ku;
      const [, threads] = app.groups;
      const item = app.view.itemsOf.get(threads)[threads.rowOf(app.selected)];
      return { selected: app.selected, item: { y: app.view.top(item), h: item.h }, room: app.view.height };
    });
    assert.equal(selected, i);
    assert.ok(await page.locator("#details").isVisible());
    assert.ok(item.y >= 0 && item.y + item.h <= room, `${JSON.stringify(item)} is not in ${room}`);
    // Of a table what it is sorted by is in sight, without moving it sideways.
    await ask(page, () => toggleList(__ku.app));
    const { right } = await page.locator("#details th[aria-sort]").evaluate((head) => head.getBoundingClientRect().toJSON());
    assert.ok(right <= 400, `the sorted column ends at ${right}`);
    return {};
  },

  async legible(page) {
    const found = await ask(page, () => {
      let min = Infinity;
      const faint = [];
      const need = (what, ink, ground) => {
        const contrast = contrastOf(ink, ground);
        min = Math.min(min, contrast);
        if (contrast < 4.5) faint.push(`${what}: ${ink} on ${ground} has ${contrast}`);
      };
      for (const theme of Object.keys(THEMES)) {
        for (const safe of [false, true]) {
          const palette = new Palette(theme, safe);
          const { css } = palette;
          palette.shades.forEach((shades, kind) => shades.forEach((shade, k) => need(`${theme}, ${KIND_NAMES[kind]}`, palette.shadeInks[kind][k], shade)));
          for (const [letter] of WAITS) for (const ground of [css.row, css.back]) need(`${theme}, ${letter}`, palette.ink(palette.wait(letter)), ground);
          for (const color of SAMPLE_COLORS) need("a sample", "#0d1117", color);
          need(`${theme}, grey`, palette.greyInk, css.grey);
          for (const ink of ["text", "dim", "mark"]) for (const ground of ["row", "back"]) need(`${theme}, ${ink}`, css[ink], css[ground]);
          need(`${theme}, measured`, css.back, css.measure);
        }
      }
      return { min, faint };
    });
    assert.deepEqual(found.faint, []);
    // The page's own sums, by another way.
    const [one, other] = await ask(page, () => [contrastOf("#777777", "#ffffff"), contrastOf("#000000", "#ffffff")]);
    assert.ok(Math.abs(one - 4.478) < 0.001 && other === 21, `${one}, ${other}`);
    return { min: found.min };
  },
};
