/**
 * The randomizers: every probability that privacy depends on, as in `producers/randomization/randomizers.py`.
 *
 * Pure functions of values and words. Each draws the same words and does the same work whatever the values.
 * Source: Kairouz et al. (k-RR); Erlingsson, Pihur and Korolova, CCS 2014, section 3 (RAPPOR).
 *
 * @typedef {import("./words.js").Words} Words
 */

import { Bytes, Halves, Wholes, float } from "../short.js";
import { below, wholeWord } from "./words.js";

/**
 * k-ary randomized response: the truth with probability threshold / 2^64, else another value, uniformly.
 *
 * @param {number} truth in [0, k) @param {number} k in [2, 2^31] @param {bigint} threshold below 2^64
 * @param {Words} words one word, then another one
 * @returns {number} in [0, k)
 */
export const randomizeKrr = (truth, k, threshold, words) => {
  const keep = wholeWord(words(1)) < threshold;
  const lie = below(words(1), k - 1);
  return keep ? truth : lie + (lie >= truth ? 1 : 0);
};

/**
 * Square Wave: a cell near the true one, or one that is far from it.
 *
 * @param {number} truth in [0, far] @param {number} near 2b + 1 cells, from the truth on @param {number} far d - 1 cells
 * @param {bigint} threshold of a near one, below 2^64 @param {Words} words one word, then another one
 * @returns {number} in [0, near + far)
 */
export const randomizeSquareWave = (truth, near, far, threshold, words) => {
  const isNear = wholeWord(words(1)) < threshold, word = words(1), lie = below(word, far);
  return isNear ? truth + below(word, near) : lie + (lie >= truth ? near : 0);
};

/**
 * A uniformly random subset of at most `most` of the bits that are 1: those with the smallest words.
 *
 * @param {Uint8Array} row all of its buffer @param {number} bits @param {number} most @param {Words} words one for each bit
 * @returns {Uint8Array} as `row`
 */
export const someOf = (row, bits, most, words) => {
  const ranks = new Wholes(words(bits).buffer), some = new Bytes(row.length);
  const ones = [...Array(bits).keys()].filter((bit) => (row[bit >> 3] >> (bit & 7)) & 1);
  ones.sort((one, other) => (ranks[one] < ranks[other] ? -1 : 1));
  for (const bit of ones.slice(0, most)) some[bit >> 3] |= 1 << (bit & 7);
  return some;
};

/**
 * Draw independent bits: 1 with probability ifOne / 2^32 where `row` has a 1, else ifZero / 2^32.
 *
 * With q and p of RAPPOR that is the instantaneous response to a permanent one. With f/2 and f/2 it is the bits to
 * flip: a bit flipped with probability f/2 is a fair coin with probability f, which is the permanent response.
 *
 * A bit is 1 iff a uniform number U of 32 binary digits is below its threshold T. A word has one digit of 64 such
 * numbers, complemented. Going up from the lowest digit, U < T so far iff U's digit is below T's, or they are
 * equal and U < T held before. If T's digit is 1, that is `word | before`; if 0, `word & before`. Below the lowest
 * 1 of both thresholds nothing is drawn: no number is below 0.
 *
 * @param {Uint8Array} row all of its buffer, a whole number of 64-bit words
 * @param {number} ifOne in [0, 2^32) @param {number} ifZero in [0, 2^32)
 * @param {Words} words row.length / 8 words for each digit from the lowest 1 up
 * @returns {Uint8Array} as `row`
 */
export const bernoulli = (row, ifOne, ifZero, words) => {
  const truth = new Halves(row.buffer), before = new Halves(truth.length);
  for (let place = 0; place < 32; place++) {
    if ((ifOne | ifZero) & ((2 << place) - 1)) {
      const one = -((ifOne >>> place) & 1), zero = -((ifZero >>> place) & 1);
      words(truth.length / 2).forEach((word, i) => {
        const digits = (truth[i] & one) | (~truth[i] & zero);
        before[i] = (word & before[i]) | ((word | before[i]) & digits);
      });
    }
  }
  return new Bytes(before.buffer);
};

/**
 * RAPPOR: flip each bit with the first probability, then report it by the third where it is 1, else by the second.
 *
 * @param {Uint8Array} truth all of its buffer, a whole number of 64-bit words @param {number} bits of a report
 * @param {bigint[]} thresholds flip, p and q, in 2^-32 @param {Words} kept words of the permanent step @param {Words} fresh
 * @returns {[row: Uint8Array, permanent: Uint8Array, truth: Uint8Array]}
 */
export const randomizeBits = (truth, bits, thresholds, kept, fresh) => {
  const [flip, p, q] = thresholds.map(float);
  const response = bernoulli(truth, flip, flip, kept).map((flips, i) => flips ^ truth[i]);
  return /** @type {any} */ ([bernoulli(response, q, p, fresh), response, truth].map((row) => row.slice(0, bits / 8)));
};
