// SPDX-License-Identifier: BSD-3-Clause
// Names that not everybody knows, in words.
import assert from "node:assert/strict";
import { test } from "node:test";

import { WAITS } from "../../postprocess/viewer/data/kind.js";
import { Kind, KIND_NAMES } from "../../postprocess/viewer/data/tables.js";
import { explainedName, MEANINGS, wordedName, wordOf } from "../../postprocess/viewer/data/words.js";

test("a name of the recorder's comes after its meaning, any other is left as it is", () => {
  assert.deepEqual(["wait_task", "-idlelp-", "-stalled-", "read"].map(wordedName), [
    "another thread, or work (wait_task)", "low power (-idlelp-)", "stood still (-stalled-)", "read",
  ]);
  assert.deepEqual([wordOf("wait_disk"), wordOf("-sched-"), wordOf("a\u202eb")], ["a disk", "scheduler", "a\ufffdb"]);
  assert.deepEqual([explainedName("read"), explainedName("-offline-")], ["", "the CPU was offline"]);
  for (const [, name, word] of WAITS) assert.ok(explainedName(name).startsWith(`it waits for ${word}: `), name);
});

test("what stood still is called that, whoever names its kind", () => {
  assert.equal(KIND_NAMES[Kind.STALLED], MEANINGS[Kind.STALLED][0]);
  assert.ok(!KIND_NAMES.includes("stalled"));
});
