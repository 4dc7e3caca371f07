// Which shares differ between two periods: the question, and the worker's answer.

import { setText } from "../dom.js";
import { formatCount, formatWhole } from "../format.js";
import { createDifferences, drawDifferences, restoreDifferences } from "./difference_table.js";
import {
  chooseOthers, fillFields, fillPresets, parsePeriods, readFields, writePeriods,
} from "./periods.js";
import { requestComparison } from "./request.js";
import { contradiction } from "../table.js";

/**
 * `periods`: as asked, unix seconds; the fields show them in local time. `asked`: the text of the last question.
 * `proposals`: periods by name, made when the form opens, and left as they are while people choose.
 */
export function createComparison(root, keep) {
  const form = root.querySelector("form");
  const view = {
    root, form, select: form.querySelector("select"), keep, name: keep.name, windowSeconds: 0, known: null,
    proposals: new Map(), periods: null, asked: "",
  };
  view.differences = createDifferences(root.querySelector(".differences"), keep);
  view.select.addEventListener("change", () => proposePeriods(view));
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
    if (root.open) drawProposals(view);
    else forget(view);
  });
  return view;
}

/** `known`: start and end of the final windows that are known, unix seconds: where proposed periods end. */
export function updateComparison(view, { window_seconds: windowSeconds }, known) {
  const isFirst = view.known === null;
  Object.assign(view, { windowSeconds, known });
  const isChoosing = document.activeElement === view.select;
  if (view.root.open && (isFirst || view.asked !== "") && !isChoosing) drawProposals(view);
}

function drawProposals(view) {
  if (view.known === null) return;
  view.proposals = fillPresets(view.select, view.windowSeconds, view.known);
  if (view.asked === "") proposePeriods(view);
  else chooseOthers(view.form);
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
  const periods = view.proposals.get(view.select.value);
  if (periods === undefined) return;
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
  if (record !== undefined && valuesOf(record) > 0) drawDifferences(view.differences, record);
}

function forget(view) {
  view.asked = "";
  view.keep.write("compare", "");
  setText(view.root.querySelector(".outcome"), "");
  view.root.querySelector(".differences").hidden = true;
}

function summarize(record) {
  const { windows, reports, coverage } = record;
  const [first, second] = [0, 1].map((side) =>
    `${formatCount(reports[side], "report")} in ${formatCount(windows[side], "window")}${leftOut(coverage[side])}`);
  const wrong = contradiction({ fit_p_value: Math.min(...record.fit_p_value) });
  return `${wrong}${verdictOf(record)} First: ${first}. Second: ${second}.`;
}

function verdictOf(record) {
  const { collection, significant, rate } = record;
  if (valuesOf(record) === 0) {
    return "No candidates are listed in the collection file, so no shares are compared: deniable decode " +
      `${collection} --grow, for each of two periods, shows which texts were frequent then.`;
  }
  const found = significant.filter((each) => each).length;
  const verdict = `${formatWhole(found)} of ${formatCount(valuesOf(record), "share")} differ${found === 1 ? "s" : ""}`;
  if (found === 0) return `${verdict}.`;
  return `${verdict}; of those, at most ${Number((100 * rate).toPrecision(3))} % are expected to be false. The test ` +
    "allows for the randomizers’ noise alone: where other people report in each period, shares may differ although " +
    "nobody changed.";
}

/** How many were tested, those that are left out included. */
function valuesOf({ values, omitted }) {
  return values.length + omitted;
}

/** Windows of a period that were not compared: those that the topic lacks, and those of other parameters. */
function leftOut({ expected, windows, passed_over: passedOver }) {
  const others = Object.values(passedOver).reduce((sum, each) => sum + each, 0);
  const missing = expected > windows ? ` of ${formatWhole(expected)}` : "";
  return others > 0 ? `${missing}, ${formatCount(others, "window")} of other parameters left out` : missing;
}
