// Values as names for people. Pure.
// Rule 1: an empty text has a name, the one that the commands print, and a value that reads like it another one.
// Rule 2: a text as long as the last level of its prefix tree has dots: what clients hold may go on.

const EMPTY = '""';
const utf8 = new TextEncoder();

/** The value, or what stands for an empty one. */
export function nameOf(value) {
  if (value === "") return EMPTY;
  return value === EMPTY ? `'${EMPTY}'` : value;
}

/** Its name with dots behind it if it may go on; `section`: of its collection, which says where texts are cut. */
export function withDots(text, section) {
  const longest = Number(section.dataset.longest || Infinity);
  return utf8.encode(text).length >= longest ? `${text}…` : nameOf(text);
}
