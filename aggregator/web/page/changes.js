// Changes of shares that were found lately, as sentences in a collection's section.

import { setText } from "./dom.js";
import { formatMoment, formatPercent } from "./format.js";

const LEAST_DIGITS = 1;

/** One line for each change, the newest first; no list while no share changed. */
export function drawChanges(list, { a_year: aYear, changes }) {
  const texts = changes.toReversed().map(describeChange);
  if (texts.length > 0) texts.push(`While no share changes, there are at most ${aYear} such alarms a year.`);
  list.hidden = texts.length === 0;
  while (list.children.length > texts.length) list.lastElementChild.remove();
  texts.forEach((text, index) => {
    if (list.children.length === index) list.append(document.createElement("li"));
    setText(list.children[index], text);
  });
}

function describeChange({ value, since, before, after, change, low, high }) {
  const digits = Math.min(4, Math.max(LEAST_DIGITS, Math.ceil(-Math.log10(50 * (high - low)))));
  const [from, to] = [formatPercent(Math.max(0, before), digits), formatPercent(Math.max(0, after), digits)];
  const [size, least, most] = [change, low, high].map((part) => formatSigned(part, digits));
  return `The share of ${value} changed from ${from} % to ${to} % since ${formatMoment(since)}: ` +
    `by ${size} percentage points (95 % interval ${least} to ${most}).`;
}

function formatSigned(fraction, digits) {
  return `${fraction > 0 ? "+" : ""}${formatPercent(fraction, digits)}`.replace("-", "−");
}
