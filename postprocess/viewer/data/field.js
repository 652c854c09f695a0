// SPDX-License-Identifier: BSD-3-Clause
// Fields of events that programs record, as in the name `request(size=17,path=/index)`.

/**
 * The values of a field, by the number of the span's name; null if no name has such a field.
 * @param {readonly string[]} names
 * @param {string} field
 * @returns {(string | undefined)[] | null}
 */
export function valuesOf(names, field) {
  let found = false;
  const start = new RegExp(`[(,]${field}=`);
  const values = names.map((name) => {
    const at = name.endsWith(")") ? start.exec(name) : null;
    if (!at) return undefined;
    found = true;
    const from = at.index + at[0].length;
    const end = name.indexOf(",", from);
    return name.slice(from, end < 0 ? name.length - 1 : end);
  });
  return found ? values : null;
}

/** A name without its fields. @param {string} name */
export const withoutFields = (name) => name.replace(/\([^(]*\)$/, "");
