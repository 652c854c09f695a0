// SPDX-License-Identifier: BSD-3-Clause
// The wakeups that led to the selected span, as a list of links.

import { durationText, signedText, threadText, wokenBy } from "../data/format.js";
import { isIdle } from "../data/kind.js";
import { causeText } from "../data/sentence.js";
import { wordOf } from "../data/words.js";
import { actionButton, textElement } from "../dom.js";
/**
 * @import {Step} from "../data/chain.js"
 * @import {App} from "../main.js"
 */

/**
 * Shows the chain of the selected span, step by step back in time.
 * @param {App} app
 * @param {HTMLElement} panel
 * @param {Step[]} chain
 */
export function showChain(app, panel, chain) {
  const { store, selected } = app;
  const lines = chain.map(({ arc, cause, wait }) => {
    const before = textElement("td", signedText(store.start[arc] - store.start[selected]));
    const what = document.createElement("td");
    const waited = wait < 0 ? "" : `, after it waited ${durationText(store.dur[wait])} for ${wordOf(store.names[store.name[wait]])}`;
    what.append(
      actionButton(threadText(store, wokenBy(store, arc)), "Go to this wakeup", () => app.bringIntoSight(arc)),
      ` was woken by ${causeText(store, arc, cause)}${waited}; it ran ${durationText(store.dur[arc])} later`,
    );
    const line = document.createElement("tr");
    line.append(before, what);
    return line;
  });
  const table = document.createElement("table");
  table.className = "chain";
  table.append(...lines);
  const idle = isIdle(store.kind[selected]);
  const [some, none] = idle ? ["What ended the idle time", "Nothing woke a thread for this CPU then"] : ["Why it ran only now", "Nothing woke this thread before"];
  panel.append(textElement("h2", chain.length > 0 ? some : none), table);
}
