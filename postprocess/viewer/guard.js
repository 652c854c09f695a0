// SPDX-License-Identifier: BSD-3-Clause
// Says so if the page cannot be shown: it is cut before its program, or that or the data are damaged. It stands first,
// so that it is there however little else is.

/** Shows a sentence in place of the page. @param {string} why */
export function cannotBeShown(why) {
  const sentence = document.createElement("p");
  sentence.id = "broken";
  sentence.setAttribute("role", "alert");
  sentence.textContent = `This page cannot be shown: ${why}. Get a new copy of the file.`;
  document.body.replaceChildren(sentence);
}

/** Whether the page's program runs and has shown its data. */
const isReady = () => /** @type {any} */ (window).__ku?.ready === true;

window.addEventListener("error", ({ message }) => isReady() || cannotBeShown(`its program is damaged (${message})`));
document.addEventListener("DOMContentLoaded", () => {
  if (!(/** @type {any} */ (window).__ku)) cannotBeShown("its end is missing, or its program is damaged");
});
