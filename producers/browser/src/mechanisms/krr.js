/** k-RR, and longitudinal k-RR with its permanent step. */

import { bucketLosses } from "../epsilon.js";
import { randomizeKrr } from "../randomization/randomizers.js";
import { below } from "../randomization/words.js";
import { indexIn, numberOf } from "../notation.js";
import { big, bucketRow } from "../short.js";

/**
 * A value that is not listed is reported as `other`; without `other`, as a bucket drawn at random.
 *
 * @type {import("../collections.js").Read}
 */
export const krr = ({ mechanism, values, other }) => {
  const { kind, k } = mechanism, number = ["k-rr", , "k-rr-longitudinal"].indexOf(kind) + 1, listed = values.length;
  if (!number || (listed && listed + other !== k)) return;
  /** @param {string} of */
  const threshold = (of) => big(mechanism[`${of}threshold`]);
  const first = number > 1 ? threshold("permanent_") : 0n, second = threshold(first ? "instantaneous_" : "");
  const known = k - +other;
  return [
    number, k, [kind, first, k, other ? "True" : "False", ...values],
    ([, , wordsOf]) => (value) => {
      // No number is refused: whether there is a report would depend on it.
      const found = listed ? indexIn(values, value) : numberOf(value), unknown = other ? known : -1;
      const bucket = found >= 0 && found < known && !(found % 1) ? found : unknown;
      return (fresh) => {
        const kept = first ? wordsOf([bucket, bucket >> 31, 0, 0]) : fresh;
        // Drawn even if not needed, so that later words do not depend on the value.
        const anywhere = other || below(kept(1), k);
        const truth = bucket < 0 ? anywhere : bucket, response = first ? randomizeKrr(truth, k, first, kept) : truth;
        return /** @type {any} */ ([randomizeKrr(response, k, second, fresh), response, truth].map((each) => bucketRow(each, k)));
      };
    },
    bucketLosses(k, first, second),
  ];
};
