// SPDX-License-Identifier: BSD-3-Clause
// Scenarios on a small screen: what has no room there is folded away, and a tap brings it back.
import assert from "node:assert/strict";

/** Pixels around the picture that a phone has for the header and the banner. */
const ROOM = 160;

export const small = {
  async folded(page) {
    await page.setViewportSize({ width: 400, height: 800 });
    const top = () => page.locator("#timeline").evaluate((e) => e.getBoundingClientRect().top);
    const controls = () => page.locator("header :is(button, input, select)").evaluateAll((all) => all.filter((e) => e.offsetParent && e.id !== "all-controls").map((e) => e.id || e.textContent));
    const banner = page.locator("#banner");
    const parts = () => banner.locator("> :not(.unfold)").evaluateAll((all) => all.filter((e) => e.offsetParent).length);
    const [all, few] = [await banner.locator("> :not(.unfold)").count(), await controls()];
    assert.ok((await top()) <= ROOM && all > 1, `the picture begins at ${await top()}`);
    assert.equal(await parts(), 1);
    // All controls of a large screen are there once they are asked for.
    await page.getByRole("button", { name: "Menu" }).click();
    const unfolded = await controls();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    assert.deepEqual(await controls(), few);
    await page.setViewportSize({ width: 1600, height: 900 });
    assert.deepEqual([unfolded.toSorted(), await parts()], [(await controls()).toSorted(), all]);
    assert.ok(few.includes("pattern") && few.includes("Start here") && few.length < unfolded.length);
    // A tap on the banner unfolds it; what is in use of the search is never folded away.
    await page.setViewportSize({ width: 400, height: 800 });
    await banner.locator("> span").first().click({ position: { x: 5, y: 5 } });
    assert.deepEqual([await parts(), await banner.locator(".unfold").textContent()], [all, "Less"]);
    await banner.locator(".unfold").click();
    assert.equal(await parts(), 1);
    await page.evaluate(() => __ku.app.find({ ...NOTHING, pattern: "read", min: "5", ignoreCase: true }));
    for (const id of ["min", "ignore-case"]) assert.ok(await page.locator(`#${id}`).isVisible(), id);
    assert.ok(await page.locator("#max").isHidden());
    return { top: await top() };
  },
};
