/**
 * The hash functions of local hashing, as in `estimators/mechanisms/hashing`: any text to a bucket.
 *
 * Functions come in blocks. A block sees of a value's 64-bit word a symbol of some chunks of digits to the base g; a
 * function is a linear combination, modulo g, of the digits of one chunk, whose first coefficient but zeros is 1.
 */

import { hmac } from "../crypto/sha256.js";
import { Bytes, Halves, Wholes, big, float, floor, utf8 } from "../short.js";

/** Largest power of a base that is not above a number; 1 at least. @param {number} base @param {number} most */
const powerBelow = (base, most) => {
  let power = 1;
  while (base ** (power + 1) <= most) power++;
  return power;
};

/** @param {number} buckets g, at least 2 @returns {{digits: number, chunks: number, lines: number}} of a block; a chunk has so many lines */
export const blockOf = (buckets) => {
  const digits = powerBelow(buckets, 49), size = buckets ** digits;
  return { digits, chunks: powerBelow(size, 4096), lines: (size - 1) / (buckets - 1) };
};

/**
 * @param {number} buckets g @param {Uint8Array} key 8 bytes
 * @returns {[wordOf: (text: Uint8Array) => bigint, bucketOf: (word: bigint, number: number) => number]} the word of a text in UTF-8,
 *   and its bucket under the function of a number
 */
export const hashFunctionsOf = (buckets, key) => {
  const { digits, chunks, lines } = blockOf(buckets);
  /** @param {string} what */
  const keyOf = (what) => hmac(key, utf8(`deniable local-hash ${what}`));
  const valueKey = keyOf("values"), blockKey = keyOf("blocks");
  /** @param {Uint8Array} secret @param {Uint8Array} data */
  const wordsOf = (secret, data) => new Wholes(hmac(secret, data).buffer);
  return [
    (text) => wordsOf(valueKey, text)[0],
    (word, number) => {
      const size = chunks * lines, row = number % size;
      const [factor, offset] = wordsOf(blockKey, new Bytes(Halves.of(floor(number / size)).buffer));
      const symbol = float(((big.asUintN(64, word * factor + offset) >> 32n) * big(buckets ** (digits * chunks))) >> 32n);
      // The coefficients as digits of a number, the first one highest: 1, then g + (0 to g - 1), then g^2 + …
      let line = row % lines, highest = 1, rest = floor(symbol / buckets ** (digits * floor(row / lines))), sum = 0;
      for (; line >= highest; highest *= buckets) line -= highest;
      line += highest;
      for (let place = digits - 1; place >= 0; place--) {
        sum += (line % buckets) * (floor(rest / buckets ** place) % buckets);
        line = floor(line / buckets);
      }
      return sum % buckets;
    },
  ];
};
