// The head of a collection's section: what it asks, which window is shown, and how old that is.

import { setText, setTexts } from "./dom.js";
import { formatCount, formatMoment, formatPacks, formatWhole, formatWindow } from "./format.js";

const MECHANISMS = {
  "k-rr": "Randomized response",
  "k-rr-longitudinal": "Randomized response with memory",
  "k-rr-pair": "Randomized response of pairs",
  "one-hot-pair": "One bit for each pair",
  "local-hash": "Local hashing",
  "local-hash-longitudinal": "Local hashing with memory",
  "prefix-tree": "Local hashing of beginnings",
  "rappor": "RAPPOR",
  "rappor-one-hot": "RAPPOR without hashing",
  "rappor-k-hot": "RAPPOR of several values",
  "number": "Square Wave",
};
const PAIRS = ["k-rr-pair", "one-hot-pair"];

/** A section's name and question, which never change. */
export function drawQuestion(section, { name, mechanism, values }) {
  setTexts(section, {
    "h2": name,
    ".question": questionOf(mechanism, values),
    ".mechanism": `${MECHANISMS[mechanism] ?? mechanism}.`,
  });
  section.setAttribute("aria-label", name);
  for (const scroller of section.querySelectorAll(".scroller")) {
    scroller.setAttribute("aria-label", `${name}: ${scroller.dataset.label}`);
  }
}

/** What the collection asks, in words of the answer. */
export function questionOf(mechanism, values) {
  if (mechanism === "number") return `Distribution of a number, in ${formatCount(values, "row")}`;
  if (mechanism === "rappor-k-hot") return `Shares of reports that have each of ${formatCount(values, "value")}`;
  if (mechanism === "prefix-tree") return "Shares of texts";
  return `Shares of ${PAIRS.includes(mechanism) ? `${formatCount(values, "pair")} of values` : formatCount(values, "value")}`;
}

export function drawHeadline({ section, collection, estimate }) {
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
  for (const part of section.querySelectorAll(".plan, .comparison, .so-far")) part.hidden = isNumber(estimate);
  for (const part of section.querySelectorAll(".density, .mean-so-far")) part.hidden = !isNumber(estimate);
  section.querySelector(".estimate").hidden = false;
  section.querySelector(".pair").hidden = !estimate.pair;
  section.querySelector(".waiting").hidden = true;
}

/** A number has a distribution instead of leading values. */
export function isNumber({ mean }) {
  return (mean ?? null) !== null;
}

/** Which window people chose, null if they follow the newest one; and why it cannot be shown. */
export function drawChosen(section, text, trouble) {
  const root = section.querySelector(".chosen");
  root.hidden = text === null;
  setText(root.querySelector(".which"), text ?? "");
  setText(root.querySelector(".trouble"), trouble);
}

/** A chosen window is not old: it is what people wanted to see. */
export function drawStaleness({ section, collection, newest, chosen, staleness }) {
  if (staleness === null) return;
  const { since, isWaiting, isSought } = staleness;
  const isOrphan = isWaiting && newest !== null;
  const isOld = chosen === null && (since !== undefined || isOrphan);
  section.classList.toggle("old", isOld);
  section.querySelector(".overdue").hidden = !isOld;
  setTexts(section, {
    ".waiting": isSought ? "Looking for the newest estimate."
      : "Waiting for the first estimate: a window is published once it has " +
        `${formatCount(collection.minimum_reports, "report")}.`,
    ".overdue": isOrphan ? "Old: the worker restarted, and knows no estimate yet."
    : since === undefined ? ""
    : `No new data: a newer estimate was due at ${formatMoment(since)}. The data come in batches, too few reports ` +
      "come, or counting stands still.",
  });
}
