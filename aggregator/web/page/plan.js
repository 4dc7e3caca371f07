// The what-if: errors that the worker's planner expects at a chosen epsilon.
// Rule: only positions in the chart are computed here; the worker computes all figures.

import { setText, setTexts } from "./dom.js";
import { formatCount, formatPercent } from "./format.js";
import { cursorOf, lineOf, pathsIn } from "./paths.js";
import { formatOdds, roundUp } from "./privacy.js";

const TIMEOUT_MILLISECONDS = 10_000;
const WHOLE = 1; // an error as large as all reports: no information

/** `asked`: the window the plan was requested for; its provisional and final estimates count as two. */
export function createPlan(root) {
  const view = { root, name: "", estimate: null, asked: "", plan: null };
  root.addEventListener("toggle", () => askWhenOpen(view));
  root.querySelector("input").addEventListener("input", () => drawChoice(view));
  return view;
}

export function updatePlan(view, name, estimate) {
  view.name = name;
  view.estimate = estimate;
  askWhenOpen(view);
}

async function askWhenOpen(view) {
  const { root, name, estimate } = view;
  if (!root.open || estimate === null) return;
  const asking = `${estimate.window_start} ${estimate.final}`;
  if (view.asked === asking) return;
  view.asked = asking;
  const plan = await fetchPlan(name, estimate.reports).catch(() => null);
  if (plan === null) {
    view.asked = "";
    return;
  }
  const isFirst = view.plan === null;
  view.plan = plan;
  if (isFirst) root.querySelector("input").value = nearest(plan.others.epsilon, plan.now.epsilon[0]);
  drawPlan(view);
}

async function fetchPlan(name, reports) {
  const query = new URLSearchParams({ collection: name, reports });
  const response = await fetch(`api/plan?${query}`, { signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) });
  return response.ok ? response.json() : null;
}

function nearest(numbers, wanted) {
  const distances = numbers.map((number) => Math.abs(Math.log(number / wanted)));
  return distances.indexOf(Math.min(...distances));
}

function drawPlan(view) {
  const { root, plan: { now, others, reports } } = view;
  root.querySelector("input").max = others.epsilon.length - 1;
  const errors = [...others.std_error, ...now.std_error].map((error) => Math.min(WHOLE, error));
  const [bottom, top] = [Math.floor(Math.log10(Math.min(...errors))), Math.ceil(Math.log10(Math.max(...errors)))];
  view.heightOf = (error) => 100 * (top - Math.log10(Math.min(WHOLE, error))) / Math.max(1, top - bottom);
  view.placeOf = (epsilon) => {
    const [least, most] = [others.epsilon[0], others.epsilon.at(-1)].map(Math.log);
    return 100 * Math.min(1, Math.max(0, (Math.log(epsilon) - least) / (most - least)));
  };
  drawDecades(root.querySelector(".decades"), bottom, top);
  setTexts(root, { ".reports-planned": formatCount(reports, "report") });
  drawColumn(root, "now", now, 0);
  drawChoice(view);
}

/** Labels each power of ten of the error, from the top down. */
function drawDecades(axis, bottom, top) {
  const decades = Array.from({ length: Math.max(1, top - bottom) + 1 }, (_, step) => top - step);
  axis.replaceChildren(...decades.map((decade, step) => {
    const label = document.createElement("span");
    label.textContent = `${Number((100 * 10 ** decade).toPrecision(1))} %`;
    label.style.setProperty("inset-block-start", `${100 * step / (decades.length - 1)}%`);
    return label;
  }));
}

function drawChoice(view) {
  const { root, plan } = view;
  if (plan === null) return;
  const slider = root.querySelector("input");
  const index = Number(slider.value);
  const { epsilon, std_error } = plan.others;
  drawColumn(root, "then", plan.others, index);
  slider.setAttribute("aria-valuetext",
    `ε ${roundUp(epsilon[index], 2)}: standard error ${formatError(std_error[index])}, now ${formatError(plan.now.std_error[0])}`);
  const pointOf = (epsilon, error) => ({ x: view.placeOf(epsilon), y: view.heightOf(error) });
  const curve = epsilon.map((each, place) => pointOf(each, std_error[place]));
  const now = pointOf(plan.now.epsilon[0], plan.now.std_error[0]);
  const [line, cursor, nowDot, dot] = pathsIn(root.querySelector("svg"), 4);
  line.setAttribute("d", lineOf([curve]));
  cursor.setAttribute("d", cursorOf(curve[index].x));
  nowDot.setAttribute("d", lineOf([[now]]));
  dot.setAttribute("d", lineOf([[curve[index]]]));
}

function drawColumn(root, column, { epsilon, std_error, detectable }, index) {
  const cell = (row) => root.querySelector(`.${row} .${column}`);
  setText(cell("epsilons"), roundUp(epsilon[index], 2, 2));
  setText(cell("odds"), formatOdds(epsilon[index]));
  setText(cell("errors"), formatError(std_error[index]));
  setText(cell("detectables"), detectable[index] === null ? "none" : formatError(detectable[index]));
}

export function formatError(share) {
  if (share >= WHOLE) return "over 100 %";
  return `${formatPercent(share, Math.min(6, Math.max(1, 1 - Math.floor(Math.log10(100 * share)))))} %`;
}
