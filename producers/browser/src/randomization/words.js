/**
 * Sources of uniformly random 64-bit words, and uniform integers from them.
 *
 * Words are in a Uint32Array, the low half of each word first, as in Python's memory.
 *
 * @typedef {(count: number) => Uint32Array} Words returns 2 * count halves
 */

import { expandKey, mac } from "../crypto/aes.js";
import { Bytes, Halves, Wholes, big } from "../short.js";

/** The most that one call of getRandomValues may ask for is 64 KiB. */
const pool = new Halves(16_384);
let used = 16_384;

/** Words of the operating system, each used once. @type {Words} at most 8,192 a call */
export const freshWords = (count) => {
  if (used + 2 * count > 16_384) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  return pool.slice(used, (used += 2 * count));
};

/** @param {number} count a multiple of 8 @returns {Uint8Array} random bytes */
export const randomBytes = (count) => new Bytes(freshWords(count / 8).buffer);

/**
 * Words that depend on a seed: block j is AES(key, seed XOR j). An odd count leaves its last block half unused.
 *
 * @param {Uint8Array} key 16 bytes @param {Uint32Array} seed one block
 * @returns {Words}
 */
export const repeatedWords = (key, seed) => {
  const schedule = expandKey(key);
  let number = 0;
  return (count) => {
    const words = new Halves((2 * count + 2) & ~3);
    for (let place = 0; place < words.length; place += 4) {
      const block = seed.slice();
      block[0] ^= number++;
      words.set(mac(schedule, block), place);
    }
    return words;
  };
};

/** @param {Uint32Array} word two halves @returns {bigint} */
export const wholeWord = (word) => new Wholes(word.buffer)[0];

/**
 * Multiply-shift: the high 64 bits of word * bound, so that every outcome has floor or ceil of 2^64 / bound words.
 *
 * @param {Uint32Array} word two halves @param {number} bound in [1, 2^32]
 * @returns {number} in [0, bound)
 */
export const below = (word, bound) => Number((wholeWord(word) * big(bound)) >> 64n);

/** @returns {number} uniform in [0, 1), a multiple of 2^-32 */
export const uniform = () => freshWords(1)[0] / 2 ** 32;
