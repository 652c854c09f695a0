// SPDX-License-Identifier: BSD-3-Clause
// Who may use whom: a module imports from its own folder and from those before it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const VIEWER = join(dirname(fileURLToPath(import.meta.url)), "../../postprocess/viewer");
/** The folders in the order of the data's way to the reader; then the files beside them. */
const FOLDERS = ["data", "view", "draw", "panel", "input"];

/** The place of a module in that order; what only knows the page's elements is usable by all that draw. */
function rankOf(path) {
  if (path === "dom.js") return FOLDERS.indexOf("view");
  if (path === "guard.js") return -1;
  return path.includes(sep) ? FOLDERS.indexOf(path.split(sep)[0]) : FOLDERS.length;
}

test("modules import from the folders before theirs", () => {
  const modules = FOLDERS.flatMap((folder) => readdirSync(join(VIEWER, folder)).map((name) => join(folder, name)));
  assert.ok(modules.length > 40);
  let count = 0;
  for (const module of [...modules, "dom.js", "guard.js", "handle.js", "main.js"]) {
    const text = readFileSync(join(VIEWER, module), "utf8");
    // Types, too, up to what is drawn: later folders know the page as a whole.
    const imports = [...text.matchAll(/^import [^;]* from "([^"]+)";/gm)];
    if (rankOf(module) <= FOLDERS.indexOf("draw")) imports.push(...text.matchAll(/@import [^"]* from "([^"]+)"/g));
    for (const [, from] of imports) {
      const imported = relative(VIEWER, join(VIEWER, dirname(module), from));
      assert.ok(rankOf(imported) <= rankOf(module), `${module} imports ${imported}`);
      count++;
    }
  }
  assert.ok(count > 100);
});
