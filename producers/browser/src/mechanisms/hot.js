/** RAPPOR with a bit for each listed value: one value (one-hot), or a set of them (k-hot). */

import { rapporLosses } from "../epsilon.js";
import { randomizeBits, someOf } from "../randomization/randomizers.js";
import { indexIn } from "../notation.js";
import { Bytes, Halves, big, isPositive } from "../short.js";

/** Whatever is in it: what is not listed counts as an unlisted value. @param {any} value */
const isMany = (value) => Array.isArray(value) || value instanceof Set;

/**
 * An unlisted value sets the bit `other` or, without one, no bit.
 *
 * @type {import("../collections.js").Read}
 */
export const hot = ({ mechanism, values, other, memoize }) => {
  const { kind, buckets, hot: most } = mechanism;
  if (kind !== "rappor-hot" || ![buckets, most].every(isPositive) || most > buckets || buckets > 4096 || values.length + other !== buckets) return;
  const thresholds = ["flip", "p", "q"].map((of) => big(mechanism[`${of}_threshold`])), size = (buckets + 7) >> 3;
  return [
    2, 8 * size, [kind, most, thresholds[0], buckets, other ? "True" : "False", ...values],
    ([, , wordsOf]) => (value) => {
      const truth = new Bytes((size + 7) & ~7), block = new Bytes((size + 15) & ~15);
      for (const each of most > 1 ? value : [value]) {
        const found = indexIn(values, each), bucket = other && found < 0 ? buckets - 1 : found;
        if (bucket >= 0) truth[bucket >> 3] |= 1 << (bucket & 7);
      }
      block.set(truth.subarray(0, size));
      return (fresh) => {
        const kept = memoize ? wordsOf(new Halves(block.buffer)) : fresh;
        const some = most > 1 ? someOf(truth, 8 * size, most, kept) : truth;
        return randomizeBits(some, 8 * size, thresholds, kept, fresh);
      };
    },
    rapporLosses(most, memoize, thresholds, most > 1 ? Infinity : buckets),
    ...(most > 1 ? ["array or set of values", isMany] : []),
  ];
};
