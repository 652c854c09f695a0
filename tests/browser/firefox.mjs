// SPDX-License-Identifier: BSD-3-Clause
// A page in Debian's Firefox, by WebDriver BiDi: `node firefox.mjs PAGE EXPECTED`; prints JSON, or fails with what was
// wrong. Playwright drives only a Firefox of its own; this one listens to the protocol itself.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { ws: WebSocket } = (await import(pathToFileURL(join(dirname(process.env.PLAYWRIGHT), "lib/utilsBundle.js")).href)).default;

const [file, expected] = [resolve(process.argv[2]), JSON.parse(process.argv[3])];
const url = pathToFileURL(file).href;
const profile = mkdtempSync(join(tmpdir(), "kutrace-firefox-"));
const firefox = spawn(process.env.FIREFOX, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"],
  { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, HOME: profile } });

/** Everything the page did that it must not do. */
const faults = [];
/** Commands under way, by number. */
const waiting = new Map();

async function connect() {
  const address = await new Promise((found, fail) => {
    let text = "";
    for (const stream of [firefox.stdout, firefox.stderr]) stream.on("data", (part) => {
      text += part;
      const [, heard] = /BiDi listening on (ws:\S+)/.exec(text) ?? [];
      if (heard) found(heard);
    });
    firefox.once("exit", () => fail(new Error(`Firefox ended:\n${text}`)));
  });
  const socket = new WebSocket(`${address}/session`);
  await new Promise((done, fail) => Object.assign(socket, { onopen: done, onerror: fail }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id === undefined) heard(message);
    else waiting.get(message.id)(message);
  };
  return (method, params) => new Promise((done, fail) => {
    const id = waiting.size + 1;
    waiting.set(id, (answer) => (answer.type === "error" ? fail(new Error(`${method}: ${answer.message}`)) : done(answer.result)));
    socket.send(JSON.stringify({ id, method, params }));
  });
}

/** Notes what the page says or asks for. */
function heard({ method, params }) {
  if (method === "log.entryAdded") faults.push(`console: ${params.text}`);
  const asked = params.request?.url.split("#")[0] ?? url;
  if (asked !== url && !asked.startsWith("blob:") && !asked.startsWith("data:")) faults.push(`request: ${asked}`);
}

try {
  const command = await connect();
  await command("session.new", { capabilities: {} });
  const { contexts: [{ context }] } = await command("browsingContext.getTree", {});
  await command("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent"], contexts: [context] });
  await command("browsingContext.setViewport", { context, viewport: { width: 1200, height: 700 } });
  await command("browsingContext.navigate", { context, url, wait: "complete" });
  /** The page's answer to an expression. */
  const ask = async (expression) => {
    const source = `(async () => JSON.stringify(await (${expression})))()`;
    const { result, exceptionDetails } = await command("script.evaluate", { expression: source, target: { context }, awaitPromise: true });
    assert.equal(exceptionDetails, undefined, exceptionDetails?.text);
    return result.value === undefined ? undefined : JSON.parse(result.value);
  };
  const act = (type, actions) => command("input.performActions", { context, actions: [{ type, id: type, actions }] });
  const settle = () => ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))");

  await ask("__ku.whenReady.then(() => 0)");
  assert.equal(await ask("__ku.ready"), true);
  assert.equal(await ask("__ku.counts.spans"), expected.spans);

  // Zooming by key, dragging by pointer.
  const whole = await ask("__ku.view()");
  for (const key of "www") await act("key", [{ type: "keyDown", value: key }, { type: "keyUp", value: key }]);
  await settle();
  const near = await ask("__ku.view()");
  assert.ok(near.t1 - near.t0 < (whole.t1 - whole.t0) / 3, "W does not zoom in");
  const box = await ask("(({ x, y }) => ({ x, y }))(document.querySelector('#overlay').getBoundingClientRect())");
  const at = (x) => ({ type: "pointerMove", x: Math.round(box.x + x), y: Math.round(box.y + 80) });
  await act("pointer", [at(500), { type: "pointerDown", button: 0 }, at(450), at(400), { type: "pointerUp", button: 0 }]);
  await settle();
  const moved = await ask("__ku.view()");
  const by = (100 * (near.t1 - near.t0)) / near.width;
  assert.ok(Math.abs(moved.t0 - near.t0 - by) < by / 20, `dragging moves the view by ${moved.t0 - near.t0}, not ${by}`);

  // A search, typed.
  const { pattern, count } = expected.search;
  await ask("document.querySelector('#pattern').focus()");
  await act("key", [...pattern].flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]));
  await settle();
  assert.equal(await ask("__ku.search().count"), count);

  // What is drawn is found where it is drawn.
  for (const { start, dur, cpu, name } of expected.hits) {
    await ask(`__ku.show(${start - dur - 5}, ${start + 2 * dur + 5})`);
    const hit = await ask(`(() => {
      const { t0, t1, width } = __ku.view();
      const row = __ku.rows().find((r) => r.label === "CPU ${cpu}");
      return __ku.hit(((${start + dur / 2} - t0) / (t1 - t0)) * width, row.y + row.h * 0.3);
    })()`);
    assert.deepEqual([hit?.start, hit?.dur, hit?.name], [start, dur, name]);
  }
  await settle();
  const drawn = await ask("new Set(__ku.app.picture.context.getImageData(0, 0, 900, 400).data).size");
  assert.ok(drawn > 5, "the picture is empty");
  assert.deepEqual(faults, []);
  console.log(JSON.stringify({ spans: expected.spans, hits: expected.hits.length, readyMs: Math.round(await ask("__ku.readyAt")) }));
} finally {
  firefox.removeAllListeners("exit");
  firefox.kill();
  await new Promise((done) => firefox.once("exit", done));
  rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
}
process.exit(0);
