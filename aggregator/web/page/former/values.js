// Values that the newest estimate does not list, but windows under other parameters or another list do. Pure.

import { findRows } from "../rows/search.js";

const MOST = 3;
const OFTEN = 0.25; // by noise alone, an interval is above 0 in one of 20 windows or fewer

/**
 * Names of those whose interval is above 0 in a quarter of their windows or more, the largest share first.
 * `windows`: points of the history; `newest`: an estimate; `search`: of its table, which these names must fit, too.
 */
export function formerValues(windows, newest, search) {
  if (newest.omitted > 0) return [];
  const listed = new Set(newest.values);
  const found = new Map();
  for (const { values, frequency, low } of windows) {
    values.forEach((value, place) => {
      if (listed.has(value)) return;
      const { sum = 0, count = 0, above = 0 } = found.get(value) ?? {};
      found.set(value, { value, sum: sum + frequency[place], count: count + 1, above: above + (low[place] > 0 ? 1 : 0) });
    });
  }
  const there = findRows(search, [...found.values()].filter(({ above, count }) => above >= OFTEN * count));
  return there.sort((a, b) => b.sum / b.count - a.sum / a.count).slice(0, MOST).map(({ value }) => value);
}
