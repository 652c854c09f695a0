// SPDX-License-Identifier: BSD-3-Clause
// The legend, if it is open: a small drawing and a word for everything in sight; pointing at an entry explains it, and
// clicking it searches for its spans.

import { kindOfEvent, LOCK_HELD, MORSE, PART, VALUE, waitLetter, WAITS } from "../data/kind.js";
import { FLAG, Kind, CANNOT_SHOW } from "../data/tables.js";
import { sightOf } from "../data/sight.js";
import { MEANINGS } from "../data/words.js";
import { MORSE_DOT, morseStrokes } from "../draw/compose.js";
import { MIDDLE_COLOR, MISS_COLOR } from "../draw/glyphs.js";
import { FREQ_COLORS, SAMPLE_COLORS } from "../draw/strips.js";
import { RX_COLOR, TX_COLOR } from "../draw/messages.js";
import { actionButton, textElement } from "../dom.js";
/**
 * @import {Query} from "../data/search.js"
 * @import {App} from "../main.js"
 */

/** Size of a drawing in CSS pixels. */
const SWATCH_W = 26;
const SWATCH_H = 14;

/**
 * A part of a drawing: a path, filled with its colour or drawn as a line with a width and dashes.
 * @typedef {{d: string, color: string, line?: number, dashes?: string}} Stroke
 */

/** The note shown if a trace cannot show entry and exit code. */
const ENTRY_CODE = "entry code counts for the interrupted span";

/** @param {App} app @param {HTMLElement} element */
export function showLegend(app, element) {
  if (element.hidden) return;
  const { store, palette, layers, view } = app;
  const { css } = palette;
  const isOn = (/** @type {string} */ id) => layers.stateOf(id) !== "off";
  const { kinds, events } = sightOf(store, view, (i) => app.focus.sleeps(i), new Map([
    [Kind.WAKEUP, app.showArcs && !view.relative], [Kind.IPI, app.showIpis && !view.relative], [Kind.MARK, isOn("marks")], [Kind.SAMPLE, isOn("samples")], [Kind.FREQ, isOn("freq")],
  ]));
  const counters = isOn("counters") ? store.meta.flags & FLAG.COUNTERS : 0;
  const band = (/** @type {string} */ color, /** @type {number} */ half) => [{ d: box(1, 7 - half, 24, 2 * half), color }];
  const [, one, other] = css.stripes;
  const striped = (/** @type {string} */ color) => [
    ...band(color, 6), { d: "M1 3.5H13M1 10.5H13", color: one, line: 1 }, { d: "M13 3.5H25M13 10.5H25", color: other, line: 1 },
  ];
  const flat = (/** @type {number} */ y) => `M1 ${y}H25`;
  /** Entries: whether the trace has it, its drawing, a word, its `kind:`, and an explanation. @type {[boolean, Stroke[], string, string, string][]} */
  const entries = [
    [kinds.has(Kind.IDLE), [{ d: flat(7), color: css.idle, line: 1 }], MEANINGS[Kind.IDLE][0], "idle", MEANINGS[Kind.IDLE][1]],
    [kinds.has(Kind.LOW_POWER), [{ d: flat(7), color: css.lowPower, line: 1, dashes: "3 2" }], MEANINGS[Kind.LOW_POWER][0], "idle", MEANINGS[Kind.LOW_POWER][1]],
    [kinds.has(Kind.C_EXIT), [{ d: "M1 7q3-9 6 0t6 0t6 0t6 0", color: css.cexit, line: 1.5 }], MEANINGS[Kind.C_EXIT][0], "idle", MEANINGS[Kind.C_EXIT][1]],
    [kinds.has(Kind.USER), [{ d: box(1, 3, 12, 8), color: css.users[0] }, { d: box(13, 3, 12, 8), color: css.users[1] }], "user, by thread", "user", "a program runs its own code; each thread has its colour"],
    [kinds.has(Kind.GUEST), [{ d: box(1, 3, 24, 8), color: css.guest[0] }], MEANINGS[Kind.GUEST][0], "guest", MEANINGS[Kind.GUEST][1]],
    [kinds.has(Kind.SYSCALL), striped(css.syscall[0]), "system call", "syscall", "the kernel works for a program that called it"],
    [kinds.has(Kind.TRAP), striped(css.trap[0]), "fault", "fault", "the kernel handles an exception, mostly a page fault"],
    [kinds.has(Kind.IRQ), striped(css.irq[0]), "interrupt", "irq", "an interrupt from a device, a timer or another CPU"],
    [kinds.has(Kind.BH), striped(css.bh[0]), "bottom half", "bh", "deferred work of an interrupt"],
    [kinds.has(Kind.KERNEL), band(css.syscall[0], 6), "kernel thread, exit work", "kernel", "a kernel thread runs, or work on the way out of a call"],
    [kinds.has(Kind.SCHED), band(css.sched[0], 6), MEANINGS[Kind.SCHED][0], "sched", MEANINGS[Kind.SCHED][1]],
    [kinds.has(Kind.SYSCALL) || kinds.has(Kind.TRAP), striped(css.sched[0]), "stripes: which call or interrupt", "", "of wide spans of one colour, those of the same call, interrupt or thread have the same stripes"],
    [kinds.has(Kind.LOST), [{ d: "M1 11l8-8M6 11l8-8M11 11l8-8M16 11l8-8", color: css.dim, line: 1 }], MEANINGS[Kind.LOST][0], "lost", MEANINGS[Kind.LOST][1]],
    [kinds.has(Kind.OFFLINE), [{ d: box(2, 2, 22, 10), color: css.dim, line: 1, dashes: "3 3" }], MEANINGS[Kind.OFFLINE][0], "offline", MEANINGS[Kind.OFFLINE][1]],
    [kinds.has(Kind.STALLED), [...band(css.stalled, 5), { d: "M4 12l10-10M9 12l10-10M14 12l10-10", color: css.cexit, line: 1 }], MEANINGS[Kind.STALLED][0], "stalled", MEANINGS[Kind.STALLED][1]],
    [kinds.has(Kind.STEAL), [...band(css.users[0], 3), { d: "M4 12l10-10M9 12l10-10M14 12l10-10", color: css.cexit, line: 1 }], "stolen", "stolen", "the host ran something else meanwhile; when is known about"],
    [kinds.has(Kind.WAKEUP), [{ d: "M2 12Q20 12 22 3", color: css.wakeup, line: 1.5, dashes: "4 2" }, { d: "M22 1l3 5h-5z", color: css.wakeup }], MEANINGS[Kind.WAKEUP][0], "wakeup", MEANINGS[Kind.WAKEUP][1]],
    [kinds.has(Kind.IPI), [{ d: "M2 12Q20 12 22 3", color: css.ipi, line: 1.5 }, { d: "M22 1l3 5h-5z", color: css.ipi }], MEANINGS[Kind.IPI][0], "ipi", MEANINGS[Kind.IPI][1]],
    [app.marks.ids.length > 0 && kinds.has(Kind.MARK), [{ d: "M6 1V13", color: css.mark, line: 1.5 }, { d: "M6 1h10l-3 3l3 3h-10z", color: css.mark }], "mark", "mark", "a mark set by a program"],
    [events.has(VALUE), [{ d: "M1 11h8v-7h9v4h7", color: css.users[2], line: 1.5 }], "value of a program", "mark", "a number that a program reports"],
    [kinds.has(Kind.POINT), [{ d: "M13 3l5 8h-10z", color: css.dim }], "event", "event", "an event without duration"],
    [events.has(PART), [{ d: box(1, 2, 24, 10), color: css.users[2] }], "part of a program", "event", "a part that a program records, under its name"],
    [kinds.has(Kind.LOCK), [{ d: "M2 7H24M2 4V10M24 4V10", color: css.users[1], line: 2 }], "lock held", "lock", "a thread holds a lock of its program"],
    [events.has(LOCK_HELD + 1), [{ d: flat(7), color: css.users[1], line: 2, dashes: "1.5 2.5" }], "lock tried", "lock", "a thread tries to get a lock of its program"],
    [kinds.has(Kind.QUEUE), [{ d: flat(7), color: css.users[2], line: 2, dashes: "7 4" }], "in a queue", "queue", "an RPC waits in a queue of a program"],
    [kinds.has(Kind.MESSAGE) || kinds.has(Kind.PACKET), [{ d: "M3 1L10 13", color: RX_COLOR, line: 2 }, { d: "M16 13L23 1", color: TX_COLOR, line: 2 }], "received, sent", "message", "messages over the network"],
    [kinds.has(Kind.SAMPLE), [{ d: box(1, 2, 11, 10), color: SAMPLE_COLORS[0] }, { d: box(13, 2, 12, 10), color: SAMPLE_COLORS[1] }], "PC sample, by function", "sample", "where the CPU was at a tick"],
    [kinds.has(Kind.FREQ), FREQ_COLORS.map(([, color], k) => ({ d: box(1 + 8 * k, 9 - 4 * k, 8, 4 + 4 * k), color: String(color) })), MEANINGS[Kind.FREQ][0], "freq", MEANINGS[Kind.FREQ][1]],
    [(counters & FLAG.IPC) !== 0, dialStrokes(MIDDLE_COLOR, "M13 12L10.5 10L17 3.5z"), "IPC: grey to 1/2, red from 2", "", "instructions per cycle of each span"],
    [(counters & FLAG.LLC) !== 0, dialStrokes(MISS_COLOR, "M13 12L10.5 10L17 3.5z"), "last-level cache misses", "", "memory accesses that missed the last-level cache"],
  ];
  const used = new Set([...events].filter((e) => kindOfEvent(e) === Kind.WAIT).map(waitLetter));
  const waits = WAITS.filter(([letter]) => used.has(letter)).map(([letter, name, word, why]) => {
    const color = palette.wait(letter);
    const strokes = [{ d: flat(7), color, line: 1 }, { d: morsePath(letter), color, line: 3 }];
    return legendEntry(app, strokes, `${letter} ${word}`, `waits for ${word}: ${why}`, `^${name}$`);
  });
  element.replaceChildren(
    ...entries.flatMap(([has, strokes, text, kind, why]) => (has ? [legendEntry(app, strokes, text, why, kind ? `kind:${kind}` : "")] : [])),
    ...(waits.length > 0 ? [textElement("span", "waits for:"), ...waits] : []),
    ...(store.meta.unseen?.includes(CANNOT_SHOW.ENTRY_CODE) ? [textElement("span", ENTRY_CODE)] : []),
  );
  pressLegend(app.search.query, element);
}

/** Marks the entry that is searched for. @param {Query} query @param {HTMLElement} element */
export function pressLegend({ pattern }, element) {
  for (const button of element.querySelectorAll("button")) button.ariaPressed = String(button.dataset.pattern === pattern);
}

/** @param {number} x @param {number} y @param {number} w @param {number} h */
const box = (x, y, w, h) => `M${x} ${y}h${w}v${h}h${-w}z`;

/** @param {string} color @param {string} needle @returns {Stroke[]} */
const dialStrokes = (color, needle) => [
  { d: "M4 12A9 9 0 0 1 22 12z", color: "#ffffff" }, { d: "M4 12A9 9 0 0 1 22 12z", color: "#666666", line: 0.75 },
  { d: needle, color },
];

/** A letter in Morse code. @param {string} letter */
function morsePath(letter) {
  const strokes = morseStrokes(MORSE[letter.charCodeAt(0) - 97]);
  const from = 25 - MORSE_DOT * (strokes.at(-1)?.end ?? 0);
  return strokes.map(({ begin, end }) => `M${from + begin * MORSE_DOT} 7h${(end - begin) * MORSE_DOT}`).join("");
}

/**
 * @param {App} app
 * @param {Stroke[]} strokes
 * @param {string} text
 * @param {string} why an explanation
 * @param {string} pattern the search for it; empty if it cannot be searched
 */
function legendEntry(app, strokes, text, why, pattern) {
  const ratio = window.devicePixelRatio || 1;
  const drawing = document.createElement("canvas");
  drawing.width = SWATCH_W * ratio;
  drawing.height = SWATCH_H * ratio;
  drawing.setAttribute("aria-hidden", "true");
  const c = /** @type {CanvasRenderingContext2D} */ (drawing.getContext("2d"));
  c.scale(ratio, ratio);
  for (const { d, color, line, dashes } of strokes) {
    const path = new Path2D(d);
    c.fillStyle = c.strokeStyle = color;
    c.lineWidth = line ?? 1;
    c.setLineDash(dashes?.split(" ").map(Number) ?? []);
    if (line) c.stroke(path);
    else c.fill(path);
  }
  const find = () => {
    const { query } = app.search;
    app.find({ ...query, pattern: query.pattern === pattern ? "" : pattern, invert: false });
  };
  const entry = pattern !== "" ? actionButton("", `${why}; click to search it, again to stop`, find) : textElement("span", "");
  entry.title ||= why;
  if (pattern !== "") entry.dataset.pattern = pattern;
  entry.append(drawing, text);
  return entry;
}
