// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about several machines.
import assert from "node:assert/strict";

const ask = (page, question, argument) => page.evaluate(question, argument);
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
/** What stands at the left of the first two groups. */
const standing = (page) => ask(page, () => __ku.rows().filter(({ group }) => group !== "PID" && group !== "NET").map(({ label }) => label));
const ends = (page) => ask(page, () => __ku.app.overlay.crossings.drawn);
const rowAt = (page, y) => ask(page, (y) => __ku.rows().find((row) => y > row.y && y < row.y + row.h)?.label, y);

/** The button of a header or of a triangle. */
const button = (page, row) => page.locator(`#labels [data-row="${row}"]`);

async function click(page, row) {
  await button(page, row).click();
  await settle(page);
}

export const machines = {
  async machines(page, { clock }) {
    assert.ok((await page.locator("#about ~ div").allTextContents()).includes(`Clock: ${clock}`));
    assert.equal(await button(page, "CPU -3").getAttribute("title"), clock);
    const open = ["CPUs", "web", "web CPU 0", "web CPU 1", "db", "db CPU 0", "db CPU 1", "guest", "guest CPU 0", "guest CPU 1",
      "Guests", "db: qemu.800", "\u2514 guest CPU 0", "db: qemu.801", "\u2514 guest CPU 1"];
    await ask(page, () => __ku.toggle("GUEST"));
    await settle(page);
    assert.deepEqual(await standing(page), open);

    // A packet there and one back, each from the row of its sender to that of its receiver, later than it was sent.
    const lines = await ends(page);
    const rows = [];
    for (const { y0, y1 } of lines) rows.push([await rowAt(page, y0), await rowAt(page, y1)]);
    assert.deepEqual(rows, [["web CPU 0", "db CPU 1"], ["db CPU 1", "web CPU 0"]]);
    for (const { x0, x1 } of lines) assert.ok(x1 > x0, "a line is sloped");

    // Of a machine that is folded only its header is left, and packets end there.
    await click(page, "CPU -3");
    assert.deepEqual(await standing(page), open.filter((label) => !label.startsWith("db CPU")));
    assert.equal(await button(page, "CPU -3").getAttribute("aria-expanded"), "false");
    const folded = await ends(page);
    assert.equal(await rowAt(page, folded[0].y1), "db");

    // What a guest does folds under its host's thread; the address says all that, and a page opened by it is the same.
    await click(page, "GUEST fold 0");
    const left = open.filter((label, k) => !label.startsWith("db CPU") && k !== open.indexOf("\u2514 guest CPU 0"));
    assert.deepEqual(await standing(page), left);
    await page.waitForFunction(() => location.hash.includes("fold=CPU.1,GUEST.0"));
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    await settle(page);
    assert.deepEqual(await standing(page), left);

    // Who goes to a span on a row that is folded away sees it.
    await ask(page, () => {
      const { store, groups: [cpus] } = __ku.app;
      __ku.app.goTo(Array.from({ length: store.n }, (_, i) => i).find((i) => cpus.labels[cpus.rowOf(i)] === "db CPU 0"));
    });
    await settle(page);
    assert.ok((await standing(page)).includes("db CPU 0"));
    await click(page, "GUEST fold 0");
    assert.deepEqual(await standing(page), open);
    return { lines };
  },
};
