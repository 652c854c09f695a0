// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about the room that everything around the data takes: on a small window and on a phone.
import assert from "node:assert/strict";

const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Parts of a window of 1280 x 720 pixels that are neither rows, nor their names, nor the strip: with nothing open, and with the requests. */
const NOTHING_OPEN = 0.15;
const REQUESTS_OPEN = 0.45;
/** Pixels of a phone that the header and the banner take. */
const PHONE_TOP = 100;

/** The part of the window that is not the timeline. */
const around = (page) => page.locator("#timeline").evaluate((timeline) => {
  const { width, height } = timeline.getBoundingClientRect();
  return 1 - (width * height) / (innerWidth * innerHeight);
});
const topOf = (page) => page.locator("#timeline").evaluate((timeline) => timeline.getBoundingClientRect().top);

export const small = {
  async calm(page) {
    await page.setViewportSize({ width: 1280, height: 720 });
    await settle(page);
    assert.ok(await page.locator("#banner").isVisible() && await page.locator("#welcome").isVisible(), "nothing to take room");
    const nothing = await around(page);
    assert.ok(nothing < NOTHING_OPEN, `${nothing} with nothing open`);
    assert.ok(await page.locator("#legend").isHidden());
    // One bar, and nothing in it is cut.
    const bar = await page.locator("header :is(button, input)").evaluateAll((all) => all.filter((e) => e.offsetParent).map((e) => e.getBoundingClientRect().toJSON()));
    assert.ok(bar.length >= 6 && bar.every(({ top, bottom, right }) => top < bar[0].bottom && bottom > bar[0].top && right <= 1280));
    await page.locator("#requests").click();
    await page.waitForSelector("#compared");
    await settle(page);
    const open = await around(page);
    assert.ok(open < REQUESTS_OPEN, `${open} with the requests open`);
    assert.equal(await page.evaluate(() => document.querySelector("#details").scrollWidth - document.querySelector("#details").clientWidth), 0);
    // On a phone, CPUs stay in sight where a request is shown.
    await page.locator("#details .listed button").first().click();
    await page.waitForSelector("#details .strip");
    await page.setViewportSize({ width: 400, height: 800 });
    await settle(page);
    assert.ok((await topOf(page)) <= PHONE_TOP, `the picture begins at ${await topOf(page)}`);
    const { rows, room } = await page.evaluate(() => ({ rows: __ku.rows().filter(({ group, row }) => group === "CPU" && row >= 0), room: __ku.view().height }));
    assert.ok(rows.length > 1 && rows.every(({ y, h }) => y >= 0 && y + h <= room), JSON.stringify([rows, room]));
    // Tables scroll by themselves, and the page does not.
    await page.keyboard.press("v");
    await settle(page);
    assert.deepEqual(await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]), [400, 800]);
    return { nothing, open };
  },

  async folded(page) {
    const banner = page.locator("#banner");
    const parts = () => banner.locator("> :not(.unfold)").evaluateAll((all) => all.filter((e) => e.offsetParent).length);
    const all = await banner.locator("> :not(.unfold)").count();
    assert.ok(all > 1);
    for (const [width, height] of [[1600, 900], [400, 800]]) {
      await page.setViewportSize({ width, height });
      await settle(page);
      assert.ok(width > 400 || (await topOf(page)) <= PHONE_TOP, `the picture begins at ${await topOf(page)}`);
      assert.equal(await parts(), 1);
      assert.ok((await banner.evaluate((e) => e.offsetHeight)) < 30, "the banner has several lines");
      // A tap on the banner unfolds it.
      await banner.locator("> span").first().click({ position: { x: 5, y: 5 } });
      assert.deepEqual([await parts(), await banner.locator(".unfold").textContent()], [all, "Less"]);
      await banner.locator(".unfold").click();
      assert.equal(await parts(), 1);
      // All controls of a large screen are there.
      for (const id of ["pattern", "options-open", "list", "view-open", "help-open"]) assert.ok(await page.locator(`#${id}`).isVisible(), id);
    }
    // What is in use of the search shows.
    await page.evaluate(() => __ku.app.find({ ...NOTHING, pattern: "read", min: "5", ignoreCase: true }));
    assert.equal(await page.locator("#options-open").textContent(), "Aa \u2265 5");
    // Esc closes the menu of options, and leaves the search alone.
    await page.locator("#options-open").click();
    await page.waitForFunction(() => document.activeElement.id === "min");
    await page.keyboard.press("Escape");
    assert.deepEqual([await page.locator("#options").isVisible(), await page.inputValue("#min")], [false, "5"]);
    // The menu fits.
    await page.locator("#view-open").click();
    const { left, right, bottom } = await page.locator("#view").evaluate((menu) => menu.getBoundingClientRect().toJSON());
    assert.ok(left >= 0 && right <= 400 && bottom <= 800, `${left} ${right} ${bottom}`);
    return { top: await topOf(page) };
  },
};
