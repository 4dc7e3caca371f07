/** Numbers between two ends, by Square Wave: no number is refused, since that would depend on it. */

import { commonest, freshLosses, lossOf, WORDS } from "../epsilon.js";
import { randomizeSquareWave } from "../randomization/randomizers.js";
import { below } from "../randomization/words.js";
import { numberOf } from "../notation.js";
import { big, bucketRow, floor, isInteger, max, min } from "../short.js";

/** @type {import("../collections.js").Read} */
export const number = ({ mechanism }) => {
  const { kind, steps, half_width: half } = mechanism, [minimum, maximum] = [mechanism.minimum, mechanism.maximum].map(parseFloat), range = maximum - minimum;
  if (kind !== "number" || ![steps, half].every(isInteger) || !(range > 0 && range < Infinity)) return;
  if (steps < 4 || steps > 512 || half < 0 || half > steps) return;
  const threshold = big(mechanism.threshold), near = 2 * half + 1, far = steps - 1, width = steps + 2 * half;
  // A near cell must be likelier than any far one.
  const isHigh = threshold * (WORDS / big(near)) > (WORDS - threshold) * commonest(big(far));
  return [
    6, width, [],
    () => (value) => (fresh) => {
      // Drawn even if not needed, so that later words do not depend on the value.
      const anywhere = below(fresh(1), steps), inside = min(max(numberOf(value), minimum), maximum) - minimum;
      const cell = inside >= 0 ? floor(min(inside * (steps / range), far)) : anywhere;
      const truth = bucketRow(cell + half, width);
      return [bucketRow(randomizeSquareWave(cell, near, far, threshold, fresh), width), truth, truth];
    },
    freshLosses(lossOf(isHigh ? threshold * commonest(big(near)) : 0n, (WORDS - threshold) * (WORDS / big(far)))),
  ];
};
