// SPDX-License-Identifier: BSD-3-Clause
// Sections: foldable parts of a group of rows. The CPUs of each of several machines are a section, with a header of
// its own; so is each thread of a host that runs a CPU of a guest, together with the guest's row: the thread's row stays when the rest is folded.

import { shownName } from "./format.js";
/**
 * @import {Group} from "./groups.js"
 * @import {Machine, Machines} from "./machines.js"
 */

/** Rows `from` to `to` - 1 of a group; with `head`, the first row stays when they are folded; without, there is a header with the text `title` and details in `about`. @typedef {{title: string, about: string, from: number, to: number, head: boolean, folded: boolean}} Section */

/** Numbers of the headers of sections, in the order of rows: the first is this, each next one less. */
const FIRST_HEADER = -2;

/** The CPUs of each machine, if there are several. @param {Machines} meta @param {number[]} cpus of the rows, ascending @returns {Section[]} */
export function machineSections({ machines = [] }, cpus) {
  if (machines.length < 2) return [];
  const firstFrom = (/** @type {Machine | undefined} */ machine) => {
    const row = machine ? cpus.findIndex((cpu) => cpu >= machine.first_cpu) : -1;
    return row < 0 ? cpus.length : row;
  };
  return machines.map((machine, n) => ({
    title: shownName(machine.name), about: shownName(machine.clock), from: firstFrom(machine), to: firstFrom(machines[n + 1]), head: false, folded: false,
  })).filter(({ from, to }) => from < to);
}

/** Sections of `size` rows each, headed by their first row. @param {string[]} labels @param {number} size @returns {Section[]} */
export const headedSections = (labels, size) => labels.flatMap((title, row) =>
  (row % size === 0 ? [{ title, about: "", from: row, to: row + size, head: true, folded: false }] : []));

/** The section of a row. @param {Group} group @param {number} row */
export const sectionOf = ({ sections }, row) => sections.find(({ from, to }) => row >= from && row < to);

/** True if a row is hidden because its section is folded. @param {Group} group @param {number} row */
export function isFoldedAway(group, row) {
  const section = sectionOf(group, row);
  return section !== undefined && section.folded && !(section.head && row === section.from);
}

/** The row or header shown in place of a row that is folded away: the header of its section, or its first row. @param {Group} group @param {number} row */
export function standIn(group, row) {
  const section = sectionOf(group, row);
  if (section === undefined) return row;
  return section.head ? section.from : FIRST_HEADER - group.sections.indexOf(section);
}

/** The section whose header has this number; undefined for a row of the group. @param {Group} group @param {number} row @returns {Section | undefined} */
export const sectionOfHeader = ({ sections }, row) => sections[FIRST_HEADER - row];

/** The label of a row or a header. @param {Group} group @param {number} row */
export const titleOf = (group, row) => (row >= 0 ? group.labels[row] : sectionOfHeader(group, row)?.title ?? group.title);

/** Rows with the headers of their sections, each before the first of its rows, or alone if none is visible. @param {Group} group @param {number[]} rows */
export function withHeaders(group, rows) {
  const heads = group.sections.filter(({ head }) => !head);
  if (heads.length === 0) return rows;
  const all = heads.flatMap((section) =>
    [FIRST_HEADER - group.sections.indexOf(section), ...rows.filter((row) => row >= section.from && row < section.to)]);
  return [...all, ...rows.filter((row) => !sectionOf(group, row))];
}

/** The folded sections, in the form of the address. @param {Group[]} groups */
export const foldedText = (groups) => groups.flatMap(({ name, sections }) =>
  sections.flatMap(({ folded }, n) => (folded ? [`${name}.${n}`] : []))).join();

/** Folds the sections listed in an address, and opens all others. @param {Group[]} groups @param {string} text */
export function foldAsSaid(groups, text) {
  const said = new Set(text.split(","));
  for (const { name, sections } of groups) for (const [n, section] of sections.entries()) section.folded = said.has(`${name}.${n}`);
}
