// Rows of a table: searched, sorted, and as CSV; and what the page's address says of them.

import assert from "node:assert/strict";
import test from "node:test";

import "./node_18.mjs";
import { readLink, writeLink } from "../../../../aggregator/web/page/choice/link.js";
import { csvOf, iso, stamp } from "../../../../aggregator/web/page/rows/csv.js";
import { findRows, fold } from "../../../../aggregator/web/page/rows/search.js";
import { sortRows } from "../../../../aggregator/web/page/rows/sorting.js";

test("a search ignores case, accents and width", () => {
  const rows = ["Écluse", "ecluse 2", "value 1", "ＥＣＬＵＳＥ"].map((value) => ({ value }));
  const found = findRows({ wanted: fold("ECLUSE") }, rows).map(({ value }) => value);
  assert.deepEqual(found, ["Écluse", "ecluse 2", "ＥＣＬＵＳＥ"]);
  assert.deepEqual(findRows({ wanted: fold("absent") }, rows), []);
  assert.equal(findRows({ wanted: "" }, rows), rows);
});

test("rows are sorted both ways, numbers in texts by size", () => {
  const rows = ["10", "9", "b", "a"].map((value, place) => ({ value, frequency: 0.5 / (place + 1), low: place }));
  const sorted = (key) => sortRows({ key }, rows).map(({ value }) => value).join(" ");
  assert.deepEqual(["", "value", "-value", "-frequency", "frequency", "low"].map(sorted),
    ["10 9 b a", "9 10 a b", "b a 10 9", "10 9 b a", "a b 9 10", "10 9 b a"]);
});

test("no text in a file is a formula, and numbers are unchanged", () => {
  const formulas = ["=1+1", "+A1", "-2+3", "@SUM(A1)", "\tx", "\rx", "＝1"];
  const others = ["-10", "+3.5e2", 'quo"te, comma', "Écluse", ""];
  const lines = csvOf(["value"], [...formulas, ...others].map((value) => [value])).split("\r\n");
  const unchanged = ['"-10"', '"+3.5e2"', '"quo""te, comma"', '"Écluse"', '""'];
  assert.deepEqual(lines, ['"value"', ...formulas.map((text) => `"'${text}"`), ...unchanged, ""]);
  assert.equal(csvOf(["a", "b", "c"], [[0.1, null, true]]), '"a","b","c"\r\n0.1,,true\r\n');
});

test("times in files are of ISO 8601", () => {
  assert.deepEqual([iso(1_767_225_600), stamp(1_767_225_600)], ["2026-01-01T00:00:00Z", "2026-01-01T000000Z"]);
});

test("an address is read as it was written", () => {
  const fields = new Map([["a.compare", "1/2,2/3,0.05"], ["a.search", "x & y=z#"], ["b.window", "10"]]);
  const link = writeLink({ collections: ["a", "b"], fields }, ["a", "b"]);
  assert.equal(link, "#collections=a,b&a.compare=1/2,2/3,0.05&a.search=x+%26+y%3Dz%23&b.window=10");
  assert.deepEqual(readLink(link), { collections: ["a", "b"], fields });
  assert.equal(writeLink({ collections: null, fields }, ["b"]), "#b.window=10");
  assert.equal(writeLink({ collections: null, fields: new Map() }, []), "");
});

test("an address of nothing says nothing", () => {
  const rows = [
    ["", null], ["#", null], ["#x.y=1&.search=a&A.search=b&x.search=", null], ["#collections=", []],
    ["#collections=a,a,B,../c", ["a"]],
  ];
  for (const [hash, collections] of rows) assert.deepEqual(readLink(hash), { collections, fields: new Map() }, hash);
});
