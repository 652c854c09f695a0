// SPDX-License-Identifier: BSD-3-Clause
// Folding of the banner: all but its first part is hidden until unfolded.

/**
 * Lets a button, and a tap anywhere on the element except on its controls, unfold an element and fold it again.
 * @param {HTMLElement} button
 * @param {HTMLElement} element
 * @param {[string, string]} texts of the button while the element is folded, and while it is not
 */
export function foldByTap(button, element, [folded, unfolded]) {
  button.ariaExpanded = "false";
  button.textContent = folded;
  button.addEventListener("click", () => {
    const isUnfolded = element.classList.toggle("unfolded");
    button.ariaExpanded = String(isUnfolded);
    button.textContent = isUnfolded ? unfolded : folded;
  });
  element.addEventListener("click", (e) => {
    if (!(e.target instanceof Element && e.target.closest("button, details"))) button.click();
  });
}
