// Draw values, bits, bars and bytes. Text is set as text: nothing is parsed as markup.

import { bitsOf, bucketOf } from "./observer.js";

export const element = (name, text = "", attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

/** Show a row as a value or as bits; those that differ from `before` are marked as noise. */
export function showRow(place, kind, row, before) {
  if (kind.rows) {
    place.replaceChildren(element("p", kind.labelOf(bucketOf(row)), { class: "value" }));
    return;
  }
  const bits = bitsOf(row), earlier = before && bitsOf(before);
  const ones = bits.reduce((sum, bit) => sum + bit, 0);
  const grid = element("div", "", {
    class: `bits${bits.length > 256 ? " wide" : ""}`, role: "img", "aria-label": `${ones} of ${bits.length} bits are 1`,
  });
  grid.append(...bits.map((bit, i) => element("i", "", {
    class: `${bit ? "one" : ""}${earlier && earlier[i] !== bit ? " noise" : ""}`,
  })));
  place.replaceChildren(grid);
}

export function bar(share) {
  const outer = element("span", "", { class: "bar" }), inner = element("i");
  inner.style.setProperty("--share", share);
  outer.append(inner);
  return outer;
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");

/** The parts of an upload of one report, by where they end. */
const PARTS = [[7, "format"], [23, "id"], [31, "collection"], [34, "cohort"], [42, "window"], [50, "shape"]];

/** Show all bytes of an upload, and what they mean. */
export function showBytes(place, legend, data, meanings) {
  const parts = [...PARTS, [data.length - 4, "report"], [data.length, "checksum"]];
  let start = 0;
  place.replaceChildren(...parts.flatMap(([end, part]) => {
    const span = element("span", hex(data.subarray(start, end)), { "data-part": part });
    start = end;
    return [span, " "];
  }));
  legend.replaceChildren(...Object.entries(meanings).flatMap(([part, [name, meaning]]) => [
    element("dt", name, { "data-part": part }), element("dd", meaning, { "data-part": part }),
  ]));
}
