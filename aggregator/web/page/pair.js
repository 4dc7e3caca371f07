// A pair of fields: whether they depend on each other, both margins, and the shares of one field given the other, both ways.

import { drawEach, setText, setTexts } from "./dom.js";
import { formatInterval, formatPercent, formatPValue } from "./format.js";
import { nameOf } from "./names.js";

const DIGITS = 1;

/** Draws the part of a record that only pairs have. */
export function drawPair(root, { collection, pair }) {
  const [first, second] = pair.margins;
  setTexts(root, {
    ".independence": verdictOf(pair.independence, `${first.name} and ${second.name} depend on each other`),
  });
  drawEach(root.querySelector(".directions"), "direction-template", [
    { collection, rows: first, columns: second, shares: pair.given_first, places: placesOf(pair.first, pair.second) },
    { collection, rows: second, columns: first, shares: pair.given_second, places: placesOf(pair.second, pair.first) },
  ], drawShares);
}

/** Whether the fields depend on each other, as a sentence. Pure. */
export function verdictOf({ degrees, p_value, rejected }, dependence) {
  if (degrees === 0) return `Too few reports to test whether ${dependence}.`;
  const verdict = rejected ? dependence : `nothing shows that ${dependence}`;
  return `${verdict} (${formatPValue(p_value)}, at a false-alarm rate of 5 %).`;
}

/** Place in the record of each pair of a row and a column. */
function placesOf(rows, columns) {
  return new Map(rows.map((row, place) => [`${row} ${columns[place]}`, place]));
}

/** Draws one direction, its table only while that is open: it may have thousands of cells. */
function drawShares(details, direction) {
  const { collection, rows, columns } = direction;
  const title = `${columns.name} by ${rows.name}`;
  details.querySelector(".scroller").setAttribute("aria-label", `${collection}: ${title}`);
  setTexts(details, {
    "summary": title,
    "caption": `Share of each ${columns.name} among the reports with one ${rows.name}, in percent, above its 95 % interval;`
      + ` ? if that ${rows.name} has too few reports`,
  });
  details.ontoggle = () => { if (details.open) drawTable(details, direction); };
  details.ontoggle();
}

function drawTable(details, { rows, columns, shares, places }) {
  const body = rows.values.map((value, row) => [
    headOf(nameOf(value), "row"), marginOf(rows, row),
    ...columns.values.map((_, column) => shareOf(shares, places.get(`${row} ${column}`))),
  ]);
  const head = [rows.name, "all, %", ...columns.values.map(nameOf)].map((text, index) => headOf(text, "col", index > 0));
  const foot = [headOf("all, %", "row"), cellOf(""), ...columns.values.map((_, column) => marginOf(columns, column))];
  details.querySelector("thead").replaceChildren(rowOf(head));
  details.querySelector("tbody").replaceChildren(...body.map(rowOf), rowOf(foot));
}

function rowOf(cells) {
  const row = document.createElement("tr");
  row.replaceChildren(...cells);
  return row;
}

function headOf(text, scope, isNumber = false) {
  const head = document.createElement("th");
  head.scope = scope;
  if (isNumber) head.className = "number";
  setText(head, text);
  return head;
}

function cellOf(...lines) {
  const cell = document.createElement("td");
  cell.className = "number";
  cell.replaceChildren(...lines.map((text) => {
    const line = document.createElement("div");
    setText(line, text);
    return line;
  }));
  return cell;
}

function marginOf({ frequency, low, high }, index) {
  return cellOf(formatPercent(frequency[index], DIGITS), formatInterval({ low: low[index], high: high[index] }, DIGITS));
}

/** `?` where too few reports have the value of the row, and nothing where the pair is left out. */
function shareOf({ frequency, std_error, low, high }, index) {
  if (index === undefined) return cellOf("");
  return std_error[index] === null ? cellOf("?") : marginOf({ frequency, low, high }, index);
}
