/** Pairs of fields: k-RR of each text by itself, or one bit for each pair of values. */

import { WORDS, freshLosses, krrLoss, lossOf, rapporLosses } from "../epsilon.js";
import { randomizeBits, randomizeKrr } from "../randomization/randomizers.js";
import { below } from "../randomization/words.js";
import { indexIn } from "../notation.js";
import { Bytes, big, bucketRow, isText } from "../short.js";

/** @typedef {{k: number, values: string[], other: boolean}} Part one of the two fields */

/** What is in it, and how much, is the value: a field without a listed text, or without any, has the bucket of others. */
const TAKES = "array of two values", { isArray } = Array;

/** @param {any} entry @returns {Part[]} of the list, checked */
const partsOf = ({ mechanism, fields }) => {
  if (fields.length !== 2) throw new RangeError();
  return ["first_k", "second_k"].map((size, i) => {
    const { values, other } = fields[i], k = mechanism[size];
    if (!values.every(isText) || other !== !!other || k < 2 || values.length + +other !== k) throw new RangeError();
    return { k, values, other };
  });
};

/** Buckets of both texts: that of `other` if one is not listed, or -1 without it. @param {Part[]} parts @param {string[]} value */
const bucketsOf = (parts, value) => parts.map(({ k, values, other }, i) => {
  const bucket = indexIn(values, value[i]);
  return other && bucket < 0 ? k - 1 : bucket;
});

/** @type {import("../collections.js").Read} */
export const pair = (entry) => {
  const { mechanism } = entry;
  if (mechanism.kind !== "k-rr-pair") return;
  const parts = partsOf(entry), [{ k: rows }, { k: columns }] = parts, width = rows * columns;
  const thresholds = ["first", "second"].map((place) => big(mechanism[`${place}_threshold`]));
  if (parts.some(({ k }, i) => krrLoss(big(k), thresholds[i])[1] === Infinity)) return;
  /** Of both parts, multiplied. @param {(k: bigint, threshold: bigint) => bigint} figure */
  const product = (figure) => figure(big(rows), thresholds[0]) * figure(big(columns), thresholds[1]);
  return [
    7, width, [],
    () => (value) => {
      const found = bucketsOf(parts, value);
      return (fresh) => {
        // Drawn even if not needed, so that later words do not depend on the value.
        const anywhere = parts.map(({ k, other }) => (other ? -1 : below(fresh(1), k)));
        const truths = found.map((bucket, i) => (bucket < 0 ? anywhere[i] : bucket));
        const [first, second] = parts.map(({ k }, i) => randomizeKrr(truths[i], k, thresholds[i], fresh));
        const truth = bucketRow(truths[0] * columns + truths[1], width);
        return [bucketRow(first * columns + second, width), truth, truth];
      };
    },
    freshLosses(lossOf(product((_, threshold) => threshold * WORDS), product((k, threshold) => (WORDS - threshold) * (WORDS / (k - 1n))))),
    TAKES, isArray,
  ];
};

/**
 * One-hot RAPPOR over all pairs of values, without a permanent response. A pair with a text in no bucket sets no bit.
 *
 * @type {import("../collections.js").Read}
 */
export const hotPair = (entry) => {
  const { mechanism } = entry;
  if (mechanism.kind !== "one-hot-pair") return;
  const parts = partsOf(entry), [{ k: rows }, { k: columns }] = parts, bits = (rows * columns + 7) & ~7;
  if (bits > 4096) return;
  const thresholds = [0n, big(mechanism.p_threshold), big(mechanism.q_threshold)];
  return [
    2, bits, [],
    () => (value) => {
      const [first, second] = bucketsOf(parts, value), bit = first * columns + second, truth = new Bytes((bits / 8 + 7) & ~7);
      if (first >= 0 && second >= 0) truth[bit >> 3] |= 1 << (bit & 7);
      return (fresh) => randomizeBits(truth, bits, thresholds, fresh, fresh);
    },
    rapporLosses(1, false, thresholds),
    TAKES, isArray,
  ];
};
