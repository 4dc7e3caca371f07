// What charts draw: paths of the history, and the ticks of a table's axis.

import assert from "node:assert/strict";
import test from "node:test";

import "./node_18.mjs";
import { scalesFor } from "../../../../aggregator/web/page/axis.js";
import { formerValues } from "../../../../aggregator/web/page/former/values.js";
import { changesOf, describeChange, readPoint, shapesOf } from "../../../../aggregator/web/page/history.js";
import { niceEnd } from "../../../../aggregator/web/page/paths.js";

const T0 = 978_307_200; // 2001-01-01, UTC: never today, so times have their day
const SHARES = new Map([[-4, 0.4], [-3, 0.3], [-1, 0.2], [0, 0.5]]);

/** A window so many before the one at T0. */
function pointAt(step, share, fields = {}) {
  return readPoint({
    window_start: T0 + 10 * step, window_end: T0 + 10 * step + 10, final: true, reports: 1000, other_parameters: null,
    values: ["apple", "fig"], frequency: [share, 0.9 - share], low: [share - 0.1, 0.8 - share], high: [share + 0.1, 1 - share],
    ...fields,
  });
}

function shapes(points, { value = "apple", end = 0.6, chosen = points.at(-1) } = {}) {
  const [area, marks, line, cursor, changes, lone] = shapesOf(points, value, end, chosen);
  return { area, marks, line, cursor, changes, lone };
}

const WINDOWS = [...SHARES].map(([step, share]) => pointAt(step, share));

test("heights are the numbers, and a line ends at a missing window", () => {
  assert.deepEqual(shapes(WINDOWS), {
    area: "M0 50L25 66.67L25 33.33L0 16.67ZM75 83.33L100 33.33L100 0L75 50Z", marks: "",
    line: "M0 33.33L25 50M75 66.67L100 16.67", cursor: "M100 0V100", changes: "", lone: "",
  });
  assert.equal(shapes(WINDOWS, { chosen: WINDOWS[1] }).cursor, "M25 0V100");
});

test("a value absent from a window is not drawn there", () => {
  const points = [pointAt(-1, 0.2, { values: ["apple", "kiwi"] }), pointAt(0, 0.5)];
  assert.deepEqual([shapes(points, { value: "fig", end: 0.5 }).line, shapes(points).line], ["M100 20h0", "M0 66.67L100 16.67"]);
});

test("a window between gaps is a point with its interval", () => {
  const { line, marks, lone } = shapes([pointAt(-4, 0.4), pointAt(-3, 0.3), pointAt(0, 0.3), pointAt(2, 0.5)]);
  assert.equal(line, "M0 33.33L16.67 50M66.67 50h0M100 16.67h0");
  assert.equal(marks, "M66.67 66.67V33.33M100 33.33V0");
  assert.equal(lone, "M66.67 50h0M100 16.67h0");
});

test("a line goes on across a change of parameters unless shares are not comparable", () => {
  for (const [reason, runs] of [[null, 1], ["`other` is missing", 2]]) {
    const other = { fingerprint: "0".repeat(16), difference: "epsilon 1 to 2", not_comparable: reason };
    const points = [
      pointAt(-4, 0.4, { other_parameters: other }), pointAt(-3, 0.3, { other_parameters: other }), pointAt(-2, 0.2),
    ];
    const { line, changes } = shapes(points);
    assert.equal(line.split("M").length - 1, runs);
    assert.equal(changes, "M100 0V100");
    assert.equal(changesOf(points).map(describeChange).join(" "),
      "Other parameters before Dec 31, 23:59:40 UTC: epsilon 1 to 2." +
      (reason === null ? "" : " Not comparable, so the lines end there: “other” is missing."));
  }
});

test("an unreliable value has no interval", () => {
  const { area, line } = shapes([pointAt(-1, 0.3), pointAt(0, 0.3, { unreliable: [true, false] })]);
  assert.equal(line, "M0 50L100 50");
  assert.equal(area, "M0 66.67L100 50L100 50L0 33.33Z");
});

test("values of a former list are drawn if they were above 0 in a quarter of their windows", () => {
  const window = (low) => ({ values: ["lime", "fig"], frequency: [0.2, 0.3], low: [low, 0.1] });
  const search = { wanted: "" };
  const newest = { values: ["fig"], omitted: 0 };
  const found = (lows) => formerValues(lows.map(window), newest, search);
  assert.deepEqual([found([0.1, 0, 0, 0]), found([0.1, 0, 0, 0, 0])], [["lime"], []]);
  assert.deepEqual(formerValues([window(0.1)], { ...newest, omitted: 1 }, search), []);
  assert.deepEqual(formerValues([window(0.1)], newest, { wanted: "fi" }), []);
});

test("axes end at round numbers, at least half of which is used", () => {
  for (const highest of [1, 0.9, 0.55, 0.41, 0.3, 0.21, 0.155, 0.11, 0.051, 0.0123, 0.0021, 0.00031]) {
    const scales = scalesFor(highest);
    assert.deepEqual(scales.map(({ steps }) => steps).slice(1), [2, 1]);
    assert.ok(scales[0].steps >= 2 && scales[0].steps <= 5, `${highest}`);
    for (const { step, steps } of scales) {
      const used = highest / (step * steps);
      assert.ok(used >= 0.5 && used <= 1 + 1e-9, `${highest}: ${used}`);
    }
    const used = highest / niceEnd(highest);
    assert.ok(used > 0.5 && used <= 1 + 1e-9, `${highest}: ${used}`);
  }
  assert.deepEqual(scalesFor(0.7)[0], { step: 0.2, steps: 4 });
});
