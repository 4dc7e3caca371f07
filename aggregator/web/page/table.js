// One collection's estimate as a table of bars with 95 % intervals.
// Rule 1: noise does not change the layout: rows swap, and axes change, only beyond what noise explains.
// Rule 2: the named values, if any, set the axis; a longer bar of unexplained reports is broken there.
// Rule 3: a text that is as long as the last level of its tree may go on: dots are behind it, which are not part of it.
// Rule 4: a text that growing has found is new in the first NEW_WINDOWS windows from its discovery on.

import { drawAxis } from "./axis.js";
import { createForAll, restoreForAll, withIntervals } from "./for_all.js";
import { formatCount, formatInterval, formatPercent, formatWhole, percentDigits, withSign } from "./format.js";
import { isNumber } from "./headline.js";
import { withDots } from "./names.js";
import { cloneTemplate, placeChildren, setTexts } from "./dom.js";
import { createPaging, pageOf, restorePaging } from "./rows/paging.js";
import { createSearch, drawMatches, findRows, restoreSearch } from "./rows/search.js";
import { createSorting, restoreSorting, sortRows } from "./rows/sorting.js";

const LEADING_VALUES = 20;
const NEW_WINDOWS = 5;
const NEW_LETTERS = 4; // that the mark is as wide as
const LEAST_COHORTS = 6; // of RAPPOR, below which an unlisted string can look like a listed one
const NAMED = 5; // values in a sentence
const ESTIMATORS = {
  mle: "maximum likelihood", inv: "counts, corrected for the noise", ems: "maximum likelihood, smoothed",
};
const LEAST_FIT = 1e-6; // p-value of the test of fit, below which counts contradict the parameters

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
  view.forAll = createForAll(root, keep, () => updateTable(view, view.estimate));
  new ResizeObserver(() => redrawAxis(view)).observe(root.querySelector(".axis"));
  return view;
}

export function updateTable(view, estimate) {
  view.estimate = estimate;
  const entries = readEntries(withIntervals(view.forAll, estimate), view.root.closest(".collection"));
  view.order = isNumber(estimate) ? entries : rankValues(entries, view.order);
  drawTable(view);
}

/** Takes search, sorting, rows and intervals from the page's address. */
export function restoreTable(view) {
  restoreSearch(view.search);
  restoreSorting(view.sorting);
  restorePaging(view.paging);
  restoreForAll(view.forAll);
  if (view.estimate !== null) updateTable(view, view.estimate);
}

/** Names of the leading values, or of the first ones found, so many at most. */
export function leadingValues({ order, leading, search }, most) {
  const least = search.wanted === "" ? Math.max(1, leading) : most;
  return findRows(search, rankSignificant(order)).slice(0, Math.min(most, least)).map(({ value }) => value);
}

/** One entry per value from an estimate's parallel columns; `section`: of the collection. */
function readEntries(estimate, section) {
  const { values, frequency, std_error, low, high, significant, unreliable = [] } = estimate;
  return values.map((value, index) => ({
    value, frequency: frequency[index], standardError: std_error[index],
    low: low[index], high: high[index], significant: significant[index], unreliable: unreliable[index] ?? false,
    isNew: isNew(estimate, index),
    text: isNumber(estimate) ? rowName(estimate, index) : withDots(value, section),
  }));
}

/** A row of a number, from its lower edge to the next one. */
function rowName({ values, density }, index) {
  const end = values[index + 1] ?? density?.maximum;
  return end === undefined ? values[index] : `${values[index]} to ${end}`;
}

function isNew({ discovered_at = [], window_start, window_end }, index) {
  const moment = discovered_at[index] ?? null;
  return moment !== null && window_start < moment + NEW_WINDOWS * (window_end - window_start);
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
  const ofNumber = isNumber(estimate);
  view.leading = ofNumber ? order.length : Math.min(LEADING_VALUES, Math.max(view.leading, significant));
  const isSearch = search.wanted !== "";
  const found = sortRows(view.sorting, findRows(search, ofNumber ? order : rankSignificant(order)));
  const first = isSearch || view.sorting.key !== "" ? LEADING_VALUES : view.leading;
  view.shown = pageOf(view.paging, found, first);
  const other = isSearch ? [] : readOther(estimate);
  view.digits = percentDigits([...order, ...readOther(estimate)]);
  drawFrame(view, view.shown.length + other.length > 0);
  fitColumns(view, [isSearch ? found : [], order, other].find(({ length }) => length > 0));
  drawRows(root.querySelector("tbody"), view.shown, view);
  drawRows(root.querySelector("tfoot"), other, view);
  setTexts(root, { caption: captionOf(estimate, significant, order.length) });
  search.root.hidden = (order.length <= LEADING_VALUES || ofNumber) && !isSearch;
  drawMatches(search, formatWhole(found.length), formatWhole(order.length), unreached(estimate));
}

/** The head of the columns, with the axis, and the file of the rows: both only if there are rows. */
function drawFrame({ root }, hasRows) {
  for (const part of root.querySelectorAll("thead, .save")) part.hidden = !hasRows;
}

/** What a search cannot find. */
function unreached({ omitted }) {
  return omitted > 0 ? ` Not listed, so not found: the ${formatWhole(omitted)} estimated lowest.` : "";
}

/** The sentences above a table. Pure. */
export function captionOf(estimate, significant, values) {
  const { collection, diagnostics, estimator, omitted } = estimate;
  if (values === 0 && omitted === 0) {
    return "found_texts" in (diagnostics ?? {})
      ? "No text is listed now; what growing finds is listed from the next window on."
      : `No candidates are listed, so no shares are estimated: deniable decode ${collection} --grow finds frequent texts.`;
  }
  const all = values + omitted;
  const are = significant === 1 || all === 1 ? "is" : "are";
  const rows = formatCount(all, isNumber(estimate) ? "row" : "value");
  const found = `${contradiction(diagnostics)}${formatWhole(significant)} of ${rows} ${are} significantly above zero.`;
  const left = omitted > 0 ? ` Left out: the ${formatWhole(omitted)} estimated lowest.` : "";
  return `${found}${left}${withheld(estimate)}${incomplete(collection, diagnostics)} Estimator: ${ESTIMATORS[estimator] ?? estimator}.`;
}

/** That no true values explain the counts: then shares look surer than any others. */
export function contradiction({ fit_p_value: fit = 1 } = {}) {
  return fit >= LEAST_FIT ? "" : "The counts contradict the parameters: no true values explain them, so these shares mean nothing. ";
}

/** Whose errors cannot be stated, and why: such values are not significant, so their rows are often not shown. */
function withheld({ mechanism, values, other, unreliable = [] }) {
  if (mechanism === "rappor" && other?.std_error === null) { // of all other strings: then of no value either
    return ` Intervals are withheld: reports in fewer than ${LEAST_COHORTS} cohorts do not tell values from unlisted strings.`;
  }
  const hidden = values.filter((_, index) => unreliable[index]);
  if (hidden.length === 0) return "";
  const more = hidden.length > NAMED ? ` and ${formatWhole(hidden.length - NAMED)} more` : "";
  const share = hidden.length === 1 ? "it shares its" : "they share their";
  return ` No interval is stated for ${hidden.slice(0, NAMED).join(", ")}${more}: ${share} bits with unlisted strings.`;
}

/** That the list lacks frequent strings, and how that shows. */
function incomplete(collection, diagnostics = {}) {
  const reason = unexplained(diagnostics) ?? unlisted(diagnostics);
  return reason === null ? "" : ` The list is incomplete: ${reason}. deniable decode ${collection} tries other strings.`;
}

/** Bits of RAPPOR that no listed string explains; as the alert, see `list_chi_square`. */
function unexplained({ chi_square_ratio: ratio, chi_square_limit: limit }) {
  if (ratio === undefined || ratio <= limit) return null;
  return `reports have bits that no listed string explains (chi-square ratio ${ratio.toFixed(1)}, above ${limit.toFixed(2)})`;
}

/** Texts that are plain in the counts of local hashing. */
function unlisted({ unlisted_texts: texts = 0, unlisted_share: share }) {
  if (texts === 0) return null;
  const [are, them] = texts === 1 ? ["is", "it"] : ["are", "them"];
  return `${formatCount(texts, "frequent text")} ${are} not on it, with about ${withSign(formatPercent(share, 1))} of the ` +
    `reports${texts === 1 ? "" : " together"}; the listed shares are corrected for ${them}`;
}

/** Widens columns for the longest texts shown; changes an axis that overflows or is 40 % empty. No entries: none. */
function fitColumns(view, entries = []) {
  const table = view.root.querySelector("table");
  view.longestValue = Math.max(view.longestValue, ...view.shown.map(lettersOf));
  table.style.setProperty("--longest-value", view.longestValue);
  table.style.setProperty("--digits", view.digits);
  if (entries.length === 0) return;
  const ends = entries.map(({ frequency, high, unreliable }) => unreliable ? frequency : Math.max(frequency, high));
  const highest = Math.max(1e-6, ...ends);
  if (highest > view.axisEnd || highest < 0.6 * view.axisEnd) view.axisEnd = drawAxis(table, highest);
}

function lettersOf({ value, text = value, isNew: isRecent = false }) {
  return text.length + (isRecent ? NEW_LETTERS : 0);
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
  const rows = entries.map((entry) => former.get(entry.value) ?? createRow(entry));
  placeChildren(body, rows);
  entries.forEach((entry, index) => drawRow(rows[index], entry, view));
}

function createRow({ value, text = value }) {
  const row = cloneTemplate("row-template");
  const name = row.querySelector(".value");
  row.dataset.value = name.title = value;
  name.textContent = text;
  return row;
}

function drawRow(row, entry, { axisEnd, digits }) {
  const { frequency, low, high, significant, unreliable, isNew: isRecent = false } = entry;
  setTexts(row, {
    ".frequency": formatPercent(frequency, digits),
    ".interval": unreliable ? "shares bits with unlisted strings" : formatInterval(entry, digits),
    ".spoken": significant ? "" : "not distinguishable from zero",
  });
  row.classList.toggle("quiet", !significant);
  row.querySelector(".new").hidden = !isRecent;
  row.classList.toggle("broken", frequency > axisEnd * (1 + 1e-9));
  row.querySelector(".beyond").hidden = unreliable || high <= axisEnd * (1 + 1e-9);
  const { style } = row.querySelector(".plot");
  style.setProperty("--frequency", `${100 * Math.max(0, frequency) / axisEnd}%`);
  style.setProperty("--low", `${100 * low / axisEnd}%`);
  style.setProperty("--width", `${unreliable ? 0 : 100 * (high - low) / axisEnd}%`);
}
