// Estimates as CSV: the columns of `deniable.read_estimates`, of the rows that are shown.

import { csvOf, download, iso, stamp } from "./csv.js";

const OTHER = "(other)";
const NAMES = [
  "collection", "window_start", "window_end", "value", "frequency", "low", "high", "std_error", "significant", "count",
  "is_other", "misfit_error", "unreliable", "low_all", "high_all", "unbiased", "reports", "final", "revision",
  "mechanism", "estimator", "epsilon", "fingerprint", "discovered_at", "fit_p_value", "upper",
];

/** Columns that some records lack. */
const OPTIONAL = ["misfit_error", "unreliable", "low_all", "high_all", "unbiased"];

/** `values`: names in the order of the table; `hasOther`: whether the row of all others is shown. */
export function downloadEstimate(estimate, values, hasOther) {
  download(`${estimate.collection}-${stamp(estimate.window_start)}.csv`, estimateCsv(estimate, values, hasOther));
}

function estimateCsv(estimate, values, hasOther) {
  const places = new Map(estimate.values.map((value, place) => [value, place]));
  const rows = values.map((value) => rowOf(estimate, value, figuresOf(estimate, places.get(value)), discoveredAt(estimate, places.get(value)), upperEdge(estimate, places.get(value))));
  const { other } = estimate;
  return csvOf(NAMES, hasOther && other !== null ? [...rows, rowOf(estimate, OTHER, figuresOfOther(estimate))] : rows);
}

function rowOf(estimate, value, figures, discovered = null, upper = null) {
  const { collection, window_start, window_end, reports, final, revision, mechanism, estimator, epsilon } = estimate;
  return [
    collection, iso(window_start), iso(window_end), value, ...figures, reports, final, revision, mechanism, estimator,
    epsilon, estimate.fingerprint, discovered, estimate.diagnostics?.fit_p_value ?? null, upper,
  ];
}

function discoveredAt({ discovered_at = [] }, place) {
  const moment = discovered_at[place] ?? null;
  return moment === null ? null : iso(moment);
}

/** Where a row of a number ends, whose values are lower edges. */
function upperEdge({ values, density = null }, place) {
  return density && Number(values[place + 1] ?? density.maximum);
}

function figuresOf(estimate, place) {
  const { frequency, low, high, std_error, significant, count } = estimate;
  const optional = OPTIONAL.map((name) => estimate[name]?.[place] ?? null);
  return [frequency[place], low[place], high[place], std_error[place], significant[place], count[place], false, ...optional];
}

function figuresOfOther({ other, reports }) {
  const { frequency, low, high, std_error } = other;
  return [frequency, low ?? null, high ?? null, std_error, null, frequency * reports, true, ...OPTIONAL.map(() => null)];
}
