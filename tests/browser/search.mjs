// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about the search box: calls, times, counts.
import assert from "node:assert/strict";

const ask = (page, question, argument) => page.evaluate(question, argument);
const view = (page) => ask(page, () => __ku.view());
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const found = (page) => ask(page, () => __ku.search());

/** Types a search, with the other fields as given, empty if they are not. */
async function type(page, pattern, { least = "", most = "", invert = false } = {}) {
  for (const [id, text] of Object.entries({ pattern, least, most })) await page.fill(`#${id}`, text);
  if ((await page.locator("#invert").getAttribute("aria-pressed")) !== String(invert)) await page.click("#invert");
  await settle(page);
  return found(page);
}

/** Fails unless what is found is the same as what keeps its colour. */
async function assertShown(page, pattern) {
  const apart = await ask(page, () => {
    const { search, store } = __ku.app;
    const ids = new Set(search.ids);
    return Array.from({ length: store.n }, (_, i) => i).filter((i) => search.shows(i) !== ids.has(i)).map(__ku.span).slice(0, 3);
  });
  assert.deepEqual(apart, [], pattern);
}

export const search = {
  async calls(page, { calls, tracebase }) {
    for (const [pattern, count] of calls) {
      const is = await type(page, pattern);
      assert.deepEqual([pattern, is.count, is.active], [pattern, count, true]);
      await assertShown(page, pattern);
    }
    for (const [pattern, count] of calls) {
      const inverted = await type(page, pattern, { invert: true });
      assert.equal(inverted.count + count, calls[0][1], `not ${pattern}`);
    }
    // Times: seconds from the base minute, and the clock of the traced machine.
    const { begin, end } = await view(page);
    const middle = Math.round((begin + end) / 2 / 1e6) / 100;
    const around = async (text, half) => {
      const { active } = await type(page, text);
      const { t0, t1 } = await view(page);
      assert.ok(Math.abs((t0 + t1) / 2 - middle * 1e8) < 1, `${text}: ${t0}..${t1}`);
      assert.ok(Math.abs(t1 - t0 - 2 * half * 1e8) < 2, `${text}: ${t0}..${t1}`);
      assert.equal(active, false, "a time is searched as a name");
    };
    const ss = middle.toFixed(4);
    await around(ss, 0.0005);
    await around(`${ss}+`, 0.001);
    await around(`${ss}++`, 0.002);
    await around(`${ss}-`, 0.0002);
    const clock = new Date(Date.parse(`${tracebase.replace("_", "T")}Z`) + middle * 1000).toISOString();
    await around(`${clock.slice(14, 23)}0`, 0.0005);
    await around(`${clock.slice(11, 23)}0`, 0.0005);
    await page.fill("#pattern", "@@");
    await settle(page);
    assert.match(await page.locator("#pattern").inputValue(), /^\d+\.\d+$/);
    return { middle };
  },

  async searches(page, { searches }) {
    for (const { pattern, least, most, invert, count, total } of searches) {
      const is = await type(page, pattern, { least, most, invert });
      assert.deepEqual([pattern, invert, is.count, is.total], [pattern, invert, count, total]);
      assert.ok(is.text.startsWith(`Matches: ${count.toLocaleString("en")}`), is.text);
      await assertShown(page, pattern);
    }
    return { searches: searches.length };
  },
};
