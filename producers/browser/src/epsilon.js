/** The privacy loss of a mechanism, from its integer thresholds: exactly compared, or rounded up. */

import { big } from "./short.js";

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
 * @typedef {{_isAtMost: (epsilon: number) => boolean, _above: number}} Loss `_isAtMost` compares without an error
 *   of rounding, and `_above` is the loss in nats, rounded up by a part in 10^9 and 10^-12
 * @param {bigint} numerator @param {bigint} denominator @param {number} [times]
 * @returns {Loss} above any epsilon unless 0 < denominator < numerator
 */
export const lossOf = (numerator, denominator, times = 1) => {
  const isOne = denominator > 0n && numerator > denominator;
  const power = big(times);
  return {
    _isAtMost: (epsilon) => isOne && numerator ** power << 160n <= expBelow(epsilon) * denominator ** power,
    _above: isOne ? times * Math.log(Number((numerator << 64n) / denominator) / 2 ** 64) * (1 + 1e-9) + 1e-12 : Infinity,
  };
};

export const UNBOUNDED = lossOf(0n, 0n);

const WORDS = 1n << 64n;

/** Loss of a k-RR: p / min q. @param {bigint} k @param {bigint} threshold of 2^64; too low a one reveals as well */
export const krrLoss = (k, threshold) =>
  threshold * WORDS > (WORDS - threshold) * commonest(k)
    ? lossOf(threshold * WORDS, (WORDS - threshold) * (WORDS / (k - 1n)))
    : UNBOUNDED;

/** Words that multiply-shift maps to the commonest of k - 1 numbers. @param {bigint} k */
const commonest = (k) => (WORDS + k - 2n) / (k - 1n);

/**
 * Loss of one longitudinal report: the bound of `longitudinal_krr._extremes`, a + b t over c - d t.
 *
 * @param {bigint} k @param {bigint} first threshold of the permanent step @param {bigint} second t, of the other one
 */
export const longitudinalLoss = (k, first, second) => {
  const others = (WORDS - first) * commonest(k); // a, in 2^-128
  const high = others * WORDS + (first * WORDS - others) * second; // in 2^-192
  const rarest = WORDS / (k - 1n), u = (WORDS - first) * rarest; // in 2^-128
  const c = (WORDS * WORDS - u) * rarest; // in 2^-192, like d
  return lossOf(high * WORDS, c * WORDS - (c - u * WORDS) * second);
};

/** Loss of one report of RAPPOR. @param {number} ones @param {bigint} flip @param {bigint} p @param {bigint} q all in 2^-32 */
export const rapporLoss = (ones, flip, p, q) => {
  const kept = (1n << 32n) - flip;
  const zero = kept * p + flip * q, one = kept * q + flip * p; // p* and q*, in 2^-64
  return lossOf(one * (WORDS - zero), zero * (WORDS - one), ones);
};
