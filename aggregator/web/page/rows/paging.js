// How many rows of a long table are shown: the first ones, then more in steps.
// Rule: rows are plain rows of one table, in steps, so that screen readers, keys and the browser's own search
// have all of those that are shown. A button that goes gives its focus to one that stays.

import { setText } from "../dom.js";
import { formatWhole } from "../format.js";

const STEP = 200;

/** `keep` stores the number of rows under `field`; `redraw` is called at each change. */
export function createPaging(root, keep, field, redraw) {
  const paging = { root, rows: 0, total: 0, first: 0, keep, field };
  const [more, all, fewer] = [".more", ".every", ".fewer"].map((name) => root.querySelector(name));
  const show = (rows) => {
    paging.rows = rows;
    keep.write(field, rows === 0 ? "" : String(rows));
    redraw();
    if (document.activeElement === document.body) [more, fewer].find((button) => !button.hidden)?.focus();
  };
  more.addEventListener("click", () => show(shownRows(paging) + STEP));
  all.addEventListener("click", () => show(paging.total));
  fewer.addEventListener("click", () => {
    show(0);
    root.scrollIntoView({ block: "nearest" });
  });
  restorePaging(paging);
  return paging;
}

/** Takes the number that the page's address keeps. */
export function restorePaging(paging) {
  const rows = Number(paging.keep.read(paging.field));
  paging.rows = Number.isInteger(rows) && rows > 0 ? rows : 0;
}

/** The rows to show of those found; `first` of them unless more were asked for. */
export function pageOf(paging, found, first) {
  paging.first = first;
  paging.total = found.length;
  drawButtons(paging);
  return found.slice(0, shownRows(paging));
}

function shownRows({ rows, first, total }) {
  return Math.min(total, Math.max(rows, first));
}

function drawButtons(paging) {
  const { root, first, total } = paging;
  const shown = shownRows(paging);
  const rest = total - shown;
  const [more, all, fewer] = [".more", ".every", ".fewer"].map((name) => root.querySelector(name));
  setText(more, `Show ${formatWhole(Math.min(STEP, rest))} more`);
  setText(all, `Show all ${formatWhole(total)}`);
  more.hidden = rest === 0;
  all.hidden = rest <= STEP;
  fewer.hidden = shown <= first;
}
