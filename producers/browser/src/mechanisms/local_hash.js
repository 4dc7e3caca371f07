/** Local hashing, longitudinal or not: any text, by a hash function of each report, or of the client. */

import { blake2b } from "../crypto/blake2b.js";
import { bucketLosses } from "../epsilon.js";
import { randomizeKrr } from "../randomization/randomizers.js";
import { below } from "../randomization/words.js";
import { Bytes, Wholes, big, bucketRow, isPositive, isText, utf8 } from "../short.js";
import { blockOf, hashFunctionsOf } from "./hash_functions.js";

const MOST_BUCKETS = 251, MOST_COUNTERS = 2 ** 20;

/** @type {import("../collections.js").Read} */
export const localHash = ({ name, fingerprint, mechanism }) => {
  const { kind, hash_functions: functions, hash_buckets: buckets } = mechanism, isLongitudinal = kind === "local-hash-longitudinal";
  if ((kind !== "local-hash" && !isLongitudinal) || ![functions, buckets].every(isPositive)) return;
  const width = functions * buckets;
  if (buckets < 2 || buckets > MOST_BUCKETS || width > MOST_COUNTERS) return;
  const { chunks, lines } = blockOf(buckets), first = isLongitudinal ? big(mechanism.permanent_threshold) : 0n;
  if (functions % (chunks * lines) || isLongitudinal !== first > 0) return;
  const second = big(isLongitudinal ? mechanism.instantaneous_threshold : mechanism.threshold);
  const [isAtMost, perReport, inf] = bucketLosses(buckets, first, second);
  // Functions that clients keep are keyed by what is remembered alone.
  const kept = `{"mechanism":{"hash_buckets":${buckets},"hash_functions":${functions},"kind":"${kind}","permanent_threshold":${first}},"name":"${name}"}`;
  const key = isLongitudinal ? blake2b(8, 0, [], utf8(kept)) : new Bytes(Wholes.of(big(`0x${fingerprint}`)).buffer);
  const [wordOf, bucketOf] = hashFunctionsOf(buckets, key);
  return [
    isLongitudinal ? 5 : 4, width, "text", isText, [kind, functions, buckets, first],
    ([cohortOf, , wordsOf]) => {
      // A client's function is drawn like a cohort: by nothing but the client.
      const own = cohortOf(functions);
      return (value) => {
        const word = wordOf(value);
        return (fresh) => {
          const number = isLongitudinal ? own : below(fresh(1), functions), bucket = bucketOf(word, number);
          const response = isLongitudinal ? randomizeKrr(bucket, buckets, first, wordsOf([bucket, 0, 0, 0])) : bucket;
          const found = [randomizeKrr(response, buckets, second, fresh), response, bucket];
          return /** @type {any} */ (found.map((each) => bucketRow(number * buckets + each, width)));
        };
      };
    },
    // Whoever knows when the bucket changes may see the permanent response of each.
    isAtMost, perReport, buckets * inf,
  ];
};
