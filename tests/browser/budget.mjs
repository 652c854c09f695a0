// SPDX-License-Identifier: BSD-3-Clause
// What a page costs at its size: opening it, moving in it, searching it, its memory. Times in ms, medians or 95 of 100.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ask = (page, question, argument) => page.evaluate(question, argument);
const rounded = (value) => Math.round(value * 10) / 10;
const p95 = (list) => rounded(list.sort((a, b) => a - b)[Math.floor(list.length * 0.95)]);
const median = (list) => rounded(list.sort((a, b) => a - b)[list.length >> 1]);

/** Bytes that each page of a browser has for itself, by the number of the browser's process. */
function rendererBytes(browser) {
  const parents = new Map();
  const renderers = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      parents.set(Number(pid), Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[1]));
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) renderers.push(Number(pid));
    } catch {
      // It has ended meanwhile.
    }
  }
  const ours = (pid) => pid === browser || (parents.has(pid) && ours(parents.get(pid)));
  const bytes = (pid) => /RssAnon:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1] * 1024;
  return renderers.filter(ours).map(bytes);
}

/**
 * Bytes that the page's process holds, once what is not needed is gone: in a browser that nobody watched while it opened
 * the page, for one that is watched keeps the file's text for the debugger.
 */
async function bytesOf(page) {
  const { chromium, flags } = page.launched;
  const profile = mkdtempSync(join(tmpdir(), "kutrace-memory-"));
  const own = [...flags, "--remote-debugging-port=0", "--window-size=1600,900", `--user-data-dir=${profile}`];
  // A group of its own: Debian's command is a script that starts the browser. All of it has ended once its output has.
  const child = spawn(process.env.CHROMIUM, [...own, page.url().split("#")[0]], { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((done) => child.once("close", done));
  try {
    const address = await new Promise((found) => {
      let text = "";
      child.stderr.on("data", (part) => {
        text += part;
        const [, url] = /listening on (ws:\S+)/.exec(text) ?? [];
        if (url) found(url);
      });
    });
    await page.waitForTimeout(4 * (await ask(page, () => window.__painted)) + 2000);
    const browser = await chromium.connectOverCDP(address);
    const [other] = browser.contexts()[0].pages();
    await other.waitForFunction(() => window.__ku?.ready === true, null, { timeout: 60000 });
    const session = await other.context().newCDPSession(other);
    for (let i = 0; i < 3; i++) {
      await session.send("HeapProfiler.collectGarbage");
      await other.waitForTimeout(500);
    }
    // A browser may keep a process in reserve, smaller than that of a page.
    const bytes = Math.max(...rendererBytes(child.pid));
    await browser.close();
    return bytes;
  } finally {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid);
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** What asks how much CPU time the page's main thread has taken, in ms: it hardly depends on what else the machine does. */
async function clockOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;
}

/** Times of drawing a list of ranges, each until its pixels are there. */
const redraws = (page, sort) => ask(page, async (sort) => {
  const { begin, end } = __ku.view();
  const whole = end - begin;
  const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const times = [];
  for (let i = 0; i < 60; i++) {
    const spread = (i * 0.618) % 1;
    let from = begin;
    let span = whole;
    if (sort === "pan") {
      span = whole / 10 ** (1 + Math.floor(i / 12));
      from = begin + (whole - span) * 0.4 + (span * (i % 12)) / 8;
    } else if (sort === "zoom") {
      span = whole / 1.3 ** i / 10;
      from = begin + (whole - span) * (0.3 + spread * 1e-9);
    }
    const began = performance.now();
    __ku.show(from, from + span);
    for (const id of ["base", "overlay", "overview"]) probe.drawImage(document.getElementById(id), 0, 0);
    probe.getImageData(0, 0, 1, 1);
    times.push(performance.now() - began);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return times;
}, sort);

/** Times from turns of the wheel to the second frame after each, in and out of a tenth of the trace. */
async function turns(page) {
  const box = await page.locator("#overlay").boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height * 0.3);
  await ask(page, () => {
    const { begin, end } = __ku.view();
    __ku.show(begin + (end - begin) * 0.4, begin + (end - begin) * 0.5);
    window.__turns = [];
    const listen = (e) => requestAnimationFrame(() => requestAnimationFrame(() => window.__turns.push(performance.now() - e.timeStamp)));
    document.getElementById("overlay").addEventListener("wheel", listen, { capture: true, passive: true });
  });
  for (let i = 0; i < 100; i++) {
    await page.mouse.wheel(0, i % 20 < 10 ? -120 : 120);
    await page.waitForFunction((turned) => window.__turns.length > turned, i);
  }
  return ask(page, () => window.__turns);
}

/** Times until the table and the histogram of all spans are in the panel: of single spans, of groups, of whole calls. */
const tables = (page) => ask(page, () => {
  const { app } = __ku;
  const ways = { table: ["all", "", ""], groups: ["all", "name", "thread"], calls: ["calls", "", ""] };
  const times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  app.listing = app.list.whole = true;
  for (let i = 0; i < 5; i++) {
    for (const [way, [what, ...by]] of Object.entries(ways)) {
      Object.assign(app.list, { what, by });
      const began = performance.now();
      app.showDetails();
      document.getElementById("details").getBoundingClientRect();
      times[way].push(performance.now() - began);
    }
  }
  app.listing = false;
  app.showDetails();
  return times;
});

/** Times until a part of the requests is compared with all others, if there are any: the slower halves, ever smaller. */
const brushes = (page) => ask(page, async () => {
  const { app } = __ku;
  const { asked } = app;
  if (!asked.carried) return null;
  asked.open = true;
  await asked.read();
  const durations = Float64Array.from(asked.requests.dur).sort();
  const times = [];
  for (let i = 1; i <= 7; i++) {
    asked.part = { from: durations[Math.floor(durations.length * (1 - 0.5 ** i))], to: durations.at(-1) };
    const began = performance.now();
    app.showDetails();
    document.getElementById("details").getBoundingClientRect();
    times.push(performance.now() - began);
  }
  const { n } = asked.requests;
  asked.part = null;
  asked.open = false;
  app.showDetails();
  return { n, times };
});

export const budget = {
  /** What a page without spans takes. */
  async bare(page) {
    return { bytes: await bytesOf(page) };
  },

  async budget(page, { spans }) {
    assert.equal(await ask(page, () => __ku.counts.spans), spans);
    const openings = [await ask(page, () => window.__painted)];
    const bytes = await bytesOf(page);
    const answer = { openMs: 0, memory: bytes };
    const cpu = await clockOf(page);
    const cpuOf = async (work) => {
      const before = await cpu();
      return [await work(), await cpu() - before];
    };
    // A page opens with its threads open, if there is room for them.
    const openThreads = (open) => ask(page, (open) => __ku.app.groups[1].collapsed === open && __ku.toggle("PID"), open);
    await openThreads(false);
    for (const sort of ["pan", "zoom", "whole"]) answer[`${sort}Ms`] = p95(await redraws(page, sort));
    await openThreads(true);
    const [drawn, drawing] = await cpuOf(() => redraws(page, "whole"));
    answer.threadsCpuMs = rounded(drawing / drawn.length);
    answer.threadsMs = p95(drawn);
    const searches = await ask(page, () => {
      const { search } = __ku.app;
      const times = { nameSearch: [], boundsSearch: [], callSearch: [], scopeSearch: [], texts: [] };
      const timed = (sort, work) => {
        const began = performance.now();
        work();
        times[sort].push(performance.now() - began);
      };
      const queries = {
        nameSearch: { pattern: "page_fault|read" }, boundsSearch: { pattern: "", min: "20", max: "1ms" }, callSearch: { pattern: "=E(AGAIN|NOENT)" },
        scopeSearch: { pattern: "cpu:0,2 kind:syscall,fault page_fault|read" },
      };
      for (let i = 0; i < 5; i++) {
        search.texts = [null, null];
        timed("texts", () => search.textsOf(false));
        for (const [sort, query] of Object.entries(queries)) timed(sort, () => search.find({ ...NOTHING, ...query }));
      }
      search.find(NOTHING);
      return times;
    });
    for (const [sort, times] of Object.entries(searches)) answer[`${sort}Ms`] = median(times);
    const [listed, listing] = await cpuOf(() => tables(page));
    for (const [way, times] of Object.entries(listed)) answer[`${way}Ms`] = median(times);
    answer.tablesCpuMs = rounded(listing / Object.values(listed).flat().length);
    const brushed = await brushes(page);
    if (brushed) Object.assign(answer, { requests: brushed.n, brushMs: median(brushed.times) });
    answer.turnMs = p95(await turns(page));
    const opened = [];
    for (let i = 0; i < 4; i++) {
      const [, opening] = await cpuOf(async () => {
        await page.reload();
        await page.waitForFunction(() => window.__painted > 0, null, { timeout: 60000 });
      });
      opened.push(opening);
      openings.push(await ask(page, () => window.__painted));
    }
    answer.openCpuMs = median(opened);
    answer.openMs = median(openings);
    return answer;
  },
};
