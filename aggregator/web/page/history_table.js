// The history as a table: a row per window, the newest first.

import { placeChildren, setText } from "./dom.js";
import { formatInterval, formatPercent, formatWhole, formatWindow } from "./format.js";
import { withDots } from "./names.js";

/** `points`: windows by time; `values`: names of the columns; `digits`: decimals of a percentage. */
export function drawHistoryTable(table, points, values, digits, section) {
  const head = ["Window", "Reports", ...values.map((value) => `${withDots(value, section)}, %`)];
  drawCells(table.tHead.rows[0], head, (index) => createHead(index, "col"));
  const body = table.tBodies[0];
  const newestFirst = points.toReversed();
  placeChildren(body, newestFirst.map((_, index) => body.rows[index] ?? document.createElement("tr")));
  newestFirst.forEach((point, index) => drawCells(body.rows[index], cellsOf(point, values, digits), createCell));
}

function cellsOf({ start, end, final, reports, shares, other }, values, digits) {
  return [
    `${formatWindow(start, end)}${final ? "" : " (provisional)"}${other ? " (other parameters)" : ""}`,
    formatWhole(reports),
    ...values.map((value) => formatShare(shares.get(value), digits)),
  ];
}

function formatShare(share, digits) {
  return share === undefined ? "–" : `${formatPercent(share.frequency, digits)} (${formatInterval(share, digits)})`;
}

function drawCells(row, texts, create) {
  placeChildren(row, texts.map((_, index) => row.cells[index] ?? create(index)));
  texts.forEach((text, index) => setText(row.cells[index], text));
}

function createHead(index, scope) {
  const cell = document.createElement("th");
  cell.scope = scope;
  if (index > 0) cell.className = "number";
  return cell;
}

function createCell(index) {
  if (index === 0) return createHead(index, "row");
  const cell = document.createElement("td");
  cell.className = "number";
  return cell;
}
