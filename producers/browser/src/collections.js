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
import { DeniableError } from "./errors.js";
import { utf8 } from "./randomization/memory.js";
import { Bytes, big } from "./short.js";

const KINDS = ["", "k-rr", "rappor", "k-rr-longitudinal"];
const HALF = 1n << 31n;

/** @param {string} text base64 */
const bytes = (text) => Bytes.from(atob(text), (each) => each.charCodeAt(0));

/**
 * Check the signature and read the list.
 *
 * @param {string} body of the answer to GET /v1/collections @param {string} publicKey base64 of 32 bytes
 * @returns {Promise<{revision: number, collections: any[]}>} as signed
 */
export async function readList(body, publicKey) {
  const { signed, signature } = JSON.parse(body), { subtle } = crypto, list = JSON.parse(signed);
  const key = await subtle.importKey("raw", bytes(publicKey), "Ed25519", false, ["verify"]);
  const isSigned = await subtle.verify("Ed25519", key, bytes(signature), utf8(`deniable-collections-1\n${signed}`));
  if (!isSigned || list.format !== 1) {
    throw new DeniableError("signature", "the list of collections is not signed by publicKey");
  }
  return list;
}

/**
 * Read one collection, with its exact loss.
 *
 * @param {any} entry of the list @returns {Collection}
 * @throws {DeniableError} if a parameter is unknown, or out of its range
 */
export function readCollection(entry) {
  const { mechanism, memoize, values, other, name } = entry;
  const { k, hashes } = mechanism;
  const kind = KINDS.indexOf(mechanism.kind), isLongitudinal = kind === 3;
  /** @param {string} of */
  const threshold = (of) => big(mechanism[`${of}threshold`] ?? 0);
  const first = threshold("permanent_"), second = threshold(isLongitudinal ? "instantaneous_" : "");
  const flip = threshold("flip_"), p = threshold("p_"), q = threshold("q_"), size = big(k ?? 0);
  let one = UNBOUNDED, step = one, inf = one;
  if (kind === 2 && flip >= 0n && flip < HALF && p > 0n && q < 2n * HALF) {
    one = step = rapporLoss(hashes, flip, p, q);
    if (memoize) inf = lossOf(2n * HALF - flip, flip, 2 * hashes);
  } else if (kind % 2 > 0 && k > 1 && (!values.length || values.length + other === k)) {
    one = step = krrLoss(size, second);
    if (isLongitudinal) {
      inf = krrLoss(size, first);
      one = longitudinalLoss(size, first, second);
    }
  }
  if (step._above + (isLongitudinal ? inf._above : 0) === Infinity) {
    throw new DeniableError("unsupported", `collection ${name} is not supported`);
  }
  return {
    ...entry, ...mechanism, _kind: kind, _permanent: first, _instantaneous: second, _flip: Number(flip), _p: Number(p), _q: Number(q),
    // A report depends on the truth only through the permanent response, so its loss is at most that one's.
    _isAtMost: (/** @type {number} */ epsilon) => one._isAtMost(epsilon) || inf._isAtMost(epsilon),
    _perReport: step._above, _inf: inf._above,
  };
}
