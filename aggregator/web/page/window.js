// One window's estimate from the worker, however long ago: from what it keeps, else from the counts of the final window.

import { formatMoment } from "./format.js";

const TIMEOUT_MILLISECONDS = 90_000; // reading windows of long ago may take a minute

/** Answers `estimate`, or `error` with the reason why there is none. */
export async function fetchWindow({ name, window_seconds }, start) {
  const kept = await ask(`api/estimates/${name}?${new URLSearchParams({ window_start: start })}`);
  if (kept.status !== 404) return kept.body === null ? { error: `No answer: ${kept.error}.` } : { estimate: kept.body };
  const query = new URLSearchParams({ collection: name, from: start, to: start + window_seconds });
  const { body, error } = await ask(`api/rollup?${query}`);
  if (body === null) return { error: `The window of ${formatMoment(start)} is not kept here: ${error}.` };
  if (body.independent === null && Object.keys(body.coverage.passed_over).length > 0) {
    return { error: `The window of ${formatMoment(start)} was counted under other parameters: the history has its shares.` };
  }
  if (body.independent === null) {
    return { error: `The window of ${formatMoment(start)} is not kept here, and its counts are not in the topic.` };
  }
  return { estimate: body.independent };
}

async function ask(address) {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) });
    const body = response.status === 204 ? null : await response.json();
    return response.ok ? { status: response.status, body, error: "no estimate yet" }
      : { status: response.status, body: null, error: body.error };
  } catch {
    return { status: 0, body: null, error: "the worker cannot be reached" };
  }
}
