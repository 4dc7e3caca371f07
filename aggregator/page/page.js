// The live page: asks the worker how it is and for the newest estimate of every collection, and draws both.
// Rule: the page says "Live" only while the worker is ready and nothing that it shows is overdue.

import { cloneTemplate, placeChildren, setText, setTexts } from "./dom.js";
import { formatMoment, formatPacks, formatPrivacy, formatReasons, formatWhole, formatWindow } from "./format.js";
import { createTable, updateTable } from "./table.js";

const POLL_MILLISECONDS = 2_000;
const COLLECTIONS_MILLISECONDS = 30_000;
const TIMEOUT_MILLISECONDS = 5_000;
const MECHANISMS = {
  "k-rr": "Randomized response",
  "k-rr-longitudinal": "Randomized response with memory",
  "rappor": "RAPPOR",
  "rappor-one-hot": "RAPPOR without hashing",
  "rappor-k-hot": "RAPPOR of several values",
};

const views = new Map();
let collectionsFetched = -Infinity;

/** JSON of one address; null when there is nothing (yet); throws when the worker does not answer. */
async function fetchJson(address) {
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  const response = await fetch(address, { cache: "no-store", signal });
  if (response.status === 204 || response.status === 404) return null;
  if (!response.ok) throw new Error(`${address}: status ${response.status}`);
  return response.json();
}

/** The collections when due, else null; the worker's status; each newest estimate, as [name, estimate or null]. */
async function fetchRound() {
  const due = performance.now() - collectionsFetched > COLLECTIONS_MILLISECONDS;
  const collections = due ? await fetchJson("api/collections") : null;
  const names = collections?.map(({ name }) => name) ?? [...views.keys()];
  const fetchEstimate = async (name) => [name, await fetchJson(`api/estimates/${encodeURIComponent(name)}`)];
  const [status, ...estimates] = await Promise.all([fetchJson("api/status"), ...names.map(fetchEstimate)]);
  return { collections, status, estimates };
}

async function poll() {
  try {
    const round = await fetchRound().catch(() => null);
    if (round === null) return showUnreachable();
    if (round.collections !== null) placeCollections(round.collections);
    const estimates = round.estimates.filter(([, estimate]) => estimate !== null);
    for (const [name, estimate] of estimates) drawEstimate(views.get(name), estimate);
    for (const [name, view] of views) drawStaleness(view.section, round.status.stale[name]);
    showStatus(...summarize(round.status, estimates.length > 0));
    showNotices(round.status);
  } finally {
    setTimeout(poll, POLL_MILLISECONDS);
  }
}

/** A worker that comes back may have another collection file: the collections are due at once. */
function showUnreachable() {
  collectionsFetched = -Infinity;
  showStatus("unreachable", "Worker unreachable, retrying");
}

function summarize({ ready, stale }, hasEstimates) {
  const since = Math.min(...Object.values(stale));
  if (!ready) return ["not-ready", "Not ready"];
  if (since < Infinity) return ["stale", `Stale since ${formatMoment(since)}`];
  return hasEstimates ? ["live", "Live"] : ["waiting", "Waiting for the first estimate"];
}

function showStatus(state, text) {
  const status = document.getElementById("status");
  status.dataset.state = state;
  setText(status, text);
}

/** Why the worker is not ready, and what it turned away without any collection's figures telling of it. */
function showNotices({ reasons, strays }) {
  const packs = Object.values(strays).reduce((sum, count) => sum + count, 0);
  const turnedAway = packs === 0 ? [] : [
    "Turned away by this worker since it started, in no collection’s window: " +
    `${formatPacks(packs)} (${formatReasons(strays)}).` +
    (strays.unknown_collection ? " Unknown collection: a producer’s collection file is not the workers’." : ""),
  ];
  const texts = [...reasons.map((reason) => `Not ready: ${reason}.`), ...turnedAway];
  const notices = document.getElementById("notices");
  placeChildren(notices, texts.map((_, index) => notices.children[index] ?? document.createElement("li")));
  texts.forEach((text, index) => {
    notices.children[index].classList.toggle("grave", index < reasons.length);
    setText(notices.children[index], text);
  });
}

/** One section per collection, in the worker's order; those of collections that are gone disappear. */
function placeCollections(collections) {
  collectionsFetched = performance.now();
  const former = new Map(views);
  views.clear();
  for (const collection of collections) {
    const view = former.get(collection.name) ?? createView();
    views.set(collection.name, view);
    view.graceSeconds = collection.grace_seconds;
    describeCollection(view.section, collection);
  }
  placeChildren(document.getElementById("collections"), Array.from(views.values(), ({ section }) => section));
}

function createView() {
  const section = cloneTemplate("collection-template");
  return { section, table: createTable(section.querySelector(".estimate")), graceSeconds: 0 };
}

function describeCollection(section, collection) {
  const { name, mechanism, values, minimum_reports, epsilon, epsilon_permanent } = collection;
  setTexts(section, {
    "h2": name,
    ".mechanism": `${MECHANISMS[mechanism] ?? mechanism}, ${formatWhole(values)} values`,
    ".privacy": formatPrivacy(epsilon, epsilon_permanent),
    ".waiting": "Waiting for the first estimate: a window is published once it has " +
      `${formatWhole(minimum_reports)} reports.`,
  });
  section.setAttribute("aria-label", name);
}

function drawEstimate(view, estimate) {
  const isSame = (field) => view.table.estimate?.[field] === estimate[field];
  if (["fingerprint", "window_start", "revision", "final"].every(isSame)) return;
  drawHeadline(view, estimate);
  updateTable(view.table, estimate);
}

function drawHeadline({ section, graceSeconds }, { reports, rejected, final, window_start, window_end }) {
  setTexts(section, {
    ".reports": formatWhole(reports),
    ".window": formatWindow(window_start, window_end),
    ".rejected": formatPacks(rejected),
    ".badge": final ? "Final" : "Provisional",
    ".finality": final ? "Final: every report that came in time is counted."
      : `Provisional: reports are counted until ${formatMoment(window_end + graceSeconds)}.`,
  });
  section.classList.toggle("final", final);
  for (const part of section.querySelectorAll(".badge, .estimate, .finality")) part.hidden = false;
  section.querySelector(".waiting").hidden = true;
}

/** `since`: unix seconds; undefined while the newest estimate is as new as it should be. */
function drawStaleness(section, since) {
  section.classList.toggle("stale", since !== undefined);
  section.querySelector(".overdue").hidden = since === undefined;
  if (since === undefined) return;
  setTexts(section, {
    ".overdue": `Stale: a newer estimate was due at ${formatMoment(since)}. Either too few reports come, or ` +
      "counting stands still.",
  });
}

poll();
