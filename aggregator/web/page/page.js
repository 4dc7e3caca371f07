// The live page: shows the worker's status and its collections, from its events.
// Rule: the page says "Live" only while the worker is ready and no estimate is overdue.

import {
  addWindow, createView, describe, forgetWindows, showChanges, showEstimate, showLimits, showStaleness,
} from "./collection.js";
import { placeChildren, setText } from "./dom.js";
import { formatMoment, formatPacks, formatReasons } from "./format.js";
import { followEvents } from "./stream.js";

let views = new Map();

const handlers = {
  collections: placeCollections,
  limits: (limits) => showLimits(views.get(limits.collection), limits),
  estimate: (estimate) => showEstimate(views.get(estimate.collection), estimate),
  window: (point) => addWindow(views.get(point.collection), point),
  changes: (event) => showChanges(views.get(event.collection), event),
  status: drawStatus,
};

followEvents(handlers, {
  opening: () => showStatus("connecting", "Connecting"),
  cutOff: () => showStatus("unreachable", "Worker unreachable, retrying"),
  full: () => showStatus("unreachable", "This worker serves as many pages as it can, retrying"),
});

/**
 * One section per collection, in the worker's order; it tells them at each connection. Those that are gone
 * disappear; a worker that has restarted may have others, or others under the same name.
 */
function placeCollections(collections) {
  const former = views;
  views = new Map();
  for (const collection of collections) {
    const known = former.get(collection.name);
    const view = known?.collection.fingerprint === collection.fingerprint ? known : createView();
    views.set(collection.name, view);
    describe(view, collection);
    forgetWindows(view);
  }
  placeChildren(document.getElementById("collections"), Array.from(views.values(), ({ section }) => section));
}

function drawStatus(status) {
  showStatus(...summarize(status));
  showNotices(status);
  for (const [name, view] of views) {
    showStaleness(view, status.stale[name], status.waiting.includes(name), status.sought.includes(name));
  }
}

function summarize({ ready, stale, waiting, sought }) {
  const since = Math.min(...Object.values(stale));
  if (!ready) return ["not-ready", "Not ready"];
  if (since < Infinity) return ["stale", `No new data since ${formatMoment(since)}`];
  if (waiting.length < views.size) return ["live", "Live"];
  return ["waiting", sought.length > 0 ? "Looking for the newest estimates" : "Waiting for the first estimate"];
}

function showStatus(state, text) {
  const status = document.getElementById("status");
  status.dataset.state = state;
  setText(status, text);
}

/** Why the worker is not ready, and which packs it rejected outside of any collection's window. */
function showNotices({ reasons, unattributed }) {
  const packs = Object.values(unattributed).reduce((sum, count) => sum + count, 0);
  const turnedAway = packs === 0 ? [] : [
    "Turned away by this worker since it started, in no collection’s window: " +
    `${formatPacks(packs)} (${formatReasons(unattributed)}).` +
    (unattributed.unknown_collection ? " Unknown collection: a producer’s collection file is not the workers’." : ""),
  ];
  const texts = [...reasons.map((reason) => `Not ready: ${reason}.`), ...turnedAway];
  const notices = document.getElementById("notices");
  placeChildren(notices, texts.map((_, index) => notices.children[index] ?? document.createElement("li")));
  texts.forEach((text, index) => {
    notices.children[index].classList.toggle("grave", index < reasons.length);
    setText(notices.children[index], text);
  });
}
