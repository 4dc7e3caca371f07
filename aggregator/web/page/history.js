// The leading values over the windows that the worker knows, one panel each.
// Rule 1: unknown shares are not drawn: a line ends where a window is missing, or where the worker keeps no share
// of the value.
// Rule 2: where parameters changed, a line is drawn across, and the change is said; what is not comparable is not
// joined.
// Rule 3: everything available to the pointer is available to the keyboard and in the table.

import { drawEach, setTexts } from "./dom.js";
import { formatClock, formatCount, formatInterval, formatMoment, formatPercent, formatWindow, quoted } from "./format.js";
import { drawHistoryTable } from "./history_table.js";
import { nameOf, withDots } from "./names.js";
import { areaOf, cursorOf, lineOf, marksOf, niceEnd, pathsIn, pointsOf } from "./paths.js";

const LEAST_POINTS = 3; // two are no line, whatever happens between them

/**
 * `selected`: start of the selected window; null follows the newest. `choose` is called with it when the slider
 * moves; the pointer only looks, and then `pointed` is the start of the window under it.
 */
export function createHistory(root, choose) {
  const view = { root, points: [], values: [], selected: null, pointed: null, axisEnds: new Map(), digits: 1 };
  const cursor = root.querySelector("input");
  cursor.addEventListener("input", () => choose(startAt(view, Number(cursor.value))));
  const panels = root.querySelector(".panels");
  panels.addEventListener("pointermove", ({ target, clientX }) => {
    const chart = target.closest(".chart");
    if (chart !== null) look(view, startAt(view, nearestPoint(view, chart.getBoundingClientRect(), clientX)));
  });
  panels.addEventListener("pointerleave", () => look(view, null));
  root.querySelector("details").addEventListener("toggle", () => drawTable(view));
  return view;
}

/**
 * `windows`: points by window start, in any order; `values`: names, the leading one first; `digits`: decimals of
 * a percentage.
 */
export function drawHistory(view, windows, values, digits) {
  view.digits = digits;
  view.points = Array.from(windows.values(), readPoint).sort((a, b) => a.start - b.start);
  view.values = values.filter((value) => view.points.some(({ shares }) => shares.has(value)));
  view.root.hidden = view.points.length < 2;
  if (view.root.hidden) return;
  view.axisEnds = new Map(view.values.map((value) => [value, axisEndOf(view, value)]));
  drawPanels(view);
  drawTable(view);
}

/** One scale per value, so that its changes stand out from its noise; a scale changes seldom. */
function axisEndOf({ points, axisEnds }, value) {
  const highest = Math.max(1e-6, ...points.map(({ shares }) => shares.get(value)?.high ?? 0));
  const former = axisEnds.get(value) ?? 0;
  return highest > former || highest < 0.6 * former ? niceEnd(highest) : former;
}

/** A window that the worker sent, with its shares by value. Pure. */
export function readPoint(
  { window_start, window_end, final, reports, values, frequency, low, high, unreliable = [], other_parameters: other },
) {
  const shares = new Map(values.map((value, index) => [
    value, unreliable[index]
      ? { frequency: frequency[index], low: frequency[index], high: frequency[index] }
      : { frequency: frequency[index], low: low[index], high: high[index] },
  ]));
  return { start: window_start, end: window_end, final, reports, shares, other };
}

/** `start`: of the window to select; null follows the newest. */
export function selectWindow(view, start) {
  view.selected = start;
  if (!view.root.hidden && view.points.length > 1) drawPanels(view);
}

function look(view, start) {
  view.pointed = start;
  drawPanels(view);
}

function startAt({ points }, index) {
  return index === points.length - 1 ? null : points[index].start;
}

function selectedIndex({ points, selected, pointed }) {
  const found = points.findIndex(({ start }) => start === (pointed ?? selected));
  return found === -1 ? points.length - 1 : found;
}

function nearestPoint({ points }, { left, width }, clientX) {
  const place = Math.min(1, Math.max(0, (clientX - left) / width));
  const moment = points[0].start + place * (points.at(-1).start - points[0].start);
  const distances = points.map(({ start }) => Math.abs(start - moment));
  return distances.indexOf(Math.min(...distances));
}

function drawPanels(view) {
  const { root, points, values } = view;
  const index = selectedIndex(view);
  const point = points[index];
  const isShort = points.length < LEAST_POINTS;
  root.querySelector(".panels").hidden = isShort;
  drawEach(root.querySelector(".panels"), "panel-template", values, (panel, value) => {
    drawPanel(panel, value, view, point);
  });
  const moment = `${formatWindow(point.start, point.end)}, ${point.final ? "final" : "provisional"}, ` +
    formatCount(point.reports, "report");
  const [from, to] = [formatClock(points[0].start), formatClock(points.at(-1).start)];
  setTexts(root, {
    ".moment": moment,
    ".changes": changesOf(points).map(describeChange).join(" "),
    ".scale": values.length === 0 ? whyEmpty(points)
      : isShort ? "Two windows so far: both are in the table below. Lines begin with the third."
      : `The last ${points.length} windows with their 95 % intervals, from ${from} to ${to}; each panel has its own ` +
        "scale, from 0.",
  });
  const cursor = root.querySelector("input");
  cursor.max = points.length - 1;
  cursor.value = index;
  cursor.setAttribute("aria-valuetext", [moment, ...values.map((value) => speak(value, point, view.digits))].join("; "));
}

function whyEmpty(points) {
  return points.at(-1).shares.size === 0 ? "No values are listed now, so there are no shares to follow."
    : "None of the values found is among the 20 largest of a window, which are kept here.";
}

function speak(value, { shares }, digits) {
  const share = shares.get(value);
  return share === undefined ? `${nameOf(value)} not known`
    : `${nameOf(value)} ${formatPercent(share.frequency, digits)} %, ${formatInterval(share, digits)}`;
}

function drawPanel(panel, value, { root, points, axisEnds, digits }, chosen) {
  const share = chosen.shares.get(value);
  const axisEnd = axisEnds.get(value);
  setTexts(panel, {
    ".value": withDots(value, root.closest(".collection")),
    ".share": share === undefined ? "–" : `${formatPercent(share.frequency, digits)} %`,
    ".ends": share === undefined ? "not known" : formatInterval(share, digits),
    ".top": `${Number((100 * axisEnd).toPrecision(2))} %`,
    ".half": Number((50 * axisEnd).toPrecision(2)),
    ".from": formatClock(points[0].start),
    ".to": formatClock(points.at(-1).start),
  });
  const shapes = shapesOf(points, value, axisEnd, chosen);
  const paths = pathsIn(panel.querySelector("svg"), shapes.length);
  shapes.forEach((shape, index) => paths[index].setAttribute("d", shape));
}

/**
 * What a panel draws, in this order: the intervals as an area, those of lone windows as marks, the line, the cursor at
 * the chosen window, the changes of parameters, and the points of lone windows. Pure.
 */
export function shapesOf(points, value, axisEnd, chosen) {
  const runs = runsOf(points, value, axisEnd);
  const placeOf = places(points);
  const changes = changesOf(points).map(([, { start }]) => cursorOf(placeOf(start))).join("");
  return [areaOf(runs), marksOf(runs), lineOf(runs), cursorOf(placeOf(chosen.start)), changes, pointsOf(runs)];
}

/** Pairs of windows, one after the other, between which parameters changed. */
export function changesOf(points) {
  const pairs = points.slice(1).map((point, index) => [points[index], point]);
  return pairs.filter(([before, after]) => before.other?.fingerprint !== after.other?.fingerprint);
}

export function describeChange([before, after]) {
  const { difference, not_comparable: reason } = before.other ?? after.other;
  const which = before.other ? "before" : "since";
  return `Other parameters ${which} ${formatMoment(after.start)}: ${difference}.` +
    (reason ? ` Not comparable, so the lines end there: ${quoted(reason)}.` : "");
}

/** Maps a window's start to its x, 0 to 100. */
function places(points) {
  const first = points[0].start;
  const length = points.at(-1).start - first;
  return (start) => 100 * (start - first) / length;
}

/** Runs of adjacent windows in which the value is known, with x and heights in 0 to 100. */
function runsOf(points, value, axisEnd) {
  const runs = [];
  const placeOf = places(points);
  const heightOf = (share) => 100 * (1 - Math.min(1, share / axisEnd));
  let endOfRun = NaN;
  let incomparable = null;
  for (const { start, end, shares, other } of points) {
    const share = shares.get(value);
    if (share === undefined) continue;
    const parameters = other?.not_comparable ? other.fingerprint : null;
    if (start !== endOfRun || parameters !== incomparable) runs.push([]);
    incomparable = parameters;
    const { frequency, low, high } = share;
    runs.at(-1).push({ x: placeOf(start), y: heightOf(frequency), low: heightOf(low), high: heightOf(high) });
    endOfRun = end;
  }
  return runs;
}

function drawTable({ root, points, values, digits }) {
  const details = root.querySelector("details");
  if (details.open) drawHistoryTable(details.querySelector("table"), points, values, digits, root.closest(".collection"));
}
