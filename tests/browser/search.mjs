// SPDX-License-Identifier: BSD-3-Clause
// Scenarios about the search box: calls, times, selectors.
import assert from "node:assert/strict";

import { clickIn, fillIn } from "./menu.mjs";

const ask = (page, question, argument) => page.evaluate(question, argument);
const view = (page) => ask(page, () => __ku.view());
const settle = (page) => ask(page, () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const found = (page) => ask(page, () => __ku.search());

/** Types a search, with the other fields as given, empty if they are not. */
async function type(page, pattern, { min = "", max = "", invert = false } = {}) {
  await page.fill("#pattern", pattern);
  for (const [id, text] of Object.entries({ min, max })) if ((await page.inputValue(`#${id}`)) !== text) await fillIn(page, "options", `#${id}`, text);
  if ((await page.locator("#invert").getAttribute("aria-pressed")) !== String(invert)) await clickIn(page, "options", "#invert");
  await settle(page);
  return found(page);
}

/** Fails unless as many things are said to be found as there are: calls as wholes. */
export async function assertCounted(page, text) {
  const count = await ask(page, () => {
    const { search: { ids, calls: { of } } } = __ku.app;
    return new Set([...ids].map((i) => (of[i] > 0 ? -of[i] : i))).size;
  });
  const [head] = text.slice("Matches: ".length).split(/ \(|, (?:total|with)/);
  assert.equal(head.match(/[\d,]+/g).reduce((sum, number) => sum + Number(number.replaceAll(",", "")), 0), count, text);
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
    // As they are copied from the panel.
    await around(`${ss} s`, 0.0005);
    await around(`${clock.slice(0, 10)} ${clock.slice(11, 23)}0`, 0.0005);
    assert.equal((await type(page, `1999-01-01 ${clock.slice(11, 23)}0`)).active, true, "another day is shown");
    await page.fill("#pattern", "@@");
    await settle(page);
    assert.match(await page.locator("#pattern").inputValue(), /^\d+\.\d+$/);
    return { middle };
  },

  async selectors(page, { searches, errors }) {
    for (const { pattern, min, max, invert, count, total } of searches) {
      const is = await type(page, pattern, { min, max, invert });
      assert.deepEqual([pattern, invert, is.count, is.total], [pattern, invert, count, total]);
      await assertCounted(page, is.text);
      await assertShown(page, pattern);
    }
    for (const [pattern, text] of errors) {
      const is = await type(page, pattern);
      assert.equal(is.active, false, pattern);
      assert.equal(await page.locator("#matches").textContent(), text, pattern);
    }
    return { searches: searches.length };
  },

  /** All that follows from a search does so from one with selectors; the second CPU has a row of its own. */
  async selected(page) {
    const { count } = await type(page, "cpu:1 kind:syscall read");
    assert.ok(count > 10);
    await page.locator("#pattern").focus();
    for (const at of [0, 1]) {
      await page.keyboard.press("Enter");
      const { cpu, name } = await ask(page, () => __ku.selected());
      assert.deepEqual([cpu, name, (await found(page)).current], [1, "read", at]);
    }
    await page.keyboard.press("Shift+Enter");
    assert.equal((await found(page)).current, 0);
    const lit = async (row) => {
      await ask(page, (row) => __ku.app.highlightRow(__ku.app.groups[0], row, false), row);
      await settle(page);
      return found(page);
    };
    const on = await lit(1);
    assert.deepEqual([on.count, on.text.split(":")[0]], [count, "Matches on highlighted rows"]);
    await lit(1);
    assert.equal((await lit(0)).count, 0, "a CPU that is not highlighted is found");
    await lit(0);
    // The strip has ticks for matches; the address and a saved view bring the search back.
    const ticks = await ask(page, () => {
      const { canvas } = __ku.app.overview;
      const copy = new OffscreenCanvas(canvas.width, 1).getContext("2d");
      copy.drawImage(canvas, 0, -33);
      return new Uint32Array(copy.getImageData(0, 0, canvas.width, 1).data.buffer).filter((c) => c === pixel(__ku.app.palette.css.measure)).length;
    });
    assert.ok(ticks > 10, `${ticks} ticks`);
    await page.locator("#overlay").focus();
    await page.keyboard.press("Shift+Digit1");
    await page.waitForFunction(() => location.hash.includes("find=cpu%3A1") && !location.hash.includes("lit=") && history.state?.views.length === 1);
    await page.reload();
    await page.waitForFunction(() => window.__ku?.ready === true);
    assert.equal((await found(page)).count, count);
    await page.keyboard.press("Escape");
    assert.equal((await found(page)).active, false);
    await page.keyboard.press("1");
    await settle(page);
    assert.equal((await found(page)).count, count);
    // A name that holds what looks like a selector is found as it is.
    for (const name of await ask(page, () => __ku.app.store.names.flatMap((name, k) => (name.includes(":") ? [k] : [])))) {
      await ask(page, (name) => __ku.app.searchName(name), name);
      const is = await found(page);
      assert.ok(is.active && is.count > 0, is.pattern);
      await page.keyboard.press("Escape");
    }
    await page.keyboard.press("?");
    const sheet = await page.locator("#help").textContent();
    for (const selector of ["cpu:", "pid:", "rpc:", "woken:", "to:", "kind:"]) assert.ok(sheet.includes(selector), `${selector} is not on the sheet`);
    return { count };
  },

  /** Calls in pieces: counted, selected and summed up as calls; and what ends idle time. */
  async things(page) {
    for (const [pattern, text] of [
      ["read", "Matches: 1 call (3 pieces), total 1 \u00b5s, own time 300 ns [1 \u00b5s..1 \u00b5s]"], ["=7$", "Matches: 1 call, total 1 \u00b5s, own time 300 ns [1 \u00b5s..1 \u00b5s]"],
      ["read|timer", "Matches: 1 call and 1 interrupt (4 pieces), total 1.05 \u00b5s, own time 350 ns [50 ns..1 \u00b5s]"], ["timer", "Matches: 1 interrupt, total 50 ns [50 ns..50 ns]"],
    ]) {
      assert.equal((await type(page, pattern)).text, text);
      // The table says the same.
      await page.locator("#overlay").focus();
      await page.keyboard.press("v");
      const [head, total] = /total ([^,[]*[^,[ ])/.exec(text);
      assert.match(await page.locator("#listed").textContent(), new RegExp(`: ${total} together, `), head);
      await page.keyboard.press("v");
    }
    await type(page, "");
    const groups = () => ask(page, () => __ku.app.groups.slice(0, 2).map((group) => !group.collapsed));
    await ask(page, () => {
      for (const group of __ku.app.groups.slice(0, 2)) if (!group.collapsed) __ku.toggle(group.name);
      __ku.app.select(Array.from({ length: __ku.counts.spans }, (_, i) => __ku.span(i)).find(({ ret }) => ret === 7).i);
    });
    assert.deepEqual(await groups(), [false, false]);
    await page.locator("#overlay").focus();
    await page.keyboard.press("e");
    await settle(page);
    assert.deepEqual(await groups(), [true, false], "the call is selected on a row that is closed");
    // What is selected as a whole is told as one: its value and its end, and nothing that is of a piece alone.
    const panel = () => page.locator("#details").evaluate((el) => ({
      head: el.querySelector("h2").textContent, said: el.querySelector(".said").textContent,
      lines: Object.fromEntries([...el.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent))),
    }));
    const { head, said, lines: told } = await panel();
    assert.equal(head, "read(3)=7");
    assert.match(said, /^a\.5 was in read for 1 \u00b5s from CPU 0 to CPU 1, which returned 7\. .*timer cut in for 50 ns\.$/);
    assert.deepEqual([told.Start, told.End, told.Duration, told.Returned, told.CPUs, told["Interrupted by"], told.IPC], ["0.00000600 s", "0.00000700 s", "1 \u00b5s", "7", "0, 1", "timer 50 ns", undefined]);
    // Esc takes back the path of wakeups, then the call, then what is selected.
    await page.keyboard.press("b");
    const left = () => ask(page, () => [__ku.app.chain, __ku.app.call, __ku.selected()].map((one) => one !== null));
    for (const wanted of [[true, true, true], [false, true, true], [false, false, true], [false, false, false]]) {
      assert.deepEqual(await left(), wanted);
      await page.keyboard.press("Escape");
    }
    // Idle time ends with the wakeup of what ran then, which comes after it.
    await ask(page, () => __ku.app.select(Array.from({ length: __ku.counts.spans }, (_, i) => __ku.span(i)).find(({ name }) => name === "-idle-").i));
    await page.keyboard.press("b");
    assert.equal(await page.locator("#details h2").last().textContent(), "What ended the idle time");
    assert.match(await page.locator("#details .chain").textContent(), /^\+?400 ns.*a\.5 was woken by b\.6/);
    const lines = () => page.locator("#details tr").evaluateAll((rows) => rows.map((row) => [...row.cells].slice(-2).map((cell) => cell.textContent)));
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    // The longest is a whole call, of which no piece is; then what is shorter; the same from a piece, and where pieces are listed.
    const longest = async (keys) => {
      const found = [];
      for (const key of keys) {
        await page.keyboard.press(key);
        found.push(await ask(page, () => {
          const { app } = __ku;
          const { t0, t1 } = __ku.view();
          const { text, start, dur } = __ku.selected();
          const { from, to } = app.call ?? { from: start, to: start + dur };
          return `${text.match(/read|timer/)[0]} ${to - from} ${from >= t0 && to <= t1}`;
        }));
      }
      return found;
    };
    await type(page, "read|timer");
    await page.locator("#overlay").focus();
    assert.deepEqual(await longest(["j", "j", "Shift+J"]), ["read 100 true", "timer 5 true", "read 100 true"]);
    await ask(page, () => __ku.app.goTo(__ku.app.search.ids.at(-1)));
    assert.deepEqual(await longest(["j"]), ["timer 5 true"]);
    await ask(page, () => __ku.app.select(-1));
    await page.keyboard.press("v");
    assert.deepEqual(await longest(["j"]), ["read 100 true"]);
    await ask(page, () => {
      __ku.app.listing = false;
      __ku.app.measure({ from: 400, to: 900 });
    });
    const [name, ...cells] = await page.locator("#details .spans tr", { hasText: "read(3)" }).evaluate((row) => [...row.cells].map((cell) => cell.textContent));
    assert.deepEqual([name, ...cells], ["read(3)=7", "a.5", "1.00 \u00b5s", ""]);
    await page.getByRole("button", { name: "read(3)=7" }).click();
    assert.equal(await ask(page, () => __ku.app.call.to - __ku.app.call.from), 100);
    await ask(page, () => {
      __ku.app.measure(null);
      __ku.app.forgetSearch();
    });
    await page.locator("#overlay").focus();
    await page.keyboard.press("v");
    await page.getByLabel("Where").selectOption("whole");
    await page.getByLabel("Group by", { exact: true }).selectOption("name");
    await page.locator("#details th button", { hasText: "LLC misses" }).click();
    assert.deepEqual((await lines()).slice(0, 2), [["IPC", "LLC misses"], ["0.83+", "520+"]]);
    await page.getByLabel("Kinds").selectOption("calls");
    assert.deepEqual(await lines(), [["IPC", "LLC misses"], ["0.83+", "520+"], ["0.00+", "0+"]]);
    return {};
  },
};
