// The live page: shows the worker's status and the chosen collections, from its events.
// Rule 1: the page says "Live" only while the worker is ready and no estimate is overdue.
// Rule 2: the list of collections comes first; estimates come only of those that are shown.

import { choose, keeperOf, linkOf, openChoices } from "./choice/choices.js";
import { createList, drawList, drawStates } from "./choice/collection_list.js";
import {
  addWindow, createView, describe, forgetWindows, restoreView, showChanges, showEstimate, showLimits, showNear,
  showStaleness,
} from "./collection.js";
import { placeChildren, setText } from "./dom.js";
import { formatMoment, formatPacks, formatReasons } from "./format.js";
import { followEvents } from "./stream.js";

const FIRST_SHOWN = 6; // of many collections, until people choose
const COPIED_MILLISECONDS = 5_000;

const page = { collections: new Map(), limits: new Map(), views: new Map(), status: null, isCutOff: false };
const choices = openChoices(() => {
  showChosen();
  for (const view of page.views.values()) restoreView(view);
});
const list = createList(document.getElementById("choice"), {
  choose: (names) => {
    choose(choices, names);
    showChosen();
  },
  hrefOf: (name) => `#collections=${name}`,
});
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const view = page.views.get(target.dataset.name);
    if (view?.section === target) showNear(view, isIntersecting);
  }
}, { rootMargin: "100%" });

const follow = followEvents({
  collections: takeCollections,
  limits: (limits) => {
    page.limits.set(limits.collection, limits);
    inView(limits.collection, (view) => showLimits(view, limits));
  },
  estimate: (estimate) => inView(estimate.collection, (view) => showEstimate(view, estimate)),
  window: (point) => inView(point.collection, (view) => addWindow(view, point)),
  changes: (event) => inView(event.collection, (view) => showChanges(view, event)),
  status: drawStatus,
}, {
  opening: () => showStatus("connecting", "Connecting"),
  cutOff: () => {
    page.isCutOff = true;
    showStatus("unreachable", "Worker unreachable, retrying");
  },
  full: () => showStatus("unreachable", "This worker serves as many pages as it can, retrying"),
}, choices.collections ?? []);
document.getElementById("copy").addEventListener("click", copyLink);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address after # is ours
  document.getElementById("figures").focus();
});

/**
 * The worker tells its collections at each connection. Those that are gone disappear; a worker that has restarted
 * may have others, or others under the same name, and knows other windows.
 */
function takeCollections(collections) {
  page.collections = new Map(collections.map((collection) => [collection.name, collection]));
  if (page.isCutOff) page.views.forEach(forgetWindows);
  page.isCutOff = false;
  showChosen();
}

/** One section for each collection chosen that the worker has, in its order. */
function showChosen() {
  const names = [...page.collections.keys()];
  const shown = choices.collections === null ? names.slice(0, FIRST_SHOWN)
    : names.filter((name) => choices.collections.includes(name));
  choices.shown = choices.collections ?? shown;
  const former = page.views;
  page.views = new Map(shown.map((name) => [name, viewOf(name, former.get(name))]));
  for (const [name, view] of former) if (page.views.get(name) !== view) seen.unobserve(view.section);
  placeChildren(document.getElementById("collections"), Array.from(page.views.values(), ({ section }) => section));
  drawList(list, names, shown);
  showAbsent(names);
  if (page.status !== null) drawStatus(page.status);
  follow(shown.length === names.length ? null : shown);
}

function viewOf(name, former) {
  const collection = page.collections.get(name);
  if (former?.collection.fingerprint === collection.fingerprint) {
    describe(former, collection);
    return former;
  }
  const view = createView(keeperOf(choices, name));
  view.section.dataset.name = name;
  describe(view, collection);
  restoreView(view);
  if (page.limits.has(name)) showLimits(view, page.limits.get(name));
  seen.observe(view.section);
  return view;
}

function inView(name, draw) {
  const view = page.views.get(name);
  if (view !== undefined) draw(view);
}

/** Collections that the address names and the worker does not have. */
function showAbsent(names) {
  const absent = (choices.collections ?? []).filter((name) => !names.includes(name));
  const nothing = choices.collections?.length === 0 ? "No collection is chosen: choose some in the list." : "";
  setText(document.getElementById("absent"), absent.length === 0 ? nothing
    : `This worker has no collection named ${absent.join(" or ")}.`);
}

function drawStatus(status) {
  page.status = status;
  showStatus(...summarize(status));
  showNotices(status);
  drawStates(list, status);
  for (const [name, view] of page.views) {
    showStaleness(view, status.stale[name], status.waiting.includes(name), status.sought.includes(name));
  }
}

function summarize({ ready, stale, waiting, sought }) {
  const since = Math.min(...Object.values(stale));
  if (!ready) return ["not-ready", "Not ready"];
  if (since < Infinity) return ["stale", `No new data since ${formatMoment(since)}`];
  if (waiting.length < page.collections.size) return ["live", "Live"];
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

/** A link with the windows that are shown now, so that it shows the same later. */
async function copyLink() {
  const windows = Array.from(page.views).filter(([, { estimate }]) => estimate !== null);
  const link = linkOf(choices, windows.map(([name, { estimate }]) => [name, estimate.window_start]));
  const copied = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(link);
    setText(copied, "Copied. The link keeps these windows, searches and comparisons.");
  } catch {
    location.href = link; // the clipboard is only for pages of https and of this machine
    setText(copied, "The address bar has the link now.");
  }
  setTimeout(() => setText(copied, ""), COPIED_MILLISECONDS);
}
