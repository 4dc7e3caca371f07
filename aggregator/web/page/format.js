// Numbers and times as text. Pure.

const NORMAL_95 = 1.959964;
const UNITS = [[86_400, "day"], [3_600, "hour"], [60, "minute"], [1, "second"]];

const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const timeOfDay = new Intl.DateTimeFormat("en", clock);
const dayAndTime = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", ...clock });
const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const hourAndMinute = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const withZone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

/** With commas, and with decimals only if asked for. */
export function formatWhole(number, leastDigits = 0, mostDigits = leastDigits) {
  return number.toLocaleString("en", { minimumFractionDigits: leastDigits, maximumFractionDigits: mostDigits });
}

/** `1 report`, `2,000 reports` */
export function formatCount(number, unit) {
  return `${formatWhole(number)} ${unit}${number === 1 ? "" : "s"}`;
}

/** `1 day`, `90 seconds`: in the largest unit that divides it. */
export function formatPeriod(seconds) {
  const [length, unit] = UNITS.find(([length]) => seconds % length === 0);
  return formatCount(seconds / length, unit);
}

/** `5 %`, whose sign no line break parts from the number. */
export function withSign(percent) {
  return `${percent}\u00a0%`;
}

/** Names that a message has in backticks, in quotation marks. */
export function quoted(text) {
  return text.replaceAll(/`([^`]*)`/g, "“$1”");
}

export function formatPacks(packs) {
  return formatCount(packs, "pack");
}

/** Unix seconds as local time with its zone, and with the day unless it is today. */
export function formatMoment(seconds) {
  return `${formatterFor(seconds).format(1000 * seconds)} ${zoneAt(seconds)}`;
}

/** Unix seconds as a short local time, or as the day alone at midnight. */
export function formatClock(seconds) {
  const moment = new Date(1000 * seconds);
  return moment.getHours() + moment.getMinutes() + moment.getSeconds() === 0 ? day.format(moment)
    : (moment.getSeconds() === 0 ? hourAndMinute : timeOfDay).format(moment);
}

/** A range in unix seconds as local time with its zone, and with the day unless both are today. */
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

/** Both ends of an interval, in percent; ends that would look the same, as if there were certainty, are one. */
export function formatInterval({ low, high }, digits) {
  const [from, to] = [formatPercent(low, digits), formatPercent(high, digits)];
  if (from !== to) return `${from} – ${to}`;
  const step = 10 ** -digits;
  return low < 0.5 ? `below ${(Number(to) + step).toFixed(digits)}` : `above ${(Number(from) - step).toFixed(digits)}`;
}

/** A number in four digits: its units are not known here. */
export function formatFigure(number) {
  return number.toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** `p = 0.00865`; below 1e-6 only that it is: more digits tell people nothing. */
export function formatPValue(pValue) {
  return pValue < 1e-6 ? "p < 1e-6" : `p = ${Number(pValue.toPrecision(3))}`;
}

export function formatPercent(fraction, digits) {
  return (100 * fraction).toFixed(digits);
}

/** Decimals of a percentage, 1 to 6, with which the narrowest interval still shows a digit. */
export function percentDigits(entries) {
  const errors = entries.map(({ standardError }) => standardError).filter((error) => error !== null);
  const narrowest = 100 * NORMAL_95 * Math.min(...errors);
  return Math.min(6, Math.max(1, Math.ceil(-Math.log10(narrowest))));
}
