// Privacy costs as text. Rule: never understate a cost, so every figure is rounded up. Pure.

import { formatCount, formatWhole } from "./format.js";

const UNITS = [[86_400, "day"], [3_600, "hour"], [60, "minute"], [1, "second"]];
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** The cost of one report, the cost of many from one client, and a client's limits; `limits` may be null. */
export function formatPrivacy({ epsilon, epsilon_permanent: permanent }, limits) {
  const report = `One report (ε = ${roundUp(epsilon, 4)}) cannot change anyone’s odds by more than a factor ` +
    `${formatOdds(epsilon)}.`;
  const further = permanent === null ? "Every further report of a client costs as much again."
    : `All reports of one client whose value stays the same (permanent ε = ${roundUp(permanent, 4)}): by no more ` +
      `than a factor ${formatOdds(permanent)}. That a value changed is not hidden.`;
  return [report, further, ...(limits === null ? [] : [formatLimits(limits)])].join(" ");
}

function formatLimits({ per_window, budget }) {
  const each = `${formatCount(per_window, "report")} a window`;
  if (budget === null) return `No budget: a client may send ${each}, without end.`;
  const { epsilon, delta, period_seconds, reports } = budget;
  const said = `Budget of a client: ε = ${roundUp(epsilon, 4)} at δ = ${delta.toExponential()} in ` +
    `${formatPeriod(period_seconds)}`;
  if (reports === null) return `${said}, which any number of reports of one value keeps; ${each}.`;
  if (reports === 0) return `${said}. One report costs more, so every report of a client is refused.`;
  return `${said}, which is ${formatCount(reports, "report")}; ${each}.`;
}

/** `1 day`, `90 seconds`: in the largest unit that divides it. */
function formatPeriod(seconds) {
  const [length, unit] = UNITS.find(([length]) => seconds % length === 0);
  return formatCount(seconds / length, unit);
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
