/**
 * Check and randomize one value, by mechanism, as `producers/responders` does.
 *
 * Only a value's type can be refused: whether, when and how much is sent depends on no value. A value that is not
 * listed is reported as `other`; without `other`, as a bucket drawn at random.
 *
 * @typedef {import("../collections.js").Collection} Collection
 * @typedef {import("./words.js").Words} Words
 * @typedef {[row: Uint8Array, permanent: Uint8Array, truth: Uint8Array]} Response in wire format; only the row,
 *   which is the report, may leave the device
 * @typedef {(fresh: Words) => Response} Respond randomizes a checked value, once
 * @typedef {[responder: (value: unknown) => Respond, cohort: number]} Responder throws DeniableError for a value
 *   of the wrong type
 */

import { md5 } from "../crypto/md5.js";
import { check } from "../errors.js";
import { Bytes, Halves, isInteger } from "../short.js";
import { memoryOf, utf8 } from "./memory.js";
import { bernoulli, randomizeKrr } from "./randomizers.js";
import { below } from "./words.js";

/** Check that a value is text, or else an integer. @param {string} name @param {unknown} value @param {unknown} isText */
const checkType = (name, value, isText) =>
  check(
    isText ? typeof value === "string" : typeof value === "bigint" || isInteger(value),
    "type", `a value of ${name} must be ${isText ? "text" : "an integer"}, got ${typeof value}`,
  );

/** @param {Collection} collection @param {Uint8Array} secret @param {string} client @returns {Responder} */
export const responderOf = (collection, secret, client) =>
  (collection.k ? bucketResponder : bloomResponder)(collection, secret, client);

/**
 * k-RR, and longitudinal k-RR with its permanent step.
 *
 * @param {Collection} collection @param {Uint8Array} secret @param {string} client
 */
const bucketResponder = ({ kind, name, values, other, k, _permanent: first, _instantaneous: second }, secret, client) => {
  const memory = memoryOf(secret, client, name, [kind, first, k, other ? "True" : "False", ...values]);
  const known = other ? k - 1 : k;
  /** @param {number} bucket in 1, 2 or 4 bytes */
  const row = (bucket) => new Bytes(Halves.of(bucket).buffer, 0, k <= 256 ? 1 : k <= 65536 ? 2 : 4);

  const responder = (/** @type {any} */ value) => {
    checkType(name, value, values.length);
    let number = values.length ? values.indexOf(value) : value >= 0 && value < known ? Number(value) : -1;
    if (other && number < 0) number = known;
    return (/** @type {Words} */ fresh) => {
      const kept = first ? memory._words([number, number >> 31, 0, 0]) : fresh;
      let truth = number;
      if (!other) {
        // Drawn even if not needed, so that later words do not depend on the value.
        const anywhere = below(kept(1), k);
        if (number < 0) truth = anywhere;
      }
      const response = first ? randomizeKrr(truth, k, first, kept) : truth;
      return [randomizeKrr(response, k, second, fresh), response, truth].map(row);
    };
  };
  return [responder, 0];
};

/**
 * RAPPOR with Bloom filters, for any text.
 *
 * @param {Collection} collection @param {Uint8Array} secret @param {string} client
 */
const bloomResponder = (collection, secret, client) => {
  const { kind, name, memoize, bits, hashes, cohorts, _flip: flip, _p: p, _q: q } = collection;
  const memory = memoryOf(secret, client, name, [kind, bits, hashes, cohorts, flip]);
  const cohort = memory._cohort(cohorts);

  const responder = (/** @type {any} */ value) => {
    checkType(name, value, true);
    // Lone surrogates have no UTF-8; refusing such a text would depend on the value and reveal it.
    const word = value.replace(/\p{Cs}/gu, "?");
    return (/** @type {Words} */ fresh) => {
      const truth = new Bytes(((bits + 63) >> 6) * 8);
      // MD5 of the big-endian cohort and the word: a byte of it for each hash, or two.
      const digest = md5(Bytes.from([0, 0, cohort >> 8, cohort, ...utf8(word)]));
      for (let i = 0; i < hashes; i++) {
        const bit = (bits <= 256 ? digest[i] : (digest[2 * i] << 8) | digest[2 * i + 1]) % bits;
        truth[bit >> 3] |= 1 << (bit & 7);
      }
      const kept = memoize ? memory._words(memory._digest(word)) : fresh;
      const response = bernoulli(truth, flip, flip, kept).map((flips, i) => flips ^ truth[i]);
      return [bernoulli(response, q, p, fresh), response, truth].map((row) => row.slice(0, bits / 8));
    };
  };
  return [responder, cohort];
};
