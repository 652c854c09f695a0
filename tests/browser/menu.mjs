// SPDX-License-Identifier: BSD-3-Clause
// What stands in the menus of the bar: a menu is opened for it as a reader does, and closed again.

const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Does something in an open menu, `view` or `options`. */
export async function inMenu(page, menu, act) {
  await page.locator(`[popovertarget="${menu}"]`).click();
  await act();
  await page.evaluate((id) => {
    if (document.getElementById(id).matches(":popover-open")) document.getElementById(id).hidePopover();
    document.getElementById("overlay").focus();
  }, menu);
  await settle(page);
}

/** Clicks a control of a menu. */
export const clickIn = (page, menu, control) => inMenu(page, menu, () => page.locator(control).click());
/** Types into a field of a menu. */
export const fillIn = (page, menu, field, text) => inMenu(page, menu, () => page.fill(field, text));

/** The state of a layer, as its menu shows it. */
export const stateOf = (page, id) => page.locator(`#layer-${id}`).evaluate((select) => select.selectedOptions[0].textContent);

/** Sets a layer to the state that is `by` after its current one. */
export async function cycled(page, id, by = 1) {
  const select = page.locator(`#layer-${id}`);
  const index = await select.evaluate((one, by) => (one.selectedIndex + by + one.length) % one.length, by);
  await inMenu(page, "view", () => select.selectOption({ index }));
}

/** Sets a layer to a state. */
export const choose = (page, id, state) => inMenu(page, "view", () => page.locator(`#layer-${id}`).selectOption(state));

/** Opens the list of places to start from. */
export async function openStart(page) {
  await page.locator('[popovertarget="view"]').click();
  await page.locator('[popovertarget="start"]').click();
}
