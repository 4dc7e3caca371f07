/**
 * Sources of uniformly random 64-bit words, and uniform integers from them.
 *
 * Words are in a Uint32Array, the low half of each word first, as in Python's memory.
 *
 * @typedef {(count: number) => Uint32Array} Words returns 2 * count halves
 */

import { Bytes, Halves, Wholes, big, float, now } from "../short.js";

/** One call of getRandomValues may ask for 64 KiB, and the largest randomizer for 4,096 words. */
const pool = new Halves(9000);
let used = 9000;
let drawn = 0;

/**
 * Words of the operating system, each used once, and within a second: copies of a running machine share no others.
 *
 * @type {Words} at most 4,500 a call
 */
export const freshWords = (count) => {
  // Squared: the clock may be set back.
  if (used + 2 * count > 9000 || (now() - drawn) ** 2 > 1) {
    crypto.getRandomValues(pool);
    used = 0;
    drawn = now();
  }
  return pool.slice(used, (used += 2 * count));
};

/** @param {number} count a multiple of 8 @returns {Uint8Array} random bytes */
export const randomBytes = (count) => new Bytes(freshWords(count / 8).buffer);

/** @param {Uint32Array} word two halves @returns {bigint} */
export const wholeWord = (word) => new Wholes(word.buffer)[0];

/**
 * Multiply-shift: the high 64 bits of word * bound, so that every outcome has floor or ceil of 2^64 / bound words.
 *
 * @param {Uint32Array} word two halves @param {number} bound in [1, 2^32]
 * @returns {number} in [0, bound)
 */
export const below = (word, bound) => float((wholeWord(word) * big(bound)) >> 64n);

/** @returns {number} uniform in [0, 1), a multiple of 2^-32 */
export const uniform = () => freshWords(1)[0] / 2 ** 32;

/**
 * Put into a list at a random place: so all orders are equally likely, also of what is left once others were taken out.
 *
 * @template T @param {T[]} list @param {T} each
 */
export const insert = (list, each) => list.splice(uniform() * (list.length + 1), 0, each);
