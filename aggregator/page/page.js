// The live page: fetches the newest estimate of every collection and draws it as bars with 95 % intervals.
// Rule 1: nothing received becomes markup; text goes through textContent, lengths through style properties.
// Rule 2: noise moves no layout: rows trade places, and axes change, only for what noise does not explain.

const POLL_MILLISECONDS = 2_000;
const COLLECTIONS_MILLISECONDS = 30_000;
const TIMEOUT_MILLISECONDS = 5_000;
const LEADING_VALUES = 20;
const NORMAL_95 = 1.959964;

const wholeNumber = new Intl.NumberFormat("en");
const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const timeOfDay = new Intl.DateTimeFormat("en", clock);
const dayAndTime = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", ...clock });

const views = new Map();
let collectionsFetched = -Infinity;

/** JSON of one address; null when there is nothing (yet); throws when the worker does not answer. */
async function fetchJson(address) {
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  const response = await fetch(address, { cache: "no-store", signal });
  if (response.status === 204 || response.status === 404) return null;
  if (!response.ok) throw new Error(`${address}: status ${response.status}`);
  return response.json();
}

/** The collections when due, else null; the newest estimate of each, as [name, estimate or null]. */
async function fetchRound() {
  const due = performance.now() - collectionsFetched > COLLECTIONS_MILLISECONDS;
  const collections = due ? await fetchJson("api/collections") : null;
  const names = collections?.map(({ name }) => name) ?? [...views.keys()];
  const fetchEstimate = async (name) => [name, await fetchJson(`api/estimates/${encodeURIComponent(name)}`)];
  return { collections, estimates: await Promise.all(names.map(fetchEstimate)) };
}

async function poll() {
  try {
    const round = await fetchRound().catch(() => null);
    if (round === null) return showUnreachable();
    if (round.collections !== null) placeCollections(round.collections);
    const estimates = round.estimates.filter(([, estimate]) => estimate !== null);
    for (const [name, estimate] of estimates) drawEstimate(views.get(name), estimate);
    if (estimates.length > 0) showStatus("live", "Live");
    else showStatus("waiting", "Waiting for the first estimate");
  } finally {
    setTimeout(poll, POLL_MILLISECONDS);
  }
}

/** A worker that comes back may have another collection file: the collections are due at once. */
function showUnreachable() {
  collectionsFetched = -Infinity;
  showStatus("unreachable", "Worker unreachable, retrying");
}

/** Assigns the text only when it changes, since screen readers speak a live region at each assignment. */
function showStatus(state, text) {
  const status = document.getElementById("status");
  status.dataset.state = state;
  if (status.textContent !== text) status.textContent = text;
}

/** One section per collection, in the worker's order; those of collections that are gone disappear. */
function placeCollections(collections) {
  collectionsFetched = performance.now();
  const former = new Map(views);
  views.clear();
  for (const collection of collections) {
    const view = former.get(collection.name) ?? createView();
    views.set(collection.name, view);
    describeCollection(view.section, collection);
  }
  placeChildren(document.getElementById("collections"), Array.from(views.values(), ({ section }) => section));
}

/** Makes `children` the only children of `parent`, in this order; those in their place are not touched. */
function placeChildren(parent, children) {
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
}

/** What is remembered of a collection between estimates; `leading` and `longestValue` never shrink. */
function createView() {
  const section = cloneTemplate("collection-template");
  const remembered = { estimate: null, order: [], leading: 0, longestValue: 0, axisEnd: 0 };
  const view = { section, expanded: false, ...remembered };
  const button = section.querySelector("button");
  button.addEventListener("click", () => {
    view.expanded = !view.expanded;
    drawTable(view);
    if (!view.expanded) button.scrollIntoView({ block: "nearest" });
  });
  return view;
}

function cloneTemplate(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

function describeCollection(section, collection) {
  const { name, mechanism, values, minimum_reports, epsilon, epsilon_permanent } = collection;
  const [count, minimum] = [values, minimum_reports].map(wholeNumber.format);
  const report = `One report cannot change anyone’s odds by more than a factor ${oddsFactor(epsilon)}.`;
  const allReports = epsilon_permanent === null ? ""
    : ` All reports of one client about one value: at most a factor ${oddsFactor(epsilon_permanent)}.`;
  setTexts(section, {
    "h2": name,
    ".mechanism": `${mechanism}, ${count} values`,
    ".privacy": report + allReports,
    ".waiting": `Waiting for the first estimate: a window is published once it has ${minimum} reports.`,
  });
  section.setAttribute("aria-label", name);
}

function setTexts(parent, texts) {
  for (const [selector, text] of Object.entries(texts)) parent.querySelector(selector).textContent = text;
}

/** e^epsilon, rounded up: a privacy cost is never understated. A relative 1e-9 is float noise, not cost. */
function oddsFactor(epsilon) {
  const digits = epsilon < Math.log(100) ? 1 : 0;
  const factor = Math.ceil(Math.exp(epsilon) * (1 - 1e-9) * 10 ** digits) / 10 ** digits;
  return factor.toLocaleString("en", { minimumFractionDigits: digits });
}

function drawEstimate(view, estimate) {
  const isSame = (field) => view.estimate?.[field] === estimate[field];
  if (["fingerprint", "window_start", "revision", "final"].every(isSame)) return;
  view.estimate = estimate;
  view.order = rankValues(readEntries(estimate), view.order);
  drawHeadline(view.section, estimate);
  drawTable(view);
}

function drawHeadline(section, { reports, rejected, final, window_start, window_end }) {
  setTexts(section, {
    ".reports": wholeNumber.format(reports),
    ".window": formatWindow(new Date(1000 * window_start), new Date(1000 * window_end)),
    ".rejected": `${wholeNumber.format(rejected)} packs`,
    ".badge": final ? "final" : "provisional",
  });
  section.querySelector(".badge").classList.toggle("final", final);
  section.querySelector(".badge").hidden = false;
  section.querySelector(".waiting").hidden = true;
  section.querySelector(".estimate").hidden = false;
}

/** From and to in local time; with the day unless both are today. */
function formatWindow(start, end) {
  const isToday = (moment) => moment.toDateString() === new Date().toDateString();
  return (isToday(start) && isToday(end) ? timeOfDay : dayAndTime).formatRange(start, end);
}

/** The parallel columns of an estimate as one entry per value. */
function readEntries({ values, frequency, std_error, low, high, significant }) {
  return values.map((value, index) => ({
    value, frequency: frequency[index], standardError: std_error[index],
    low: low[index], high: high[index], significant: significant[index],
  }));
}

/** What no listed value explains, as an entry of its own; none when the estimate has no such figure. */
function readOther({ other }) {
  if (other === null) return [];
  const { frequency, std_error } = other;
  const low = Math.max(0, frequency - NORMAL_95 * std_error);
  const high = Math.min(1, frequency + NORMAL_95 * std_error);
  return [{ value: "any other value", frequency, standardError: std_error, low, high, significant: low > 0 }];
}

/** By falling frequency, but an entry passes its former better only by more than half its standard error. */
function rankValues(entries, formerOrder) {
  const formerRank = new Map(formerOrder.map(({ value }, rank) => [value, rank]));
  const rankOf = ({ value }) => formerRank.get(value) ?? entries.length;
  const order = entries.toSorted((a, b) => rankOf(a) - rankOf(b) || b.frequency - a.frequency);
  order.forEach((entry, start) => {
    const threshold = entry.frequency - 0.5 * entry.standardError;
    let rank = start;
    for (; rank > 0 && order[rank - 1].frequency < threshold; rank -= 1) order[rank] = order[rank - 1];
    order[rank] = entry;
  });
  return order;
}

function drawTable(view) {
  const { section, order } = view;
  const significant = order.filter((entry) => entry.significant);
  const ranked = [...significant, ...order.filter((entry) => !entry.significant)];
  view.leading = Math.min(LEADING_VALUES, Math.max(view.leading, significant.length));
  const shown = view.expanded ? ranked : ranked.slice(0, view.leading);
  const other = readOther(view.estimate);
  fitColumns(view, shown, [...order, ...other]);
  const digits = percentDigits([...order, ...other]);
  drawRows(section.querySelector("tbody"), shown, view.axisEnd, digits);
  drawRows(section.querySelector("tfoot"), other, view.axisEnd, digits);
  const [part, whole] = [significant.length, order.length].map(wholeNumber.format);
  setTexts(section, { "caption": `${part} of ${whole} values are significantly above zero.` });
  drawButton(section.querySelector("button"), view.expanded, order.length - view.leading);
}

function drawButton(button, expanded, moreValues) {
  button.textContent = expanded ? "Show fewer" : `Show ${wholeNumber.format(moreValues)} more`;
  button.setAttribute("aria-expanded", expanded);
  button.hidden = moreValues === 0;
}

/** Widens the values for the longest one shown; changes an axis that overflows or is 40 % empty. */
function fitColumns(view, shown, entries) {
  const table = view.section.querySelector("table");
  view.longestValue = Math.max(view.longestValue, ...shown.map(({ value }) => value.length));
  table.style.setProperty("--longest-value", view.longestValue);
  const highest = Math.max(1e-6, ...entries.map(({ high }) => high));
  if (highest > view.axisEnd || highest < 0.6 * view.axisEnd) view.axisEnd = drawAxis(table, highest);
}

/** Draws ticks from 0 to the first multiple of 1, 2 or 5 x 10^i that reaches `highest`, and returns that. */
function drawAxis(table, highest) {
  const magnitude = 10 ** Math.floor(Math.log10(highest));
  const step = [0.2, 0.5, 1, 2].map((part) => part * magnitude).find((part) => highest <= 5 * part);
  const steps = Math.ceil(highest / step);
  table.style.setProperty("--axis-step", `${100 / steps}%`);
  table.querySelector(".axis").replaceChildren(...Array.from({ length: steps + 1 }, (_, index) => {
    const tick = document.createElement("span");
    tick.textContent = Number((100 * step * index).toPrecision(3));
    tick.style.setProperty("inset-inline-start", `${100 * index / steps}%`);
    return tick;
  }));
  return steps * step;
}

/** Rows are kept by value, so that a bar grows from its own former length. */
function drawRows(body, entries, axisEnd, digits) {
  const former = new Map(Array.from(body.rows, (row) => [row.dataset.value, row]));
  const rows = entries.map(({ value }) => former.get(value) ?? createRow(value));
  placeChildren(body, rows);
  entries.forEach((entry, index) => drawRow(rows[index], entry, axisEnd, digits));
}

function createRow(value) {
  const row = cloneTemplate("row-template");
  const text = row.querySelector(".value");
  row.dataset.value = text.textContent = text.title = value;
  return row;
}

/** Intervals are clipped to [0, 1]: only their longer arm tells how far off the estimate may be. */
function drawRow(row, { frequency, low, high, significant }, axisEnd, digits) {
  const percent = (fraction) => (100 * fraction).toFixed(digits);
  const note = significant ? "" : ", not distinguishable from zero";
  setTexts(row, {
    ".frequency": `${percent(frequency)} %`,
    ".half-width": `± ${percent(Math.max(high - frequency, frequency - low))}`,
    ".spoken": `${percent(low)} to ${percent(high)} %${note}`,
  });
  row.classList.toggle("quiet", !significant);
  const { style } = row.querySelector(".plot");
  style.setProperty("--frequency", `${100 * Math.max(0, frequency) / axisEnd}%`);
  style.setProperty("--low", `${100 * low / axisEnd}%`);
  style.setProperty("--width", `${100 * (high - low) / axisEnd}%`);
}

/** Decimals of a percentage, 1 to 6, at which the narrowest interval still shows a digit. */
function percentDigits(entries) {
  const narrowest = 100 * NORMAL_95 * Math.min(...entries.map(({ standardError }) => standardError));
  return Math.min(6, Math.max(1, Math.ceil(-Math.log10(narrowest))));
}

poll();
