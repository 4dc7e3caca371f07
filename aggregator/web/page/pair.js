// A pair of fields: whether they depend on each other, both margins, and the share of each second value given a first.

import { setText, setTexts } from "./dom.js";
import { formatInterval, formatPercent, formatPValue } from "./format.js";

const DIGITS = 1;

/** Draws the part of a record that only pairs have. */
export function drawPair(root, { pair }) {
  const [rows, columns] = pair.margins;
  setTexts(root, {
    ".independence": verdictOf(pair.independence, `${rows.name} and ${columns.name} depend on each other`),
    "summary": `${columns.name} by ${rows.name}`,
    "caption": `Share of each ${columns.name} among the reports with one ${rows.name}, in percent`,
  });
  const shares = new Map(pair.first.map((first, index) => [`${first} ${pair.second[index]}`, index]));
  const body = rows.values.map((value, first) => [
    headOf(value, "row"), marginOf(rows, first),
    ...columns.values.map((_, second) => shareOf(pair.given_first, shares.get(`${first} ${second}`))),
  ]);
  const head = [rows.name, "all, %", ...columns.values].map((text, index) => headOf(text, "col", index > 0));
  const foot = [headOf("all, %", "row"), cellOf(""), ...columns.values.map((_, second) => marginOf(columns, second))];
  root.querySelector("thead").replaceChildren(rowOf(head));
  root.querySelector("tbody").replaceChildren(...body.map(rowOf), rowOf(foot));
}

function verdictOf({ degrees, p_value, rejected }, dependence) {
  if (degrees === 0) return `Too few reports to test whether ${dependence}.`;
  const verdict = rejected ? dependence : `nothing shows that ${dependence}`;
  return `${verdict} (${formatPValue(p_value)}, at a false-alarm rate of 5 %).`;
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

function cellOf(text, title = "") {
  const cell = document.createElement("td");
  cell.className = "number";
  cell.title = title;
  setText(cell, text);
  return cell;
}

function marginOf({ frequency, low, high }, index) {
  return cellOf(formatPercent(frequency[index], DIGITS), intervalOf(low[index], high[index]));
}

/** `?` where too few reports have the first value, and nothing where the pair is left out. */
function shareOf({ frequency, std_error, low, high }, index) {
  if (index === undefined) return cellOf("");
  if (std_error[index] === null) return cellOf("?", "too few reports have this value");
  return cellOf(formatPercent(frequency[index], DIGITS), intervalOf(low[index], high[index]));
}

function intervalOf(low, high) {
  return `95 % interval ${formatInterval({ low, high }, DIGITS)}`;
}
