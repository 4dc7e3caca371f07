/** Local hashing, longitudinal or not, and of prefixes: any text, by a hash function of each report, or of the client. */

import { blake2b } from "../crypto/blake2b.js";
import { bucketLosses } from "../epsilon.js";
import { randomizeKrr } from "../randomization/randomizers.js";
import { below } from "../randomization/words.js";
import { Bytes, Wholes, big, bucketRow, float, isPositive, utf8 } from "../short.js";
import { blockOf, hashFunctionsOf } from "./hash_functions.js";

const KINDS = ["local-hash", "local-hash-longitudinal", "prefix-tree"], MOST_LEVELS = 32, LONGEST = 255;
const MOST_BUCKETS = 251, MOST_COUNTERS = 2 ** 20;

/** @type {import("../collections.js").Read} */
export const localHash = ({ name, fingerprint, mechanism }) => {
  const { kind, hash_functions: functions, hash_buckets: buckets } = mechanism, form = KINDS.indexOf(kind), isLongitudinal = form === 1;
  // Bytes of the prefix on each level of a tree.
  const lengths = form > 1 ? mechanism.lengths.split(" ").map(float) : [], levels = lengths.length;
  if (form < 0 || ![functions, buckets, ...lengths].every(isPositive) || (form > 1 && levels < 2) || levels > MOST_LEVELS) return;
  if (lengths.some((/** @type {number} */ each, /** @type {number} */ i) => each > LONGEST || each <= lengths[i - 1])) return;
  const width = functions * buckets;
  if (buckets < 2 || buckets > MOST_BUCKETS || width > MOST_COUNTERS) return;
  const { chunks, lines } = blockOf(buckets), first = isLongitudinal ? big(mechanism.permanent_threshold) : 0n;
  if (functions % (chunks * lines) || isLongitudinal !== first > 0) return;
  const second = big(isLongitudinal ? mechanism.instantaneous_threshold : mechanism.threshold);
  // Functions that clients keep are keyed by what is remembered alone.
  const kept = `{"mechanism":{"hash_buckets":${buckets},"hash_functions":${functions},"kind":"${kind}","permanent_threshold":${first}},"name":"${name}"}`;
  const key = isLongitudinal ? blake2b(8, 0, [], utf8(kept)) : new Bytes(Wholes.of(big(`0x${fingerprint}`)).buffer);
  const [wordOf, bucketOf] = hashFunctionsOf(buckets, key);
  return [
    isLongitudinal ? 5 : 4, width, [kind, functions, buckets, first],
    ([cohortOf, , wordsOf]) => {
      // A client's function, or level of a tree, is drawn like a cohort: by nothing but the client.
      const own = cohortOf(isLongitudinal ? functions : levels || 1);
      return (value) => {
        const text = utf8(value), word = wordOf(levels ? Bytes.from([own, ...text.subarray(0, lengths[own])]) : text);
        return (fresh) => {
          const number = isLongitudinal ? own : below(fresh(1), functions), bucket = bucketOf(word, number);
          const response = isLongitudinal ? randomizeKrr(bucket, buckets, first, wordsOf([bucket, 0, 0, 0])) : bucket;
          const found = [randomizeKrr(response, buckets, second, fresh), response, bucket];
          const rows = found.map((each) => bucketRow(number * buckets + each, width));
          return /** @type {any} */ (levels ? [...rows, own] : rows);
        };
      };
    },
    bucketLosses(buckets, first, second),
  ];
};
