// SPDX-License-Identifier: BSD-3-Clause
// The panel of requests: their durations, the causes that slow ones have more of, and where the time of one went,
// next to a normal one. The causes were computed when the page was made; data/excess.js adds them up.

import { alignedText, countText, durationText, roundedText, secondsText, shownName, signedText, trimmed } from "../data/format.js";
import { Events } from "../data/events.js";
import { compare, partsOf, verdictOf } from "../data/excess.js";
import { causeColor } from "../draw/path.js";
import { goToRequest, showTime, toggleRequests } from "./asked.js";
import { histogramOf, svgElement } from "./histogram.js";
import { actionButton, byId, closeButton, tableOf, textElement } from "../dom.js";
/**
 * @import {PathPart, Requests, Sums} from "../data/requests.js"
 * @import {App} from "../main.js"
 * @import {Asked} from "./asked.js"
 */

/** Maximum number of requests listed, of causes of one, and of parts of its path. */
const REQUESTS_LISTED = 30;
const CAUSES_LISTED = 15;
const PARTS_LISTED = 60;
/** Size of a strip that shows where the time of a request went. */
const STRIP_WIDTH = 1000;
const STRIP_HEIGHT = 16;

/** Shows all threads, or only those of the request's path again. @param {Asked} asked */
function threadsButton(asked) {
  const button = actionButton("All threads", "Rows of all threads, not only of those on the path", () => {
    asked.allThreads = !asked.allThreads;
    asked.changed();
  });
  button.ariaPressed = String(asked.allThreads);
  return button;
}

/** @param {App} app @param {HTMLElement} panel */
export function showRequests(app, panel) {
  const { asked } = app;
  if (!asked.requests) {
    panel.replaceChildren(closeButton(() => toggleRequests(app)), textElement("h2", "Requests"), textElement("p", asked.error || "Reading \u2026"));
    asked.read();
    return;
  }
  if (asked.request >= 0) showRequest(app, panel, asked.requests, asked.request);
  else showAll(app, panel, asked.requests);
}

/** @param {App} app @param {HTMLElement} panel @param {Requests} requests */
function showAll(app, panel, requests) {
  const { asked } = app;
  const { byDuration, byRest, durations, dur, n, sides, rules } = requests;
  const of = (/** @type {number} */ part) => durationText(dur[byDuration[Math.max(Math.ceil((n * part) / 1000), 1) - 1]]);
  const open = requests.unfinished > 0 ? `; ${requests.unfinished} had begun and not ended` : "";
  const percentiles = [[10, "90", 900], [100, "99", 990], [1000, "99.9", 999]].filter(([part]) => n / Number(part) >= rules.beyond)
    .map(([, name, part]) => `${name}\u00a0% ${of(Number(part))}, `).join("");
  const said = `${countText(n, "request")}: ${n > 1 ? `median ${of(500)}, ${percentiles}longest ` : ""}${of(1000)}${open}`;
  const numbers = asked.part ? requests.between(asked.part.from, asked.part.to)
    : sides ? byRest.subarray(sides[0].start, sides[0].end) : byDuration;
  const bands = asked.part || !sides || requests.apart >= 0 ? [] : sides.map(({ start, end }, k) => ({
    from: dur[byDuration[start]], to: dur[byDuration[end - 1]], name: ["slow", "normal"][k],
  })).filter(({ from, to }) => from <= to);
  const histogram = histogramOf(durations, (from, to) => {
    asked.part = { from, to };
    asked.cause = -1;
    asked.changed();
  }, asked.part, bands);
  const buttons = asked.part ? [actionButton("All durations", "The slow ones against the normal ones again (Esc)", () => {
    asked.part = null;
    asked.changed();
  })] : [];
  panel.replaceChildren(
    closeButton(() => toggleRequests(app)), textElement("h2", "Requests"), textElement("p", requests.asked, "asked"),
    ...(asked.part ? [] : [textElement("p", shownName(verdictOf(requests, asked.sidesOf(requests))), "verdict")]), textElement("p", said),
    ...(asked.part ? [] : longestEvent(asked, requests)),
    histogram, textElement("p", asked.part ? "" : `${bands.length > 1 ? "Grey: the normal ones; yellow: the slow ones. " : ""}Drag over durations to compare those requests with all others.`, "hint"), ...buttons,
    ...comparison(app, requests, numbers), ...(asked.cause >= 0 ? listOfCause(app, requests, numbers) : listOfEvents(app, requests)),
  );
}

/** The number of events that make requests slow, and the longest of them, if anything stands out. @param {Asked} asked @param {Requests} requests */
function longestEvent(asked, requests) {
  if (!asked.sidesOf(requests)?.compared.causes.length) return [];
  const { list } = asked.eventsOf(requests);
  const { longest, part, count } = list[0];
  const most = part ? `: ${durationText(part.to - part.from)} ${shownName(requests.wordsOf(part))}` : "";
  return [textElement("p", `${countText(list.length, "event")}; the longest: ${durationText(requests.dur[longest])} at ${secondsText(requests.start[longest])} s, ${countText(count, "request")}${most}`, "events")];
}

/** The causes that some requests have more of: the chosen ones against the rest, else slow ones against normal ones. @param {App} app @param {Requests} requests @param {Uint32Array} numbers */
function comparison(app, requests, numbers) {
  const { asked } = app;
  const sides = asked.part ? null : asked.sidesOf(requests);
  const some = sides ? sides.slow : requests.sum(numbers);
  const others = sides ? sides.normal : requests.all.without(some);
  if (others.count === 0 || (!asked.part && !sides)) return everything(app, requests, numbers, some);
  const { excess, causes, leftOut, unexplained } = sides ? sides.compared : compare(requests, numbers, some, others);
  const more = excess < 0 ? "less" : "more";
  const mean = (/** @type {Sums} */ sums) => durationText(Math.trunc(sums.mean));
  const [these, those] = asked.part ? ["these", "others"] : ["slow", "normal"];
  const [slowest, average] = some.count === 1 ? ["one", ""] : [some.count.toLocaleString("en"), " on average"];
  const without = sides?.still ? " without the time in which CPUs stood still" : "";
  const head = asked.part ? `${countText(some.count, "request")}, ${mean(some)} on average, against ${others.count.toLocaleString("en")} others, ${mean(others)}`
    : `The slowest ${slowest}${without}, ${mean(some)}${average}, against ${countText(others.count, "normal one")}, ${mean(others)}`;
  const said = textElement("p", `${head}: ${durationText(Math.trunc(Math.abs(excess)))} ${more}`);
  said.id = "compared";
  if (causes.length === 0) return [said, textElement("p", "Nothing stands out."), ...everything(app, requests, numbers, sides ? requests.sum(numbers) : some)];
  const lines = causes.map(({ cause, words, time, share, inSome, inOthers, notes }) => [
    causeCell(app, requests, cause, words, notes), alignedText(Math.trunc(Math.abs(time))), `${roundedText(share * 100, 0)} %`,
    `${inSome}/${some.count}`, `${inOthers}/${others.count}`,
  ]);
  const rest = `${leftOut > 0 ? `${countText(leftOut, "cause")} more, and all` : "All"} else, together: ${roundedText(unexplained * 100, 0)} %`;
  const table = causesTable(["Cause", `${more} time`, "share", `in ${these}`, `in ${those}`], lines);
  if (!sides?.still) return [said, table, textElement("p", rest)];
  // The larger contribution comes first.
  const mostly = sides.still.time > causes[0].time;
  const still = stoodStill(sides.still, others.count, mostly ? "The" : "With that time the");
  return mostly ? [still, said, table, textElement("p", rest)] : [said, table, textElement("p", rest), still];
}

/** The contribution of time in which CPUs stood still, which is treated separately. @param {{excess: number, time: number, slow: number, inSlow: number, inNormal: number}} still @param {number} normal number of normal requests @param {string} the start of the sentence */
function stoodStill({ excess, time, slow, inSlow, inNormal }, normal, the) {
  const [more, its] = [excess, time].map((each) => durationText(Math.trunc(each)));
  const share = roundedText((time / excess) * 100, 0);
  return textElement("p", `${the} slowest ${slow} take ${more} more than normal ones: ${its} of it, ${share} %, is time in which CPUs stood still, in ${inSlow}/${slow} of them and in ${inNormal}/${normal} normal ones.`);
}

/** A table of where the time of some requests went, if there is nothing to compare them with. @param {App} app @param {Requests} requests @param {Uint32Array} numbers @param {Sums} some */
function everything(app, requests, numbers, some) {
  const { causes, leftOut } = partsOf(requests, numbers, some);
  const lines = causes.map(({ cause, words, time, share, inSome, notes }) => [
    causeCell(app, requests, cause, words, notes), alignedText(Math.trunc(time)), `${trimmed(share * 100, 1)} %`, `${inSome}/${some.count}`,
  ]);
  return [causesTable(["Where their time went", "time each", "share", "in"], lines), ...(leftOut > 0 ? [textElement("p", `${countText(leftOut, "cause")} more`)] : [])];
}

/** @param {string[]} heads @param {(string | Node)[][]} lines */
function causesTable(heads, lines) {
  const table = tableOf(heads, lines);
  table.classList.add("causes");
  return table;
}

/** A cause, with its colour and notes; a click lists the requests with most of it. @param {App} app @param {Requests} requests @param {number} cause @param {string} words @param {string[]} notes */
function causeCell(app, requests, cause, words, notes) {
  const { asked } = app;
  const cell = textElement("span", "", "cause");
  const said = document.createElement("span");
  const button = actionButton(shownName(words), "List the requests with most of it", () => {
    asked.cause = asked.cause === cause ? -1 : cause;
    // Keep the clicked cell in place.
    const { scrollTop } = byId("details");
    asked.changed();
    byId("details").scrollTop = scrollTop;
  });
  button.ariaPressed = String(asked.cause === cause);
  said.append(button);
  if (notes.length > 0) said.append(textElement("small", shownName(notes.join("; "))));
  cell.append(chip(app, requests.causes[cause].kind), said);
  return cell;
}

/** A square in the colour of a sort of cause. @param {App} app @param {string} kind */
function chip(app, kind) {
  const square = textElement("i", "", "chip");
  square.style.background = causeColor(app.palette, kind);
  return square;
}

/** The cells of a request in a list: a button to go there, its duration, the cells in `more`, its thread, and its largest cause. @param {App} app @param {Requests} requests @param {number} number @param {string[]} more */
function listed(app, requests, number, more) {
  const [first] = requests.causesOf(number);
  const mostly = first ? `${shownName(first.words)}, ${roundedText((100 * first.time) / Math.max(requests.dur[number], 1), 0)} %` : "";
  const go = actionButton(`${secondsText(requests.start[number])} s`, "Go to this request", () => goToRequest(app, number));
  return [go, alignedText(requests.dur[number]), ...more, shownName(requests.thread(requests.pid[number])), mostly];
}

/** @param {string} head @param {string[]} heads @param {(string | Node)[][]} lines */
function listBelow(head, heads, lines) {
  const table = tableOf(["Start", "Duration", ...heads, "Thread", "Mostly"], lines);
  table.classList.add("listed");
  return [textElement("h3", head), table];
}

/** The requests, of some, with most of the chosen cause, one per event. @param {App} app @param {Requests} requests @param {Uint32Array} numbers */
function listOfCause(app, requests, numbers) {
  const { cause } = app.asked;
  const those = requests.withMost(numbers, cause, numbers.length);
  const events = new Events(requests, those.map(([number]) => number).reverse());
  const seen = new Set();
  const another = those.filter(([number]) => {
    const event = events.of.get(number) ?? number;
    return !seen.has(event) && seen.add(event);
  });
  const lines = another.slice(0, REQUESTS_LISTED).map(([number, time]) => listed(app, requests, number, [alignedText(time)]));
  return listBelow(`With most of \u201c${shownName(requests.words(cause))}\u201d`, ["of that cause"], lines);
}

/** The longest request of each event. @param {App} app @param {Requests} requests */
function listOfEvents(app, requests) {
  const { list } = app.asked.eventsOf(requests);
  const several = list.some(({ count }) => count > 1);
  const lines = list.slice(0, REQUESTS_LISTED).map(({ longest, count }) => listed(app, requests, longest, several ? [count.toLocaleString("en")] : []));
  const head = several ? `The longest of each of ${countText(list.length, "event")}` : list.length > 1 ? "The longest" : "It";
  return listBelow(head, several ? ["Requests"] : [], lines);
}

/** The request to show next to another: the middle one of the normal ones; -1 if there is no other. @param {Requests} requests @param {number} number */
export function normalBeside({ byDuration, n, sides }, number) {
  const at = sides ? (sides[1].start + sides[1].end) >> 1 : n >> 1;
  return n > 1 && byDuration[at] !== number ? byDuration[at] : n > 2 ? byDuration[at - 1] : -1;
}

/** Shows one request: where its time went, next to a normal one, and its path. @param {App} app @param {HTMLElement} panel @param {Requests} requests @param {number} number */
function showRequest(app, panel, requests, number) {
  const { asked } = app;
  const beside = normalBeside(requests, number);
  const at = requests.byDuration.indexOf(number);
  const { list: events, of } = asked.eventsOf(requests);
  const event = of.get(number);
  const place = event ? events.indexOf(event) : -1;
  const step = (/** @type {string} */ words, /** @type {number | undefined} */ next) => {
    const button = actionButton(words, "Go to that request", () => next !== undefined && goToRequest(app, next));
    button.disabled = next === undefined;
    return button;
  };
  const ofEvent = event && events.length > 1 ? [
    textElement("span", `Event ${place + 1} of ${events.length}${event.count > 1 ? `, ${countText(event.count, "request")}` : ""}`, "event"),
    step("Next event", events[place + 1]?.longest), step("Event before", events[place - 1]?.longest),
  ] : [];
  const [start, dur] = [requests.start[number], requests.dur[number]];
  const list = requests.causesOf(number);
  const usual = new Map(beside < 0 ? [] : requests.causesOf(beside).map(({ cause, time }) => [cause, time]));
  const lines = list.slice(0, CAUSES_LISTED).map(({ cause, time, words }) => {
    const cell = textElement("span", "", "cause");
    cell.append(chip(app, requests.causes[cause].kind), textElement("span", shownName(words)));
    const other = usual.get(cause) ?? 0;
    return [cell, alignedText(time), ...(beside < 0 ? [] : [other > 0 ? alignedText(other) : "", signedText(time - other)])];
  });
  const left = list.slice(CAUSES_LISTED).reduce((sum, { time }) => sum + time, 0);
  if (left > 0) lines.push([`${countText(list.length - CAUSES_LISTED, "cause")} more`, alignedText(left), ...(beside < 0 ? [] : ["", ""])]);
  lines.push(["Together", alignedText(dur), ...(beside < 0 ? [] : [alignedText(requests.dur[beside]), signedText(dur - requests.dur[beside])])]);
  const heads = ["Where its time went", "this one", ...(beside < 0 ? [] : ["a normal one", "more"])];
  const longest = Math.max(dur, beside < 0 ? 0 : requests.dur[beside]);
  panel.replaceChildren(
    closeButton(() => toggleRequests(app)), textElement("h2", `${durationText(dur)}, ${shownName(requests.thread(requests.pid[number]))}`),
    textElement("p", `A request from ${secondsText(start)} s on: ${requests.asked}`),
    actionButton("All requests (Esc)", "Back to all requests", () => asked.back()),
    actionButton("Fit", "Zoom to this request", () => showTime(app, start, start + dur)),
    step("Next longer", requests.byDuration[at + 1]), step("Next shorter", requests.byDuration[at - 1]), threadsButton(asked), ...ofEvent,
    ...strip(app, requests, number, longest, "This one, from its start"),
    ...(beside < 0 ? [] : strip(app, requests, beside, longest, `A normal one, ${durationText(requests.dur[beside])}, from its start`)),
    ...(beside < 0 ? [] : [actionButton("Go to the normal one", "Show it in the picture", () => goToRequest(app, beside))]),
    causesTable(heads, lines), ...pathLines(app, requests, number),
  );
}

/** A strip of where the time of a request went, part by part; a click on a part goes there. @param {App} app @param {Requests} requests @param {number} number @param {number} longest the time of the strip's full width @param {string} title */
function strip(app, requests, number, longest, title) {
  const svg = svgElement("svg", { viewBox: `0 0 ${STRIP_WIDTH} ${STRIP_HEIGHT}`, preserveAspectRatio: "none", height: STRIP_HEIGHT, role: "img", class: "strip" });
  svg.setAttribute("aria-label", title);
  const start = requests.start[number];
  const xOf = (/** @type {number} */ time) => ((time - start) * STRIP_WIDTH) / Math.max(longest, 1);
  for (const { from, to, part } of runsOf(requests.pathOf(number), longest / STRIP_WIDTH)) {
    const rect = svgElement("rect", { x: xOf(from), y: 0, width: xOf(to) - xOf(from), height: STRIP_HEIGHT });
    /** @type {SVGElement} */ (rect).style.fill = causeColor(app.palette, requests.causes[part.cause].kind);
    const words = svgElement("title", {});
    words.textContent = `+${durationText(from - start)}: ${durationText(to - from)} ${shownName(requests.wordsOf(part))}`;
    rect.append(words);
    rect.addEventListener("click", () => {
      app.remember();
      showTime(app, from, to);
    });
    svg.append(rect);
  }
  return [textElement("p", title, "of-strip"), svg];
}

/** Visible runs of parts: those shorter than a step are joined, represented by the longest of them. @param {PathPart[]} parts @param {number} min */
function runsOf(parts, min) {
  /** @type {{from: number, to: number, part: PathPart}[]} */
  const runs = [];
  for (const part of parts) {
    const last = runs[runs.length - 1];
    if (!last || last.to - last.from >= min) runs.push({ from: part.from, to: part.to, part });
    else {
      last.to = part.to;
      if (part.to - part.from > last.part.to - last.part.from) last.part = part;
    }
  }
  return runs;
}

/** The longest parts of a request's path, in order of time, each with a link. @param {App} app @param {Requests} requests @param {number} number */
function pathLines(app, requests, number) {
  const parts = requests.pathOf(number);
  const start = requests.start[number];
  const longest = new Set(parts.toSorted((a, b) => b.to - b.from - (a.to - a.from)).slice(0, PARTS_LISTED));
  const table = document.createElement("table");
  table.className = "chain";
  for (const part of parts.filter((one) => longest.has(one))) {
    const { from, to, cpu, cause } = part;
    const what = document.createElement("td");
    const go = actionButton(shownName(requests.wordsOf(part)), "Show it in the picture", () => {
      app.remember();
      showTime(app, from, to);
    });
    what.append(chip(app, requests.causes[cause].kind), go, cpu >= 0 ? ` on CPU ${cpu}` : "");
    const line = table.insertRow();
    line.append(textElement("td", signedText(from - start)), textElement("td", alignedText(to - from)), what);
  }
  const cut = parts.length > longest.size ? `, the longest ${longest.size} of ${countText(parts.length, "part")}` : "";
  return [textElement("h3", `Its path${cut}`), table];
}
