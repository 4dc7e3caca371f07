// Privacy costs as text. Rule: never understate a cost, so every figure is rounded up. Pure.

import { formatCount, formatPeriod, formatWhole } from "./format.js";

const CHANGING = "local-hash-longitudinal"; // its budgets hold for values that change
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The cost of one report, the cost of many from one client, and a client's limits; `limits` may be null. */
export function formatPrivacy({ mechanism, epsilon, epsilon_permanent: permanent }, limits) {
  const report = `One report (ε = ${roundUp(epsilon, 4)}) cannot change anyone’s odds by more than a factor ` +
    `${formatOdds(epsilon)}.`;
  const isOne = limits?.budget?.changes === 0; // only one bucket is ever shown
  const further = permanent === null ? "Every further report of a client costs as much again."
    : `All reports of one client${isOne ? "" : " whose value stays the same"} (permanent ε = ` +
      `${roundUp(permanent, 4)}): by no more than a factor ${formatOdds(permanent)}.` +
      `${isOne ? "" : " That a value changed is not hidden."}`;
  return [report, further, ...(limits === null ? [] : [formatLimits(limits, mechanism)])].join(" ");
}

function formatLimits({ per_window, budget }, mechanism) {
  const each = `${formatCount(per_window, "report")} a window`;
  if (budget === null) return `No budget: a client may send ${each}, without end.`;
  const { epsilon, delta, period_seconds, reports, changes } = budget;
  const said = `Budget of a client: ε = ${roundUp(epsilon, 4)} at δ = ${delta.toExponential()} in ` +
    `${formatPeriod(period_seconds)}`;
  if (reports === 0) return `${said}. One report costs more, so every report of a client is refused.`;
  const allowed = reports === null ? formatUnlimited(mechanism, changes) : `is ${formatCount(reports, "report")}`;
  return `${said}, which ${allowed}; ${each}.${formatChanges(changes)}`;
}

/** Rule: of values that change, a bound for ever holds only if the changes themselves are known, or none is shown. */
function formatUnlimited(mechanism, changes) {
  if (mechanism !== CHANGING) return "any number of reports of one value keeps";
  return `any number of reports keeps, whatever the values${changes === 0 ? "" : ", if it is known when hash buckets change"}`;
}

/** `changes`: of a client's hash bucket that a budget lets its reports show; null for any number. */
function formatChanges(changes) {
  if (changes === null) return "";
  const shown = changes === 0 ? "A client always reports its first hash bucket"
    : `A client shows at most ${formatCount(changes, "change")} of hash bucket in all, then goes on reporting the last one`;
  return ` ${shown}: no interval includes that error. Browsers do not limit changes: they may send fewer reports.`;
}

/** The factor by which odds change at most: 3.0, 2,402, 3.6 · 10⁹. */
export function formatOdds(epsilon) {
  const factor = Math.exp(epsilon);
  if (factor < 100) return roundUp(factor, 1, 1);
  if (factor < 1e6) return roundUp(factor, 0);
  const exponent = Math.floor(Math.log10(factor));
  const superscript = Array.from(String(exponent), (digit) => SUPERSCRIPTS[digit]).join("");
  return `${roundUp(factor / 10 ** exponent, 1, 1)} · 10${superscript}`;
}

/** A relative 1e-9 is float noise, not cost. */
export function roundUp(cost, mostDigits, leastDigits = 0) {
  const rounded = Math.ceil(cost * (1 - 1e-9) * 10 ** mostDigits) / 10 ** mostDigits;
  return formatWhole(rounded, leastDigits, mostDigits);
}
