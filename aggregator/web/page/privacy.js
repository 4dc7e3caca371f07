// Privacy costs as text. Rule: never understate a cost, so every figure is rounded up. Pure.

import { formatCount, formatPeriod, formatWhole } from "./format.js";

const HASHING = "local-hash-longitudinal"; // changes of value show as changes of a hash bucket
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The cost of one report, the cost of many from one client, and a client's limits; `limits` may be null. */
export function formatPrivacy({ mechanism, epsilon, epsilon_permanent: permanent }, limits) {
  const report = `One report (ε = ${roundUp(epsilon, 4)}) cannot change anyone’s odds by more than a factor ` +
    `${formatOdds(epsilon)}.`;
  const further = permanent === null ? "Every further report of a client costs as much again, whatever its values."
    : formatPermanent(mechanism, permanent, limits);
  return [report, further, ...(limits === null ? [] : [formatLimits(limits, mechanism, permanent !== null)])].join(" ");
}

function formatPermanent(mechanism, permanent, limits) {
  const isOne = limits?.budget?.changes === 0; // only one bucket is ever shown
  const costs = `(permanent ε = ${roundUp(permanent, 4)}): by no more than a factor ${formatOdds(permanent)}`;
  if (isOne) return `All reports of one client but for browsers, whatever its values ${costs}.`;
  const free = limits?.epsilon_any ?? null;
  const all = free === null ? "" : `, up to ε = ${roundUp(free, 4)} in all`;
  return `All reports of one client whose value stays the same ${costs}. Each further value costs as much again` +
    `${all}${formatKnown(mechanism)}. That a value changed is not hidden.`;
}

function formatKnown(mechanism) {
  return `, if it is known when ${mechanism === HASHING ? "hash buckets" : "values"} change`;
}

function formatLimits({ per_window, budget }, mechanism, isMemoized) {
  const each = `${formatCount(per_window, "report")} a window`;
  if (budget === null) return `No budget: a client may send ${each}, without end.`;
  const { epsilon, delta, period_seconds, reports, changes } = budget;
  const said = `Budget of a client: ε = ${roundUp(epsilon, 4)} at δ = ${delta.toExponential()} in ` +
    `${formatPeriod(period_seconds)}`;
  if (reports === 0) return `${said}. One report costs more, so every report of a client is refused.`;
  const allowed = reports === null ? "any number of reports keeps" : `is ${formatCount(reports, "report")}`;
  const held = isMemoized ? formatHeld(mechanism, budget) : "";
  return `${said}, which ${allowed}${held}; ${each}.${formatChanges(changes)}`;
}

/**
 * Rule: what holds whatever the values do needs that it is known when they change: for ever, unless none is shown; of a
 * number of reports, only with RAPPOR.
 */
function formatHeld(mechanism, { reports, changes, values }) {
  if (values === "unchanged") return " while its value stays the same";
  const isNeeded = (reports === null && changes !== 0) || (mechanism.startsWith("rappor") && reports !== 1);
  return `, whatever the values${isNeeded ? formatKnown(mechanism) : ""}`;
}

/** `changes`: of a client's hash bucket that a budget lets its reports show; null for any number. */
function formatChanges(changes) {
  if (changes === null) return "";
  const shown = changes === 0 ? "A client always reports its first hash bucket"
    : `A client shows at most ${formatCount(changes, "change")} of hash bucket in all, then goes on reporting the last one`;
  return ` ${shown}: no interval includes that error. Browsers do not limit changes: ` +
    "they may send fewer reports, and for ever each hash bucket that they show costs as much again.";
}

/** The factor by which odds change at most: 3.0, 2,402, 3.6 · 10⁹. */
export function formatOdds(epsilon) {
  const factor = Math.exp(epsilon) * (1 + 4 * Number.EPSILON); // not below what Math.exp may have rounded off
  if (factor < 100) return roundUp(factor, 1, 1);
  if (factor < 1e6) return roundUp(factor, 0);
  const exponent = Math.floor(Math.log10(factor));
  const superscript = Array.from(String(exponent), (digit) => SUPERSCRIPTS[digit]).join("");
  return `${roundUp(factor / 10 ** exponent, 1, 1)} · 10${superscript}`;
}

/** The smallest number of so many digits that, read again, is not below the cost. */
export function roundUp(cost, mostDigits, leastDigits = 0) {
  const scale = 10 ** mostDigits;
  let steps = Math.ceil(cost * scale);
  while (steps / scale < cost) steps += 1;
  while ((steps - 1) / scale >= cost) steps -= 1;
  return formatWhole(steps / scale, leastDigits, mostDigits);
}
