/**
 * What one client may report, by the rules of `producers/budget`: only numbers of reports decide.
 *
 * The name of a collection is its identity. When its parameters change, what was spent is carried over as epsilon
 * at delta = 0, whatever the values did meanwhile, and nothing is refunded.
 *
 * @typedef {[
 *   until: number, reports: number, lifetime: number, carried: number, carriedLifetime: number, closed: number,
 *   windows: Record<string, number>, terms: [id: string, period: number, perReport: number, lifetime: number],
 * ]} Balance what is stored of one collection: the end of the period in which `reports` are counted, unix seconds;
 *   reports in all periods; epsilon of reports under earlier parameters, in the period and in all; windows that
 *   start before `closed` are closed, since what was counted in them may be forgotten; reports by start of each
 *   open window
 */

import { check } from "./errors.js";
import { floor, max, min } from "./short.js";

/** Seconds of the only period without a budget, or of one for ever. */
export const ENDLESS = 1e10;

/**
 * What the application allows altogether, `maxBudget` of docs/browser.md: kept at delta = 0, whatever values do.
 *
 * @param {string} name @param {import("./collections.js").Collection} collection @param {any} allowed epsilon, for ever,
 *   or an object of `epsilon` and `periodSeconds`
 * @returns {import("./collections.js").Budget}
 * @throws {DeniableError} if the list allows more
 */
export const allowedOf = (name, { _budget, _within }, allowed) => {
  const epsilon = min(allowed?.epsilon ?? allowed, 1e9), period = +(allowed?.periodSeconds ?? ENDLESS), reports = epsilon > 0 && _within(epsilon);
  const isEnough = reports === Infinity || (_budget[2] <= +reports && _budget[1] >= period);
  /** @param {unknown} reports @param {number} seconds */
  const many = (reports, seconds) => `${reports} reports ${seconds < ENDLESS ? `in ${seconds} s` : "for ever"}`;
  const figures = `${many(_budget[2], _budget[1])}; got ${epsilon}, ${many(+reports, period)}`;
  check(period > 0 && isEnough, "budget", `maxBudget of ${name} must be a number, or { epsilon, periodSeconds }, at least what the list allows: ${figures}`);
  return [epsilon, period, +reports];
};

/**
 * Charge one report.
 *
 * @param {import("./collections.js").Collection} collection
 * @param {import("./collections.js").Budget} budget
 * @param {Balance | undefined} stored
 * @param {number} windowStart unix seconds @param {number} now unix seconds
 * @returns {Balance | string} the new balance; or why the report is refused, as in Python
 */
export const charge = ({ _id, _window, _grace, _most, _perReport, _lifetime }, [epsilon, period, limit], stored, windowStart, now) => {
  const LEVELS = 64;
  /** Above any error of the floats. */
  const ROUNDING = 1e-9;
  /** @type {Balance[7]} */
  const terms = [_id, period, _perReport, _lifetime];
  let [until, reports, lifetime, carried, carriedLifetime, closed, windows, old] = stored ?? [0, 0, 0, 0, 0, 0, {}, terms];
  // As of the last report that was accepted, so no window is counted from 0 again: the proof is in charging.py.
  closed = max(closed, floor(now) - _window - _grace);
  if (windowStart < closed) return "too_late";
  // The present period began before the counted one, so what was spent in it is unknown, but not above this.
  if (old[1] < period) {
    reports = lifetime;
    carried = carriedLifetime;
  }
  if (old[0] !== _id) {
    carried += min(reports * old[2], old[3]);
    carriedLifetime += min(lifetime * old[2], old[3]);
    reports = lifetime = 0;
  }
  // An endless period began at 0, before every end of another, so it never begins anew.
  const start = floor(now / period) * period;
  if (until <= start) reports = carried = 0;
  until = max(until, period < ENDLESS ? start + period : floor(now) + 1);
  const level = carried && -floor((-carried / epsilon) * LEVELS - ROUNDING);
  if (reports >= (level ? floor((epsilon * (1 - level / LEVELS)) / _perReport) : limit)) return "over_budget";
  const before = windows[windowStart] ?? 0;
  if (before >= _most) return "over_window";
  windows = { ...windows, [windowStart]: before + 1 };
  for (const each in windows) if (+each < closed) delete windows[each];
  return [until, reports + 1, lifetime + 1, carried, carriedLifetime, closed, windows, terms];
};
