// The density of a number, with its mean and its quantiles.
// Rule: it is smooth and without intervals; what reports tell apart are the rows of the table.

import { setTexts } from "./dom.js";
import { formatFigure, withSign } from "./format.js";
import { cursorOf, lineOf, niceEnd, pathsIn } from "./paths.js";

const SHOWN = [0.1, 0.25, 0.5, 0.75, 0.9];
const MOST_TICKS = 7; // as many labels as fit on a phone

/** Draws a record of a number; those of older versions have steps of one width for values. */
export function drawDensity(root, estimate) {
  const { mean, quantiles } = estimate;
  const { minimum: first, maximum: end, frequency } = estimate.density ?? stepsOf(estimate);
  const count = frequency.length;
  const width = (end - first) / count;
  const log = root.querySelector(".log");
  log.hidden = first < 0;
  const isLog = !log.hidden && log.querySelector("input").checked;
  const partOf = (number) => (number - first) / width; // in steps
  const placeOf = (number) => 100 * (isLog ? Math.log1p(partOf(number)) / Math.log1p(count) : partOf(number) / count);
  const top = niceEnd(Math.max(...frequency));
  const run = frequency.map((share, index) => ({
    x: placeOf(first + (index + 0.5) * width), y: 100 * (1 - share / top),
  }));
  const median = quantiles.find(({ level }) => level === 0.5);
  const [line, middle] = pathsIn(root.querySelector("svg"), 2);
  line.setAttribute("d", lineOf([run]));
  middle.setAttribute("d", median === undefined ? "" : cursorOf(placeOf(median.value)));
  drawTicks(root.querySelector(".numbers"), isLog ? doublingsOf(first, end, width) : ticksOf(first, end), placeOf);
  setTexts(root, {
    ".mean": `Mean ${textOf(mean)}`,
    ".quantiles": quantiles.filter(({ level }) => SHOWN.includes(level))
      .map((each) => `${each.level === 0.5 ? "Median" : `${withSign(formatFigure(100 * each.level))} below`} ${textOf(each)}`)
      .join(" · "),
    ".top": withSign(formatFigure(100 * top)),
    ".half": formatFigure(50 * top),
    ".step": `Height: the share of the reports in each step of ${formatFigure(width)}, from ${formatFigure(first)} to ` +
      `${formatFigure(end)}. Dashed: the median.`,
  });
}

function stepsOf({ values, frequency }) {
  const [minimum, last] = [Number(values[0]), Number(values.at(-1))];
  return { minimum, maximum: last + (last - minimum) / (values.length - 1), frequency };
}

/** The least number, and edges of 1, 4, 16 ... steps after it. */
function doublingsOf(first, end, width) {
  const ticks = [first];
  for (let steps = 1; first + steps * width <= end; steps *= 4) ticks.push(first + steps * width);
  return ticks;
}

/** Multiples of 1, 2 or 5 times a power of ten between two numbers, the most that fit. */
function ticksOf(from, to) {
  const magnitude = 10 ** Math.floor(Math.log10((to - from) / MOST_TICKS));
  const step = [1, 2, 5, 10].map((part) => part * magnitude)
    .find((part) => Math.floor(to / part) - Math.ceil(from / part) < MOST_TICKS);
  const [first, last] = [Math.ceil(from / step), Math.floor(to / step)];
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

function drawTicks(axis, ticks, placeOf) {
  axis.replaceChildren(...ticks.map((tick) => {
    const line = document.createElement("span");
    line.style.setProperty("inset-inline-start", `${placeOf(tick)}%`);
    line.textContent = formatFigure(tick);
    return line;
  }));
}

function textOf({ value, low, high }) {
  return `${formatFigure(value)} (${formatFigure(low)} – ${formatFigure(high)})`;
}
