// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about the table: filters of its columns, and its numbers beside those of the line above the picture.
import assert from "node:assert/strict";

const ask = (page, question, argument) => page.evaluate(question, argument);
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const listed = (page) => page.locator("#listed").textContent();
const column = (page, at) => page.locator("#details tbody tr").evaluateAll((rows, k) => rows.map((row) => row.cells[k].textContent), at);

export const filters = {
  async filters(page) {
    await page.fill("#pattern", "kind:syscall");
    await settle(page);
    const { text } = await ask(page, () => __ku.search());
    await page.locator("#overlay").focus();
    await page.keyboard.press("Shift+V");
    assert.equal(await ask(page, () => document.activeElement.ariaLabel), "Filter Span");
    await page.getByLabel("Where").selectOption("whole");
    // What is found is told alike above the picture and in the table.
    const [, count, total] = /^Matches: (.* calls).*, total (.*?),? (?:own time|\[)/.exec(text);
    const all = await listed(page);
    assert.ok(all.startsWith(`${count}, `) && all.includes(`: ${total} together`), `${text} is not ${all}`);
    // By keys alone: the first box has the focus, and Tab goes on to the next while what was typed is used.
    await page.getByLabel("Filter Span").focus();
    await page.keyboard.type("re");
    await page.keyboard.press("Tab");
    await page.keyboard.type("!cli");
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.getElementById("listed").textContent.includes(", filtered"));
    assert.equal(await ask(page, () => document.activeElement.ariaLabel), "Filter CPU");
    await page.getByLabel("Filter Duration").fill("> 5us");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => __ku.app.list.filters.size === 3 && __ku.app.list.collected.of.at(-1).includes("5us"));
    const spans = await column(page, 0);
    assert.ok(spans.length > 5 && spans.every((text) => /re/i.test(text)), spans[0]);
    assert.ok((await column(page, 1)).every((text) => !text.includes("cli")));
    assert.ok(await ask(page, () => __ku.app.list.collect().every((i) => __ku.app.list.store.dur[i] > 500)));
    // The address brings it back, with the boxes.
    await page.waitForFunction(() => location.hash.includes("filter.Duration"));
    const left = await listed(page);
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.equal(await listed(page), left);
    assert.deepEqual(await page.locator(".filters input").evaluateAll((boxes) => boxes.map(({ value }) => value).filter((value) => value !== "")), ["re", "!cli", "> 5us"]);
    // Grouped, they still hold: one for a column that is not there is a button, and groups are filtered by what they come to.
    await page.getByLabel("Group by", { exact: true }).selectOption("thread");
    await page.getByRole("button", { name: "Duration > 5us" }).waitFor();
    const counts = async () => (await column(page, 1)).map((number) => Number(number.replaceAll(",", "")));
    const most = Math.max(...(await counts()));
    await page.getByLabel("Filter Count").fill(`< ${most}`);
    await page.keyboard.press("Enter");
    await page.waitForFunction((most) => [...document.querySelectorAll("#details tbody tr")].every((row) => Number(row.cells[1].textContent.replaceAll(",", "")) < most), most);
    await page.getByLabel("Filter Count").fill("some");
    await page.keyboard.press("Enter");
    await page.getByText("Count takes > 2").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Duration > 5us" }).click();
    assert.equal(await page.getByRole("button", { name: "Duration > 5us" }).count(), 0);
    // A value that is clicked is kept alone, or left out.
    await page.getByLabel("Group by", { exact: true }).selectOption("");
    const [thread] = await column(page, 1);
    await page.locator("#details tbody .value", { hasText: thread }).first().click();
    assert.deepEqual([...new Set(await column(page, 1))], [thread]);
    await page.locator("#details tbody .value", { hasText: thread }).first().click({ modifiers: ["Shift"] });
    assert.ok(!(await column(page, 1)).includes(thread));
    await page.keyboard.press("Shift+V");
    assert.deepEqual([await page.locator(".filters").count(), await ask(page, () => __ku.app.list.filters.size)], [0, 0]);
    // Calls by what they waited for; such a group is filtered, since no search finds it.
    await page.getByLabel("Group by", { exact: true }).selectOption("reason");
    const groups = await page.locator("#details tbody tr").evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, Number(row.cells[1].textContent.replaceAll(",", ""))]));
    const [words, number] = groups.find(([text]) => text.includes("(wait_"));
    await page.getByRole("button", { name: words, exact: true }).click();
    assert.ok((await listed(page)).startsWith(`${number.toLocaleString("en")} call`), await listed(page));
    await page.getByRole("button", { name: `Reason =${words} \u00d7` }).click();
    assert.equal(await listed(page), all);
    return { groups };
  },

  /** What is selected, what a call waited for, and what a range holds: words, with the name that is searched after them. */
  async worded(page) {
    const found = await ask(page, () => {
      const { app } = __ku;
      const { store, search: { calls } } = app;
      const wait = store.kind.indexOf(Kind.WAIT);
      app.select(wait);
      const head = document.querySelector("#details h2").textContent;
      const reasons = reasonsOf(store, calls, null);
      goToCall(app, calls.first[reasons.findIndex((reason, call) => reason > 0 && calls.first[call] !== calls.last[call])]);
      const lines = [...document.querySelectorAll("#details tbody th")].map((cell) => cell.textContent);
      app.measure({ from: app.view.begin, to: app.view.end });
      const totals = document.getElementById("details").textContent;
      return { head, name: store.names[store.name[wait]], lines, totals };
    });
    assert.match(found.head, new RegExp(`^waits for .* \\(${found.name}\\)$`));
    const [waited] = found.lines.filter((line) => line.startsWith("Waited for"));
    assert.match(waited, /^Waited for .* \(wait_[a-z]+\)$/);
    assert.match(found.totals, /scheduler \(-sched-\).*stood still.* \(wait_[a-z]+\)/);
    await page.getByRole("button", { name: "scheduler (-sched-)" }).first().click();
    assert.equal((await ask(page, () => __ku.search())).pattern, "^-sched-$");
    return found;
  },
};
