// SPDX-License-Identifier: BSD-3-Clause
// What the page FILE says of its requests, as JSON: `node compared.mjs FILE`. tests/host/requests.rs holds it to what the terminal says.
import { readFileSync } from "node:fs";

import { piecesOf } from "../../../postprocess/viewer/data/decode.js";
import { Events } from "../../../postprocess/viewer/data/events.js";
import { partsOf, slowAgainstNormal, verdictOf } from "../../../postprocess/viewer/data/excess.js";
import { unpackPart } from "../../../postprocess/viewer/data/part.js";
import { readRequests } from "../../../postprocess/viewer/data/requests.js";

const page = readFileSync(process.argv[2], "utf8");
const textsOf = (start) => page.split(start).slice(1).map((rest) => rest.slice(rest.indexOf(">") + 1, rest.indexOf("</script>")));
const meta = JSON.parse(textsOf('<script type="application/json" id="ku-meta"')[0]);
const chunks = textsOf('<script type="text/plain" class="ku-data"');
const { layout: { groups, cpus }, chunkBytes } = meta;

/** A column of the spans. */
async function columnOf(field) {
  const columns = groups.map(async ({ rows, parts }) => {
    const { width, wide, offset, bytes } = parts.find((part) => part.field === field);
    const values = await unpackPart({ pieces: piecesOf(chunks, chunkBytes, offset, bytes), width, wide, rows, sums: field === "start" });
    return values.length === rows ? values : new Uint8Array(rows);
  });
  return Float64Array.from((await Promise.all(columns)).flatMap((values) => [...values]));
}

const spans = { start: await columnOf("start"), cpu: await columnOf("cpu"), cpus };
const requests = await readRequests(meta.requests, chunks, chunkBytes, spans);

const sides = slowAgainstNormal(requests);
const { slow, normal, still, compared } = sides ?? {};
/** What of a request is in no part of its path, or in more than one. */
const amiss = Array.from({ length: requests.n }, (_, r) => {
  const parts = requests.pathOf(r);
  const gaps = parts.filter(({ from }, k) => from !== (k === 0 ? requests.start[r] : parts[k - 1].to)).length;
  return parts.reduce((sum, { from, to }) => sum - to + from, requests.dur[r]) + gaps;
}).filter((left) => left !== 0).length;
/** The events of the slow ones, where something stands out. */
const events = compared && compared.causes.length > 0 ? new Events(requests, requests.byDuration.slice(requests.sides[0].start, requests.sides[0].end)).list : [];
const eventOf = ({ longest, part, count }) => ({
  start: requests.start[longest], dur: requests.dur[longest], thread: requests.thread(requests.pid[longest]), count,
  cause: part ? requests.wordsOf(part) : "", time: part ? part.to - part.from : 0,
});
const sideOf = ({ count, mean }) => ({ count, mean });
console.log(JSON.stringify({
  asked: requests.asked, count: requests.n, unfinished: requests.unfinished, total: requests.all.time, amiss, parts: partsOf(requests, requests.byDuration, requests.all),
  slow: slow && sideOf(slow), normal: slow && sideOf(normal),
  compared, still, events: events.map(eventOf), verdict: verdictOf(requests, sides),
}));
