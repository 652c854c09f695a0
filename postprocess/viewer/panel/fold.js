// SPDX-License-Identifier: BSD-3-Clause
// Folding for small screens: most controls, and all but the first line of the banner, are hidden until unfolded.

/** Lets a button unfold an element, and fold it again. @param {HTMLElement} button @param {HTMLElement} element @param {[string, string]} texts of the button while the element is folded, and while it is not */
export function foldBy(button, element, [folded, unfolded]) {
  button.ariaExpanded = "false";
  button.textContent = folded;
  button.addEventListener("click", () => {
    const isUnfolded = element.classList.toggle("unfolded");
    button.ariaExpanded = String(isUnfolded);
    button.textContent = isUnfolded ? unfolded : folded;
  });
}

/** The same for a tap anywhere on the element except on its controls. @param {HTMLElement} button @param {HTMLElement} element @param {[string, string]} texts */
export function foldByTap(button, element, texts) {
  foldBy(button, element, texts);
  element.addEventListener("click", (e) => {
    if (!(e.target instanceof Element && e.target.closest("button, details"))) button.click();
  });
}
