// Shapes of the charts, in a square of 100 by 100 that is stretched to its place. Pure except for `pathsIn`.
// A run is a list of points with x and the heights y, low and high, measured from the top.

const SVG = "http://www.w3.org/2000/svg";

/** Creates paths in an SVG element, in drawing order. */
export function pathsIn(svg, number) {
  while (svg.children.length < number) svg.append(document.createElementNS(SVG, "path"));
  return svg.children;
}

export function lineOf(runs) {
  return runs.map((run) => `M${run.map(({ x, y }) => at(x, y)).join("L")}${run.length === 1 ? "h0" : ""}`).join("");
}

/** The area between low and high; omits runs of a single point. */
export function areaOf(runs) {
  const areas = runs.filter((run) => run.length > 1).map((run) => [
    ...run.map(({ x, low }) => at(x, low)), ...run.toReversed().map(({ x, high }) => at(x, high)),
  ]);
  return areas.map((points) => `M${points.join("L")}Z`).join("");
}

/** A bar from low to high for each run of a single point. */
export function marksOf(runs) {
  const alone = runs.filter((run) => run.length === 1).flat();
  return alone.map(({ x, low, high }) => `M${at(x, low)}V${round(high)}`).join("");
}

/** A point for each run of a single one, which a line cannot show. */
export function pointsOf(runs) {
  return lineOf(runs.filter((run) => run.length === 1));
}

export function cursorOf(x) {
  return `M${at(x, 0)}V100`;
}

/** The first of 1, 2, 5 times a power of ten, and of the steps between, that reaches what is highest. */
export function niceEnd(highest) {
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((part) => highest <= part * magnitude * (1 + 1e-9)) * magnitude;
}

function at(x, y) {
  return `${round(x)} ${round(y)}`;
}

function round(number) {
  return Number(number.toFixed(2));
}
