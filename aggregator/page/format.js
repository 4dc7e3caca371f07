// Numbers, times and privacy costs in words. Pure: nothing here knows the page.

export const NORMAL_95 = 1.959964;

const wholeNumber = new Intl.NumberFormat("en");
const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const timeOfDay = new Intl.DateTimeFormat("en", clock);
const dayAndTime = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", ...clock });
const withZone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

export function formatWhole(number) {
  return wholeNumber.format(number);
}

export function formatPacks(packs) {
  return `${formatWhole(packs)} ${packs === 1 ? "pack" : "packs"}`;
}

/** Unix seconds as local time with its zone; with the day unless that is today. */
export function formatMoment(seconds) {
  return `${formatterFor(seconds).format(1000 * seconds)} ${zoneAt(seconds)}`;
}

/** From and to, unix seconds, as local time with its zone; with the day unless both are today. */
export function formatWindow(start, end) {
  return `${formatterFor(start, end).formatRange(1000 * start, 1000 * end)} ${zoneAt(end)}`;
}

function zoneAt(seconds) {
  return withZone.formatToParts(1000 * seconds).find(({ type }) => type === "timeZoneName").value;
}

function formatterFor(...moments) {
  const today = new Date().toDateString();
  const isToday = (seconds) => new Date(1000 * seconds).toDateString() === today;
  return moments.every(isToday) ? timeOfDay : dayAndTime;
}

/** `malformed 3, unknown collection 7` */
export function formatReasons(packsByReason) {
  const parts = Object.entries(packsByReason).sort();
  return parts.map(([reason, packs]) => `${reason.replaceAll("_", " ")} ${formatWhole(packs)}`).join(", ");
}

/** What one report costs, and what many of one client do; `epsilonPermanent` is null where each costs anew. */
export function formatPrivacy(epsilon, epsilonPermanent) {
  const report = `One report (ε = ${roundUp(epsilon, 4)}) cannot change anyone’s odds by more than a factor ` +
    `${oddsFactor(epsilon)}. `;
  if (epsilonPermanent === null) return `${report}Every further report of a client costs as much again.`;
  return `${report}All reports of one client whose value stays the same (permanent ε = ` +
    `${roundUp(epsilonPermanent, 4)}): by no more than a factor ${oddsFactor(epsilonPermanent)}. ` +
    "That a value changed is not hidden.";
}

function oddsFactor(epsilon) {
  return roundUp(Math.exp(epsilon), epsilon < Math.log(100) ? 1 : 0);
}

/** A privacy cost is never understated. A relative 1e-9 is float noise, not cost. */
function roundUp(cost, digits) {
  const rounded = Math.ceil(cost * (1 - 1e-9) * 10 ** digits) / 10 ** digits;
  return rounded.toLocaleString("en", { maximumFractionDigits: digits });
}

/**
 * Both ends of an interval, in percent. Intervals are clipped to [0, 1]: of one that noise took wholly out of
 * it nothing is left, and two equal ends would look like certainty.
 */
export function formatInterval({ low, high }, digits) {
  if (high <= 0) return "below 0";
  if (low >= 1) return "above 100";
  return `${formatPercent(low, digits)} – ${formatPercent(high, digits)}`;
}

export function formatPercent(fraction, digits) {
  return (100 * fraction).toFixed(digits);
}

/** Decimals of a percentage, 1 to 6, at which the narrowest interval still shows a digit. */
export function percentDigits(entries) {
  const errors = entries.map(({ standardError }) => standardError).filter((error) => error !== null);
  const narrowest = 100 * NORMAL_95 * Math.min(...errors);
  return Math.min(6, Math.max(1, Math.ceil(-Math.log10(narrowest))));
}
