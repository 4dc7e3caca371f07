/**
 * The signed list of collections: what to ask, checked before anything is randomized.
 *
 * Names that begin with `_` are of this program; others are the list's.
 *
 * @typedef {object} Collection
 * @property {string} _id all that what was spent depends on: its fingerprint, what is remembered, its losses
 * @property {bigint} _fingerprint
 * @property {Budget} _budget
 * @property {number} _window seconds
 * @property {number} _grace seconds after a window's end in which the edge takes its reports
 * @property {number} _most reports in a window
 * @property {Mechanism} _mechanism
 * @property {number} _perReport nats: n reports cost at most n times as much
 * @property {number} _lifetime nats: any number of reports cost at most this, whatever the values do
 * @property {(epsilon: number, values?: string) => number} _within how many reports cost at most so much at delta = 0
 *
 * @typedef {[epsilon: number, period: number, reports: number]} Budget reports in a period that began with nothing spent;
 *   all endless without a budget
 * @typedef {import("./randomization/words.js").Words} Words
 * @typedef {[row: Uint8Array, permanent: Uint8Array, truth: Uint8Array, cohort?: number]} Response in wire format; only
 *   the row, which is the report, and the cohort, 0 if missing, may leave the device
 *
 * A mechanism, as read from an entry of the list. Only a value's type can be refused: whether, when and how much is
 * sent depends on no value. A tuple, since names that begin with `_` differ between modules that are built apart.
 *
 * @typedef {[
 *   number: number, width: number, parameters: (string | number | bigint)[],
 *   responder: (memory: import("./randomization/memory.js").Memory) => (value: any) => (fresh: Words) => Response,
 *   losses: import("./epsilon.js").Losses, takes?: string, isRight?: (value: any) => unknown,
 * ]} Mechanism its number in the wire format and the width of its reports there; the type of its values, in words, and
 *   whether a value has it, if that word of `typeof` is not in them; what permanent responses depend on; what
 *   randomizes a client's value, once; what a report costs, each of several, a permanent response, and how many there are
 * @typedef {(entry: any) => Mechanism | undefined} Read nothing if the mechanism is of another kind, or if its
 *   parameters are out of their ranges; then it may also throw anything, or give an infinite loss of each
 */

import { timesWithin } from "./epsilon.js";
import { check } from "./errors.js";
import { ENDLESS } from "./limits.js";
import { bloom } from "./mechanisms/bloom.js";
import { krr } from "./mechanisms/krr.js";
import { big, bytesOf, float, isPositive, isText, utf8 } from "./short.js";

/** @param {unknown} isKnown @param {string} what @throws {DeniableError} unless it is known */
const support = (isKnown, what) => check(isKnown, "unsupported", `${what} is not supported`);

/**
 * Check the signature and read the list.
 *
 * @param {string} body of the answer to GET /v1/collections @param {string} publicKey base64 of 32 bytes
 * @returns {Promise<{revision: number, collections: any[]}>} as signed
 * @throws {DeniableError} if it is not signed, or signed and of another format
 */
export const readList = async (body, publicKey) => {
  const { subtle } = crypto;
  let list;
  try {
    const { signed, signature } = JSON.parse(body);
    const key = await subtle.importKey("raw", bytesOf(publicKey), "Ed25519", false, ["verify"]);
    list = (await subtle.verify("Ed25519", key, bytesOf(signature), utf8(`deniable-collections-1\n${signed}`))) && JSON.parse(signed);
  } catch {
    // Whatever answers instead of an edge, and an engine without Ed25519.
  }
  check(list, "signature", "list not signed by publicKey");
  support(list.format === 1 && isPositive(list.revision) && Array.isArray(list.collections), "the list");
  return list;
};

/**
 * Read one collection, with its exact loss.
 *
 * @param {any} entry of the list @param {Read} [mechanisms] beside those of this module
 * @returns {Collection}
 * @throws {DeniableError} if a field is missing, unknown or out of its range, or if a budget allows any number of
 *   reports that may cost more
 */
export const readCollection = (entry, mechanisms) => {
  /** @type {any} */
  let found;
  try {
    const { fingerprint, values, other, memoize, budget, window_seconds: window, grace_seconds: grace, reports_per_window: most } = entry;
    const mechanism = krr(entry) ?? bloom(entry) ?? mechanisms?.(entry);
    const [, , parameters, , [, each, [isKeptAtMost, kept], responses]] = /** @type {Mechanism} */ (mechanism), [, perReport] = each, lifetime = kept * responses;
    /** @type {Collection["_within"]} What is not said to be of one value is of values that change. */
    const within = (epsilon, values) => isKeptAtMost(epsilon / +(values === "unchanged" || responses)) ? Infinity : timesWithin(each, epsilon);
    const isUsable = perReport < Infinity && values.every(isText) && other === !!other && memoize === !!memoize
      && [window, grace, most].every(isPositive)
      && (budget === null || (float.isFinite(budget.epsilon) && budget.epsilon > 0 && isPositive(budget.period_seconds) && (budget.reports === null || isPositive(budget.reports))));
    found = isUsable && {
      _id: `${[fingerprint, parameters, perReport, lifetime]}`, _fingerprint: big(`0x${fingerprint}`),
      _budget: budget ? [budget.epsilon, budget.period_seconds, budget.reports ?? (within(budget.epsilon, budget.values) < Infinity ? 0 : Infinity)] : [Infinity, ENDLESS, Infinity],
      _perReport: perReport, _lifetime: lifetime, _within: within, _window: window, _grace: grace, _most: most, _mechanism: mechanism,
    };
  } catch {
    // A field is missing, or of another type.
  }
  support(found, `${mechanisms ? "" : "without mechanisms.min.js, "}collection ${entry.name}`);
  check(found._budget[2], "budget", `any number of reports to ${entry.name} exceeds its budget`);
  return found;
};
