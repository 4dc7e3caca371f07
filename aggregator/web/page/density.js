// The distribution of a number: the shares of its steps with their 95 % intervals, its mean and its quantiles.

import { setTexts } from "./dom.js";
import { formatFigure } from "./format.js";
import { areaOf, lineOf, pathsIn } from "./paths.js";

const SHOWN = [0.1, 0.25, 0.5, 0.75, 0.9];
const MOST_HEADROOM = 3; // times the largest share: wider intervals are cut off

/** Draws a record of a number: its values are the lower edges of steps of one width. */
export function drawDensity(root, { values, frequency, low, high, mean, quantiles }) {
  const count = values.length;
  const [first, last] = [Number(values[0]), Number(values[count - 1])];
  const top = Math.min(Math.max(...high), MOST_HEADROOM * Math.max(...frequency));
  const heightOf = (share) => 100 * (1 - Math.min(1, share / top));
  const run = frequency.map((share, index) => ({
    x: 100 * (index + 0.5) / count, y: heightOf(share), low: heightOf(low[index]), high: heightOf(high[index]),
  }));
  const [area, line] = pathsIn(root.querySelector("svg"), 2);
  area.setAttribute("d", areaOf([run]));
  line.setAttribute("d", lineOf([run]));
  setTexts(root, {
    ".mean": `Mean ${textOf(mean)}`,
    ".quantiles": quantiles.filter(({ level }) => SHOWN.includes(level))
      .map((each) => `${each.level === 0.5 ? "Median" : `${formatFigure(100 * each.level)} % below`} ${textOf(each)}`)
      .join(" · "),
    ".from": formatFigure(first),
    ".to": formatFigure(last + (last - first) / (count - 1)),
  });
}

function textOf({ value, low, high }) {
  return `${formatFigure(value)} (${formatFigure(low)} – ${formatFigure(high)})`;
}
