/** The privacy loss of a mechanism, from its integer thresholds: exactly compared, or rounded up. */

import { big, float, floor, min } from "./short.js";

/** @param {number} x positive @returns {bigint} at most e^x 2^160: its Taylor series with every term rounded down */
const expBelow = (x) => {
  let denominator = 1n, total = 0n, order = 0n;
  for (; x % 1; x *= 2) denominator *= 2n;
  for (let term = 1n << 160n; term; term = (term * big(x)) / (denominator * ++order)) total += term;
  return total;
};

/**
 * A loss of `times` ln(numerator / denominator).
 *
 * @typedef {[isAtMost: (epsilon: number) => boolean, above: number]} Loss `isAtMost` compares without an error
 *   of rounding, to 700 nats at most, and `above` is the loss in nats, rounded up by a part in 10^9 and 10^-12
 * @param {bigint} numerator @param {bigint} denominator @param {number} [times]
 * @returns {Loss} above any epsilon unless 0 < denominator < numerator
 */
export const lossOf = (numerator, denominator, times = 1) => {
  const isOne = denominator > 0n && numerator > denominator;
  const power = big(times);
  return [
    (epsilon) => isOne && numerator ** power << 160n <= expBelow(min(epsilon, 700)) * denominator ** power,
    isOne ? times * Math.log(float((numerator << 64n) / denominator) / 2 ** 64) * (1 + 1e-9) + 1e-12 : Infinity,
  ];
};

export const WORDS = 1n << 64n;

/** Words that multiply-shift maps to the commonest of so many numbers. @param {bigint} numbers */
export const commonest = (numbers) => (WORDS + numbers - 1n) / numbers;

/** Loss of a k-RR: p / min q. @param {bigint} k @param {bigint} threshold of 2^64; too low a one reveals as well */
export const krrLoss = (k, threshold) =>
  lossOf(
    threshold * WORDS > (WORDS - threshold) * commonest(k - 1n) ? threshold * WORDS : 0n,
    (WORDS - threshold) * (WORDS / (k - 1n)),
  );

/**
 * Loss of one longitudinal report: the bound of `longitudinal_krr._extremes`, a + b t over c - d t.
 *
 * @param {bigint} k @param {bigint} first threshold of the permanent step @param {bigint} second t, of the other one
 */
const longitudinalLoss = (k, first, second) => {
  const others = (WORDS - first) * commonest(k - 1n); // a, in 2^-128
  const high = others * WORDS + (first * WORDS - others) * second; // in 2^-192
  const rarest = WORDS / (k - 1n), u = (WORDS - first) * rarest; // in 2^-128
  const c = (WORDS * WORDS - u) * rarest; // in 2^-192, like d
  return lossOf(high * WORDS, c * WORDS - (c - u * WORDS) * second);
};

/**
 * The losses of a mechanism: of one report, of each of n reports, and of any number of them.
 *
 * What is remembered bounds one report too, which depends on the truth through nothing else.
 *
 * @typedef {[isAtMost: Loss[0], each: Loss, kept: Loss, responses: number]} Losses `kept` is that of one permanent
 *   response, and `responses` how many of them values that change can show
 * @param {Loss} one @param {Loss} each @param {Loss} kept @param {number} responses @returns {Losses}
 */
const lossesOf = ([isAtMost], each, kept, responses) => [(epsilon) => isAtMost(epsilon) || kept[0](epsilon), each, kept, responses];

/** Of reports with fresh noise alone. @param {Loss} each @returns {Losses} */
export const freshLosses = (each) => [each[0], each, [() => false, Infinity], Infinity];

/** How many times a loss is within epsilon, exactly. @param {Loss} loss @param {number} epsilon */
export const timesWithin = ([isAtMost, above], epsilon) => {
  const times = floor(epsilon / above);
  return isAtMost(epsilon / (times + 1)) ? times + 1 : times;
};

/**
 * The losses of a k-RR of buckets, whose first step, if it has one, is remembered.
 *
 * @param {number} buckets @param {bigint} first threshold of the permanent step, 0 if there is none
 * @param {bigint} second threshold of the other one
 * @returns {Losses} `each` is infinite if a threshold is out of its range
 */
export const bucketLosses = (buckets, first, second) => {
  const k = big(buckets), each = krrLoss(k, second), kept = krrLoss(k, first);
  return first ? lossesOf(longitudinalLoss(k, first, second), kept[1] < Infinity ? each : kept, kept, buckets) : lossesOf(each, each, kept, buckets);
};

/**
 * The losses of RAPPOR; the permanent response bounds a report as well, if it is remembered.
 *
 * @param {number} ones @param {unknown} memoize @param {bigint[]} thresholds flip, p and q, in 2^-32
 * @param {number} [responses] different filters
 * @returns {Losses} `each` is infinite if a threshold is out of its range
 */
export const rapporLosses = (ones, memoize, [flip, p, q], responses = Infinity) => {
  const unit = 1n << 32n, kept = unit - flip;
  const zero = kept * p + flip * q, one = kept * q + flip * p; // p* and q*, in 2^-64
  const isUsable = flip >= 0 && flip * 2n < unit && p > 0 && q < unit;
  const each = lossOf(isUsable ? one * (WORDS - zero) : 0n, zero * (WORDS - one), ones);
  return lossesOf(each, each, lossOf(memoize ? kept : 0n, flip, 2 * ones), responses);
};
