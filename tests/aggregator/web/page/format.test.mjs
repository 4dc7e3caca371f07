// Numbers, times, periods and privacy costs as text.

import assert from "node:assert/strict";
import test from "node:test";

import { proposalsFor, parsePeriods, periodsOf, writePeriods } from "../../../../aggregator/web/page/compare/periods.js";
import * as format from "../../../../aggregator/web/page/format.js";
import { nameOf, withDots } from "../../../../aggregator/web/page/names.js";
import { formatError } from "../../../../aggregator/web/page/plan.js";
import { formatOdds, formatPrivacy, roundUp } from "../../../../aggregator/web/page/privacy.js";

const T0 = 978_307_200; // 2001-01-01, UTC: never today, so times have their day
const HOUR = 3_600;

test("an interval whose ends look the same is a bound", () => {
  const rows = [
    [0.4, 0.7, 1, "40.0 – 70.0"], [0, 0.31, 1, "0.0 – 31.0"], [0, 0, 1, "below 0.1"], [0, 0.0002, 1, "below 0.1"],
    [0.9999, 1, 1, "above 99.9"], [0, 0.0002, 2, "0.00 – 0.02"],
  ];
  for (const [low, high, digits, expected] of rows) assert.equal(format.formatInterval({ low, high }, digits), expected);
});

test("percentages have the decimals that the narrowest interval needs", () => {
  const digitsOf = (...errors) => format.percentDigits(errors.map((standardError) => ({ standardError })));
  assert.deepEqual([digitsOf(0.05, null), digitsOf(0.05, 0.001), digitsOf(0.0001), digitsOf(1e-12)], [1, 1, 2, 6]);
});

test("one of a kind is not a plural", () => {
  const reports = [1, 0, 2000].map((number) => format.formatCount(number, "report"));
  assert.deepEqual(reports, ["1 report", "0 reports", "2,000 reports"]);
  const periods = [1, 90, 60, 7200, 86_400].map(format.formatPeriod);
  assert.deepEqual(periods, ["1 second", "90 seconds", "1 minute", "2 hours", "1 day"]);
});

test("times have the day and their zone", () => {
  assert.equal(format.formatMoment(T0 + 40), "Jan 1, 00:00:40 UTC");
  assert.match(format.formatWindow(T0 - 30, T0 - 20), /^Dec 31, 23:59:30\s–\s23:59:40 UTC$/);
  assert.deepEqual([T0, T0 - 40, T0 - 60].map(format.formatClock), ["Jan 1", "23:59:20", "23:59"]);
});

test("p-values below a millionth are said to be so", () => {
  assert.deepEqual([0.00205, 5.011e-33, 0.0123456].map(format.formatPValue), ["p = 0.00205", "p < 1e-6", "p = 0.0123"]);
});

test("reasons are sorted words", () => {
  assert.equal(format.formatReasons({ unknown_collection: 7, malformed: 3000 }), "malformed 3,000, unknown collection 7");
});

test("an empty text, and one that looks like its name, have the names that commands print", () => {
  assert.deepEqual(["", '""', "kiwi"].map(nameOf), ['""', `'""'`, "kiwi"]);
});

test("a text as long as the last level of its tree has dots, in bytes of UTF-8", () => {
  const tree = { dataset: { longest: "3" } };
  assert.deepEqual(["fig", "äb", "ab", ""].map((text) => withDots(text, tree)), ["fig…", "äb…", "ab", '""']);
  assert.equal(withDots("fig", { dataset: { longest: "" } }), "fig");
});

test("errors have two digits, and none is above all reports", () => {
  assert.deepEqual([0.118, 0.00123, 1, 3].map(formatError), ["11.8 %", "0.12 %", "over 100 %", "over 100 %"]);
});

test("a cost is never understated", () => {
  assert.deepEqual([roundUp(1.83135, 4), roundUp(2, 4), roundUp(0.1 + 0.2, 2, 2)], ["1.8314", "2", "0.31"]);
  assert.deepEqual([2, 7.7837, 22].map(formatOdds), ["7.4", "2,402", "3.6 · 10⁹"]);
});

test("a budget of values that change states its condition", () => {
  const words = { mechanism: "local-hash-longitudinal", epsilon: 1, epsilon_permanent: 4 };
  const known = ", if it is known when hash buckets change";
  const held = "no interval includes that error. Browsers do not limit changes: they may send fewer reports, and for " +
    "ever each hash bucket that they show costs as much again.";
  const rows = [
    [null, null, `any number of reports keeps, whatever the values${known}`, ""],
    [null, 3, "is 3 reports, whatever the values", ""],
    [2, null, `any number of reports keeps, whatever the values${known}`,
      ` A client shows at most 2 changes of hash bucket in all, then goes on reporting the last one: ${held}`],
    [0, null, "any number of reports keeps, whatever the values",
      ` A client always reports its first hash bucket: ${held}`],
  ];
  for (const [changes, reports, allowed, shown] of rows) {
    const budget = { epsilon: 12, delta: 1e-6, period_seconds: 86_400, reports, changes, values: "any" };
    const text = formatPrivacy(words, { per_window: 1, epsilon_any: null, budget });
    const [cost, said] = text.split(" Budget of a client: ");
    assert.equal(said, `ε = 12 at δ = 1e-6 in 1 day, which ${allowed}; 1 report a window.${shown}`);
    for (const part of ["whose value stays the same", "is not hidden"]) assert.equal(cost.includes(part), changes !== 0, part);
  }
});

test("proposed periods are those that known windows cover", () => {
  const rows = [
    [10, "The last 10 seconds, and the 10 seconds before", [T0 - 20, T0 - 10, T0 - 10, T0]],
    [80, "The last 40 seconds, and the 40 seconds before", [T0 - 80, T0 - 40, T0 - 40, T0]],
    [300, "The last 2 minutes, and the 2 minutes before", [T0 - 240, T0 - 120, T0 - 120, T0]],
    [2 * HOUR, "The last hour, and the hour before", [T0 - 2 * HOUR, T0 - HOUR, T0 - HOUR, T0]],
  ];
  for (const [known, title, periods] of rows) {
    const proposals = proposalsFor(10, { start: T0 - known, end: T0 }).map(([, preset]) => preset);
    assert.equal(proposals[0].title, title);
    assert.ok(proposals.slice(0, 2).some((preset) => preset.title === "The last hour, and the hour before"), title);
    assert.deepEqual(periodsOf(proposals[0], T0).flat(), periods, title);
  }
});

test("periods in an address are read as they were written", () => {
  const periods = [[1, 20], [20, 300]];
  assert.deepEqual(parsePeriods(writePeriods(periods, 0.05)), { periods, rate: 0.05 });
  for (const text of ["", "1/20,20/300", "1/20,20/300,0", "a/20,20/300,0.05", "1/20,20/300,0.05,1"]) {
    assert.equal(parsePeriods(text), null, text);
  }
});
