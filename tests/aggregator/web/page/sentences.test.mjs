// What the page says of an estimate, of changes of shares, of a roll-up and of a pair.

import assert from "node:assert/strict";
import test from "node:test";

import "./node_18.mjs";
import { describeChanges, describeUnwatched } from "../../../../aggregator/web/page/changes.js";
import { describeParts } from "../../../../aggregator/web/page/former/parts.js";
import { questionOf } from "../../../../aggregator/web/page/headline.js";
import { verdictOf } from "../../../../aggregator/web/page/pair.js";
import { captionOf } from "../../../../aggregator/web/page/table.js";

const T0 = 978_307_200; // 2001-01-01, UTC: never today, so times have their day
const SECTION = { dataset: { longest: "" } };

function estimate(fields) {
  const values = ["apple", "fig", "kiwi", "lime"];
  return {
    collection: "fruit", mechanism: "k-rr", estimator: "inv", values, omitted: 0, diagnostics: {},
    other: { frequency: 0.3, std_error: 0.4, low: 0, high: 0.971 }, ...fields,
  };
}

test("a caption counts the values that are above zero", () => {
  const captions = [[1, 1], [1, 4], [2, 4]].map(([found, values]) => captionOf(estimate({}), found, values));
  assert.deepEqual(captions, [
    "1 of 1 value is significantly above zero. Estimator: counts, corrected for the noise.",
    "1 of 4 values is significantly above zero. Estimator: counts, corrected for the noise.",
    "2 of 4 values are significantly above zero. Estimator: counts, corrected for the noise.",
  ]);
  const left = captionOf(estimate({ omitted: 1234 }), 2, 4);
  assert.match(left, /^2 of 1,238 values are .* Left out: the 1,234 estimated lowest\./);
});

test("values without an interval are named, and counted from the sixth on", () => {
  const values = Array.from({ length: 8 }, (_, place) => `name ${place}`);
  const captionFor = (count) => captionOf(estimate({ values, unreliable: values.map((_, place) => place < count) }), 0, 8);
  assert.doesNotMatch(captionFor(0), /No interval/);
  assert.match(captionFor(1), / No interval is stated for name 0: it shares its bits with unlisted strings\./);
  assert.match(captionFor(7), / for name 0, name 1, name 2, name 3, name 4 and 2 more: they share their bits with unlisted/);
});

test("intervals withheld in few cohorts have a reason; with noise alone the rest is known", () => {
  const said = "Intervals are withheld: reports in fewer than 6 cohorts do not tell values from unlisted strings.";
  const withheld = { mechanism: "rappor", other: { frequency: 0.2, std_error: null, low: 0, high: 1 } };
  assert.ok(captionOf(estimate(withheld), 0, 4).includes(said));
  for (const known of [{ ...withheld, mechanism: "k-rr" }, { ...withheld, other: { ...withheld.other, std_error: 0.5 } }]) {
    assert.ok(!captionOf(estimate(known), 0, 4).includes(said));
  }
});

test("an incomplete list is named, and what shows it", () => {
  const rows = [
    [{ chi_square_ratio: 10.63, chi_square_limit: 1.216 },
      "reports have bits that no listed string explains (chi-square ratio 10.6, above 1.22)"],
    [{ unlisted_texts: 1, unlisted_share: 0.1234 },
      "1 frequent text is not on it, with about 12.3\u00a0% of the reports; the listed shares are corrected for it"],
    [{ unlisted_texts: 2, unlisted_share: 0.1234 },
      "2 frequent texts are not on it, with about 12.3\u00a0% of the reports together; the listed shares are corrected for " +
        "them"],
  ];
  for (const [diagnostics, reason] of rows) {
    const expected = ` The list is incomplete: ${reason}. deniable decode fruit tries other strings.`;
    assert.ok(captionOf(estimate({ diagnostics }), 1, 4).includes(expected), reason);
  }
  for (const diagnostics of [{ chi_square_ratio: 1.1, chi_square_limit: 1.216 }, { unlisted_texts: 0, unlisted_share: 0 }]) {
    assert.doesNotMatch(captionOf(estimate({ diagnostics }), 1, 4), /incomplete/);
  }
});

test("an empty list says what to do", () => {
  const captionFor = (diagnostics) => captionOf(estimate({ values: [], diagnostics }), 0, 0);
  assert.equal(captionFor({}),
    "No candidates are listed, so no shares are estimated: deniable decode fruit --grow finds frequent texts.");
  assert.equal(captionFor({ found_texts: 0 }),
    "No text is listed now; what growing finds is listed from the next window on.");
});

test("a question names what is counted", () => {
  const questions = [["k-rr", 1], ["k-rr-pair", 84], ["number", 240], ["prefix-tree", 9], ["rappor-k-hot", 3]];
  assert.deepEqual(questions.map((each) => questionOf(...each)), [
    "Shares of 1 value", "Shares of 84 pairs of values", "Distribution of a number, in 240 rows", "Shares of texts",
    "Shares of reports that have each of 3 values",
  ]);
});

const RISE = {
  value: "fig", since: T0 - 600, before: 0.2, after: 0.251, change: 0.051, low: 0.031, high: 0.071, partial: false,
};

function changesOf(changes, newest = {}) {
  return describeChanges({ a_year: 0.1, changes, range: [0, 1], newest }, false, SECTION);
}

test("changes of shares are sentences, the newest first", () => {
  const fall = { value: "<b>kiwi</b>", since: T0 - 300, before: 0.4, after: 0.3, change: -0.1, low: -0.15, high: -0.05 };
  assert.deepEqual(changesOf([RISE, fall]).map(([sentence]) => sentence), [
    "The share of <b>kiwi</b> changed from 40.0\u00a0% to 30.0\u00a0% since Dec 31, 23:55:00 UTC: by −10.0 percentage " +
      "points (95 % interval −15.0 to −5.0).",
    "The share of fig changed from 20.0\u00a0% to 25.1\u00a0% since Dec 31, 23:50:00 UTC: by +5.1 percentage points " +
      "(95 % interval +3.1 to +7.1).",
    "While no share changes, there are at most 0.1 such alarms a year.",
  ]);
  assert.deepEqual(changesOf([]), []);
});

test("values in sentences have names, and are cut if they are long", () => {
  for (const [value, name] of [["", '""'], ["fig".repeat(300), `${"fig".repeat(20)}…`]]) {
    assert.ok(changesOf([{ ...RISE, value }])[0][0].startsWith(`The share of ${name} changed `), name);
  }
});

test("the newest window stands beside a sentence; what noise took below 0 is 0", () => {
  const [[sentence, now]] = changesOf([{ ...RISE, before: -0.004 }], { fig: 0.2019, kiwi: 0.1 });
  assert.ok(sentence.startsWith("The share of fig changed from 0.0\u00a0% to 25.1\u00a0% since "));
  assert.equal(now, " In the newest final window: 20.2\u00a0%.");
  assert.equal(changesOf([RISE], { fig: -0.001 })[0][1], " In the newest final window: 0.0\u00a0%.");
  assert.equal(changesOf([RISE])[0][1], "");
  assert.ok(changesOf([{ ...RISE, partial: true }])[0][0].endsWith(
    "to +7.1). That may be a part of it, as it began in that window: the next final one states it anew."));
});

test("a change of a mean is in units of the number, at the collection's rate", () => {
  const mean = { value: "mean", since: T0 - 600, before: 150.25, after: 161.5, change: 11.25, low: 8, high: 14.5 };
  const event = { a_year: 12, changes: [mean], range: [0, 720], newest: {} };
  assert.deepEqual(describeChanges(event, true, SECTION).map(([sentence]) => sentence), [
    "The mean changed from 150.3 to 161.5 since Dec 31, 23:50:00 UTC: by +11.25 (95 % interval +8 to +14.5).",
    "While the mean does not change, there are at most 12 such alarms a year.",
  ]);
  assert.match(describeChanges({ ...event, a_year: 1 }, true, SECTION)[1][0], /there is at most 1 such alarm a year/);
});

test("of many changes the newest ten are said", () => {
  const many = Array.from({ length: 30 }, (_, place) => ({ ...RISE, value: `v${place}` }));
  const lines = changesOf(many).map(([sentence]) => sentence);
  assert.equal(lines.length, 12);
  assert.ok(lines[0].startsWith("The share of v29 "));
  assert.equal(lines[10], "20 earlier changes: see deniable changes.");
});

test("collections whose changes are not looked for say so, and which command finds them", () => {
  const rows = [
    [null, ""],
    [{ reason: "values", use: "changes" }, "Changes of shares are not looked for here: there are more than 200 values. " +
      "deniable changes many finds those of a period."],
    [{ reason: "counters", use: "compare" }, "Changes of shares are looked for anew after a restart of the worker: former " +
      "windows have too many counters. deniable compare many finds which shares differ between two periods."],
    [{ reason: "growth", use: "grow" }, "Changes of shares are not looked for here: the list of texts grows. deniable " +
      "decode many --grow, for each of two periods, shows which texts were frequent then."],
  ];
  for (const [unwatched, expected] of rows) assert.equal(describeUnwatched({ name: "many", unwatched }), expected);
});

test("windows that are not joined are said to be left out, and why", () => {
  const coverage = { passed_over: { ab: 3, cd: 2 } };
  const present = { values: [], parts: [], parts_of_value: [], differs: [], failure: "", unread: 0 };
  const left = "5 windows of other parameters were left out; deniable rollup --former joins what their counts say.";
  const rows = [
    [undefined, [left]],
    [{ ...present, failure: "estimates cannot be read" }, [`${left} Not joined here: estimates cannot be read.`]],
    [{ ...present, unread: 5 }, [`${left} No estimate of them can be joined here: they have too few reports, leave values ` +
      "out, or are older than the topic keeps."]],
  ];
  for (const [joined, expected] of rows) assert.deepEqual(describeParts({ joined, independent: null, coverage }), expected);
  assert.deepEqual(describeParts({ joined: undefined, independent: null, coverage: { passed_over: {} } }), []);
  assert.match(describeParts({ joined: undefined, independent: null, coverage: { passed_over: { ab: 1 } } })[0],
    /^1 window of other parameters was left out; .* its counts say\.$/);
});

test("a pair of few reports has no verdict", () => {
  const said = (independence) => verdictOf(independence, "carrier and origin depend on each other");
  assert.equal(said({ degrees: 0, p_value: 1, rejected: false }),
    "Too few reports to test whether carrier and origin depend on each other.");
  assert.equal(said({ degrees: 1, p_value: 0.00205, rejected: true }),
    "carrier and origin depend on each other (p = 0.00205, at a false-alarm rate of 5 %).");
  assert.equal(said({ degrees: 1, p_value: 0.7, rejected: false }),
    "nothing shows that carrier and origin depend on each other (p = 0.7, at a false-alarm rate of 5 %).");
});
