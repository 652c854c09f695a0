// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about requests.
import assert from "node:assert/strict";

import { openStart } from "./menu.mjs";

const ask = (page, question, argument) => page.evaluate(question, argument);
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** The lines of a table of the panel, as texts. */
const linesOf = (page, table) => page.locator(`#details ${table} tbody tr`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
/** What the picture has of the path of a request. */
const drawn = (page) => ask(page, () => __ku.app.overlay.paths.drawn);
/** The picture and what lies on it. */
const picture = (page) => ask(page, () => ["base", "overlay"].map((id) => document.getElementById(id).toDataURL()));
const panel = (page) => page.locator("#details").textContent();

async function press(page, key) {
  await page.keyboard.press(key);
  await settle(page);
}

/** Enters an address. */
async function goTo(page, hash) {
  await ask(page, (hash) => (location.hash = hash), hash);
  await settle(page);
}

/** Fails if anything of the panel is cut off where the window is narrow. */
async function assertNarrow(page) {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 400, height: 800 });
  await settle(page);
  assert.equal(await ask(page, () => document.querySelector("#details").scrollWidth - document.querySelector("#details").clientWidth), 0);
  await page.setViewportSize(size);
  await settle(page);
}

export const requests = {
  async requests(page, { asked, verdict, count, compared, durations }) {
    assert.ok(await page.locator("#requests").isVisible());
    assert.equal(await ask(page, () => __ku.app.asked.requests), null, "read before anybody asked");
    await press(page, "q");
    await page.waitForSelector("#compared");
    const said = await panel(page);
    for (const text of [asked, `${count} requests: median `]) assert.ok(said.includes(text), said);
    // The page says times with more digits.
    const withoutTime = (text) => text.replace(/take[s]? [0-9.]+ \S+ more/, "take more");
    assert.equal(withoutTime(await page.locator("#details .verdict").textContent()), withoutTime(verdict));
    const { slow, normal, causes } = compared;
    assert.match(await page.locator("#compared").textContent(), new RegExp(`^The slowest ${slow.count} without the time in which CPUs stood still, .* against ${normal.count} normal ones, `));
    const expected = causes.map(({ cause, share, in_slow, in_normal }) => [
      cause, `${(share * 100).toFixed(0)} %`, `${in_slow}/${slow.count}`, `${in_normal}/${normal.count}`,
    ]);
    const lines = await linesOf(page, ".causes");
    const words = await page.locator("#details .causes td button").allTextContents();
    assert.deepEqual(lines.map(([, , ...rest], k) => [words[k], ...rest]), expected);
    // Causes have their colours where the system has its own.
    await page.emulateMedia({ forcedColors: "active" });
    assert.ok(new Set(await page.locator("#details .chip").evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor))).size > 1);
    await page.emulateMedia({ forcedColors: "none" });

    await assertNarrow(page);

    // Each line is another event.
    assert.ok(compared.event_count > 1 && said.includes(`${compared.event_count} events; the longest: `), said);
    assert.equal((await linesOf(page, ".listed")).length, Math.min(compared.event_count, 30));

    // Ticks below the strip show where the slow ones begin.
    const ticks = await ask(page, () => {
      const { overview, asked: { starts }, palette } = __ku.app;
      const copy = new OffscreenCanvas(overview.canvas.width, 1).getContext("2d");
      copy.drawImage(overview.canvas, 0, -33);
      const seen = new Uint32Array(copy.getImageData(0, 0, overview.canvas.width, 1).data.buffer);
      const wanted = new Set([...starts].map((start) => Math.floor(((start - overview.begin) / overview.length) * overview.width)));
      return { drawn: [...seen].flatMap((c, x) => (c === pixel(palette.css.chain) ? [x] : [])), wanted: [...wanted], count: starts.length };
    });
    assert.equal(ticks.count, slow.count);
    assert.deepEqual(ticks.drawn, ticks.wanted);

    // The first request of the list fills the picture, and its path lies over the rows.
    const before = await ask(page, () => __ku.view());
    await page.locator("#details .listed button").first().click();
    await settle(page);
    const one = await ask(page, () => {
      const { asked: { requests: { start, dur }, request }, view: { t0, t1 } } = __ku.app;
      return { request, pid: __ku.app.asked.requests.pid[request], start: start[request], dur: dur[request], t0, t1, open: __ku.app.groups.slice(0, 2).every((group) => !group.collapsed) };
    });
    // The longest of all, whose times may contain that in which CPUs stood still, which is told apart in comparing.
    assert.equal(one.request, await ask(page, () => __ku.app.asked.requests.byDuration.at(-1)));
    const most = await ask(page, (request) => shownName(__ku.app.asked.requests.causesOf(request)[0].words), one.request);
    assert.ok(said.includes(`slowest ${compared.apart.slow} take `), said);
    assert.ok(one.t0 < one.start && one.t1 > one.start + one.dur && (one.t1 - one.t0) < 1.2 * one.dur && one.open, JSON.stringify(one));
    const { lines: many, words: told } = await drawn(page);
    assert.ok(many > 10 && told.includes(most), `${many}: ${told}`);
    const its = await linesOf(page, ".causes");
    const [head, together] = [its[0], its.at(-1)];
    assert.equal(head[0], most);
    assert.deepEqual(together.slice(0, 2), ["Together", await ask(page, (dur) => alignedText(dur), one.dur)]);
    assert.equal(await page.locator("#details .strip").count(), 2, "no normal request beside it");
    await assertNarrow(page);
    const [ours, normals] = await page.locator("#details .strip").evaluateAll((strips) => strips.map((strip) => {
      const last = strip.lastElementChild;
      return Number(last.getAttribute("x")) + Number(last.getAttribute("width"));
    }));
    assert.ok(Math.abs(ours - 1000) < 1e-6 && Math.abs(normals / 1000 - await ask(page, () => {
      const { requests: all, request } = __ku.app.asked;
      return all.dur[normalBeside(all, request)] / all.dur[request];
    })) < 1e-6, `${ours} ${normals}`);

    // The address brings it back, in a page that is opened anew, to the pixel.
    await page.waitForFunction((pid) => location.hash.includes(`requests=all&request=${pid}@`), one.pid);
    await settle(page);
    const seen = await picture(page);
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    await page.waitForSelector("#details .strip");
    await settle(page);
    assert.deepEqual(await picture(page), seen, "another picture");
    // So does the address that the terminal prints.
    const [{ address, start }] = compared.events;
    assert.equal(start, one.start);
    await goTo(page, "#t=0..1");
    await goTo(page, address.replace(/^[^#]*/, ""));
    await page.waitForSelector("#details .strip");
    await settle(page);
    assert.deepEqual(await picture(page), seen, `another picture of ${address}`);
    // Of a request that the page does not carry, there is its time.
    const early = await ask(page, () => __ku.app.asked.requests.start[0] / 1e8);
    await goTo(page, `#request=${one.pid}@${(early + 1e-7).toFixed(8)}..${(early + 1e-5).toFixed(8)}`);
    assert.equal(await page.locator("#details").isVisible(), false);
    assert.ok(await ask(page, (early) => __ku.app.view.t0 > early * 1e8 - 100 && __ku.app.view.t1 < early * 1e8 + 1100, early));
    await goTo(page, address.replace(/^[^#]*/, ""));
    await page.waitForSelector("#details .strip");
    // From event to event.
    for (const [words, at] of [["Next event", 2], ["Event before", 1]]) {
      await page.getByRole("button", { name: words }).click();
      await settle(page);
      assert.ok((await panel(page)).includes(`Event ${at} of ${compared.event_count}`), await panel(page));
    }
    assert.equal(await ask(page, () => __ku.app.asked.request), one.request);
    // The panel takes some of the picture's width.
    assert.ok((await drawn(page)).lines > 5);

    // A span selected meanwhile, then the request: Esc undoes one step at a time.
    await press(page, ".");
    assert.ok(await ask(page, () => __ku.selected()));
    await press(page, "Escape");
    assert.ok(await page.locator("#details .strip").first().isVisible());
    await press(page, "Escape");
    assert.equal(await page.locator("#details .strip").count(), 0);
    assert.equal(await ask(page, () => __ku.app.shown.path), null);

    // A part of the durations, against all others.
    const box = await page.locator("#details figure svg").boundingBox();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width + 5, box.y + 20);
    await page.mouse.up();
    await settle(page);
    const part = await ask(page, () => {
      const { part: { from, to }, requests: { dur } } = __ku.app.asked;
      return { from, to, count: [...dur].filter((one) => one >= from && one <= to).length };
    });
    assert.ok(part.count > 1 && part.count < count && part.to >= durations.longest, JSON.stringify(part));
    assert.match(await page.locator("#compared").textContent(), new RegExp(`^${part.count} requests, .* against ${count - part.count} others, `));
    assert.ok(await page.locator("#details figure rect.other").count() > 3);
    await page.waitForFunction(({ from, to }) => location.hash.includes(`requests=${from}..${to}`), part);
    // A cause lists the requests that have most of it.
    await page.locator("#details .causes td button").first().click();
    await settle(page);
    const max = await ask(page, () => {
      const { asked: { requests: all, cause, part } } = __ku.app;
      return all.withMost(all.between(part.from, part.to), cause, 1)[0][1];
    });
    assert.equal((await linesOf(page, ".listed"))[0][2], await ask(page, (time) => alignedText(time), max));
    for (let step = 0; step < 3; step++) await press(page, "Escape");
    assert.equal(await page.locator("#details").isVisible(), false);
    assert.ok(!(await ask(page, () => location.hash)).includes("request") || await page.waitForFunction(() => !location.hash.includes("request")));
    // The slowest, of three events at most, stand in Start here, each a link.
    const slowest = await ask(page, () => __ku.app.asked.eventsOf(__ku.app.asked.requests, null).list.slice(0, 3).map(({ longest }) => longest));
    for (const [k, number] of slowest.entries()) {
      await openStart(page);
      const lines = await page.locator("#start button").evaluateAll((all) => all.map((line) => line.firstChild.textContent));
      assert.deepEqual(lines.slice(0, 1 + slowest.length), ["Why requests are slow", "The slowest request", "The second", "The third"].slice(0, 1 + slowest.length));
      assert.equal(lines.filter((line) => line === "The slowest request").length, 1);
      await page.locator("#start button").nth(1 + k).click();
      await settle(page);
      assert.equal(await ask(page, () => __ku.app.asked.request), number);
      assert.ok(await page.locator("#details .strip").first().isVisible());
    }
    // On a phone, where the panel takes half the height, its thread is in sight, too.
    for (let step = 0; step < 3; step++) await press(page, "Escape");
    await page.setViewportSize({ width: 400, height: 800 });
    await settle(page);
    await openStart(page);
    await page.locator("#start button").nth(1).click();
    await page.waitForSelector("#details .strip");
    await settle(page);
    const row = await ask(page, () => {
      const { view, asked: { item } } = __ku.app;
      return { y: item.y - view.scroll, h: item.h, room: view.rowsRoom };
    });
    assert.ok(row.y >= 0 && row.y + row.h <= row.room, JSON.stringify(row));
    return { before: before.t0, lines: many };
  },

  async without_requests(page) {
    assert.equal(await page.locator("#requests").isVisible(), false);
    await press(page, "q");
    assert.equal(await page.locator("#details").isVisible(), false);
    return {};
  },
};
