// The history as a table: a row per window, the newest first.

import { placeChildren, setText } from "./dom.js";
import { formatInterval, formatPercent, formatWhole, formatWindow } from "./format.js";

/** `points`: windows by time; `values`: names of the columns; `digits`: decimals of a percentage. */
export function drawHistoryTable(table, points, values, digits) {
  const head = ["Window", "Reports", ...values.map((value) => `${value}, %`)];
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

function createHead(_, scope) {
  const cell = document.createElement("th");
  cell.scope = scope;
  return cell;
}

function createCell(index) {
  return index === 0 ? createHead(index, "row") : document.createElement("td");
}
