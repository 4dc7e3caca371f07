/** RAPPOR with Bloom filters, for any text. */

import { md5 } from "../crypto/md5.js";
import { rapporLosses } from "../epsilon.js";
import { randomizeBits } from "../randomization/randomizers.js";
import { Bytes, big, isPositive, utf8 } from "../short.js";

/** @type {import("../collections.js").Read} */
export const bloom = ({ mechanism, memoize }) => {
  const { kind, bits, hashes, cohorts } = mechanism;
  if (kind !== "rappor" || ![bits, hashes, cohorts].every(isPositive) || hashes > bits || bits > 4096 || bits % 8) return;
  const thresholds = ["flip", "p", "q"].map((of) => big(mechanism[`${of}_threshold`]));
  return [
    2, bits, [kind, bits, hashes, cohorts, thresholds[0]],
    ([cohortOf, digestOf, wordsOf]) => {
      const cohort = cohortOf(cohorts);
      return (value) => (fresh) => {
        const truth = new Bytes(((bits + 63) >> 6) * 8);
        // MD5 of the big-endian cohort and the word: a byte of it for each hash, or two.
        const text = utf8(value), data = new Bytes(text.length + 4);
        data.set([0, 0, cohort >> 8, cohort]);
        data.set(text, 4);
        const digest = md5(data);
        for (let i = 0; i < hashes; i++) {
          const bit = (bits <= 256 ? digest[i] : (digest[2 * i] << 8) | digest[2 * i + 1]) % bits;
          truth[bit >> 3] |= 1 << (bit & 7);
        }
        return [...randomizeBits(truth, bits, thresholds, memoize ? wordsOf(digestOf(value)) : fresh, fresh), cohort];
      };
    },
    rapporLosses(hashes, memoize, thresholds),
  ];
};
