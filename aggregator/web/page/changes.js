// Changes that were found lately, of shares or of a mean, as sentences in a collection's section.
// Rule: the figure of the newest window stands beside a sentence: screen readers announce changes, not every window.

import { setText } from "./dom.js";
import { formatCount, formatFigure, formatMoment, formatPercent, withSign } from "./format.js";
import { withDots } from "./names.js";

const PHONE = "(max-width: 30rem)";
const LEAST_DIGITS = 1;
const MOST_SHOWN = 10;
const MOST_CHARACTERS = 60; // of a value in a sentence

/** One line for each change, the newest first; no list while nothing changed. */
export function drawChanges(list, event, isNumber) {
  const lines = describeChanges(event, isNumber, list.closest(".collection"));
  list.hidden = lines.length === 0;
  drawFold(list.closest("details"), event.changes.length);
  while (list.children.length > lines.length) list.lastElementChild.remove();
  lines.forEach(([found, now], index) => {
    if (list.children.length === index) list.append(createLine());
    const [sentence, figure] = list.children[index].children;
    setText(sentence, found);
    setText(figure, now);
  });
}

/** On a phone the changes are folded until people ask for them. */
function drawFold(fold, number) {
  if (fold.hidden && number > 0) fold.open = !matchMedia(PHONE).matches;
  fold.hidden = number === 0;
  setText(fold.querySelector("summary"), `${formatCount(number, "change")} found lately`);
}

/**
 * A sentence for each change, and its figure in the newest window. `range` has the least and the largest figure that
 * there can be: noise may take an estimate beyond. `newest`: figures of the newest final window by value. Pure.
 */
export function describeChanges({ a_year: aYear, changes, range, newest }, isNumber, section) {
  const within = (figure) => Math.min(range[1], Math.max(range[0], figure));
  const describe = isNumber ? describeMean : describeShare;
  const lines = changes.slice(-MOST_SHOWN).toReversed().map((change) =>
    describe({ ...change, value: withDots(change.value, section) }, within, newest[change.value]));
  const rest = changes.length - lines.length;
  if (rest > 0) lines.push([`${formatCount(rest, "earlier change")}: see deniable changes.`, ""]);
  const constant = isNumber ? "the mean does not change" : "no share changes";
  if (lines.length > 0) {
    const alarms = aYear === 1 ? "is at most 1 such alarm" : `are at most ${aYear} such alarms`;
    lines.push([`While ${constant}, there ${alarms} a year.`, ""]);
  }
  return lines;
}

function createLine() {
  const [line, sentence, figure] = ["li", "span", "span"].map((name) => document.createElement(name));
  figure.setAttribute("aria-live", "off");
  line.append(sentence, figure);
  return line;
}

/** The sentence, and the share in the newest window: it may have come back since. */
function describeShare(found, within, now) {
  const { value: name, since, before, after, change, low, high } = found;
  const digits = Math.min(4, Math.max(LEAST_DIGITS, Math.ceil(-Math.log10(50 * (high - low)))));
  const textOf = (share) => withSign(formatPercent(within(share), digits));
  const [size, least, most] = [change, low, high].map((part) => signed(part, formatPercent(part, digits)));
  return [
    `The share of ${shortened(name)} changed from ${textOf(before)} to ${textOf(after)} since ${formatMoment(since)}: ` +
      `by ${size} percentage points (95 % interval ${least} to ${most}).${partOf(found)}`,
    now === undefined ? "" : ` In the newest final window: ${textOf(now)}.`,
  ];
}

function shortened(name) {
  const characters = [...name];
  return characters.length > MOST_CHARACTERS ? `${characters.slice(0, MOST_CHARACTERS).join("")}…` : name;
}

function describeMean(found, within, now) {
  const { since, before, after, change, low, high } = found;
  const textOf = (mean) => formatFigure(within(mean));
  const [size, least, most] = [change, low, high].map((part) => signed(part, formatFigure(part)));
  return [
    `The mean changed from ${textOf(before)} to ${textOf(after)} since ${formatMoment(since)}: ` +
      `by ${size} (95 % interval ${least} to ${most}).${partOf(found)}`,
    now === undefined ? "" : ` In the newest final window: ${textOf(now)}.`,
  ];
}

function signed(figure, text) {
  return `${figure > 0 ? "+" : ""}${text}`.replace("-", "−");
}

/** The alarm came in the window in which the change began. */
function partOf({ partial }) {
  return partial ? " That may be a part of it, as it began in that window: the next final one states it anew." : "";
}

const UNWATCHED = {
  values: "Changes of shares are not looked for here: there are more than 200 values.",
  growth: "Changes of shares are not looked for here: the list of texts grows.",
  counters: "Changes of shares are looked for anew after a restart of the worker: former windows have too many counters.",
};

const INSTEAD = {
  changes: (name) => `deniable changes ${name} finds those of a period.`,
  compare: (name) => `deniable compare ${name} finds which shares differ between two periods.`,
  grow: (name) => `deniable decode ${name} --grow, for each of two periods, shows which texts were frequent then.`,
};

/** That changes are not looked for, or not wholly, why, and which command finds those of the past; else nothing. */
export function drawUnwatched(paragraph, collection) {
  const text = describeUnwatched(collection);
  paragraph.hidden = text === "";
  setText(paragraph, text);
}

export function describeUnwatched({ name, unwatched }) {
  return unwatched === null ? "" : `${UNWATCHED[unwatched.reason]} ${INSTEAD[unwatched.use](name)}`;
}
