// One collection's estimate as a table of bars with 95 % intervals.
// Rule 1: noise does not change the layout: rows swap, and axes change, only beyond what noise explains.
// Rule 2: the named values set the axis; a longer bar of unexplained reports is cut off there, and marked.

import { drawAxis } from "./axis.js";
import { createForAll, withIntervals } from "./for_all.js";
import { formatInterval, formatPercent, formatWhole, percentDigits } from "./format.js";
import { cloneTemplate, placeChildren, setTexts } from "./dom.js";
import { createPaging, pageOf, restorePaging } from "./rows/paging.js";
import { createSearch, drawMatches, findRows, restoreSearch } from "./rows/search.js";
import { createSorting, restoreSorting, sortRows } from "./rows/sorting.js";

const LEADING_VALUES = 20;
const ESTIMATORS = { mle: "maximum likelihood" };

/**
 * State of a table between estimates; `leading` and `longestValue` never shrink. `shown` are the entries in its rows;
 * `redraw` is called when people search, sort or ask for more rows.
 */
export function createTable(root, keep, redraw) {
  const view = { root, estimate: null, order: [], shown: [], leading: 0, longestValue: 0, axisEnd: 0, digits: 1 };
  const draw = () => {
    if (view.estimate === null) return;
    drawTable(view);
    redraw();
  };
  view.search = createSearch(root.querySelector(".search"), keep, "search", draw);
  view.sorting = createSorting(root, keep, draw);
  view.paging = createPaging(root.querySelector(".paging"), keep, "rows", draw);
  view.forAll = createForAll(root, () => updateTable(view, view.estimate));
  new ResizeObserver(() => redrawAxis(view)).observe(root.querySelector(".axis"));
  return view;
}

export function updateTable(view, estimate) {
  view.estimate = estimate;
  view.order = rankValues(readEntries(withIntervals(view.forAll, estimate)), view.order);
  drawTable(view);
}

/** Takes search, sorting and rows from the page's address. */
export function restoreTable(view) {
  restoreSearch(view.search);
  restoreSorting(view.sorting);
  restorePaging(view.paging);
  if (view.estimate !== null) drawTable(view);
}

/** Names of the leading values, or of the first ones found, so many at most. */
export function leadingValues({ order, leading, search }, most) {
  const least = search.wanted === "" ? Math.max(1, leading) : most;
  return findRows(search, rankSignificant(order)).slice(0, Math.min(most, least)).map(({ value }) => value);
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
  const { root, order, estimate, search } = view;
  const significant = order.filter((entry) => entry.significant).length;
  view.leading = Math.min(LEADING_VALUES, Math.max(view.leading, significant));
  const isSearch = search.wanted !== "";
  const found = sortRows(view.sorting, findRows(search, rankSignificant(order)));
  const first = isSearch || view.sorting.key !== "" ? LEADING_VALUES : view.leading;
  view.shown = pageOf(view.paging, found, first);
  const other = isSearch ? [] : readOther(estimate);
  view.digits = percentDigits([...order, ...readOther(estimate)]);
  fitColumns(view, isSearch ? found : order);
  drawRows(root.querySelector("tbody"), view.shown, view);
  drawRows(root.querySelector("tfoot"), other, view);
  setTexts(root, { caption: captionOf(estimate, significant, order.length) });
  search.root.hidden = order.length <= LEADING_VALUES && !isSearch;
  drawMatches(search, formatWhole(found.length), formatWhole(order.length), unreached(estimate));
}

/** What a search cannot find. */
function unreached({ omitted }) {
  return omitted > 0 ? ` The ${formatWhole(omitted)} estimated lowest are not listed, and cannot be found.` : "";
}

function captionOf({ estimator, omitted }, significant, values) {
  const found = `${formatWhole(significant)} of ${formatWhole(values + omitted)} values are significantly above zero.`;
  const left = omitted > 0 ? ` The ${formatWhole(omitted)} estimated lowest are left out.` : "";
  return `${found}${left} Estimator: ${ESTIMATORS[estimator] ?? estimator}.`;
}

/** Widens columns for the longest texts shown; changes an axis that overflows or is 40 % empty. */
function fitColumns(view, entries) {
  const table = view.root.querySelector("table");
  view.longestValue = Math.max(view.longestValue, ...view.shown.map(({ value }) => value.length));
  table.style.setProperty("--longest-value", view.longestValue);
  table.style.setProperty("--digits", view.digits);
  const ends = entries.map(({ frequency, high, unreliable }) => unreliable ? frequency : Math.max(frequency, high));
  const highest = Math.max(1e-6, ...ends);
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
