// The mean of a number over all final windows since a fixed beginning, with an interval that holds at every look.

import { requestRollUp } from "./compare/request.js";
import { createPeriod, restorePeriod, updatePeriod } from "./compare/so_far_period.js";
import { setTexts } from "./dom.js";
import { formatCount, formatMoment } from "./format.js";

const MOST_DIGITS = 6;

/** `keep`: as of the page's address. */
export function createMeanSoFar(root, keep) {
  const view = { root, keep, asked: 0 };
  view.period = createPeriod(root, keep, (start, end) => ask(view, start, end));
  return view;
}

/** `end`: of the newest final window, unix seconds. */
export function updateMeanSoFar({ period }, end) {
  updatePeriod(period, end);
}

/** Takes the period from the page's address. */
export function restoreMeanSoFar({ period }) {
  restorePeriod(period);
}

async function ask(view, start, end) {
  const { root, keep } = view;
  const asked = view.asked += 1;
  setTexts(root, { ".found": "", ".said": "Reading the windows …" });
  const { record, error } = await requestRollUp(keep.name, start, end);
  if (view.asked !== asked) return;
  const sequence = record?.sequence ?? null;
  setTexts(root, sequence === null ? { ".said": `No mean: ${error ?? "there are too few reports since then"}.` }
    : { ".found": figureOf(sequence), ".said": `${describe(sequence)}${leftOut(record)}` });
}

/** The mean and its interval, whose ends differ in the last two digits shown; noise may take it beyond an end. */
function figureOf({ share: [mean], low: [low], high: [high] }) {
  const digits = Math.max(0, Math.min(MOST_DIGITS, 1 + Math.ceil(-Math.log10(high - low))));
  const [middle, from, to] = [Math.min(high, Math.max(low, mean)), low, high]
    .map((figure) => figure.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  return `Mean ${middle} (${from} – ${to})`;
}

function describe({ reports, windows, since }) {
  return `${formatCount(reports, "report")} in ${formatCount(windows, "window")} since ${formatMoment(since)}. Look again ` +
    "as often as you like: in 95 of 100 cases the interval holds the mean at every look.";
}

/** Windows that were counted under other parameters, so that their counts cannot be added. */
function leftOut({ coverage: { passed_over: passedOver } }) {
  const others = Object.values(passedOver).reduce((sum, each) => sum + each, 0);
  return others === 0 ? "" : ` The parameters changed: ${formatCount(others, "window")} of other parameters left out; ` +
    "deniable rollup --former joins their means with this one.";
}
