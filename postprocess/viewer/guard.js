// SPDX-License-Identifier: BSD-3-Clause
// Reports if the page cannot be shown: it is truncated before its program, or the program or the data are damaged. It comes first,
// so that it works even if little else of the page is there.

/** Shows a sentence in place of the page. @param {string} why */
export function cannotBeShown(why) {
  const sentence = document.createElement("p");
  sentence.id = "broken";
  sentence.setAttribute("role", "alert");
  sentence.textContent = `This page cannot be shown: ${why}. Get a new copy of the file.`;
  document.body.replaceChildren(sentence);
}

/** True if the page's program runs and has shown its data. */
const isReady = () => /** @type {any} */ (window).__ku?.ready === true;

window.addEventListener("error", ({ message }) => isReady() || cannotBeShown(`its program is damaged (${message})`));
document.addEventListener("DOMContentLoaded", () => {
  if (!(/** @type {any} */ (window).__ku)) cannotBeShown("its end is missing, or its program is damaged");
});
