// One collection's section: what it costs, an estimate, its history, and what another epsilon would do.
// Rule 1: all parts show one window: the newest one, or one that people have chosen.
// Rule 2: a section that is far from being seen is not drawn.

import { drawChanges, drawUnwatched } from "./changes.js";
import { createComparison, restoreComparison, updateComparison } from "./compare/comparison.js";
import { drawDensity } from "./density.js";
import { cloneTemplate, setTexts } from "./dom.js";
import { formatMoment } from "./format.js";
import { formerValues } from "./former/values.js";
import { drawChosen, drawHeadline, drawQuestion, drawStaleness, isNumber } from "./headline.js";
import { createHistory, drawHistory, selectWindow } from "./history.js";
import { createMeanSoFar, restoreMeanSoFar, updateMeanSoFar } from "./mean_so_far.js";
import { drawPair } from "./pair.js";
import { createPlan, updatePlan } from "./plan.js";
import { formatPrivacy } from "./privacy.js";
import { downloadEstimate } from "./rows/estimate_csv.js";
import { createSoFar, restoreSoFar, updateSoFar } from "./so_far.js";
import { createTable, leadingValues, restoreTable, updateTable } from "./table.js";
import { fetchWindow } from "./window.js";

const LEADING_VALUES = 6;
const REST_MILLISECONDS = 100; // of a slider, before the window under it is fetched

/** `keep` reads and writes what the page's address says of this collection. */
export function createView(keep) {
  const section = cloneTemplate("collection-template");
  const view = {
    section, keep, collection: null, limits: null, newest: null, estimate: null, windows: new Map(), chosen: null,
    leaders: null, staleness: null, isDrawing: false, isNear: false,
  };
  view.table = createTable(section.querySelector(".estimate"), keep, () => draw(view));
  view.history = createHistory(section.querySelector(".history"), (start) => chooseWindow(view, start));
  view.plan = createPlan(section.querySelector(".plan"));
  view.comparison = createComparison(section.querySelector(".comparison"), keep);
  view.soFar = createSoFar(section.querySelector(".so-far"), section.querySelector(".estimate"), keep);
  view.meanSoFar = createMeanSoFar(section.querySelector(".mean-so-far"), keep);
  section.querySelector(".follow").addEventListener("click", () => {
    chooseWindow(view, null);
    section.focus();
  });
  section.querySelector(".estimate .save").addEventListener("click", () => downloadShown(view));
  section.querySelector(".log input").addEventListener("change", () => draw(view));
  return view;
}

export function describe(view, collection) {
  view.collection = collection;
  drawQuestion(view.section, collection);
  drawUnwatched(view.section.querySelector(".unwatched"), collection);
  view.section.dataset.longest = collection.longest ?? "";
  drawPrivacy(view);
}

/** Takes all that the page's address says of this collection, once it is described. */
export function restoreView(view) {
  restoreTable(view.table);
  restoreComparison(view.comparison, view.collection);
  if (view.collection.mechanism === "number") restoreMeanSoFar(view.meanSoFar);
  else restoreSoFar(view.soFar);
  const start = view.keep.read("window");
  chooseWindow(view, /^[0-9]{1,12}$/.test(start) ? Number(start) : null);
}

/** Draws what was not drawn while nobody could see it. */
export function showNear(view, isNear) {
  view.isNear = isNear;
  if (isNear) draw(view);
}

/** What a client may send; arrives after the collection itself, since it may take seconds to compute. */
export function showLimits(view, limits) {
  view.limits = limits;
  drawPrivacy(view);
}

function drawPrivacy({ section, collection, limits }) {
  setTexts(section, { ".privacy": formatPrivacy(collection, limits) });
}

export function showEstimate(view, estimate) {
  view.newest = estimate;
  updatePeriods(view);
  if (view.chosen === null) show(view, estimate);
  else if (view.chosen === estimate.window_start) chooseWindow(view, view.chosen);
}

function show(view, estimate) {
  view.estimate = estimate;
  drawHeadline(view);
  draw(view);
}

/** Shows this window in all parts; null follows the newest one. */
async function chooseWindow(view, start) {
  const { section, collection, newest } = view;
  view.chosen = start;
  view.keep.write("window", start === null ? "" : String(start));
  selectWindow(view.history, start);
  drawChosen(section, start === null ? null : `Showing the window of ${formatMoment(start)}.`, "");
  drawStaleness(view);
  if (start === null) {
    if (newest !== null && view.estimate !== newest) show(view, newest);
    return;
  }
  const found = start === newest?.window_start ? { estimate: newest } : await fetchAfterRest(view, collection, start);
  if (view.chosen !== start || found === null) return;
  if (found.estimate === undefined) drawChosen(section, "", found.error);
  else show(view, found.estimate);
}

async function fetchAfterRest(view, collection, start) {
  await new Promise((resolve) => { setTimeout(resolve, REST_MILLISECONDS); });
  return view.chosen === start ? fetchWindow(collection, start) : null;
}

function downloadShown({ estimate, table, section }) {
  const hasOther = section.querySelector(".estimate tfoot").rows.length > 0;
  downloadEstimate(estimate, table.shown.map(({ value }) => value), hasOther);
}

function updatePeriods(view) {
  const known = finalWindows(view);
  updateComparison(view.comparison, view.collection, known);
  updateSoFar(view.soFar, known.end);
  updateMeanSoFar(view.meanSoFar, known.end);
}

/** Start and end of the final windows under the present parameters, unix seconds; later ones are still counted. */
function finalWindows({ windows, newest }) {
  const known = Array.from(windows.values()).filter(({ final, other_parameters: other }) => final && other === null);
  if (newest.final) known.push(newest);
  if (known.length === 0) return { start: newest.window_start, end: newest.window_start };
  return {
    start: Math.min(...known.map(({ window_start }) => window_start)),
    end: Math.max(...known.map(({ window_end }) => window_end)),
  };
}

/** Shares or means that changed lately; the worker sends them after each look. */
export function showChanges({ section, collection }, event) {
  drawChanges(section.querySelector(".share-changes"), event, collection.mechanism === "number");
}

/** Forgets the windows of a former connection; the worker sends those that it knows. */
export function forgetWindows(view) {
  view.windows.clear();
}

export function addWindow(view, point) {
  const { windows, chosen, newest, collection: { history_windows: most } } = view;
  windows.set(point.window_start, point);
  if (windows.size > most) windows.delete(Math.min(...windows.keys()));
  if (newest !== null) updatePeriods(view);
  const isShown = view.estimate?.window_start === chosen && view.estimate?.final === point.final;
  if (point.window_start === chosen && chosen !== newest?.window_start && !isShown) chooseWindow(view, chosen);
  draw(view);
}

/** Draws once per frame: a new connection sends everything at once. */
function draw(view) {
  if (view.isDrawing || !view.isNear) return;
  view.isDrawing = true;
  requestAnimationFrame(() => {
    view.isDrawing = false;
    if (view.estimate === null) return;
    if (isNumber(view.estimate)) drawDensity(view.section.querySelector(".density"), view.estimate);
    if (view.table.estimate !== view.estimate) {
      updateTable(view.table, view.estimate);
      if (view.estimate.pair) drawPair(view.section.querySelector(".pair"), view.estimate);
    }
    if (isNumber(view.estimate)) return;
    const former = formerValues(view.windows.values(), view.newest ?? view.estimate, view.table.search);
    drawHistory(view.history, view.windows, [...leadersOf(view), ...former], view.table.digits);
    updatePlan(view.plan, view.collection.name, view.estimate);
  });
}

/** Values of the history: the leading ones, which a choice of a window does not change, or those found. */
function leadersOf(view) {
  const { table, chosen } = view;
  const leaders = leadingValues(table, LEADING_VALUES);
  if (table.search.wanted !== "") return leaders;
  if (chosen === null || view.leaders === null) view.leaders = leaders;
  return view.leaders;
}

/** `since`: unix seconds; undefined while no newer estimate is due. */
export function showStaleness(view, since, isWaiting, isSought) {
  view.staleness = { since, isWaiting, isSought };
  drawStaleness(view);
}
