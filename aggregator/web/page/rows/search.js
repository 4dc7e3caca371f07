// A search field over a list of texts. What is announced follows the typing after a pause.

import { setText } from "../dom.js";

const PAUSE_MILLISECONDS = 500;

/** `keep` stores the text under `field`; `redraw` is called at each change. */
export function createSearch(root, keep, field, redraw) {
  const search = { root, input: root.querySelector("input"), wanted: "", timer: 0, keep, field };
  search.input.addEventListener("input", () => {
    search.wanted = fold(search.input.value.trim());
    keep.write(field, search.input.value.trim());
    redraw();
  });
  restoreSearch(search);
  return search;
}

/** Takes the text that the page's address keeps. */
export function restoreSearch(search) {
  const text = search.keep.read(search.field);
  if (search.input.value.trim() !== text) search.input.value = text;
  search.wanted = fold(text);
}

export function findRows({ wanted }, rows) {
  return wanted === "" ? rows : rows.filter(({ value }) => fold(value).includes(wanted));
}

/** Says how many were found; `hint` is added where there is something that the search cannot reach. */
export function drawMatches(search, found, all, hint = "") {
  const text = search.wanted === "" ? "" : `“${search.input.value.trim()}” is in ${found} of ${all} values.${hint}`;
  clearTimeout(search.timer);
  search.timer = setTimeout(() => setText(search.root.querySelector(".matches"), text), PAUSE_MILLISECONDS);
}

/** Without the differences of case, accents and width. */
export function fold(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
