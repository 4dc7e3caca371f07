// One collection's section: what it costs, its newest estimate, its history, and what another epsilon would do.

import { drawChanges } from "./changes.js";
import { drawDensity } from "./density.js";
import { cloneTemplate, setTexts } from "./dom.js";
import { formatMoment, formatPacks, formatWhole, formatWindow } from "./format.js";
import { createHistory, drawHistory } from "./history.js";
import { drawPair } from "./pair.js";
import { createPlan, updatePlan } from "./plan.js";
import { formatPrivacy } from "./privacy.js";
import { createTable, leadingValues, updateTable } from "./table.js";

const LEADING_VALUES = 6;
const MECHANISMS = {
  "k-rr": "Randomized response",
  "k-rr-longitudinal": "Randomized response with memory",
  "k-rr-pair": "Randomized response of pairs",
  "one-hot-pair": "One bit for each pair",
  "local-hash": "Local hashing",
  "local-hash-longitudinal": "Local hashing with memory",
  "rappor": "RAPPOR",
  "rappor-one-hot": "RAPPOR without hashing",
  "rappor-k-hot": "RAPPOR of several values",
  "number": "Numbers by Square Wave",
};

export function createView() {
  const section = cloneTemplate("collection-template");
  return {
    section,
    collection: null,
    limits: null,
    estimate: null,
    windows: new Map(),
    table: createTable(section.querySelector(".estimate")),
    history: createHistory(section.querySelector(".history")),
    plan: createPlan(section.querySelector(".plan")),
    isDrawing: false,
  };
}

export function describe(view, collection) {
  view.collection = collection;
  const { name, mechanism, values } = collection;
  setTexts(view.section, {
    "h2": name,
    ".mechanism": `${MECHANISMS[mechanism] ?? mechanism}, ${formatWhole(values)} ${mechanism === "number" ? "steps" : "values"}`,
  });
  view.section.setAttribute("aria-label", name);
  drawPrivacy(view);
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
  view.estimate = estimate;
  drawHeadline(view);
  draw(view);
}

/** Shares that changed lately; the worker sends them after each look. */
export function showChanges(view, event) {
  drawChanges(view.section.querySelector(".share-changes"), event);
}

/** Forgets the windows of a former connection; the worker sends those that it knows. */
export function forgetWindows(view) {
  view.windows.clear();
}

export function addWindow(view, point) {
  const { windows, collection: { history_windows: most } } = view;
  windows.set(point.window_start, point);
  if (windows.size > most) windows.delete(Math.min(...windows.keys()));
  draw(view);
}

/** Draws once per frame: a new connection sends everything at once. */
function draw(view) {
  if (view.isDrawing) return;
  view.isDrawing = true;
  requestAnimationFrame(() => {
    view.isDrawing = false;
    if (view.estimate === null) return;
    if (isNumber(view.estimate)) {
      drawDensity(view.section.querySelector(".density"), view.estimate);
      return;
    }
    if (view.table.estimate !== view.estimate) {
      updateTable(view.table, view.estimate);
      if (view.estimate.pair) drawPair(view.section.querySelector(".pair"), view.estimate);
    }
    drawHistory(view.history, view.windows, leadingValues(view.table, LEADING_VALUES), view.table.digits);
    updatePlan(view.plan, view.collection.name, view.estimate);
  });
}

function drawHeadline({ section, collection, estimate }) {
  const { reports, rejected, final, window_start, window_end } = estimate;
  setTexts(section, {
    ".reports": formatWhole(reports),
    ".window": formatWindow(window_start, window_end),
    ".rejected": formatPacks(rejected),
    ".badge": final ? "Final" : "Provisional",
    ".finality": final ? "Final: every report that came in time is counted."
      : `Provisional: reports are counted until ${formatMoment(window_end + collection.grace_seconds)}.`,
  });
  section.classList.toggle("final", final);
  for (const part of section.querySelectorAll(".badge, .finality")) part.hidden = false;
  for (const part of section.querySelectorAll(".estimate, .plan")) part.hidden = isNumber(estimate);
  section.querySelector(".density").hidden = !isNumber(estimate);
  section.querySelector(".pair").hidden = !estimate.pair;
  section.querySelector(".waiting").hidden = true;
}

/** A number has a distribution instead of leading values. */
function isNumber({ mean }) {
  return mean !== null;
}

/** `since`: unix seconds; undefined while no newer estimate is due. */
export function showStaleness({ section, collection, estimate }, since, isWaiting, isSought) {
  const isOrphan = isWaiting && estimate !== null;
  section.classList.toggle("old", since !== undefined || isOrphan);
  section.querySelector(".overdue").hidden = since === undefined && !isOrphan;
  setTexts(section, {
    ".waiting": isSought ? "Looking for the newest estimate."
      : "Waiting for the first estimate: a window is published once it has " +
        `${formatWhole(collection.minimum_reports)} reports.`,
    ".overdue": isOrphan ? "Old: the worker restarted, and knows no estimate yet."
    : since === undefined ? ""
    : `No new data: a newer estimate was due at ${formatMoment(since)}. The data come in batches, too few reports ` +
      "come, or counting stands still.",
  });
}
