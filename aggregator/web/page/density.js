// The distribution of a number: the shares of its steps with their 95 % intervals, its mean and its quantiles.

import { setTexts } from "./dom.js";
import { formatFigure, withSign } from "./format.js";
import { areaOf, cursorOf, lineOf, niceEnd, pathsIn } from "./paths.js";

const SHOWN = [0.1, 0.25, 0.5, 0.75, 0.9];
const MOST_HEADROOM = 3; // times the largest share: wider intervals are cut off
const MOST_TICKS = 7; // as many labels as fit on a phone

/** Draws a record of a number: its values are the lower edges of steps of one width. */
export function drawDensity(root, { values, frequency, low, high, mean, quantiles }) {
  const count = values.length;
  const [first, last] = [Number(values[0]), Number(values[count - 1])];
  const width = (last - first) / (count - 1);
  const end = last + width;
  const top = niceEnd(Math.min(Math.max(...high), MOST_HEADROOM * Math.max(...frequency)));
  const heightOf = (share) => 100 * (1 - Math.min(1, share / top));
  const run = frequency.map((share, index) => ({
    x: 100 * (index + 0.5) / count, y: heightOf(share), low: heightOf(low[index]), high: heightOf(high[index]),
  }));
  const placeOf = (number) => 100 * (number - first) / (end - first);
  const median = quantiles.find(({ level }) => level === 0.5);
  const [area, line, middle] = pathsIn(root.querySelector("svg"), 3);
  area.setAttribute("d", areaOf([run]));
  line.setAttribute("d", lineOf([run]));
  middle.setAttribute("d", median === undefined ? "" : cursorOf(placeOf(median.value)));
  drawTicks(root.querySelector(".numbers"), ticksOf(first, end), placeOf);
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
