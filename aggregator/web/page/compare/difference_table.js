// A comparison as a table: the smallest p-values first, with a bar for each interval, around 0 in the middle.

import { cloneTemplate, placeChildren, setText, setTexts } from "../dom.js";
import { formatPercent, formatPValue, formatWhole, percentDigits } from "../format.js";
import { withDots } from "../names.js";
import { csvOf, download, stamp } from "../rows/csv.js";
import { createPaging, pageOf, restorePaging } from "../rows/paging.js";
import { createSearch, drawMatches, findRows, restoreSearch } from "../rows/search.js";

const FIRST_ROWS = 20;
const COLUMNS = ["first_share", "second_share", "difference", "low", "high", "std_error", "p_value", "significant"];

export function createDifferences(root, keep) {
  const view = { root, record: null, rows: [], shown: [] };
  const draw = () => { if (view.record !== null) drawRows(view); };
  view.search = createSearch(root.querySelector(".search"), keep, "compare_search", draw);
  view.paging = createPaging(root.querySelector(".paging"), keep, "compare_rows", draw);
  root.querySelector(".save").addEventListener("click", () => downloadShown(view));
  return view;
}

export function restoreDifferences(view) {
  restoreSearch(view.search);
  restorePaging(view.paging);
  if (view.record !== null) drawRows(view);
}

export function drawDifferences(view, record) {
  view.record = record;
  view.rows = record.values.map((value, place) => ({
    value, standardError: record.std_error[place], ...Object.fromEntries(COLUMNS.map((name) => [name, record[name][place]])),
  })).sort((a, b) => a.p_value - b.p_value || Math.abs(b.difference) - Math.abs(a.difference));
  view.root.hidden = false;
  drawRows(view);
}

function drawRows(view) {
  const { root, rows, search, record } = view;
  const found = findRows(search, rows);
  view.shown = pageOf(view.paging, found, FIRST_ROWS);
  const digits = percentDigits(rows);
  const bounded = view.shown.filter(({ std_error }) => std_error !== null);
  const end = Math.max(1e-6, ...bounded.map(({ low, high }) => Math.max(-low, high)));
  const table = root.querySelector("table");
  table.style.setProperty("--longest-value", Math.max(0, ...view.shown.map(({ value }) => value.length)));
  table.style.setProperty("--digits", digits);
  const body = root.querySelector("tbody");
  placeChildren(body, view.shown.map((_, index) => body.rows[index] ?? cloneTemplate("difference-template")));
  view.shown.forEach((row, index) => drawRow(body.rows[index], row, digits, end));
  root.querySelector(".save").hidden = view.shown.length === 0;
  setText(root.querySelector(".middle"), `± ${Number((100 * end).toPrecision(2))}`);
  search.root.hidden = rows.length <= FIRST_ROWS && search.wanted === "";
  const hint = record.omitted > 0 ? ` Not listed: the ${formatWhole(record.omitted)} with the largest p-values.` : "";
  drawMatches(search, formatWhole(found.length), formatWhole(rows.length), hint);
}

function drawRow(element, row, digits, end) {
  const { value, first_share, second_share, difference, low, high, std_error, p_value, significant } = row;
  const name = element.querySelector(".value");
  setText(name, withDots(value, element.closest(".collection")));
  name.title = value;
  setTexts(element, {
    ".spoken": significant ? "differs" : "not found to differ",
    ".both": [first_share, second_share].map((share) => formatPercent(Math.min(1, Math.max(0, share)), digits)).join(" → "),
    ".points": signed(difference, digits),
    ".interval": std_error === null ? "not known" : `${signed(low, digits)} to ${signed(high, digits)}`,
    ".p-value": formatPValue(p_value).replace(/^p (= )?/, ""),
  });
  element.classList.toggle("quiet", !significant);
  const { style } = element.querySelector(".change");
  const placeOf = (share) => `${50 + 50 * Math.max(-1, Math.min(1, share / end))}%`;
  style.setProperty("--low", placeOf(std_error === null ? 0 : low));
  style.setProperty("--high", placeOf(std_error === null ? 0 : high));
  style.setProperty("--point", placeOf(difference));
}

function signed(share, digits) {
  const text = formatPercent(share, digits);
  if (Number(text) === 0) return formatPercent(0, digits);
  return share < 0 ? text.replace("-", "−") : `+${text}`;
}

/** The columns of `deniable.compare`. */
function downloadShown({ record, shown }) {
  const rows = shown.map((row) => [row.value, ...COLUMNS.map((name) => row[name])]);
  const [first, second] = [record.between, record.and].map((period) => stamp(Date.parse(period.split("/")[0]) / 1000));
  download(`${record.collection}-${first}-and-${second}.csv`, csvOf(["value", ...COLUMNS], rows));
}
