// SPDX-License-Identifier: BSD-3-Clause
// Esc undoes one thing.

import { toggleList } from "../panel/list.js";
import { byId } from "../dom.js";
/** @import {App} from "../main.js" */

/** Clears one thing: the path of wakeups, the whole call, the selection, a request, the table, the measured range, the search, the highlight, the line for newcomers. @param {App} app */
export function forget(app) {
  const { search, highlight } = app;
  if (app.chain || (app.call && !app.listing)) {
    if (!app.chain) app.call = null;
    app.chain = null;
    app.showDetails();
    app.overlayChanged();
  } else if (app.selected >= 0 || app.notes.selected) app.select(-1);
  else if (app.asked.open) app.asked.back();
  else if (app.listing) toggleList(app);
  else if (app.measured) app.measure(null);
  else if (search.active || search.error !== "") app.forgetSearch();
  else if (highlight.active) {
    highlight.clear();
    app.view.layOut(app.groups);
    app.viewChanged();
  } else byId("welcome").hidden = true;
}
