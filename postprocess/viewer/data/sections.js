// SPDX-License-Identifier: BSD-3-Clause
// Sections: parts of a group of rows that can be folded. The CPUs of each of several machines are one, with a header of
// its own; so is each thread of a host that runs a CPU of a guest, with what the guest does there, and stays when the rest is folded.

import { shownName } from "./format.js";
/**
 * @import {Group} from "./groups.js"
 * @import {Machine, Machines} from "./machines.js"
 */

/** Rows `from` to `to` - 1 of a group; with `head` the first stays when they are folded, without it there is a header called `title`, with more `about` it. @typedef {{title: string, about: string, from: number, to: number, head: boolean, folded: boolean}} Section */

/** Headers of sections in the order of rows: the first is this, the next one less. */
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

/** What stands under each of some rows, `size` together. @param {string[]} labels @param {number} size @returns {Section[]} */
export const headedSections = (labels, size) => labels.flatMap((title, row) =>
  (row % size === 0 ? [{ title, about: "", from: row, to: row + size, head: true, folded: false }] : []));

/** The section of a row. @param {Group} group @param {number} row */
export const sectionOf = ({ sections }, row) => sections.find(({ from, to }) => row >= from && row < to);

/** Whether a row is not to be seen, since its section is folded. @param {Group} group @param {number} row */
export function isFoldedAway(group, row) {
  const section = sectionOf(group, row);
  return section !== undefined && section.folded && !(section.head && row === section.from);
}

/** What stands in place of a row that is folded away: the header of its section, or its first row. @param {Group} group @param {number} row */
export function standIn(group, row) {
  const section = sectionOf(group, row);
  if (section === undefined) return row;
  return section.head ? section.from : FIRST_HEADER - group.sections.indexOf(section);
}

/** The section that a row's number is the header of, if it is none of a group. @param {Group} group @param {number} row @returns {Section | undefined} */
export const sectionOfHeader = ({ sections }, row) => sections[FIRST_HEADER - row];

/** What is written at a row or a header. @param {Group} group @param {number} row */
export const titleOf = (group, row) => (row >= 0 ? group.labels[row] : sectionOfHeader(group, row)?.title ?? group.title);

/** Rows with the headers of their sections, each before the first of its rows, or alone where none is to be seen. @param {Group} group @param {number[]} rows */
export function withHeaders(group, rows) {
  const heads = group.sections.filter(({ head }) => !head);
  if (heads.length === 0) return rows;
  const all = heads.flatMap((section) =>
    [FIRST_HEADER - group.sections.indexOf(section), ...rows.filter((row) => row >= section.from && row < section.to)]);
  return [...all, ...rows.filter((row) => !sectionOf(group, row))];
}

/** Which sections are folded, for an address. @param {Group[]} groups */
export const foldedText = (groups) => groups.flatMap(({ name, sections }) =>
  sections.flatMap(({ folded }, n) => (folded ? [`${name}.${n}`] : []))).join();

/** Folds those that an address says, and opens all others. @param {Group[]} groups @param {string} text */
export function foldAsSaid(groups, text) {
  const said = new Set(text.split(","));
  for (const { name, sections } of groups) for (const [n, section] of sections.entries()) section.folded = said.has(`${name}.${n}`);
}
