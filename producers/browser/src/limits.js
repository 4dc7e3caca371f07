/**
 * What one client may report, by the rules of `producers/budget`: only numbers of reports decide.
 *
 * The name of a collection is its identity. When its parameters change, what was spent is carried over as epsilon
 * at delta = 0, and nothing is refunded.
 *
 * @typedef {[
 *   until: number, reports: number, lifetime: number, carried: number, carriedLifetime: number, closed: number,
 *   windows: Record<string, number>, terms: [fingerprint: string, period: number, perReport: number, inf: number],
 * ]} Balance what is stored of one collection: the end of the period in which `reports` are counted, unix seconds;
 *   reports in all periods; epsilon of reports under earlier parameters, in the period and in all; windows that
 *   start before `closed` are closed, since what was counted in them may be forgotten; reports by start of each
 *   open window
 */

import { floor, max, min } from "./short.js";

/**
 * Charge one report.
 *
 * @param {import("./collections.js").Collection} collection
 * @param {Balance | undefined} stored
 * @param {number} windowStart unix seconds @param {number} now unix seconds
 * @returns {Balance | string} the new balance; `stored` is used up; or why the report is refused, as in Python
 */
export const charge = (collection, stored, windowStart, now) => {
  /** Length of the only period without a budget: longer than any other. */
  const ENDLESS = 1e10;
  const LEVELS = 64;
  /** Above any error of the floats. */
  const ROUNDING = 1e-9;
  const { _id: fingerprint, _budget: budget, _window, _grace, _most, _mechanism: [, , , , , , , perReport, inf] } = collection;
  const period = budget ? budget.period_seconds : ENDLESS;
  /** @type {Balance[7]} */
  const terms = [fingerprint, period, perReport, inf];
  let [until, reports, lifetime, carried, carriedLifetime, closed, windows, old] = stored ?? [0, 0, 0, 0, 0, 0, {}, terms];
  // As of the last report that was accepted, so no window is counted from 0 again: the proof is in charging.py.
  closed = max(closed, floor(now) - _window - _grace);
  if (windowStart < closed) return "too_late";
  // The present period began before the counted one, so what was spent in it is unknown, but not above this.
  if (old[1] < period) {
    reports = lifetime;
    carried = carriedLifetime;
  }
  if (old[0] !== fingerprint) {
    carried += min(reports * old[2], old[3]);
    carriedLifetime += min(lifetime * old[2], old[3]);
    reports = lifetime = 0;
  }
  // An endless period began at 0, before every end of another, so it never begins anew.
  const start = floor(now / period) * period;
  if (until <= start) reports = carried = 0;
  until = max(until, budget ? start + period : floor(now) + 1);
  if (budget) {
    const level = carried && -floor((-carried / budget.epsilon) * LEVELS - ROUNDING);
    const left = floor((budget.epsilon * (1 - level / LEVELS)) / perReport);
    if (reports >= (level ? left : budget.reports ?? Infinity)) return "over_budget";
  }
  const before = windows[windowStart] ?? 0;
  if (before >= _most) return "over_window";
  for (const each in windows) if (+each < closed) delete windows[each];
  windows[windowStart] = before + 1;
  return [until, reports + 1, lifetime + 1, carried, carriedLifetime, closed, windows, terms];
};
