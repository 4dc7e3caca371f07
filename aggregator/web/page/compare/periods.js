// The two periods of a comparison: proposals, their fields, and their text in the page's address.

import { formatPeriod } from "../format.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const RECENT = "recent";
const OTHERS = "others";
/** Length of both periods, and how much earlier the first one is, seconds. */
const PRESETS = {
  "hour": { title: "The last hour, and the hour before", length: HOUR, earlier: HOUR },
  "hour-day": { title: "The last hour, and the same hour a day before", length: HOUR, earlier: DAY },
  "day": { title: "The last day, and the day before", length: DAY, earlier: DAY },
  "day-week": { title: "The last day, and the same day a week before", length: DAY, earlier: 7 * DAY },
  "week": { title: "The last week, and the week before", length: 7 * DAY, earlier: 7 * DAY },
};

/**
 * Fills the list with proposals of whole windows; returns their periods, lists of start and end, by name. `known`:
 * unix seconds from which to which windows are known; if they are fewer than all proposals need, their halves lead.
 */
export function fillPresets(select, windowSeconds, known) {
  const proposals = proposalsFor(windowSeconds, known);
  const chosen = select.value;
  select.replaceChildren(...proposals.map(([name, { title }]) => new Option(title, name)), new Option("Others", OTHERS));
  if (chosen === OTHERS || proposals.some(([name]) => name === chosen)) select.value = chosen;
  return new Map(proposals.map(([name, preset]) => [name, periodsOf(preset, known.end)]));
}

/** Name and preset of each proposal. Pure. */
export function proposalsFor(windowSeconds, known) {
  const fitting = Object.entries(PRESETS).filter(([, { length }]) => length >= windowSeconds);
  const recent = recentPreset(windowSeconds, known.end - known.start);
  const isShort = fitting.every(([, { length }]) => recent.length < length);
  return isShort ? [[RECENT, recent], ...fitting] : fitting;
}

/** Start and end of both periods of a preset, of which the second one ends at `end`. Pure. */
export function periodsOf({ length, earlier }, end) {
  return [[end - length - earlier, end - earlier], [end - length, end]];
}

/** Two halves of what is known, in whole windows and, from a minute on, in whole minutes if these are. */
function recentPreset(windowSeconds, known) {
  const half = windowSeconds * Math.max(1, Math.floor(known / 2 / windowSeconds));
  const minutes = half - half % MINUTE;
  const length = minutes > 0 && minutes % windowSeconds === 0 ? minutes : half;
  const period = formatPeriod(length).replace(/^1 /, "");
  return { title: `The last ${period}, and the ${period} before`, length, earlier: length };
}

/** Writes the periods into the fields, in local time. */
export function fillFields(form, periods) {
  fieldsOf(form).forEach((field, index) => { field.value = localText(periods.flat()[index]); });
}

/** The periods in the fields; null if one is not filled in. A local time that an hour's change repeats is the first. */
export function readFields(form) {
  const moments = fieldsOf(form).map(({ value }) => Math.round(new Date(value).getTime() / 1000));
  return moments.some(Number.isNaN) ? null : [moments.slice(0, 2), moments.slice(2)];
}

/** `START/END,START/END,RATE` in unix seconds, for the address and the worker. */
export function writePeriods(periods, rate) {
  return [...periods.map((period) => period.join("/")), rate].join(",");
}

/** The inverse; null if the text is none. */
export function parsePeriods(text) {
  const match = /^(\d{1,12})\/(\d{1,12}),(\d{1,12})\/(\d{1,12}),([0-9.e-]{1,20})$/.exec(text);
  if (match === null || !(Number(match[5]) > 0)) return null;
  const [a, b, c, d, rate] = match.slice(1).map(Number);
  return { periods: [[a, b], [c, d]], rate };
}

export function chooseOthers(form) {
  form.querySelector("select").value = OTHERS;
}

function fieldsOf(form) {
  return Array.from(form.querySelectorAll("input[type=datetime-local]"));
}

function localText(seconds) {
  const moment = new Date(1000 * seconds);
  const two = (number) => String(number).padStart(2, "0");
  const day = [String(moment.getFullYear()).padStart(4, "0"), two(moment.getMonth() + 1), two(moment.getDate())].join("-");
  return `${day}T${[moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(two).join(":")}`;
}
