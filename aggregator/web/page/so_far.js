// The shares over all final windows since a fixed beginning, with intervals that hold at every look.

import { requestRollUp } from "./compare/request.js";
import { createPeriod, restorePeriod, updatePeriod } from "./compare/so_far_period.js";
import { setText } from "./dom.js";
import { formatCount, formatMoment } from "./format.js";
import { csvOf, download, iso, stamp } from "./rows/csv.js";
import { drawParts, sharesOf } from "./former/parts.js";
import { createTable, restoreTable, updateTable } from "./table.js";

const NORMAL_95 = 1.959964;
const COLUMNS = ["share", "low", "high", "low_all", "high_all"];

/** `source`: an empty table of an estimate, of which this one is a copy; `keep`: as of the page's address. */
export function createSoFar(root, source, keep) {
  const view = { root, keep, name: keep.name, asked: 0, copy: source.cloneNode(true), table: null, shares: null };
  view.period = createPeriod(root, keep, (start, end) => ask(view, start, end));
  return view;
}

/** `end`: of the newest final window, unix seconds. */
export function updateSoFar({ period }, end) {
  updatePeriod(period, end);
}

/** Takes the period, and what is shown of its shares, from the page's address. */
export function restoreSoFar({ period, table }) {
  restorePeriod(period);
  if (table !== null) restoreTable(table);
}

async function ask(view, start, end) {
  const { root, name } = view;
  const asked = view.asked += 1;
  setText(root.querySelector(".looks"), "Reading the windows …");
  const { record, error } = await requestRollUp(name, start, end);
  if (view.asked !== asked) return;
  const shares = record === undefined ? null : sharesOf(record, COLUMNS);
  setText(root.querySelector(".looks"), shares !== null ? describe(shares)
    : `No shares: ${error ?? whyNone(record, name)}.`);
  drawParts(root.querySelector(".parts"), record);
  view.copy.hidden = shares === null;
  if (shares === null) return;
  view.shares = shares;
  view.table ??= addTable(view);
  updateTable(view.table, asEstimate(shares));
}

/** Why a roll-up has no shares: enough reports, but no candidates in the file, or too few. */
function whyNone({ independent }, name) {
  return independent === null ? "there are too few reports since then"
    : `no candidates are listed in the collection file. deniable decode ${name} --grow finds frequent texts`;
}

function addTable(view) {
  const { root, copy, keep } = view;
  copy.className = "shares";
  copy.querySelector(".save").addEventListener("click", () => downloadShown(view));
  copy.querySelector(".search label").firstChild.textContent = "Search shares so far ";
  root.append(copy);
  return createTable(copy, {
    read: (field) => keep.read(`so_far_${field}`), write: (field, text) => keep.write(`so_far_${field}`, text),
  }, () => {});
}

function describe({ reports, windows, since, isEveryLook, repeated_noise: isRepeated }) {
  return `${formatCount(reports, "report")} in ${formatCount(windows, "window")} since ${formatMoment(since)}. ` +
    (isEveryLook ? "Look again as often as you like: in 95 of 100 cases an interval holds its share at every look."
      : "In 95 of 100 cases an interval holds its share at this look: other windows were left out at others.") +
    (isRepeated ? " Clients may return with the same noise, so more windows do not make it narrower." : "");
}

/** The rows shown, with the columns that `deniable rollup --json` has in `sequence`, or the joined ones. */
function downloadShown({ name, table, shares }) {
  const { values, columns, since, until } = shares;
  const places = new Map(values.map((value, place) => [value, place]));
  const rows = table.shown.map(({ value }) =>
    [name, iso(since), iso(until), value, ...columns.map((column) => shares[column][places.get(value)])]);
  const file = `${name}-${stamp(since)}-to-${stamp(until)}.csv`;
  download(file, csvOf(["collection", "from", "to", "value", ...columns], rows));
}

/** The columns of an estimate, as a table takes them. */
function asEstimate({ values, share, low, high, low_all, high_all, omitted, estimator }) {
  return {
    values, low, high, low_all, high_all, omitted, other: null, estimator,
    frequency: share.map((each) => Math.min(1, Math.max(0, each))),
    std_error: low.map((each, place) => (high[place] - each) / (2 * NORMAL_95)),
    significant: low.map((each) => each > 0),
  };
}
