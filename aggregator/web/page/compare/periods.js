// The two periods of a comparison: proposals, their fields, and their text in the page's address.

const HOUR = 3_600;
const DAY = 24 * HOUR;
const OTHERS = "others";
/** Length of both periods, and how much earlier the first one is, seconds. */
const PRESETS = {
  "hour": { title: "The last hour, and the hour before", length: HOUR, earlier: HOUR },
  "hour-day": { title: "The last hour, and the same hour a day before", length: HOUR, earlier: DAY },
  "day": { title: "The last day, and the day before", length: DAY, earlier: DAY },
  "day-week": { title: "The last day, and the same day a week before", length: DAY, earlier: 7 * DAY },
  "week": { title: "The last week, and the week before", length: 7 * DAY, earlier: 7 * DAY },
};

/** Fills the list of proposals with those that hold whole windows. */
export function fillPresets(select, windowSeconds) {
  const fitting = Object.entries(PRESETS).filter(([, { length }]) => length >= windowSeconds);
  const options = [...fitting.map(([value, { title }]) => [value, title]), [OTHERS, "Others"]];
  if (select.options.length === options.length) return;
  select.replaceChildren(...options.map(([value, title]) => new Option(title, value)));
}

/** Periods of a proposal up to `end`, unix seconds, as lists of start and end; null for others. */
export function presetPeriods(name, end) {
  if (!(name in PRESETS)) return null;
  const { length, earlier } = PRESETS[name];
  return [[end - length - earlier, end - earlier], [end - length, end]];
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
