// What the worker computes of past windows, one after the other: it answers one at a time, since counting comes first.

const TIMEOUT_MILLISECONDS = 150_000; // for two periods that are read for a minute each
const TRIES = 6;
let last = Promise.resolve();

/** Answers `record`, or `error` with the reason. */
export function requestComparison(collection, [between, and], rate) {
  const query = new URLSearchParams({ collection, between: between.join("/"), and: and.join("/"), rate });
  return askNext(`api/compare?${query}`);
}

/** Answers `record`, the roll-up of a period in unix seconds, joined with estimates under former parameters, or `error` with the reason. */
export function requestRollUp(collection, from, to) {
  return askNext(`api/rollup?${new URLSearchParams({ collection, from, to, former: "estimates" })}`);
}

function askNext(address) {
  last = last.then(() => ask(address));
  return last;
}

/** Asks again while another page's answer is computed. */
async function ask(address) {
  for (let left = TRIES; ; left -= 1) {
    const { response, body } = await fetchOnce(address);
    if (response?.ok) return { record: body };
    if (response?.status !== 503 || left === 1) return { error: body?.error ?? "the worker cannot be reached" };
    await new Promise((resolve) => { setTimeout(resolve, 1000 * Number(response.headers.get("Retry-After") ?? 5)); });
  }
}

async function fetchOnce(address) {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) });
    return { response, body: await response.json().catch(() => null) };
  } catch {
    return { response: null, body: null };
  }
}
