// One collection's estimate as a table of bars with 95 % intervals.
// Rule 1: noise does not change the layout: rows swap, and axes change, only beyond what noise explains.
// Rule 2: the named values set the axis; a longer bar of unexplained reports is cut off there, and marked.

import { drawAxis } from "./axis.js";
import { createForAll, withIntervals } from "./for_all.js";
import { formatInterval, formatPercent, formatWhole, percentDigits } from "./format.js";
import { cloneTemplate, placeChildren, setTexts } from "./dom.js";

const LEADING_VALUES = 20;
const ESTIMATORS = { mle: "maximum likelihood" };

/** State of a table between estimates; `leading` and `longestValue` never shrink. */
export function createTable(root) {
  const view = { root, estimate: null, order: [], expanded: false, leading: 0, longestValue: 0, axisEnd: 0, digits: 1 };
  const button = root.querySelector("button");
  button.addEventListener("click", () => {
    view.expanded = !view.expanded;
    drawTable(view);
    if (!view.expanded) button.scrollIntoView({ block: "nearest" });
  });
  view.forAll = createForAll(root, () => updateTable(view, view.estimate));
  new ResizeObserver(() => redrawAxis(view)).observe(root.querySelector(".axis"));
  return view;
}

export function updateTable(view, estimate) {
  view.estimate = estimate;
  view.order = rankValues(readEntries(withIntervals(view.forAll, estimate)), view.order);
  drawTable(view);
}

/** Names of the values in the first rows, so many at most. */
export function leadingValues({ order, leading }, most) {
  return rankSignificant(order).slice(0, Math.min(most, Math.max(1, leading))).map(({ value }) => value);
}

/** One entry per value from an estimate's parallel columns. */
function readEntries({ values, frequency, std_error, low, high, significant, unreliable = [] }) {
  return values.map((value, index) => ({
    value, frequency: frequency[index], standardError: std_error[index],
    low: low[index], high: high[index], significant: significant[index], unreliable: unreliable[index] ?? false,
  }));
}

/** The share of unlisted values as an entry; none if the estimate has no such figure. */
function readOther({ other }) {
  if (other === null) return [];
  const { frequency, std_error } = other;
  const [low, high] = [other.low ?? 0, other.high ?? 1];
  return [{ value: "other", frequency, standardError: std_error, low, high, significant: low > 0 }];
}

/** By descending frequency, but an entry overtakes another only by more than half its standard error. */
function rankValues(entries, formerOrder) {
  const formerRank = new Map(formerOrder.map(({ value }, rank) => [value, rank]));
  const rankOf = ({ value }) => formerRank.get(value) ?? entries.length;
  const order = entries.toSorted((a, b) => rankOf(a) - rankOf(b) || b.frequency - a.frequency);
  order.forEach((entry, start) => {
    const threshold = entry.frequency - 0.5 * entry.standardError;
    let rank = start;
    for (; rank > 0 && order[rank - 1].frequency < threshold; rank -= 1) order[rank] = order[rank - 1];
    order[rank] = entry;
  });
  return order;
}

function rankSignificant(order) {
  return [...order.filter(({ significant }) => significant), ...order.filter(({ significant }) => !significant)];
}

function drawTable(view) {
  const { root, order, estimate } = view;
  const ranked = rankSignificant(order);
  const significant = order.filter((entry) => entry.significant).length;
  view.leading = Math.min(LEADING_VALUES, Math.max(view.leading, significant));
  const shown = view.expanded ? ranked : ranked.slice(0, view.leading);
  const other = readOther(estimate);
  view.digits = percentDigits([...order, ...other]);
  fitColumns(view, shown);
  drawRows(root.querySelector("tbody"), shown, view);
  drawRows(root.querySelector("tfoot"), other, view);
  setTexts(root, { caption: captionOf(estimate, significant, order.length) });
  drawButton(root.querySelector("button"), view.expanded, order.length - view.leading);
}

function captionOf({ estimator, omitted }, significant, values) {
  const found = `${formatWhole(significant)} of ${formatWhole(values + omitted)} values are significantly above zero.`;
  const left = omitted > 0 ? ` The ${formatWhole(omitted)} estimated lowest are left out.` : "";
  return `${found}${left} Estimator: ${ESTIMATORS[estimator] ?? estimator}.`;
}

function drawButton(button, expanded, moreValues) {
  button.textContent = expanded ? "Show fewer" : `Show ${formatWhole(moreValues)} more`;
  button.setAttribute("aria-expanded", expanded);
  button.hidden = moreValues === 0;
}

/** Widens columns for the longest texts shown; changes an axis that overflows or is 40 % empty. */
function fitColumns(view, shown) {
  const table = view.root.querySelector("table");
  view.longestValue = Math.max(view.longestValue, ...shown.map(({ value }) => value.length));
  table.style.setProperty("--longest-value", view.longestValue);
  table.style.setProperty("--digits", view.digits);
  const highest = Math.max(1e-6, ...view.order.map(({ frequency, high, unreliable }) => unreliable ? frequency : Math.max(frequency, high)));
  if (highest > view.axisEnd || highest < 0.6 * view.axisEnd) view.axisEnd = drawAxis(table, highest);
}

/** After a change of width, such as a phone's rotation: other labels may fit. */
function redrawAxis(view) {
  if (view.estimate === null) return;
  view.axisEnd = 0;
  drawTable(view);
}

/** Reuses rows by value, so that a bar grows from its former length. */
function drawRows(body, entries, view) {
  const former = new Map(Array.from(body.rows, (row) => [row.dataset.value, row]));
  const rows = entries.map(({ value }) => former.get(value) ?? createRow(value));
  placeChildren(body, rows);
  entries.forEach((entry, index) => drawRow(rows[index], entry, view));
}

function createRow(value) {
  const row = cloneTemplate("row-template");
  const text = row.querySelector(".value");
  row.dataset.value = text.textContent = text.title = value;
  return row;
}

function drawRow(row, entry, { axisEnd, digits }) {
  const { frequency, low, high, significant, unreliable } = entry;
  setTexts(row, {
    ".frequency": formatPercent(frequency, digits),
    ".interval": unreliable ? "shares bits with unlisted strings" : formatInterval(entry, digits),
    ".spoken": significant ? "" : "not distinguishable from zero",
  });
  row.classList.toggle("quiet", !significant);
  row.querySelector(".beyond").hidden = unreliable || high <= axisEnd * (1 + 1e-9);
  const { style } = row.querySelector(".plot");
  style.setProperty("--frequency", `${100 * Math.max(0, frequency) / axisEnd}%`);
  style.setProperty("--low", `${100 * low / axisEnd}%`);
  style.setProperty("--width", `${unreliable ? 0 : 100 * (high - low) / axisEnd}%`);
}
