// Which shares differ between two periods: the question, and the worker's answer.

import { setText } from "../dom.js";
import { formatCount, formatWhole } from "../format.js";
import { createDifferences, drawDifferences, restoreDifferences } from "./difference_table.js";
import {
  chooseOthers, fillFields, fillPresets, parsePeriods, presetPeriods, readFields, writePeriods,
} from "./periods.js";
import { requestComparison } from "./request.js";

/** `periods`: as asked, unix seconds; the fields show them in local time. `asked`: the text of the last question. */
export function createComparison(root, keep) {
  const form = root.querySelector("form");
  const view = { root, form, keep, name: keep.name, end: null, periods: null, asked: "" };
  view.differences = createDifferences(root.querySelector(".differences"), keep);
  form.querySelector("select").addEventListener("change", () => proposePeriods(view));
  for (const field of form.querySelectorAll("fieldset input")) {
    field.addEventListener("input", () => {
      view.periods = null;
      chooseOthers(form);
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const periods = view.periods ?? readFields(form);
    if (periods !== null) compare(view, periods, form.querySelector(".rate input").valueAsNumber / 100);
  });
  root.addEventListener("toggle", () => {
    if (!root.open) forget(view);
    else if (view.asked === "") proposePeriods(view);
  });
  return view;
}

/** `end`: of the newest final window, unix seconds: where proposed periods end. */
export function updateComparison(view, { window_seconds: seconds }, end) {
  const isFirst = view.end === null;
  view.end = end;
  fillPresets(view.form.querySelector("select"), seconds);
  if (view.asked !== "") chooseOthers(view.form);
  else if (isFirst) proposePeriods(view);
}

/** Asks what the page's address says. */
export function restoreComparison(view) {
  restoreDifferences(view.differences);
  const text = view.keep.read("compare");
  if (text === view.asked) return;
  const asked = parsePeriods(text);
  view.root.open = asked !== null;
  if (asked === null) return;
  view.form.querySelector(".rate input").value = Number((100 * asked.rate).toPrecision(6));
  fillFields(view.form, asked.periods);
  chooseOthers(view.form);
  compare(view, asked.periods, asked.rate);
}

function proposePeriods(view) {
  const periods = view.end === null ? null : presetPeriods(view.form.querySelector("select").value, view.end);
  if (periods === null) return;
  view.periods = periods;
  fillFields(view.form, periods);
}

async function compare(view, periods, rate) {
  const { root, keep, name } = view;
  const question = writePeriods(periods, Number(rate.toPrecision(6)));
  view.periods = periods;
  view.asked = question;
  keep.write("compare", question);
  setText(root.querySelector(".outcome"), "Reading the windows of both periods …");
  root.querySelector(".differences").hidden = true;
  const { record, error } = await requestComparison(name, periods, rate);
  if (view.asked !== question) return;
  setText(root.querySelector(".outcome"), record === undefined ? `No comparison: ${error}.` : summarize(record));
  if (record !== undefined) drawDifferences(view.differences, record);
}

function forget(view) {
  view.asked = "";
  view.keep.write("compare", "");
  setText(view.root.querySelector(".outcome"), "");
  view.root.querySelector(".differences").hidden = true;
}

function summarize({ significant, omitted, rate, windows, reports }) {
  const found = significant.filter((each) => each).length;
  const verdict = `${formatWhole(found)} of ${formatWhole(significant.length + omitted)} shares differ` +
    (found > 0 ? `; of those, at most ${Number((100 * rate).toPrecision(3))} % are expected to be false.` : ".");
  const [first, second] = [0, 1].map((side) => `${formatCount(reports[side], "report")} in ${formatCount(windows[side], "window")}`);
  return `${verdict} First: ${first}. Second: ${second}.`;
}
