/**
 * The signed list of collections: what to ask, checked before anything is randomized.
 *
 * Names that begin with `_` are of this program; others are the list's.
 *
 * @typedef {object} Collection
 * @property {string} name
 * @property {string} kind of mechanism
 * @property {string} fingerprint 16 hexadecimal digits
 * @property {string[]} values
 * @property {boolean} other
 * @property {boolean} memoize
 * @property {number} window_seconds
 * @property {number} grace_seconds after a window's end in which the edge takes its reports
 * @property {number} reports_per_window
 * @property {{epsilon: number, period_seconds: number, reports: number | null} | null} budget
 * @property {number} _kind of mechanism, in the wire format
 * @property {number} [k] values, unless they are hashed
 * @property {bigint} _permanent threshold of k values, 2^-64; 0 without a permanent step
 * @property {bigint} _instantaneous threshold of k values, 2^-64
 * @property {number} bits
 * @property {number} hashes
 * @property {number} cohorts
 * @property {number} _flip (f/2) 2^32
 * @property {number} _p p 2^32
 * @property {number} _q q 2^32
 * @property {(epsilon: number) => boolean} _isAtMost whether a report costs no more than this
 * @property {number} _perReport nats: n reports cost at most n times as much
 * @property {number} _inf nats: of any number of reports
 */

import { UNBOUNDED, krrLoss, longitudinalLoss, lossOf, rapporLoss } from "./epsilon.js";
import { check } from "./errors.js";
import { utf8 } from "./randomization/memory.js";
import { Bytes, big, isInteger } from "./short.js";

/** @param {string} text base64 */
export const bytesOf = (text) => Bytes.from(atob(text), (each) => each.charCodeAt(0));

/** @param {unknown} value */
const isPositive = (value) => isInteger(value) && /** @type {number} */ (value) > 0;

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
  check(list, "signature", "list not signed by publicKey, base64 of 32 bytes: deniable edge --show-key");
  support(list.format === 1 && isPositive(list.revision) && Array.isArray(list.collections), "the list");
  return list;
};

/**
 * Read one collection, with its exact loss.
 *
 * @param {any} entry of the list @returns {Collection}
 * @throws {DeniableError} if a field is missing, unknown or out of its range
 */
export const readCollection = (entry) => {
  let found;
  try {
    found = read(entry);
  } catch {
    // A field is missing, or of another type.
  }
  support(found, `collection ${entry.name}`);
  return /** @type {Collection} */ (found);
};

/** @param {any} entry @returns {Collection | false} */
const read = (entry) => {
  const { mechanism, memoize, values, other, budget } = entry, { k, bits, hashes, cohorts } = mechanism;
  const kind = ["", "k-rr", "rappor", "k-rr-longitudinal"].indexOf(mechanism.kind), isLongitudinal = kind === 3;
  /** @param {string} of */
  const threshold = (of) => big(mechanism[`${of}threshold`] ?? 0);
  const first = threshold("permanent_"), second = threshold(isLongitudinal ? "instantaneous_" : "");
  const flip = threshold("flip_"), p = threshold("p_"), q = threshold("q_"), size = big(k ?? 0);
  let one = UNBOUNDED, step = one, inf = one;
  if (kind === 2 && [bits, hashes, cohorts].every(isPositive) && hashes <= bits && bits <= 4096 && flip >= 0 && flip < 2 ** 31 && p > 0 && q < 2 ** 32) {
    one = step = rapporLoss(hashes, flip, p, q);
    if (memoize) inf = lossOf((1n << 32n) - flip, flip, 2 * hashes);
  } else if (kind % 2 > 0 && k > 1 && (!values.length || values.length + other === k)) {
    one = step = krrLoss(size, second);
    if (isLongitudinal) {
      inf = krrLoss(size, first);
      one = longitudinalLoss(size, first, second);
    }
  }
  const isUsable = step._above + (isLongitudinal ? inf._above : 0) < Infinity
    && values.every((/** @type {any} */ each) => each === each + "") && other === !!other && memoize === !!memoize
    && [entry.window_seconds, entry.grace_seconds, entry.reports_per_window].every(isPositive)
    && (budget === null || (typeof budget.epsilon === "number" && budget.epsilon > 0 && isPositive(budget.period_seconds) && (budget.reports === null || isPositive(budget.reports))));
  return isUsable && {
    ...entry, ...mechanism, _fingerprint: big(`0x${entry.fingerprint}`), _kind: kind, _permanent: first, _instantaneous: second,
    _flip: Number(flip), _p: Number(p), _q: Number(q),
    // A report depends on the truth only through the permanent response, so its loss is at most that one's.
    _isAtMost: (/** @type {number} */ epsilon) => one._isAtMost(epsilon) || inf._isAtMost(epsilon),
    _perReport: step._above, _inf: inf._above,
  };
};
